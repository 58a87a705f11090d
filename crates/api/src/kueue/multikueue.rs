//! MultiKueueConfig and MultiKueueCluster: for those who come from MultiKueue.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// A MultiKueueConfig names clusters. As parameters of a dispatch check, it restricts placement to the Clusters of
/// these names.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kueue.x-k8s.io",
    version = "v1beta2",
    kind = "MultiKueueConfig",
    schema = "disabled",
    doc = "Names of the clusters that may take the work of a dispatch check.",
    derive = "Default",
    derive = "PartialEq",
    shortname = "mkconf",
    category = "fairlead",
    printcolumn = r#"{"name": "Clusters", "type": "string", "jsonPath": ".spec.clusters"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct MultiKueueConfigSpec {
    /// The names of Clusters, each once.
    #[schemars(length(min = 1, max = 20), inner(length(min = 1, max = 253)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub clusters: Vec<String>,

    /// Who keeps the hub's quota. Only `Manual` has an effect here: quota is what the ClusterQueue says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota_management: Option<QuotaManagement>,
}

/// Who keeps the hub's quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum QuotaManagement {
    /// Whoever edits the ClusterQueue.
    #[default]
    Manual,
    /// Taken from the workers' quota. Not supported here.
    Automated,
}

/// A MultiKueueCluster mirrors the Cluster of the same name in its `Active` condition. The hub holds no
/// credentials of clusters, so its source is not used, and a condition says so.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kueue.x-k8s.io",
    version = "v1beta2",
    kind = "MultiKueueCluster",
    status = "MultiKueueClusterStatus",
    schema = "disabled",
    doc = "Mirrors the Cluster of the same name.",
    derive = "Default",
    derive = "PartialEq",
    shortname = "mkc",
    category = "fairlead",
    printcolumn = r#"{"name": "Connected", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Active\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "priority": 1, "jsonPath": ".status.conditions[?(@.type==\"Active\")].reason"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct MultiKueueClusterSpec {
    /// Where MultiKueue found the cluster's credentials. Kept, and not used: spokes dial out.
    pub cluster_source: ClusterSource,
}

/// Where MultiKueue found credentials: exactly one of the two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.kubeConfig) != has(self.clusterProfileRef)",
    "message": "set exactly one of kubeConfig and clusterProfileRef"
}]))]
pub struct ClusterSource {
    /// A kubeconfig. Not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kube_config: Option<KubeConfig>,

    /// A ClusterProfile. Not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_profile_ref: Option<ClusterProfileReference>,
}

/// Where a kubeconfig lies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeConfig {
    /// The name of a Secret, or a path.
    #[schemars(length(min = 1, max = 256))]
    pub location: String,

    /// Which of the two.
    #[serde(default)]
    pub location_type: KubeConfigLocationType,
}

/// What kind of place holds a kubeconfig.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum KubeConfigLocationType {
    /// A Secret with the key `kubeconfig`.
    #[default]
    Secret,
    /// A file.
    Path,
}

/// The name of a ClusterProfile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterProfileReference {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// What the hub observed of a MultiKueueCluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MultiKueueClusterStatus {
    /// `Active` mirrors the Cluster of the same name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}
