//! What hub and spoke say to each other, as plain values. `fairlead-link` turns them into protobuf and back.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_model::{
    Epoch, Floor, Incarnation, Leadership, Millis, PlacementId, PodDemand, Reason, Resources, RunId, Shape,
};

/// The protocol version of this build. A hub talks to spokes of its own version and the one before.
pub const PROTOCOL: u32 = 1;

/// What a run needs on a spoke: everything the agent must know to create the copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// Kind of the job as `group/version/Kind`, for example `batch/v1/Job`.
    pub kind: Arc<str>,
    /// Namespace on the spoke.
    pub namespace: Arc<str>,
    /// Name on the spoke: the user's own name for the job.
    pub name: Arc<str>,
    /// The copy as raw JSON, complete but for the agent's stamps. Raw, so that no field newer than our types is
    /// lost.
    pub manifest: Arc<[u8]>,
    /// The pods it wants side by side, for the check of room.
    pub demand: Vec<PodDemand>,
}

/// Why a copy is to be stopped. It is carried for events and logs; the effect is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopCause {
    /// The user's job was deleted on the hub, or is being replaced.
    Deleted,
    /// The workload was evicted or its queue stopped.
    Evicted,
    /// The result is durable on the hub and its retention has ended.
    Retired,
    /// The hub never promised this copy, or promised it elsewhere since.
    Superseded,
}

/// What the hub wants of one placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Desired {
    /// Validate and hold room for 30 s, without any effect on objects. Answered by `Accepted` or `Refused`.
    Prepare(Intent),
    /// Create the copy (create-only), or adopt the one that carries this placement's stamp.
    Start(Intent),
    /// The copy stays as it is: the ruling for an inventory entry that the hub knows.
    Keep,
    /// Delete the copy and prove that it stopped.
    Stop(StopCause),
}

/// One entry of the map that the hub keeps per spoke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The run it belongs to.
    pub run: RunId,
    /// The promise's epoch; the agent stamps it on the copy.
    pub epoch: Epoch,
    /// Grows with each change of `desired` for this placement.
    pub revision: u64,
    /// What is wanted now.
    pub desired: Desired,
}

/// How a copy ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// True for `Complete`, false for `Failed`.
    pub succeeded: bool,
    /// Reason of the Job's terminal condition.
    pub reason: Arc<str>,
    /// Its message.
    pub message: Arc<str>,
    /// When the Job completed, if it did.
    pub completion_time: Option<Millis>,
}

/// The part of a Job's status that the hub mirrors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyStatus {
    /// Pods that are pending or running and not terminating.
    pub active: u32,
    /// Active pods that are ready.
    pub ready: u32,
    /// Pods that are being deleted.
    pub terminating: u32,
    /// Pods that succeeded.
    pub succeeded: u32,
    /// Pods that failed.
    pub failed: u32,
    /// `status.completedIndexes` of an indexed Job; may be empty.
    pub completed_indexes: Arc<str>,
    /// `status.failedIndexes`; may be empty.
    pub failed_indexes: Arc<str>,
    /// When the spoke's Job controller started it.
    pub start_time: Option<Millis>,
    /// Present once the Job is complete or failed.
    pub terminal: Option<Terminal>,
}

/// A typed refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The token.
    pub reason: Reason,
    /// What exactly, for people: the missing Secret's name, the API server's message.
    pub detail: Arc<str>,
}

/// What a spoke has of one placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyState {
    /// Prepare passed and room is held.
    Accepted,
    /// Prepare or Start was refused, and nothing of this placement exists on the spoke: a proof.
    Refused(Refusal),
    /// The copy exists.
    Live(CopyStatus),
    /// The copy has a deletion timestamp; not stopped yet.
    Stopping(CopyStatus),
    /// No copy exists and every container of it has terminated: a proof. The result, if it had one, comes along.
    Stopped(CopyStatus),
    /// The copy is gone without our order, and nothing proves that its containers stopped.
    Vanished,
}

/// One entry of the map that the spoke keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The run it belongs to.
    pub run: RunId,
    /// The epoch stamped on the copy, or of the command that was answered.
    pub epoch: Epoch,
    /// The agent's boot count when it was observed.
    pub boot: u64,
    /// Grows with each change within a boot.
    pub version: u64,
    /// Namespace of the copy.
    pub namespace: Arc<str>,
    /// Name of the copy.
    pub name: Arc<str>,
    /// What is there.
    pub state: CopyState,
}

/// Capacity of a spoke; the newest replaces all earlier ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Grows with each report within a session.
    pub version: u64,
    /// Free capacity by node class, in sorted order.
    pub free: Vec<Shape>,
    /// The same nodes when empty (allocatable), in sorted order: tells "not now" from "never".
    pub empty: Vec<Shape>,
    /// Requests of pods that are bound to nodes, by the placement they belong to. What a placement demands
    /// beyond this is not in `free` yet.
    pub bound: BTreeMap<PlacementId, Resources>,
    /// Nodes that are ready and schedulable.
    pub nodes: u32,
}

/// Versions of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    /// Fairlead's version.
    pub fairlead: Arc<str>,
    /// The Kubernetes version of its cluster.
    pub kubernetes: Arc<str>,
}

/// Hashes of a keyed map by bucket; equal hashes mean equal entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BucketHashes(pub Vec<u64>);

