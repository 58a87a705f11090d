//! Frames from the hub.

use fairlead_model::{PlacementId, PodDemand};
use fairlead_session::{Command, Desired, HubFrame, Intent, StopCause, Welcome};

use super::{Frame, WireError, common, hashes, present};
use crate::wire::{self, hub_message as message, placed_command as placed};

impl Frame for HubFrame {
    type Message = wire::HubMessage;

    fn name(&self) -> &'static str {
        Self::name(self)
    }

    fn encode(self) -> wire::HubMessage {
        let frame = match self {
            Self::Welcome(welcome) => message::Frame::Welcome(welcome_out(welcome)),
            Self::Command(placement, command) => message::Frame::Command(command_out(&placement, command)),
            Self::Withdraw(placement) => message::Frame::Withdraw(placement.to_string()),
            Self::CommandsComplete => message::Frame::CommandsComplete(wire::Empty {}),
            Self::ObservationReceived(placement, boot, version) => {
                let placement = placement.to_string();
                message::Frame::ObservationReceived(wire::ObservationReceived { placement, boot, version })
            }
            Self::Acknowledge(placement, epoch, boot, version) => {
                let (placement, epoch) = (placement.to_string(), Some(common::epoch_out(epoch)));
                message::Frame::Acknowledge(wire::Acknowledge { placement, epoch, boot, version })
            }
            Self::HeartbeatAck(number) => message::Frame::HeartbeatAck(number),
            Self::Goodbye(goodbye) => message::Frame::Goodbye(common::goodbye_out(&goodbye)),
        };
        wire::HubMessage { frame: Some(frame) }
    }

    fn decode(message: wire::HubMessage) -> Result<Self, WireError> {
        Ok(match present(message.frame, "the hub's frame")? {
            message::Frame::Welcome(wire) => Self::Welcome(welcome(wire)?),
            message::Frame::Command(wire) => {
                let (placement, command) = command(wire)?;
                Self::Command(placement, command)
            }
            message::Frame::Withdraw(placement) => Self::Withdraw(common::placement(placement)?),
            message::Frame::CommandsComplete(_) => Self::CommandsComplete,
            message::Frame::ObservationReceived(wire) => {
                Self::ObservationReceived(common::placement(wire.placement)?, wire.boot, wire.version)
            }
            message::Frame::Acknowledge(wire) => Self::Acknowledge(
                common::placement(wire.placement)?,
                common::epoch(wire.epoch)?,
                wire.boot,
                wire.version,
            ),
            message::Frame::HeartbeatAck(number) => Self::HeartbeatAck(number),
            message::Frame::Goodbye(wire) => Self::Goodbye(common::goodbye(wire)),
            message::Frame::Part(_) => return Err(WireError::Interleaved),
        })
    }

    fn part(part: wire::Part) -> wire::HubMessage {
        wire::HubMessage { frame: Some(message::Frame::Part(part)) }
    }

    fn as_part(message: wire::HubMessage) -> Result<wire::Part, wire::HubMessage> {
        match message.frame {
            Some(message::Frame::Part(part)) => Ok(part),
            frame => Err(wire::HubMessage { frame }),
        }
    }
}

fn welcome_out(welcome: Welcome) -> wire::Welcome {
    wire::Welcome {
        protocol: welcome.protocol,
        leadership: Some(common::leadership_out(&welcome.leadership)),
        versions: Some(common::versions_out(&welcome.versions)),
        heartbeat_ms: welcome.heartbeat_ms,
        observations: welcome.observations.0,
        commands: welcome.commands.0,
    }
}

fn welcome(wire: wire::Welcome) -> Result<Welcome, WireError> {
    Ok(Welcome {
        protocol: wire.protocol,
        leadership: common::leadership(wire.leadership)?,
        versions: common::versions(wire.versions),
        heartbeat_ms: wire.heartbeat_ms,
        observations: hashes(wire.observations)?,
        commands: hashes(wire.commands)?,
    })
}

fn command_out(placement: &PlacementId, command: Command) -> wire::PlacedCommand {
    let desired = match command.desired {
        Desired::Prepare(intent) => placed::Desired::Prepare(intent_out(&intent)),
        Desired::Start(intent) => placed::Desired::Start(intent_out(&intent)),
        Desired::Keep => placed::Desired::Keep(wire::Empty {}),
        Desired::Stop(cause) => placed::Desired::Stop(cause_out(cause).into()),
    };
    wire::PlacedCommand {
        placement: placement.to_string(),
        run: command.run.to_string(),
        epoch: Some(common::epoch_out(command.epoch)),
        revision: command.revision,
        desired: Some(desired),
    }
}

fn command(wire: wire::PlacedCommand) -> Result<(PlacementId, Command), WireError> {
    let desired = match present(wire.desired, "what a command desires")? {
        placed::Desired::Prepare(wire) => Desired::Prepare(intent(wire)?),
        placed::Desired::Start(wire) => Desired::Start(intent(wire)?),
        placed::Desired::Keep(_) => Desired::Keep,
        placed::Desired::Stop(number) => Desired::Stop(cause(number)),
    };
    let command = Command {
        run: common::run(wire.run)?,
        epoch: common::epoch(wire.epoch)?,
        revision: wire.revision,
        desired,
    };
    Ok((common::placement(wire.placement)?, command))
}

const fn cause_out(cause: StopCause) -> wire::StopCause {
    match cause {
        StopCause::Deleted => wire::StopCause::Deleted,
        StopCause::Evicted => wire::StopCause::Evicted,
        StopCause::Retired => wire::StopCause::Retired,
        StopCause::Superseded => wire::StopCause::Superseded,
    }
}

/// The cause is carried for people and the effect is the same for all, so an unknown one may be any.
fn cause(number: i32) -> StopCause {
    match wire::StopCause::try_from(number) {
        Ok(wire::StopCause::Deleted) => StopCause::Deleted,
        Ok(wire::StopCause::Evicted) => StopCause::Evicted,
        Ok(wire::StopCause::Retired) => StopCause::Retired,
        Ok(wire::StopCause::Superseded | wire::StopCause::Unspecified) | Err(_) => StopCause::Superseded,
    }
}

fn intent_out(intent: &Intent) -> wire::Intent {
    let demand = intent.demand.iter();
    wire::Intent {
        kind: intent.kind.to_string(),
        namespace: intent.namespace.to_string(),
        name: intent.name.to_string(),
        manifest: intent.manifest.to_vec(),
        demand: demand
            .map(|pods| wire::PodDemand { requests: common::amounts_out(&pods.requests), count: pods.count })
            .collect(),
    }
}

fn intent(wire: wire::Intent) -> Result<Intent, WireError> {
    if wire.kind.is_empty() || wire.name.is_empty() || wire.manifest.is_empty() {
        return Err(WireError::Missing("kind, name or manifest of an intent"));
    }
    let demand = wire.demand.into_iter();
    Ok(Intent {
        kind: wire.kind.into(),
        namespace: wire.namespace.into(),
        name: wire.name.into(),
        manifest: wire.manifest.into(),
        demand: demand
            .map(|pods| PodDemand { requests: common::amounts(pods.requests), count: pods.count })
            .collect(),
    })
}
