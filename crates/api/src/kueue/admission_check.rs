//! AdmissionCheck: something that must pass before a workload with reserved quota is admitted.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// An AdmissionCheck names a controller that must agree before a workload is admitted. With the controller
/// `fairlead.dev/dispatch` it makes a ClusterQueue federated.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kueue.x-k8s.io",
    version = "v1beta2",
    kind = "AdmissionCheck",
    status = "AdmissionCheckStatus",
    schema = "disabled",
    doc = "Something that must pass before a workload is admitted.",
    derive = "Default",
    derive = "PartialEq",
    shortname = "ac",
    category = "fairlead",
    printcolumn = r#"{"name": "Controller", "type": "string", "jsonPath": ".spec.controllerName"}"#,
    printcolumn = r#"{"name": "Active", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Active\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "priority": 1, "jsonPath": ".status.conditions[?(@.type==\"Active\")].reason"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionCheckSpec {
    /// The controller that runs the check, for example `fairlead.dev/dispatch`. `kueue.x-k8s.io/multikueue` is
    /// understood as the same. It cannot be changed.
    #[schemars(length(min = 1, max = 253))]
    #[schemars(extend("x-kubernetes-validations" = [{
        "rule": "self == oldSelf",
        "message": "controllerName cannot be changed; create another AdmissionCheck"
    }]))]
    pub controller_name: String,

    /// The object that holds the check's parameters: a PlacementPolicy, or a MultiKueueConfig.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<AdmissionCheckParameters>,
}

/// The object that holds a check's parameters. It is cluster scoped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionCheckParameters {
    /// Its API group, for example `fairlead.dev`.
    #[schemars(length(min = 1, max = 253))]
    pub api_group: String,

    /// Its kind, for example `PlacementPolicy`.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,

    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// What the hub observed of an AdmissionCheck.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionCheckStatus {
    /// `Active` says whether the check works, and why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}
