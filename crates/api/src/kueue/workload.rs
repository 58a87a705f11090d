//! Workload: what a user asked to run, made from their job.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::WorkloadStatus;
use crate::schema;

/// Most pod sets in one Workload.
pub const MAX_POD_SETS: usize = 18;
/// The name of a pod set that has none.
pub const MAIN_POD_SET: &str = "main";

/// A Workload is what a user asked to run. The hub makes it from their job and keeps its admission, its
/// placements and the reason why it waits in its status.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kueue.x-k8s.io",
    version = "v1beta2",
    kind = "Workload",
    namespaced,
    status = "WorkloadStatus",
    schema = "disabled",
    doc = "What a user asked to run, made from their job.",
    derive = "Default",
    derive = "PartialEq",
    shortname = "kwl",
    shortname = "kueueworkload",
    shortname = "kueueworkloads",
    category = "fairlead",
    selectable = ".status.admission.clusterQueue",
    printcolumn = r#"{"name": "Queue", "type": "string", "jsonPath": ".spec.queueName"}"#,
    printcolumn = r#"{"name": "Admitted", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Admitted\")].status"}"#,
    printcolumn = r#"{"name": "Finished", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Finished\")].status"}"#,
    printcolumn = r#"{"name": "Cluster", "type": "string", "jsonPath": ".status.clusterName"}"#,
    printcolumn = r#"{"name": "Why", "type": "string", "jsonPath": ".status.verdict.code"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Reserved in", "type": "string", "priority": 1, "jsonPath": ".status.admission.clusterQueue"}"#,
    printcolumn = r#"{"name": "Priority", "type": "integer", "priority": 1, "jsonPath": ".spec.priority"}"#,
    printcolumn = r#"{"name": "Message", "type": "string", "priority": 1, "jsonPath": ".status.verdict.message"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.priorityClassRef) || has(self.priority)",
    "message": "priority must be set when priorityClassRef is set"
}]))]
pub struct WorkloadSpec {
    /// Groups of identical pods.
    #[schemars(length(min = 1, max = 18))]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["name"],
        "x-kubernetes-validations" = [{
            "rule": "self.filter(p, has(p.minCount)).size() <= 1",
            "message": "at most one pod set may set minCount"
        }]
    ))]
    pub pod_sets: Vec<PodSet>,

    /// The LocalQueue, in the Workload's namespace. It cannot be changed while quota is reserved.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub queue_name: Option<String>,

    /// The class that the priority came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_class_ref: Option<PriorityClassRef>,

    /// The priority; higher comes first. Absent counts as 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,

    /// Whether the workload may be admitted. Setting it to false evicts the workload and takes it out of its
    /// queue.
    #[serde(default = "active_by_default")]
    pub active: bool,

    /// For how many seconds it may run once admitted. Absent means for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub maximum_execution_time_seconds: Option<i32>,

    /// Gates that forbid preemption for this workload until their status is `Open`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub preemption_gates: Vec<PreemptionGate>,
}

impl Default for WorkloadSpec {
    fn default() -> Self {
        Self {
            pod_sets: Vec::new(),
            queue_name: None,
            priority_class_ref: None,
            priority: None,
            active: true,
            maximum_execution_time_seconds: None,
            preemption_gates: Vec::new(),
        }
    }
}

const fn active_by_default() -> bool {
    true
}

/// Identical pods of a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.minCount) || self.minCount <= self.count",
    "message": "minCount must not be larger than count"
}]))]
pub struct PodSet {
    /// The name, unique in the workload.
    #[serde(default = "main_pod_set")]
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,

    /// The pod template, a Kubernetes `PodTemplateSpec`. It is stored as given, so no field is lost that is newer
    /// than the hub; the hub validates what it reads of it.
    #[schemars(schema_with = "schema::raw_object")]
    pub template: serde_json::Value,

    /// How many pods.
    #[serde(default = "one")]
    #[schemars(range(min = 0))]
    pub count: i32,

    /// How few pods are enough to start, for partial admission. Only one pod set may set it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub min_count: Option<i32>,

    /// Where the pods should stand relative to each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology_request: Option<PodSetTopologyRequest>,
}

impl Default for PodSet {
    fn default() -> Self {
        Self {
            name: main_pod_set(),
            template: serde_json::Value::Object(serde_json::Map::new()),
            count: one(),
            min_count: None,
            topology_request: None,
        }
    }
}

fn main_pod_set() -> String {
    MAIN_POD_SET.to_owned()
}

const fn one() -> i32 {
    1
}

/// Where the pods of a pod set should stand. At most one of `required`, `preferred` and `unconstrained` is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "[has(self.required), has(self.preferred), has(self.unconstrained) && self.unconstrained]\
                 .filter(set, set).size() <= 1",
        "message": "set at most one of required, preferred and unconstrained"
    },
    {
        "rule": "!has(self.podsetSliceRequiredTopologyConstraints) \
                 || (!has(self.podSetSliceRequiredTopology) && !has(self.podSetSliceSize))",
        "message": "podsetSliceRequiredTopologyConstraints excludes podSetSliceRequiredTopology and \
                    podSetSliceSize"
    }
]))]
pub struct PodSetTopologyRequest {
    /// All pods stand in one domain of this level, a node label.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 316))]
    pub required: Option<String>,

    /// All pods stand in one domain of this level if that is possible, else in as few as possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 316))]
    pub preferred: Option<String>,

    /// The pods may stand anywhere, and the topology's free capacity is still tracked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unconstrained: Option<bool>,

    /// The pod label that holds a pod's index, for ordered assignment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 316))]
    pub pod_index_label: Option<String>,

    /// The pod label that holds the index of a pod's subgroup.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 316))]
    pub sub_group_index_label: Option<String>,

    /// How many subgroups there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub_group_count: Option<i32>,

    /// Pod sets with the same group name stand in one domain together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub pod_set_group_name: Option<String>,

    /// Each slice of the pod set stands in one domain of this level.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 316))]
    pub pod_set_slice_required_topology: Option<String>,

    /// How many pods are in a slice.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub pod_set_slice_size: Option<i32>,

    /// Slices within slices, widest level first. It excludes the two fields above.
    #[serde(
        default,
        rename = "podsetSliceRequiredTopologyConstraints",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(length(min = 1, max = 3), extend("x-kubernetes-list-type" = "atomic"))]
    pub pod_set_slice_required_topology_constraints: Vec<SliceConstraint>,
}

/// Slices of one size in one level.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SliceConstraint {
    /// The level, a node label.
    #[schemars(length(min = 1, max = 316))]
    pub topology: String,

    /// How many pods are in a slice.
    #[schemars(range(min = 1))]
    pub size: i32,
}

/// The class that a priority came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "(self.group == 'kueue.x-k8s.io' && self.kind == 'WorkloadPriorityClass') \
             || (self.group == 'scheduling.k8s.io' && self.kind == 'PriorityClass')",
    "message": "name a WorkloadPriorityClass of kueue.x-k8s.io or a PriorityClass of scheduling.k8s.io"
}]))]
pub struct PriorityClassRef {
    /// Its API group: `kueue.x-k8s.io` or `scheduling.k8s.io`.
    #[schemars(length(min = 1, max = 253))]
    pub group: String,

    /// Its kind: `WorkloadPriorityClass` or `PriorityClass`.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,

    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// A gate that forbids preemption until it is open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreemptionGate {
    /// Its name, for example `kueue.x-k8s.io/multikueue`.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
}
