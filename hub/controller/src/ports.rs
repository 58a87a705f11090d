//! The ports through which the brain touches the world. The Kubernetes API implements [`Store`], the gateway
//! implements [`Spokes`]; tests and the simulation implement both in memory, so the very same brain runs there.

use std::sync::Arc;

use fairlead_model::{Epoch, ObjectKey, PlacementId, SpokeId, Uid};
use fairlead_session::{Command, Observation, Report, Versions};
use serde_json::Value;

/// The kinds of objects that the hub reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `batch/v1` Job.
    Job,
    /// `v1` Namespace.
    Namespace,
    /// `kueue.x-k8s.io/v1beta2` Workload.
    Workload,
    /// `kueue.x-k8s.io/v1beta2` ClusterQueue.
    ClusterQueue,
    /// `kueue.x-k8s.io/v1beta2` LocalQueue.
    LocalQueue,
    /// `kueue.x-k8s.io/v1beta2` ResourceFlavor.
    ResourceFlavor,
    /// `kueue.x-k8s.io/v1beta2` Cohort.
    Cohort,
    /// `kueue.x-k8s.io/v1beta2` Topology.
    Topology,
    /// `kueue.x-k8s.io/v1beta2` MultiKueueConfig.
    MultiKueueConfig,
    /// `kueue.x-k8s.io/v1beta2` WorkloadPriorityClass.
    WorkloadPriorityClass,
    /// `scheduling.k8s.io/v1` PriorityClass.
    PriorityClass,
    /// `kueue.x-k8s.io/v1beta2` AdmissionCheck.
    AdmissionCheck,
    /// `fairlead.dev/v1alpha1` PlacementPolicy.
    PlacementPolicy,
    /// `fairlead.dev/v1alpha1` Cluster.
    Cluster,
    /// `fairlead.dev/v1alpha1` Tombstone.
    Tombstone,
    /// `v1` Node of the hub's own cluster.
    Node,
    /// `v1` Pod of the hub's own cluster.
    Pod,
    /// `v1` LimitRange.
    LimitRange,
    /// `node.k8s.io/v1` RuntimeClass.
    RuntimeClass,
    /// `events.k8s.io/v1` Event; written, never read.
    Event,
}

impl Kind {
    /// The kinds that the hub watches. It decides nothing before each of them has been listed once.
    pub const WATCHED: [Self; 19] = [
        Self::Namespace,
        Self::Topology,
        Self::ResourceFlavor,
        Self::Cohort,
        Self::MultiKueueConfig,
        Self::WorkloadPriorityClass,
        Self::PriorityClass,
        Self::PlacementPolicy,
        Self::AdmissionCheck,
        Self::ClusterQueue,
        Self::LocalQueue,
        Self::Cluster,
        Self::LimitRange,
        Self::RuntimeClass,
        Self::Node,
        Self::Pod,
        Self::Job,
        Self::Workload,
        Self::Tombstone,
    ];
}

/// A resource version. The API server promises that versions of one kind compare as numbers.
pub type Version = u64;

/// An object as read: identity, version and the whole JSON.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its kind.
    pub kind: Kind,
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: Uid,
    /// `metadata.resourceVersion`.
    pub version: Version,
    /// The object. For kinds whose unknown fields must survive (Jobs), this is the only form kept.
    pub json: Arc<Value>,
}

/// Names one write or read, so that its outcome finds its way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u64);

/// What to do to an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Create it from this JSON.
    Create(Value),
    /// JSON merge patch of the object itself. A `metadata.resourceVersion` inside makes it conditional.
    Patch(Value),
    /// JSON merge patch of its status subresource. A `metadata.resourceVersion` inside makes it conditional.
    PatchStatus(Value),
    /// Replace its status subresource by the status in this object, whose `metadata.resourceVersion` makes that
    /// conditional. Costs the API server less than a patch, which it has to merge with what is stored.
    PutStatus(Value),
    /// Delete it, with this UID as precondition.
    Delete(Uid),
    /// Read it from the API server's quorum, not from a cache.
    Get,
}

/// One operation on one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Comes back with the outcome.
    pub id: OpId,
    /// The kind.
    pub kind: Kind,
    /// The object.
    pub key: ObjectKey,
    /// The operation.
    pub op: Op,
    /// True for an admission commit: it carries a 2 s time-out and is refused near the end of the lease.
    pub commit: bool,
}

/// What became of an operation.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Done; the object as it is now. For a Delete, as it was last.
    Done(Object),
    /// 409: the object has changed since (or the UID precondition failed).
    Conflict,
    /// 409 on create: the name is taken.
    AlreadyExists,
    /// 404.
    NotFound,
    /// Any other refusal: the API server will not do this.
    Refused(String),
    /// Nothing was sent: the lease is too close to its end, or the process is stopping.
    NotSent,
    /// A time-out or a 5xx: it may or may not have happened. Settled by a consistent read.
    Unknown(String),
}

/// The Kubernetes API of the hub.
pub trait Store: Send + Sync + 'static {
    /// Carries out one operation. Never retries a write by itself.
    fn execute(&self, request: &Request) -> impl Future<Output = Outcome> + Send;
}

/// The spokes, as the gateway reaches them. Calls never block and never fail: a spoke that is away gets its
/// commands when it is back.
pub trait Spokes: Send + Sync + 'static {
    /// Sets the command of a placement.
    fn command(&self, spoke: &SpokeId, placement: PlacementId, command: Command);
    /// Removes it.
    fn withdraw(&self, spoke: &SpokeId, placement: PlacementId);
    /// Says that an observation is durable here.
    fn acknowledge(&self, spoke: &SpokeId, ack: Acknowledgement);
}

/// An observation that the hub has made durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The placement.
    pub placement: PlacementId,
    /// Its epoch.
    pub epoch: Epoch,
    /// Boot of the agent that observed it.
    pub boot: u64,
    /// Version within the boot.
    pub version: u64,
}

/// What the gateway tells the brain about one spoke.
#[derive(Clone, Debug)]
pub enum SpokeEvent {
    /// A session is up; nothing is known of its inventory yet.
    Connected {
        /// The spoke's versions.
        versions: Versions,
        /// The spoke's wall clock less ours, in milliseconds.
        clock_offset_ms: i64,
        /// When its certificate ends, in seconds since the Unix epoch.
        certificate_expires: i64,
    },
    /// An entry of its inventory is new or has changed.
    Observed(PlacementId, Observation),
    /// It no longer has this entry.
    Forgotten(PlacementId),
    /// Every entry it has is known now.
    InventoryComplete,
    /// Its capacity.
    Report(Report),
    /// A heartbeat arrived. Presence is derived from these, not from the session alone.
    Heartbeat,
    /// The session has ended. Commands that were Prepare or Start are void.
    Disconnected,
}
