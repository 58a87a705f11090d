//! The ten kinds of `kueue.x-k8s.io/v1beta2`, field for field as Kueue's users know them.
//!
//! What is ours is said on the field: `Workload.status.placements` and `.verdict`.

mod admission_check;
mod cluster_queue;
mod cohort;
mod local_queue;
mod multikueue;
mod priority_class;
mod quota;
mod resource_flavor;
mod topology;
mod workload;
mod workload_placement;
mod workload_status;
mod workload_topology;

pub use admission_check::{
    AdmissionCheck, AdmissionCheckParameters, AdmissionCheckSpec, AdmissionCheckStatus,
};
pub use cluster_queue::{
    AdmissionCheckRule, AdmissionChecksStrategy, AdmissionMode, AdmissionScope, BorrowWithinCohort,
    BorrowWithinCohortPolicy, ClusterQueue, ClusterQueuePreemption, ClusterQueueSpec, ClusterQueueStatus,
    ConcurrentAdmissionPolicy, FlavorFungibility, FungibilityPreference, MigrationConstraints, MigrationMode,
    MigrationPolicy, QueueingStrategy, ReclaimWithinCohort, WhenCanBorrow, WhenCanPreempt,
    WithinClusterQueue,
};
pub use cohort::{Cohort, CohortSpec, CohortStatus};
pub use local_queue::{
    AdmissionFairSharingStatus, LocalQueue, LocalQueueFairSharingStatus, LocalQueueFlavorUsage,
    LocalQueueResourceUsage, LocalQueueSpec, LocalQueueStatus,
};
pub use multikueue::{
    ClusterProfileReference, ClusterSource, KubeConfig, KubeConfigLocationType, MultiKueueCluster,
    MultiKueueClusterSpec, MultiKueueClusterStatus, MultiKueueConfig, MultiKueueConfigSpec, QuotaManagement,
};
pub use priority_class::{WorkloadPriorityClass, WorkloadPriorityClassFields};
pub use quota::{
    FairSharing, FairSharingStatus, FlavorQuotas, FlavorUsage, ResourceGroup, ResourceQuota, ResourceUsage,
    StopPolicy,
};
pub use resource_flavor::{
    ResourceFlavor, ResourceFlavorSpec, Taint, TaintEffect, Toleration, TolerationOperator,
};
pub use topology::{Topology, TopologyLevel, TopologySpec};
pub use workload::{
    MAIN_POD_SET, MAX_POD_SETS, PodSet, PodSetTopologyRequest, PreemptionGate, PriorityClassRef,
    SliceConstraint, Workload, WorkloadSpec,
};
pub use workload_placement::{
    MAX_PLACEMENTS, MAX_VERDICT_BYTES, Placement, PlacementEpoch, PlacementState, Verdict, VerdictCandidate,
};
pub use workload_status::{
    Admission, AdmissionCheckState, CheckStateName, Eviction, GatePosition, PodSetAssignment, PodSetRequest,
    PodSetUpdate, PreemptionGateState, ReclaimablePod, RequeueState, SchedulingStats, UnhealthyNode,
    WorkloadStatus,
};
pub use workload_topology::{
    DelayedTopologyRequest, IndividualValues, PodCounts, TopologyAssignment, TopologyAssignmentSlice,
    ValuesPerLevel,
};

/// Group and kind of every job that may be queued as a whole, so that what it controls is not queued on its own.
pub const JOB_KINDS: [(&str, &str); 17] = [
    ("batch", "Job"),
    ("jobset.x-k8s.io", "JobSet"),
    ("kubeflow.org", "JAXJob"),
    ("kubeflow.org", "MPIJob"),
    ("kubeflow.org", "PaddleJob"),
    ("kubeflow.org", "PyTorchJob"),
    ("kubeflow.org", "TFJob"),
    ("kubeflow.org", "XGBoostJob"),
    ("trainer.kubeflow.org", "TrainJob"),
    ("ray.io", "RayCluster"),
    ("ray.io", "RayJob"),
    ("ray.io", "RayService"),
    ("workload.codeflare.dev", "AppWrapper"),
    ("sparkoperator.k8s.io", "SparkApplication"),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
    ("apps", "Deployment"),
    ("apps", "StatefulSet"),
];

/// The API group.
pub const GROUP: &str = "kueue.x-k8s.io";
/// The version that is stored.
pub const VERSION: &str = "v1beta2";
/// The version that is served only to refuse it with a hint.
pub const LEGACY_VERSION: &str = "v1beta1";
