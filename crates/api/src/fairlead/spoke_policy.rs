//! SpokePolicy: what the hub may do on this cluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// The one SpokePolicy, named `fairlead`, says what the hub may do on this cluster. It lives on the spoke and belongs
/// to its administrator; the agent only reads it. What it does not allow is refused.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "fairlead.dev",
    version = "v1alpha1",
    kind = "SpokePolicy",
    plural = "spokepolicies",
    status = "SpokePolicyStatus",
    schema = "disabled",
    doc = "What the hub may do on this cluster.",
    derive = "Default",
    derive = "PartialEq",
    shortname = "flspoke",
    category = "fairlead",
    printcolumn = r#"{"name": "Namespaces", "type": "string", "jsonPath": ".spec.namespaces[*].name"}"#,
    printcolumn = r#"{"name": "Active", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Active\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct SpokePolicySpec {
    /// The namespaces that the hub may use. Any other is refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub namespaces: Vec<AllowedNamespace>,
}

/// A namespace that the hub may use, and for what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "self.name != 'kube-system' && self.name != 'kube-public' && self.name != 'kube-node-lease'",
    "message": "name must not be a namespace of the cluster itself"
}]))]
pub struct AllowedNamespace {
    /// The namespace, of the same name on the hub.
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,

    /// The service account in this namespace that the agent impersonates there. Its rights are the limit of what
    /// the hub can do.
    #[schemars(length(min = 1, max = 253))]
    pub service_account: String,

    /// The kinds of jobs that may be created, written `group/version/Kind`, for example `batch/v1/Job`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        inner(length(min = 1, max = 253), regex(pattern = "^[a-z0-9.-]+/[a-z0-9]+/[A-Z][A-Za-z0-9]*$"))
    )]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub kinds: Vec<String>,

    /// The Secrets that pods may use. Any other is refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), inner(length(min = 1, max = 253)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub secrets: Vec<String>,

    /// The service accounts that pods may run as. `default` must be named too. Any other is refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), inner(length(min = 1, max = 253)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub service_accounts: Vec<String>,
}

/// What the agent observed of the SpokePolicy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpokePolicyStatus {
    /// The generation of the spec that this status was made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// `Active` says whether the agent obeys this policy, and why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}
