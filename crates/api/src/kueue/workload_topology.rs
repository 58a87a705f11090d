//! Where the pods of an admitted workload stand, in a compact form.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the pods of a pod set stand. It is relative to the chosen cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopologyAssignment {
    /// The levels, as node labels, widest first.
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 316)))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub levels: Vec<String>,

    /// The domains in groups, in order.
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "atomic"))]
    pub slices: Vec<TopologyAssignmentSlice>,
}

/// Some domains in a row and how many pods each gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopologyAssignmentSlice {
    /// How many domains.
    #[schemars(range(min = 1))]
    pub domain_count: i32,

    /// The domains' values, one entry for each level.
    #[schemars(length(min = 1, max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    pub values_per_level: Vec<ValuesPerLevel>,

    /// How many pods each domain gets.
    pub pod_counts: PodCounts,
}

/// The values of some domains at one level: one for all, or one each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValuesPerLevel {
    /// The value that all domains share.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub universal: Option<String>,

    /// A value for each domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub individual: Option<IndividualValues>,
}

/// A value for each domain: `prefix + root + suffix`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IndividualValues {
    /// What all values begin with.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub prefix: Option<String>,

    /// What all values end with.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub suffix: Option<String>,

    /// What is different, in the order of the domains.
    #[schemars(length(min = 1, max = 100_000), inner(length(max = 63)))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub roots: Vec<String>,
}

/// How many pods each domain gets: one number for all, or one each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodCounts {
    /// The number that all domains share.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub universal: Option<i32>,

    /// A number for each domain, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100_000), inner(range(min = 1)))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub individual: Vec<i32>,
}

/// Whether places are still to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DelayedTopologyRequest {
    /// They are.
    Pending,
    /// They were found.
    Ready,
}
