//! Cohort: queues that lend to each other, and trees of them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quota::{group_rules, limits_need};
use super::{FairSharing, FairSharingStatus, ResourceGroup};
use crate::schema;

/// A Cohort is a set of ClusterQueues and Cohorts that lend each other unused quota. A cohort that is named and
/// not created exists as well, without quota and limits of its own.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kueue.x-k8s.io",
    version = "v1beta2",
    kind = "Cohort",
    status = "CohortStatus",
    schema = "disabled",
    doc = "Queues that lend each other unused quota.",
    derive = "Default",
    derive = "PartialEq",
    shortname = "co",
    category = "fairlead",
    printcolumn = r#"{"name": "Parent", "type": "string", "jsonPath": ".spec.parentName"}"#,
    printcolumn = r#"{"name": "Active", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Active\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Share", "type": "integer", "priority": 1, "jsonPath": ".status.fairSharing.weightedShare"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [limits_need("parentName")]))]
pub struct CohortSpec {
    /// The cohort above this one. It need not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253), regex(pattern = schema::OBJECT_NAME))]
    pub parent_name: Option<String>,

    /// Quota that belongs to no queue in particular: an extra pool for everything below.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic", "x-kubernetes-validations" = group_rules()))]
    pub resource_groups: Vec<ResourceGroup>,

    /// How this cohort shares what is left over in its parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair_sharing: Option<FairSharing>,
}

/// What the hub observed of a Cohort.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CohortStatus {
    /// `Active` says whether queues below may admit: not while cohorts form a circle. Fairlead's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,

    /// The measured share, when fair sharing is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair_sharing: Option<FairSharingStatus>,
}
