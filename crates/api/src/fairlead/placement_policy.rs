//! PlacementPolicy: which clusters may take the work of a dispatch check.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// A PlacementPolicy holds the parameters of an AdmissionCheck with the controller `fairlead.dev/dispatch`: which
/// clusters may take the work, and which of them rather than others.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "fairlead.dev",
    version = "v1alpha1",
    kind = "PlacementPolicy",
    plural = "placementpolicies",
    status = "PlacementPolicyStatus",
    schema = "disabled",
    doc = "Which clusters may take the work of a dispatch check.",
    derive = "Default",
    derive = "PartialEq",
    shortname = "fpp",
    category = "fairlead",
    printcolumn = r#"{"name": "Active", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Active\")].status"}"#,
    printcolumn = r#"{"name": "Clusters", "type": "integer", "jsonPath": ".status.matchingClusters"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct PlacementPolicySpec {
    /// Which clusters. Absent means every one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_selector: Option<ClusterSelector>,
}

/// Which clusters may take the work, and which rather than others. Selectors match a Cluster's `spec.labels` and
/// the key `fairlead.dev/cluster`, which is its name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSelector {
    /// Only clusters that match. Absent or `{}` means every one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<LabelSelector>,

    /// Rather clusters that match. The first entry counts most; a later one decides only between clusters that
    /// the earlier ones treat alike.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "atomic"))]
    pub preferred: Vec<PreferredClusters>,
}

/// Clusters that are preferred.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreferredClusters {
    /// Clusters that match come first.
    pub selector: LabelSelector,
}

/// What the hub observed of a PlacementPolicy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementPolicyStatus {
    /// The generation of the spec that this status was made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// `Active` says whether the policy can be used, and why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,

    /// How many registered clusters match the required selector.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub matching_clusters: Option<i32>,
}
