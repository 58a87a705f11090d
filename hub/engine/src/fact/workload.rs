//! Facts about workloads.

use std::collections::BTreeMap;
use std::sync::Arc;

pub use fairlead_fit::topology::{Assignment as TopologyAssignment, Gated as TopologyPod, Slice};
use fairlead_model::{
    Millis, NodeConstraints, ObjectKey, PlacementId, Reason, ResourceName, Resources, SpokeId, Uid,
};

/// Requests and limits of one container.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Container {
    /// `resources.requests`.
    pub requests: Resources,
    /// `resources.limits`.
    pub limits: Resources,
    /// An init container that keeps running (`restartPolicy: Always`).
    pub sidecar: bool,
}

/// The part of a pod template that matters to admission.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodTemplate {
    /// Containers.
    pub containers: Vec<Container>,
    /// Init containers in their order.
    pub init_containers: Vec<Container>,
    /// Requests and limits of the pod as a whole.
    pub pod: Option<Container>,
    /// `spec.overhead`; none is filled from the RuntimeClass.
    pub overhead: Option<Resources>,
    /// `spec.runtimeClassName`.
    pub runtime_class: Option<Arc<str>>,
    /// It names resource claims, which quota does not count [F-10].
    pub claims: bool,
    /// What the pods demand of their nodes.
    pub nodes: NodeConstraints,
}

/// Where a pod set must or should lie together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TopologyLevel {
    /// In one domain of this level.
    Required(Arc<str>),
    /// In one domain of this level if possible, else as tight as possible.
    Preferred(Arc<str>),
    /// Anywhere in the topology.
    Unconstrained,
    /// Only slices are constrained.
    SlicesOnly,
}

/// A pod set's topology request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopologyRequest {
    /// Where the whole pod set must or should lie.
    pub level: TopologyLevel,
    /// Slices from the outermost to the innermost.
    pub slices: Vec<Slice>,
    /// Pod sets of one group are placed in the same domain.
    pub group: Option<Arc<str>>,
}

/// Identical pods of a workload.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodSet {
    /// Its name, unique in the workload.
    pub name: Arc<str>,
    /// How many pods.
    pub count: u32,
    /// The fewest pods that will do (partial admission).
    pub min_count: Option<u32>,
    /// The pods.
    pub template: Arc<PodTemplate>,
    /// Its topology request.
    pub topology: Option<TopologyRequest>,
}

/// What one pod set was given.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodSetAssignment {
    /// The pod set.
    pub name: Arc<str>,
    /// Admitted pods.
    pub count: u32,
    /// The flavor of each charged resource.
    pub flavors: BTreeMap<ResourceName, Arc<str>>,
    /// What is charged in total, for all its pods.
    pub usage: Resources,
    /// Where the pods run, on a flavor with a topology.
    pub topology: Option<TopologyAssignment>,
}

/// Quota that a workload holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The ClusterQueue whose quota it is.
    pub cluster_queue: Arc<str>,
    /// When it was reserved.
    pub at: Millis,
    /// Per pod set.
    pub pod_sets: Arc<[PodSetAssignment]>,
    /// The spoke it is promised to; none for home queues and while other checks are pending.
    pub spoke: Option<SpokeId>,
    /// The promise, once it has an epoch.
    pub placement: Option<PlacementId>,
    /// Whether it is admitted too.
    pub admitted: bool,
}

/// Why a workload was evicted, as far as its place in line depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EvictionCause {
    /// For another workload.
    Preempted,
    /// Its pods were not ready in time.
    PodsReadyTimeout,
    /// A check asked for another try.
    AdmissionCheck,
    /// Its queue was stopped.
    QueueStopped,
    /// Nodes it ran on failed.
    NodeFailures,
    /// It was deactivated.
    Deactivated,
}

/// The rule by which a victim was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PreemptionCause {
    /// A better workload of the same ClusterQueue.
    InClusterQueue,
    /// The preemptor takes back its own.
    InCohortReclamation,
    /// The preemptor's share is lower.
    InCohortFairSharing,
    /// A better workload that borrows.
    InCohortReclaimWhileBorrowing,
}

