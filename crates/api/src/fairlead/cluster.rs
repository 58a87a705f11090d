//! Cluster: a spoke, as the hub knows it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Quantity, schema};

/// A Cluster is a spoke: a Kubernetes cluster whose agent dials the hub. Its UID is the identity that certificates
/// carry, so a new Cluster of the same name is another one.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "fairlead.dev",
    version = "v1alpha1",
    kind = "Cluster",
    status = "ClusterStatus",
    schema = "disabled",
    doc = "A spoke, as the hub knows it.",
    derive = "Default",
    derive = "PartialEq",
    shortname = "flc",
    category = "fairlead",
    printcolumn = r#"{"name": "Connected", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Connected\")].status"}"#,
    printcolumn = r#"{"name": "Schedulable", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Schedulable\")].status"}"#,
    printcolumn = r#"{"name": "Cloud", "type": "string", "jsonPath": ".spec.labels.fairlead\\.dev/cloud"}"#,
    printcolumn = r#"{"name": "GPUs", "type": "integer", "jsonPath": ".status.devices.total"}"#,
    printcolumn = r#"{"name": "Free", "type": "integer", "jsonPath": ".status.devices.free"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Presence", "type": "string", "priority": 1, "jsonPath": ".status.presence"}"#,
    printcolumn = r#"{"name": "Nodes", "type": "integer", "priority": 1, "jsonPath": ".status.nodes"}"#,
    printcolumn = r#"{"name": "Cert-Expires", "type": "string", "priority": 1, "jsonPath": ".status.identity.expiresAt"}"#,
    printcolumn = r#"{"name": "Agent", "type": "string", "priority": 1, "jsonPath": ".status.versions.agent"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSpec {
    /// Labels that policies and flavors select by, for example `topology.kubernetes.io/region`. The key
    /// `fairlead.dev/cloud` (`onprem`, `aws`, `gcp`, `azure`, `oci`) is put on every node that the cluster
    /// reports; `fairlead.dev/cluster` is always the name and cannot be set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32, "x-kubernetes-validations" = [{
        "rule": "!('fairlead.dev/cluster' in self)",
        "message": "fairlead.dev/cluster is the name of the Cluster and cannot be set"
    }]))]
    pub labels: BTreeMap<String, String>,

    /// No new work is started there while it is true. What runs there runs on.
    #[serde(default)]
    pub cordon: bool,

    /// What the hub fits work against.
    #[serde(default)]
    pub capacity_mode: CapacityMode,

    /// The cluster can grow, so what does not fit now is not said to fit never.
    #[serde(default)]
    pub elastic: bool,
}

/// What the hub fits work against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CapacityMode {
    /// The free shapes that the cluster reports.
    #[default]
    Reported,
    /// Quota alone, as Kueue does. The default for the hub's own cluster.
    QuotaOnly,
}

/// What the hub observed of a Cluster. Conditions are written at once, numbers at most every 30 seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    /// The generation of the spec that this status was made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// `Registered`, `Connected`, `CredentialsValid`, `ClockSynced`, `VersionCompatible`, `Schedulable` and
    /// `CapacityFresh`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,

    /// What the hub knows of the spoke.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence: Option<Presence>,

    /// When the last heartbeat arrived, on the hub's clock; up to 30 seconds behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_heartbeat_time: Option<Time>,

    /// The certificate that the spoke holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<ClusterIdentity>,

    /// The versions that the spoke reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions: Option<ClusterVersions>,

    /// How many nodes the spoke reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub nodes: Option<i32>,

    /// GPUs over all nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub devices: Option<DeviceCount>,

    /// Free and total capacity by ResourceFlavor. A node that matches several flavors is in each of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub flavors: Vec<FlavorCapacity>,

    /// How far the spoke's clock is ahead of the hub's, in milliseconds; negative when it is behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_offset_milliseconds: Option<i64>,
}

/// What the hub knows of a spoke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Presence {
    /// Heartbeats arrive.
    Fresh,
    /// Heartbeats are missing: nothing new is started there, nothing else changes.
    Suspect,
    /// They have been missing for longer than the grace: other clusters take the queue; what runs there keeps
    /// its quota.
    Lost,
}

/// A spoke's certificate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterIdentity {
    /// SHA-256 of the certificate's public key, in hexadecimal.
    #[schemars(length(max = 128))]
    pub fingerprint: String,

    /// When the certificate ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,

    /// The UID of the spoke's namespace `kube-system`, as reported. It is for people; nothing rests on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub kube_system_uid: Option<String>,
}

/// Versions that a spoke reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterVersions {
    /// The agent's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub agent: String,

    /// The Kubernetes API server's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub kubernetes: String,

    /// The protocol between hub and spoke.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub protocol: Option<i32>,
}

/// Devices over all nodes of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceCount {
    /// How many there are.
    #[schemars(range(min = 0))]
    pub total: i64,

    /// How many of them no pod has asked for.
    #[schemars(range(min = 0))]
    pub free: i64,
}

/// The capacity of one flavor in one cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlavorCapacity {
    /// The ResourceFlavor.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// What all its nodes together can give to pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub total: BTreeMap<String, Quantity>,

    /// What of that no pod holds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub free: BTreeMap<String, Quantity>,

    /// The largest placeable block: for each resource, the most that one node has free.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub largest_block: BTreeMap<String, Quantity>,
}
