//! ResourceFlavor: a class of capacity.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// A ResourceFlavor is a class of capacity: nodes that share labels and taints. The node labels
/// `fairlead.dev/cluster` and `fairlead.dev/cloud` pin it to a cluster or a cloud; the hub evaluates them and
/// removes them from the copy.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kueue.x-k8s.io",
    version = "v1beta2",
    kind = "ResourceFlavor",
    schema = "disabled",
    doc = "A class of capacity.",
    derive = "Default",
    derive = "PartialEq",
    shortname = "flavor",
    shortname = "flavors",
    shortname = "rf",
    category = "fairlead",
    printcolumn = r#"{"name": "Topology", "type": "string", "jsonPath": ".spec.topologyName"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!has(self.topologyName) || (has(self.nodeLabels) && size(self.nodeLabels) > 0)",
        "message": "nodeLabels needs at least one label when topologyName is set"
    },
    {
        "rule": "!has(oldSelf.topologyName) || (has(self.topologyName) && self.topologyName == oldSelf.topologyName)",
        "message": "topologyName cannot be changed once it is set"
    }
]))]
pub struct ResourceFlavorSpec {
    /// The labels of the flavor's nodes. They are added to the pods as a node selector, and matched with the
    /// pods' own selector and affinity.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend(
        "maxProperties" = 8,
        "additionalProperties" = {
            "type": "string", "maxLength": 63, "pattern": schema::LABEL_VALUE, "description": "A label value."
        },
        "x-kubernetes-validations" = [{
            "rule": "self.all(key, !format.qualifiedName().validate(key).hasValue())",
            "message": "a key of nodeLabels is no label key"
        }]
    ))]
    pub node_labels: BTreeMap<String, String>,

    /// The taints of the flavor's nodes. A pod must tolerate those with `NoSchedule` and `NoExecute`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "atomic", "x-kubernetes-validations" = [{
        "rule": "self.all(t, self.exists_one(u, u.key == t.key && u.effect == t.effect))",
        "message": "each pair of key and effect may appear once"
    }]))]
    pub node_taints: Vec<Taint>,

    /// Tolerations that pods in this flavor get, and that count when `nodeTaints` are compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "atomic"))]
    pub tolerations: Vec<Toleration>,

    /// The Topology of the flavor's nodes; it makes the flavor topology-aware. It needs at least one node label.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub topology_name: Option<String>,
}

/// A taint of the flavor's nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// The key.
    #[schemars(length(min = 1, max = 316), regex(pattern = schema::LABEL_KEY))]
    pub key: String,

    /// The value; absent means empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = schema::LABEL_VALUE))]
    pub value: Option<String>,

    /// What it does to pods that do not tolerate it.
    pub effect: TaintEffect,

    /// When the taint was added. Accepted because node objects carry it; it plays no role.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub time_added: Option<String>,
}

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    /// Pods are not bound there.
    NoSchedule,
    /// Pods are bound there only if nothing else fits. Quota ignores it.
    PreferNoSchedule,
    /// Pods are not bound there, and running ones are evicted.
    NoExecute,
}

/// A toleration that pods in this flavor get.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "(has(self.key) && self.key != '') || (has(self.operator) && self.operator == 'Exists')",
        "message": "operator must be Exists when key is empty"
    },
    {
        "rule": "!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
        "message": "effect must be NoExecute when tolerationSeconds is set"
    },
    {
        "rule": "!(has(self.operator) && self.operator == 'Exists' && has(self.value) && self.value != '')",
        "message": "value must be empty when operator is Exists"
    }
]))]
pub struct Toleration {
    /// The taint's key. Absent matches every key, with the operator `Exists`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 316))]
    pub key: Option<String>,

    /// How the value is compared; `Equal` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<TolerationOperator>,

    /// The taint's value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub value: Option<String>,

    /// The taint's effect. Absent matches every effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<TaintEffect>,

    /// For how many seconds a `NoExecute` taint is tolerated. Absent means for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

/// How a toleration compares the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TolerationOperator {
    /// Any value.
    Exists,
    /// This value.
    Equal,
}
