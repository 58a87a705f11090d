//! Tombstone: a deletion that a spoke has not confirmed.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kueue::PlacementEpoch;
use crate::{Quantity, schema};

/// A Tombstone carries on what a deleted Workload still owed: a copy that a spoke has not confirmed to have
/// stopped, and the quota that it may still use. It goes when the spoke confirms.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "fairlead.dev",
    version = "v1alpha1",
    kind = "Tombstone",
    status = "TombstoneStatus",
    schema = "disabled",
    doc = "A deletion that a spoke has not confirmed.",
    derive = "PartialEq",
    shortname = "fltomb",
    category = "fairlead",
    printcolumn = r#"{"name": "Cluster", "type": "string", "jsonPath": ".spec.cluster"}"#,
    printcolumn = r#"{"name": "Namespace", "type": "string", "jsonPath": ".spec.job.namespace"}"#,
    printcolumn = r#"{"name": "Job", "type": "string", "jsonPath": ".spec.job.name"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".spec.reason"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Placement", "type": "string", "priority": 1, "jsonPath": ".spec.placement"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "self.epoch.term > oldSelf.epoch.term \
             || (self.epoch.term == oldSelf.epoch.term && self.epoch.seq >= oldSelf.epoch.seq)",
    "message": "epoch never falls"
}]))]
pub struct TombstoneSpec {
    /// The run: the UID of the deleted job on the hub.
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-validations" = schema::immutable("run")))]
    pub run: String,

    /// The placement's id.
    #[schemars(length(min = 1, max = 63), extend("x-kubernetes-validations" = schema::immutable("placement")))]
    pub placement: String,

    /// The name of the Cluster that holds the copy.
    #[schemars(length(min = 1, max = 253), extend("x-kubernetes-validations" = schema::immutable("cluster")))]
    pub cluster: String,

    /// The UID of that Cluster.
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-validations" = schema::immutable("clusterUid")))]
    pub cluster_uid: String,

    /// The epoch under which the copy was last ordered to do anything.
    pub epoch: PlacementEpoch,

    /// The copy.
    pub job: TombstoneJob,

    /// The quota that stays taken until the stop is proven.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub held_usage: Vec<HeldUsage>,

    /// Why it was made.
    pub reason: TombstoneReason,
}

/// The copy that a Tombstone is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TombstoneJob {
    /// Its namespace, on hub and spoke.
    #[schemars(length(min = 1, max = 63), extend("x-kubernetes-validations" = schema::immutable("namespace")))]
    pub namespace: String,

    /// Its name, on hub and spoke.
    #[schemars(length(min = 1, max = 253), extend("x-kubernetes-validations" = schema::immutable("name")))]
    pub name: String,

    /// Its UID on the spoke, when that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub uid: Option<String>,
}

/// Quota that stays taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldUsage {
    /// The ClusterQueue.
    #[schemars(length(min = 1, max = 253))]
    pub cluster_queue: String,

    /// The flavor.
    #[schemars(length(min = 1, max = 253))]
    pub flavor: String,

    /// The resource.
    #[schemars(length(min = 1, max = 316))]
    pub resource: String,

    /// How much of it.
    pub amount: Quantity,
}

/// Why a Tombstone was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TombstoneReason {
    /// The spoke did not confirm before the deadline.
    DeadlineExceeded,
    /// The Workload's namespace was being deleted, so its finalizer could not hold.
    NamespaceTerminating,
    /// Somebody removed the Workload's finalizer.
    FinalizerRemoved,
}

/// What the hub observed of a Tombstone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TombstoneStatus {
    /// The generation of the spec that this status was made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// `Stopped` says whether the spoke confirmed, and if not, what is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,

    /// When the spoke was last told to stop the copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_ordered_at: Option<Time>,
}