impl PreemptionCause {
    /// The reason of the `Preempted` condition.
    pub const fn token(self) -> &'static str {
        match self {
            Self::InClusterQueue => "InClusterQueue",
            Self::InCohortReclamation => "InCohortReclamation",
            Self::InCohortFairSharing => "InCohortFairSharing",
            Self::InCohortReclaimWhileBorrowing => "InCohortReclaimWhileBorrowing",
        }
    }
}

/// `Evicted=True`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eviction {
    /// Why.
    pub cause: EvictionCause,
    /// Since when.
    pub at: Millis,
}

/// The phase of an admission check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CheckPhase {
    /// Not decided.
    #[default]
    Pending,
    /// Passed.
    Ready,
    /// Evict and try again.
    Retry,
    /// Never.
    Rejected,
}

/// The state of one admission check of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckState {
    /// The AdmissionCheck.
    pub check: Arc<str>,
    /// Its phase.
    pub phase: CheckPhase,
}

/// A spoke that must not be chosen for this workload now, and why: it refused, or an earlier copy is still there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exclusion {
    /// The spoke.
    pub spoke: SpokeId,
    /// The token it gave.
    pub reason: Reason,
    /// Its words.
    pub detail: Arc<str>,
}

/// A workload.
#[expect(clippy::struct_excessive_bools, reason = "each is one condition of the object")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// `metadata.uid`.
    pub uid: Uid,
    /// Namespace and name.
    pub key: ObjectKey,
    /// Name of its LocalQueue, in its own namespace.
    pub queue: Arc<str>,
    /// Effective priority: `spec.priority` plus boost, [P-8].
    pub priority: i64,
    /// `metadata.creationTimestamp`.
    pub created: Millis,
    /// Its pod sets.
    pub pod_sets: Arc<[PodSet]>,
    /// `spec.active`.
    pub active: bool,
    /// It has ended.
    pub finished: bool,
    /// Why it must not be queued for now: gated, on hold, an earlier copy of its name has not stopped.
    pub hold: Option<Reason>,
    /// The quota it holds.
    pub reservation: Option<Reservation>,
    /// `Evicted=True`, until it is admitted again.
    pub evicted: Option<Eviction>,
    /// `Requeued=False`: it waits for a queue to restart or a backoff to end.
    pub requeue_blocked: bool,
    /// `requeueState.requeueAt`.
    pub requeue_at: Option<Millis>,
    /// Its admission checks.
    pub checks: Vec<CheckState>,
    /// Pods that are no longer needed, by pod set.
    pub reclaimable: Vec<(Arc<str>, u32)>,
    /// A preemption gate is closed: it must not preempt.
    pub preemption_gated: bool,
    /// Nodes of its topology assignment that have failed (second pass).
    pub unhealthy_nodes: Vec<Arc<str>>,
    /// Spokes that must not be chosen for it now.
    pub excluded: Vec<Exclusion>,
    /// Its pods are ready, or were when it was last looked at [W-1].
    pub pods_ready: bool,
}

impl Workload {
    /// A pending workload of priority zero that nothing is known of yet.
    pub fn new(
        uid: Uid,
        key: ObjectKey,
        queue: Arc<str>,
        created: Millis,
        pod_sets: impl Into<Arc<[PodSet]>>,
    ) -> Self {
        Self {
            uid,
            key,
            queue,
            priority: 0,
            created,
            pod_sets: pod_sets.into(),
            active: true,
            finished: false,
            hold: None,
            reservation: None,
            evicted: None,
            requeue_blocked: false,
            requeue_at: None,
            checks: Vec::new(),
            reclaimable: Vec::new(),
            preemption_gated: false,
            unhealthy_nodes: Vec::new(),
            excluded: Vec::new(),
            pods_ready: false,
        }
    }
}
