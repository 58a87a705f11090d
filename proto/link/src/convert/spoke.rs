//! Frames from a spoke.

use fairlead_model::{Millis, PlacementId, Reason};
use fairlead_session::{CopyState, CopyStatus, Hello, Observation, Refusal, SpokeFrame, Terminal};

use super::{Frame, WireError, common, hashes, present, report};
use crate::wire::{self, placed_observation as placed, spoke_message as message};

impl Frame for SpokeFrame {
    type Message = wire::SpokeMessage;

    fn name(&self) -> &'static str {
        Self::name(self)
    }

    fn encode(self) -> wire::SpokeMessage {
        let frame = match self {
            Self::Hello(hello) => message::Frame::Hello(hello_out(hello)),
            Self::Ready => message::Frame::Ready(wire::Empty {}),
            Self::Observe(placement, observation) => {
                message::Frame::Observe(observation_out(&placement, observation))
            }
            Self::Forget(placement) => message::Frame::Forget(placement.to_string()),
            Self::InventoryComplete => message::Frame::InventoryComplete(wire::Empty {}),
            Self::CommandReceived(placement, revision) => {
                let placement = placement.to_string();
                message::Frame::CommandReceived(wire::CommandReceived { placement, revision })
            }
            Self::Report(report) => message::Frame::Report(report::encode(&report)),
            Self::Heartbeat(number, clock) => {
                message::Frame::Heartbeat(wire::Heartbeat { number, clock: clock.0 })
            }
            Self::Goodbye(goodbye) => message::Frame::Goodbye(common::goodbye_out(&goodbye)),
        };
        wire::SpokeMessage { frame: Some(frame) }
    }

    fn decode(message: wire::SpokeMessage) -> Result<Self, WireError> {
        Ok(match present(message.frame, "the spoke's frame")? {
            message::Frame::Hello(wire) => Self::Hello(hello(wire)?),
            message::Frame::Ready(_) => Self::Ready,
            message::Frame::Observe(wire) => {
                let (placement, observation) = observation(wire)?;
                Self::Observe(placement, observation)
            }
            message::Frame::Forget(placement) => Self::Forget(common::placement(placement)?),
            message::Frame::InventoryComplete(_) => Self::InventoryComplete,
            message::Frame::CommandReceived(wire) => {
                Self::CommandReceived(common::placement(wire.placement)?, wire.revision)
            }
            message::Frame::Report(wire) => Self::Report(report::decode(wire)?),
            message::Frame::Heartbeat(wire) => Self::Heartbeat(wire.number, Millis(wire.clock)),
            message::Frame::Goodbye(wire) => Self::Goodbye(common::goodbye(wire)),
            message::Frame::Part(_) => return Err(WireError::Interleaved),
        })
    }

    fn part(part: wire::Part) -> wire::SpokeMessage {
        wire::SpokeMessage { frame: Some(message::Frame::Part(part)) }
    }

    fn as_part(message: wire::SpokeMessage) -> Result<wire::Part, wire::SpokeMessage> {
        match message.frame {
            Some(message::Frame::Part(part)) => Ok(part),
            frame => Err(wire::SpokeMessage { frame }),
        }
    }
}

fn hello_out(hello: Hello) -> wire::Hello {
    wire::Hello {
        protocol: hello.protocol,
        floor: Some(common::floor_out(&hello.floor)),
        boot: hello.boot,
        versions: Some(common::versions_out(&hello.versions)),
        cluster_uid: hello.cluster_uid.to_string(),
        clock: hello.clock.0,
        observations: hello.observations.0,
        commands: hello.commands.0,
    }
}

fn hello(wire: wire::Hello) -> Result<Hello, WireError> {
    Ok(Hello {
        protocol: wire.protocol,
        floor: common::floor(wire.floor)?,
        boot: wire.boot,
        versions: common::versions(wire.versions),
        cluster_uid: wire.cluster_uid.into(),
        clock: Millis(wire.clock),
        observations: hashes(wire.observations)?,
        commands: hashes(wire.commands)?,
    })
}

fn observation_out(placement: &PlacementId, observation: Observation) -> wire::PlacedObservation {
    let state = match observation.state {
        CopyState::Accepted => placed::State::Accepted(wire::Empty {}),
        CopyState::Refused(refusal) => placed::State::Refused(wire::Refused {
            reason: refusal.reason.token().to_owned(),
            detail: refusal.detail.to_string(),
        }),
        CopyState::Live(status) => placed::State::Live(status_out(&status)),
        CopyState::Stopping(status) => placed::State::Stopping(status_out(&status)),
        CopyState::Stopped(status) => placed::State::Stopped(status_out(&status)),
        CopyState::Vanished => placed::State::Vanished(wire::Empty {}),
    };
    wire::PlacedObservation {
        placement: placement.to_string(),
        run: observation.run.to_string(),
        epoch: Some(common::epoch_out(observation.epoch)),
        boot: observation.boot,
        version: observation.version,
        namespace: observation.namespace.to_string(),
        name: observation.name.to_string(),
        state: Some(state),
    }
}

fn observation(wire: wire::PlacedObservation) -> Result<(PlacementId, Observation), WireError> {
    let state = match present(wire.state, "the state of an observation")? {
        placed::State::Accepted(_) => CopyState::Accepted,
        placed::State::Refused(wire) => CopyState::Refused(refusal(wire)),
        placed::State::Live(wire) => CopyState::Live(status(wire)),
        placed::State::Stopping(wire) => CopyState::Stopping(status(wire)),
        placed::State::Stopped(wire) => CopyState::Stopped(status(wire)),
        placed::State::Vanished(_) => CopyState::Vanished,
    };
    let observation = Observation {
        run: common::run(wire.run)?,
        epoch: common::epoch(wire.epoch)?,
        boot: wire.boot,
        version: wire.version,
        namespace: wire.namespace.into(),
        name: wire.name.into(),
        state,
    };
    Ok((common::placement(wire.placement)?, observation))
}

/// A refusal for a reason of a newer spoke is still a refusal.
fn refusal(wire: wire::Refused) -> Refusal {
    let (reason, detail) = common::reason(&wire.reason, wire.detail, Reason::SpokeRefused);
    Refusal { reason, detail }
}

fn status_out(status: &CopyStatus) -> wire::CopyStatus {
    wire::CopyStatus {
        active: status.active,
        ready: status.ready,
        terminating: status.terminating,
        succeeded: status.succeeded,
        failed: status.failed,
        completed_indexes: status.completed_indexes.to_string(),
        failed_indexes: status.failed_indexes.to_string(),
        start_time: status.start_time.map(|time| time.0),
        terminal: status.terminal.as_ref().map(|terminal| wire::Terminal {
            succeeded: terminal.succeeded,
            reason: terminal.reason.to_string(),
            message: terminal.message.to_string(),
            completion_time: terminal.completion_time.map(|time| time.0),
        }),
    }
}

fn status(wire: wire::CopyStatus) -> CopyStatus {
    CopyStatus {
        active: wire.active,
        ready: wire.ready,
        terminating: wire.terminating,
        succeeded: wire.succeeded,
        failed: wire.failed,
        completed_indexes: wire.completed_indexes.into(),
        failed_indexes: wire.failed_indexes.into(),
        start_time: wire.start_time.map(Millis),
        terminal: wire.terminal.map(|terminal| Terminal {
            succeeded: terminal.succeeded,
            reason: terminal.reason.into(),
            message: terminal.message.into(),
            completion_time: terminal.completion_time.map(Millis),
        }),
    }
}
