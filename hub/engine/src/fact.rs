//! What the engine is told: plain values made from Kubernetes objects and spoke reports. A fact states how a thing
//! is now, whole; a later fact of the same identity replaces the earlier one.

use std::sync::Arc;

use fairlead_model::{ObjectKey, SpokeId, Uid};

mod cluster;
mod queue;
mod workload;

pub use cluster::{Cluster, ClusterReport, Mode, Node, Presence, RunningPod};
pub use queue::{
    AdmissionCheck, BorrowWithinCohort, CheckKind, CheckUse, ClusterQueue, Cohort, DispatchPolicy, Flavor,
    FlavorQuotas, Fungibility, FungibilityPreference, LimitRange, LimitRangeItem, LimitType, LocalQueue,
    Namespace, Preemption, QueueingStrategy, Quota, ResourceGroup, StopPolicy, Topology, VictimPolicy,
    Weight, WhenCan,
};
pub use workload::{
    CheckPhase, CheckState, Container, Eviction, EvictionCause, Exclusion, PodSet, PodSetAssignment,
    PodTemplate, PreemptionCause, Reservation, Slice, TopologyAssignment, TopologyLevel, TopologyPod,
    TopologyRequest, Workload,
};

/// One thing that the engine is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A ClusterQueue is as given.
    ClusterQueue(ClusterQueue),
    /// A ClusterQueue is gone.
    ClusterQueueGone(Arc<str>),
    /// A LocalQueue is as given.
    LocalQueue(LocalQueue),
    /// A LocalQueue is gone.
    LocalQueueGone(ObjectKey),
    /// A Cohort object is as given.
    Cohort(Cohort),
    /// A Cohort object is gone; queues that name it keep it alive without quota of its own.
    CohortGone(Arc<str>),
    /// A ResourceFlavor is as given.
    Flavor(Flavor),
    /// A ResourceFlavor is gone.
    FlavorGone(Arc<str>),
    /// A Topology is as given.
    Topology(Topology),
    /// A Topology is gone.
    TopologyGone(Arc<str>),
    /// An AdmissionCheck, with its parameters resolved.
    Check(AdmissionCheck),
    /// An AdmissionCheck is gone.
    CheckGone(Arc<str>),
    /// A Namespace and its labels.
    Namespace(Namespace),
    /// A Namespace is gone.
    NamespaceGone(Arc<str>),
    /// A LimitRange is as given.
    LimitRange(LimitRange),
    /// A LimitRange is gone.
    LimitRangeGone(ObjectKey),
    /// The pod overhead of a RuntimeClass.
    RuntimeClass(Arc<str>, fairlead_model::Resources),
    /// A RuntimeClass is gone.
    RuntimeClassGone(Arc<str>),
    /// A node of the hub's own cluster (topology of home queues).
    Node(Node),
    /// A node of the hub's own cluster is gone.
    NodeGone(Arc<str>),
    /// A pod on a node of the hub's own cluster that no workload with a topology assignment accounts for.
    Pod(RunningPod),
    /// Such a pod has ended or is gone.
    PodGone(ObjectKey),
    /// A workload is as given.
    Workload(Arc<Workload>),
    /// A workload is gone.
    WorkloadGone(Uid),
    /// A spoke is as given.
    Cluster(Cluster),
    /// A spoke's Cluster object is gone.
    ClusterGone(SpokeId),
    /// The newest capacity report of a spoke.
    Report(ClusterReport),
}
