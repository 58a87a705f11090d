//! How each [`Kind`] is called on the wire, and who writes it.

use fairlead_api::labels::FieldManager;
use fairlead_runtime::Resource;

use crate::ports::{Kind, Op};

const KUEUE: &str = "kueue.x-k8s.io";
const FAIRLEAD: &str = "fairlead.dev";

/// The resource of a kind.
pub const fn resource(kind: Kind) -> Resource {
    match kind {
        Kind::Job => Resource::new("batch", "v1", "jobs", true),
        Kind::Namespace => Resource::new("", "v1", "namespaces", false),
        Kind::Workload => Resource::new(KUEUE, "v1beta2", "workloads", true),
        Kind::ClusterQueue => Resource::new(KUEUE, "v1beta2", "clusterqueues", false),
        Kind::LocalQueue => Resource::new(KUEUE, "v1beta2", "localqueues", true),
        Kind::ResourceFlavor => Resource::new(KUEUE, "v1beta2", "resourceflavors", false),
        Kind::Cohort => Resource::new(KUEUE, "v1beta2", "cohorts", false),
        Kind::Topology => Resource::new(KUEUE, "v1beta2", "topologies", false),
        Kind::MultiKueueConfig => Resource::new(KUEUE, "v1beta2", "multikueueconfigs", false),
        Kind::WorkloadPriorityClass => Resource::new(KUEUE, "v1beta2", "workloadpriorityclasses", false),
        Kind::PriorityClass => Resource::new("scheduling.k8s.io", "v1", "priorityclasses", false),
        Kind::AdmissionCheck => Resource::new(KUEUE, "v1beta2", "admissionchecks", false),
        Kind::PlacementPolicy => Resource::new(FAIRLEAD, "v1alpha1", "placementpolicies", false),
        Kind::Cluster => Resource::new(FAIRLEAD, "v1alpha1", "clusters", false),
        Kind::Tombstone => Resource::new(FAIRLEAD, "v1alpha1", "tombstones", false),
        Kind::Node => Resource::new("", "v1", "nodes", false),
        Kind::Pod => Resource::new("", "v1", "pods", true),
        Kind::LimitRange => Resource::new("", "v1", "limitranges", true),
        Kind::RuntimeClass => Resource::new("node.k8s.io", "v1", "runtimeclasses", false),
        Kind::Event => Resource::new("events.k8s.io", "v1", "events", true),
    }
}

/// The field manager of a write.
pub(super) const fn field_manager(kind: Kind, op: &Op) -> FieldManager {
    match kind {
        Kind::Job => FieldManager::Mirror,
        Kind::Workload if matches!(op, Op::PatchStatus(_) | Op::PutStatus(_)) => FieldManager::Admission,
        Kind::Workload | Kind::Pod | Kind::Event => FieldManager::Workloads,
        Kind::Cluster => FieldManager::Clusters,
        Kind::Tombstone => FieldManager::Leadership,
        Kind::Namespace
        | Kind::Node
        | Kind::LimitRange
        | Kind::RuntimeClass
        | Kind::ClusterQueue
        | Kind::LocalQueue
        | Kind::ResourceFlavor
        | Kind::Cohort
        | Kind::Topology
        | Kind::MultiKueueConfig
        | Kind::WorkloadPriorityClass
        | Kind::PriorityClass
        | Kind::AdmissionCheck
        | Kind::PlacementPolicy => FieldManager::Queues,
    }
}
