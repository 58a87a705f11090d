//! Quota, usage and fair sharing: what ClusterQueue, Cohort and LocalQueue have in common.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Quantity, schema};

/// Rules over all resource groups of a queue or cohort.
pub(crate) fn group_rules() -> Value {
    json!([
        {
            "rule": "self.all(g, self.filter(h, sets.intersects(h.coveredResources, g.coveredResources)).size() == 1)",
            "message": "a resource may be in one group only"
        },
        {
            "rule": "self.all(g, self.filter(h, sets.intersects(h.flavors.map(f, f.name), \
                     g.flavors.map(f, f.name))).size() == 1)",
            "message": "a flavor may be in one group only"
        },
        {
            "rule": "self.map(g, size(g.flavors)).sum() <= 256 && self.map(g, size(g.coveredResources)).sum() <= 256",
            "message": "all groups together have at most 256 flavors and 256 resources"
        }
    ])
}

/// The rule that nothing is borrowed or lent outside a cohort. `cohort` is the field that names it.
pub(crate) fn limits_need(cohort: &str) -> Value {
    json!({
        "rule": format!(
            "(has(self.{cohort}) && self.{cohort} != '') || !has(self.resourceGroups) || \
             self.resourceGroups.all(g, g.flavors.all(f, f.resources.all(r, \
             !has(r.borrowingLimit) && !has(r.lendingLimit))))"
        ),
        "message": format!("borrowingLimit and lendingLimit need {cohort}"),
    })
}

/// Resources that must all come from the same flavor, and the flavors to choose from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.flavors.all(f, f.resources.map(r, r.name) == self.coveredResources)",
        "message": "each entry of flavors must list the same resources as coveredResources, in the same order"
    },
    {
        "rule": "size(self.flavors) * size(self.coveredResources) <= 512",
        "message": "a group has at most 512 pairs of a flavor and a resource"
    }
]))]
pub struct ResourceGroup {
    /// The resources that this group manages, for example `["cpu", "memory"]`. A resource may be in one group
    /// only. `pods` counts pods.
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 316), regex(pattern = schema::LABEL_KEY)))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub covered_resources: Vec<String>,

    /// The flavors that the resources may come from, in order of preference.
    #[schemars(length(min = 1, max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub flavors: Vec<FlavorQuotas>,
}

/// The quota of one flavor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlavorQuotas {
    /// The name of a ResourceFlavor. Until it exists, the queue is not active.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// The quota of each resource, in the order of `coveredResources`.
    #[schemars(length(min = 1, max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub resources: Vec<ResourceQuota>,
}

/// The quota of one resource in one flavor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceQuota {
    /// The resource, for example `cpu` or `nvidia.com/gpu`.
    #[schemars(length(min = 1, max = 316))]
    pub name: String,

    /// The guaranteed amount, for example `40` or `64Gi`.
    pub nominal_quota: Quantity,

    /// How much may be borrowed above the nominal quota. Absent means no limit. Only in a cohort.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub borrowing_limit: Option<Quantity>,

    /// How much of the nominal quota others may borrow. Absent means all of it. Only in a cohort.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lending_limit: Option<Quantity>,
}

/// How a queue or cohort shares what is left over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FairSharing {
    /// The share relative to siblings, 1 when absent. Twice the weight means twice the share; 0 means that
    /// anyone else comes first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "1", "x-kubernetes-validations" = [{
        "rule": "type(self) == int || (quantity(self).compareTo(quantity('0')) == 0 \
                 || quantity(self).isGreaterThan(quantity('1n')))",
        "message": "weight must be 0 or greater than 1n"
    }]))]
    pub weight: Option<Quantity>,
}

/// The measured share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FairSharingStatus {
    /// The largest ratio over all resources of borrowed quota to what the cohort can lend, in thousandths,
    /// divided by the weight. The largest integer when the weight is 0 and something is borrowed.
    pub weighted_share: i64,
}

/// Whether a queue admits, and whether it keeps what it admitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StopPolicy {
    /// The queue runs.
    #[default]
    None,
    /// Nothing new is admitted; what was admitted runs on.
    Hold,
    /// Nothing new is admitted, and what was admitted is evicted.
    HoldAndDrain,
}

/// The use of one flavor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlavorUsage {
    /// The flavor.
    #[schemars(length(max = 253))]
    pub name: String,

    /// The use of each resource.
    #[schemars(length(max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub resources: Vec<ResourceUsage>,
}

/// The use of one resource in one flavor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceUsage {
    /// The resource.
    #[schemars(length(max = 316))]
    pub name: String,

    /// The whole amount, with what is borrowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<Quantity>,

    /// The part above the nominal quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub borrowed: Option<Quantity>,
}
