//! Topology: the levels of a data centre, as node labels.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// A Topology names the node labels that say where a node stands, from the widest level to the narrowest.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kueue.x-k8s.io",
    version = "v1beta2",
    kind = "Topology",
    plural = "topologies",
    schema = "disabled",
    doc = "The levels of a data centre, as node labels.",
    derive = "Default",
    derive = "PartialEq",
    shortname = "topo",
    category = "fairlead",
    printcolumn = r#"{"name": "Levels", "type": "string", "jsonPath": ".spec.levels[*].nodeLabel"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct TopologySpec {
    /// The levels, widest first. `kubernetes.io/hostname` may only be the last. They can be changed only while
    /// it is the last, before and after.
    #[schemars(length(min = 1, max = 16))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic", "x-kubernetes-validations" = [
        {
            "rule": "self.all(i, self.exists_one(j, j.nodeLabel == i.nodeLabel))",
            "message": "each nodeLabel may appear once"
        },
        {
            "rule": "self.filter(l, l.nodeLabel == 'kubernetes.io/hostname').size() == 0 \
                     || self[size(self) - 1].nodeLabel == 'kubernetes.io/hostname'",
            "message": "kubernetes.io/hostname may only be the last level"
        },
        {
            "rule": "self == oldSelf || (self[size(self) - 1].nodeLabel == 'kubernetes.io/hostname' \
                     && oldSelf[size(oldSelf) - 1].nodeLabel == 'kubernetes.io/hostname')",
            "message": "levels can be changed only while kubernetes.io/hostname is the last level"
        }
    ]))]
    pub levels: Vec<TopologyLevel>,
}

/// One level.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopologyLevel {
    /// The node label whose values are the domains of this level, for example `topology.kubernetes.io/zone`.
    #[schemars(length(min = 1, max = 316), regex(pattern = schema::LABEL_KEY))]
    pub node_label: String,
}
