//! LocalQueue: the name in a namespace that its users submit to.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FairSharing, StopPolicy};
use crate::{Quantity, schema};

/// A LocalQueue leads the jobs of its namespace to a ClusterQueue. A job names it in the label
/// `kueue.x-k8s.io/queue-name`; one called `default` takes the jobs that name none.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kueue.x-k8s.io",
    version = "v1beta2",
    kind = "LocalQueue",
    namespaced,
    status = "LocalQueueStatus",
    schema = "disabled",
    doc = "The name in a namespace that its users submit to.",
    derive = "Default",
    derive = "PartialEq",
    shortname = "queue",
    shortname = "queues",
    shortname = "lq",
    category = "fairlead",
    printcolumn = r#"{"name": "ClusterQueue", "type": "string", "jsonPath": ".spec.clusterQueue"}"#,
    printcolumn = r#"{"name": "Active", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Active\")].status"}"#,
    printcolumn = r#"{"name": "Pending", "type": "integer", "jsonPath": ".status.pendingWorkloads"}"#,
    printcolumn = r#"{"name": "Admitted", "type": "integer", "jsonPath": ".status.admittedWorkloads"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Reserving", "type": "integer", "priority": 1, "jsonPath": ".status.reservingWorkloads"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "priority": 1, "jsonPath": ".status.conditions[?(@.type==\"Active\")].reason"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(oldSelf.clusterQueue) || (has(self.clusterQueue) && self.clusterQueue == oldSelf.clusterQueue)",
    "message": "clusterQueue cannot be changed; create another LocalQueue"
}]))]
pub struct LocalQueueSpec {
    /// The ClusterQueue behind this queue. It cannot be changed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253), regex(pattern = schema::OBJECT_NAME))]
    pub cluster_queue: String,

    /// Whether the queue runs.
    #[serde(default)]
    pub stop_policy: StopPolicy,

    /// How this queue shares with others of its ClusterQueue, when admission fair sharing is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair_sharing: Option<FairSharing>,
}

/// What the hub observed of a LocalQueue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalQueueStatus {
    /// `Active` says whether the queue takes workloads, and why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,

    /// How many workloads wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_workloads: Option<i32>,

    /// How many workloads have quota reserved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserving_workloads: Option<i32>,

    /// How many workloads are admitted and not finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admitted_workloads: Option<i32>,

    /// What workloads with reserved quota hold, by flavor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub flavors_reservation: Vec<LocalQueueFlavorUsage>,

    /// What admitted workloads use, by flavor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub flavors_usage: Vec<LocalQueueFlavorUsage>,

    /// The measured share, when fair sharing is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair_sharing: Option<LocalQueueFairSharingStatus>,
}

/// The use of one flavor by a LocalQueue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalQueueFlavorUsage {
    /// The flavor.
    #[schemars(length(max = 253))]
    pub name: String,

    /// The use of each resource.
    #[schemars(length(max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub resources: Vec<LocalQueueResourceUsage>,
}

/// The use of one resource by a LocalQueue. Borrowing is known of ClusterQueues only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalQueueResourceUsage {
    /// The resource.
    #[schemars(length(max = 316))]
    pub name: String,

    /// The whole amount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<Quantity>,
}

/// The measured share of a LocalQueue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalQueueFairSharingStatus {
    /// The share as for a ClusterQueue.
    pub weighted_share: i64,

    /// What admission fair sharing remembers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admission_fair_sharing_status: Option<AdmissionFairSharingStatus>,
}

/// Past use of a LocalQueue, decayed with time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionFairSharingStatus {
    /// The decayed use of each resource.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub consumed_resources: BTreeMap<String, Quantity>,

    /// When the use was last computed.
    pub last_update: Time,
}
