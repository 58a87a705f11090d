//! The status of a Workload: conditions, admission, checks and what remains of earlier tries.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{DelayedTopologyRequest, Placement, Toleration, TopologyAssignment, Verdict};
use crate::{Quantity, schema};

/// What the hub decided and observed of a Workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = status_rules()))]
pub struct WorkloadStatus {
    /// `QuotaReserved`, `Admitted`, `PodsReady`, `Evicted`, `Finished` and others. The reason of
    /// `QuotaReserved=False` says why the workload waits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,

    /// The quota that is reserved. Absent while none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admission: Option<Admission>,

    /// How often and until when the workload was put back after evictions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requeue_state: Option<RequeueState>,

    /// Pods that are no longer needed, by pod set. Their quota is free again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 18))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub reclaimable_pods: Vec<ReclaimablePod>,

    /// The state of each admission check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub admission_checks: Vec<AdmissionCheckState>,

    /// What the workload asks for, by pod set. Only while it is not admitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 18))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub resource_requests: Vec<PodSetRequest>,

    /// For how many seconds it was admitted before the current admission.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub accumulated_past_execution_time_seconds: Option<i32>,

    /// Counters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling_stats: Option<SchedulingStats>,

    /// Clusters that were proposed and not chosen yet. It excludes `clusterName`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(min = 1, max = 253)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub nominated_cluster_names: Vec<String>,

    /// The cluster that was chosen. An eviction clears it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub cluster_name: Option<String>,

    /// Nodes that failed under the workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub unhealthy_nodes: Vec<UnhealthyNode>,

    /// The position of each preemption gate. A gate without one is closed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub preemption_gates: Vec<PreemptionGateState>,

    /// The promises made for this workload: where it runs, or ran, and under which epoch. One may go only once it
    /// is `Closed`, its epoch never falls, and at most one is open. Fairlead's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["id"]))]
    pub placements: Vec<Placement>,

    /// Why the workload waits or where it went, with what was measured for each candidate. Fairlead's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// What a status never says, whoever writes it. These rules run on every status write, so the cheap tests come first.
fn status_rules() -> Value {
    const RESERVED: &str =
        "has(self.conditions) && self.conditions.exists(c, c.type == 'QuotaReserved' && c.status == 'True')";
    let rule = |rule: String, message: &str| json!({ "rule": rule, "message": message });
    json!([
        rule(
            format!("has(self.admission) || !({RESERVED})"),
            "admission must be set while QuotaReserved is True",
        ),
        rule(
            "!has(self.clusterName) || !has(self.nominatedClusterNames) || size(self.nominatedClusterNames) == 0"
                .to_owned(),
            "clusterName and nominatedClusterNames exclude each other",
        ),
        rule(
            "!has(self.clusterName) || !has(oldSelf.clusterName) || self.clusterName == oldSelf.clusterName".to_owned(),
            "clusterName cannot be changed; an eviction clears it",
        ),
        rule(
            format!(
                "!has(oldSelf.reclaimablePods) || !has(oldSelf.admission) || !has(self.admission) \
                 || oldSelf.reclaimablePods.all(old, has(self.reclaimablePods) \
                 && self.reclaimablePods.exists(new, new.name == old.name && new.count >= old.count)) \
                 || !({RESERVED})"
            ),
            "reclaimablePods never fall while quota is reserved",
        ),
    ])
}

/// The quota that a workload holds. While it is set its queue, pod sets and flavors stay; amounts may shrink.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "self.clusterQueue == oldSelf.clusterQueue \
             && self.podSetAssignments.map(p, p.name) == oldSelf.podSetAssignments.map(p, p.name) \
             && self.podSetAssignments.map(p, p.?flavors) == oldSelf.podSetAssignments.map(p, p.?flavors)",
    "message": "an admission cannot be changed; remove it first"
}]))]
pub struct Admission {
    /// The ClusterQueue that holds it.
    #[schemars(length(min = 1, max = 253))]
    pub cluster_queue: String,

    /// Flavors and amounts, by pod set.
    #[schemars(length(max = 18))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub pod_set_assignments: Vec<PodSetAssignment>,
}

/// The flavors and amounts of one pod set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodSetAssignment {
    /// The pod set.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,

    /// The flavor of each resource.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub flavors: BTreeMap<String, String>,

    /// The amount of each resource, for all pods of the set together.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub resource_usage: BTreeMap<String, Quantity>,

    /// How many pods were admitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub count: Option<i32>,

    /// Where the pods stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology_assignment: Option<TopologyAssignment>,

    /// Whether the places are still to be found, after a check has made the nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delayed_topology_request: Option<DelayedTopologyRequest>,
}

/// How often and until when a workload was put back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequeueState {
    /// How often.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub count: Option<i32>,

    /// When it may be admitted again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requeue_at: Option<Time>,
}

/// Pods of a pod set that are no longer needed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReclaimablePod {
    /// The pod set.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,

    /// How many.
    #[schemars(range(min = 0))]
    pub count: i32,
}

/// The state of one admission check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionCheckState {
    /// The check.
    #[schemars(length(min = 1, max = 316))]
    pub name: String,

    /// Its state.
    pub state: CheckStateName,

    /// When the state last changed.
    pub last_transition_time: Time,

    /// A sentence for people.
    #[schemars(length(max = 32768))]
    pub message: String,

    /// After how many seconds to try again, in state `Retry`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub requeue_after_seconds: Option<i32>,

    /// How often it was tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub retry_count: Option<i32>,

    /// What the check adds to the pods. What stands here when the workload is admitted is what counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 18), extend("x-kubernetes-list-type" = "atomic"))]
    pub pod_set_updates: Vec<PodSetUpdate>,
}

/// States of an admission check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CheckStateName {
    /// Not decided.
    Pending,
    /// Passed.
    Ready,
    /// Failed for now: the workload is evicted and tried again.
    Retry,
    /// Failed for good: the workload is deactivated.
    Rejected,
}

/// What a check adds to the pods of a pod set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodSetUpdate {
    /// The pod set.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,

    /// Labels to add.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,

    /// Annotations to add.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,

    /// Node selector terms to add.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,

    /// Tolerations to add.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "atomic"))]
    pub tolerations: Vec<Toleration>,
}

/// What a pod set asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodSetRequest {
    /// The pod set.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,

    /// The amount of each resource, for all pods of the set together.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<String, Quantity>,
}

/// Counters of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SchedulingStats {
    /// Evictions by cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["reason", "underlyingCause"]
    ))]
    pub evictions: Vec<Eviction>,
}

/// How often a workload was evicted for one cause.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Eviction {
    /// The reason, as in the condition `Evicted`.
    #[schemars(length(max = 316))]
    pub reason: String,

    /// What led to it; may be empty.
    #[schemars(length(max = 316))]
    pub underlying_cause: String,

    /// How often.
    #[schemars(range(min = 0))]
    pub count: i32,
}

/// A node that failed under the workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnhealthyNode {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// The position of a preemption gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreemptionGateState {
    /// The gate.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,

    /// Whether it is open.
    pub position: GatePosition,

    /// When the position last changed.
    pub last_transition_time: Time,
}

/// Whether a preemption gate is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum GatePosition {
    /// Preemption is allowed.
    Open,
    /// Preemption is forbidden.
    Closed,
}
