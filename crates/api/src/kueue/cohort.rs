//! Cohort: queues that lend to each other, and trees of them.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FairSharing, FairSharingStatus, ResourceGroup};

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
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Share", "type": "integer", "priority": 1, "jsonPath": ".status.fairSharing.weightedShare"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct CohortSpec {
    /// The cohort above this one. It need not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub parent_name: Option<String>,

    /// Quota that belongs to no queue in particular: an extra pool for everything below.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    pub resource_groups: Vec<ResourceGroup>,

    /// How this cohort shares what is left over in its parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair_sharing: Option<FairSharing>,
}

/// What the hub observed of a Cohort.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CohortStatus {
    /// The measured share, when fair sharing is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair_sharing: Option<FairSharingStatus>,
}