/// The spoke's opening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// [`PROTOCOL`] of the spoke.
    pub protocol: u32,
    /// The highest leadership it has obeyed.
    pub floor: Floor,
    /// Counts the agent's starts.
    pub boot: u64,
    /// Its versions.
    pub versions: Versions,
    /// UID of the spoke's kube-system namespace: reported, never an identity.
    pub cluster_uid: Arc<str>,
    /// Its wall clock.
    pub clock: Millis,
    /// Its map of observations.
    pub observations: BucketHashes,
    /// The commands it still remembers.
    pub commands: BucketHashes,
}

/// The hub's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// [`PROTOCOL`] of the hub.
    pub protocol: u32,
    /// Who leads.
    pub leadership: Leadership,
    /// Its versions.
    pub versions: Versions,
    /// How often the spoke is to send a heartbeat.
    pub heartbeat_ms: u32,
    /// Its copy of the spoke's observations: the spoke sends the buckets that differ.
    pub observations: BucketHashes,
    /// Its map of commands: the spoke drops what lies in the buckets that differ; the hub sends them anew.
    pub commands: BucketHashes,
}

/// Why a session was refused or ended by the other side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goodbye {
    /// The token.
    pub reason: Reason,
    /// For people.
    pub detail: Arc<str>,
    /// When to come back, in milliseconds.
    pub retry_after_ms: u32,
    /// Highest incarnation the sender knows, where that matters.
    pub incarnation: Incarnation,
}

/// A frame from spoke to hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpokeFrame {
    /// First frame of a session.
    Hello(Hello),
    /// The floor is durable; orders may follow.
    Ready,
    /// An entry of the observation map.
    Observe(PlacementId, Observation),
    /// The spoke no longer has this entry (its final observation was acknowledged).
    Forget(PlacementId),
    /// Every differing bucket has been sent: the hub now knows the spoke's whole inventory.
    InventoryComplete,
    /// This revision of a command has been received.
    CommandReceived(PlacementId, u64),
    /// Capacity.
    Report(Report),
    /// Sent every `heartbeat_ms`; the number counts up.
    Heartbeat(u64, Millis),
    /// The spoke ends the session.
    Goodbye(Goodbye),
}

/// A frame from hub to spoke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HubFrame {
    /// Answer to `Hello`.
    Welcome(Welcome),
    /// An entry of the command map.
    Command(PlacementId, Command),
    /// The hub no longer wants anything of this placement.
    Withdraw(PlacementId),
    /// Every differing bucket of the command map has been sent: what the spoke still has of those buckets and was
    /// not sent again is withdrawn.
    CommandsComplete,
    /// The hub has read this observation (placement, boot, version): frees its place in the spoke's window, and
    /// says nothing about durability.
    ObservationReceived(PlacementId, u64, u64),
    /// This observation is durable on the hub: (placement, epoch, boot, version).
    Acknowledge(PlacementId, Epoch, u64, u64),
    /// Answer to a heartbeat with the same number.
    HeartbeatAck(u64),
    /// The hub refuses or ends the session.
    Goodbye(Goodbye),
}

/// What an entry weighs beside its variable parts, in bytes: a rough upper bound of keys and numbers.
const ENTRY_OVERHEAD: usize = 512;

impl Command {
    /// Roughly how many bytes this command takes on the wire.
    pub(crate) fn weight(&self) -> usize {
        let variable = match &self.desired {
            Desired::Prepare(intent) | Desired::Start(intent) => intent.manifest.len(),
            Desired::Keep | Desired::Stop(_) => 0,
        };
        variable.saturating_add(ENTRY_OVERHEAD)
    }
}

impl Observation {
    /// Roughly how many bytes this observation takes on the wire.
    pub(crate) fn weight(&self) -> usize {
        let variable = match &self.state {
            CopyState::Accepted | CopyState::Vanished => 0,
            CopyState::Refused(refusal) => refusal.detail.len(),
            CopyState::Live(status) | CopyState::Stopping(status) | CopyState::Stopped(status) => {
                let indexes = status.completed_indexes.len().saturating_add(status.failed_indexes.len());
                indexes.saturating_add(status.terminal.as_ref().map_or(0, |terminal| terminal.message.len()))
            }
        };
        variable.saturating_add(ENTRY_OVERHEAD)
    }
}

impl SpokeFrame {
    /// The name of the frame, for messages about it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Hello(_) => "Hello",
            Self::Ready => "Ready",
            Self::Observe(..) => "Observe",
            Self::Forget(_) => "Forget",
            Self::InventoryComplete => "InventoryComplete",
            Self::CommandReceived(..) => "CommandReceived",
            Self::Report(_) => "Report",
            Self::Heartbeat(..) => "Heartbeat",
            Self::Goodbye(_) => "Goodbye",
        }
    }
}

impl HubFrame {
    /// The name of the frame, for messages about it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Welcome(_) => "Welcome",
            Self::Command(..) => "Command",
            Self::Withdraw(_) => "Withdraw",
            Self::CommandsComplete => "CommandsComplete",
            Self::ObservationReceived(..) => "ObservationReceived",
            Self::Acknowledge(..) => "Acknowledge",
            Self::HeartbeatAck(_) => "HeartbeatAck",
            Self::Goodbye(_) => "Goodbye",
        }
    }
}
