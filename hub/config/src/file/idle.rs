//! Sections of Kueue's whose keys are known here and mean nothing, or less.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::values::GoDuration;

/// `webhook`: there are none.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Webhook {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Where certificates come from when they are not managed internally.
    pub(crate) cert_dir: String,
}

impl Default for Webhook {
    fn default() -> Self {
        let cert_dir = "/tmp/k8s-webhook-server/serving-certs".to_owned();
        Self { host: String::new(), port: 9443, cert_dir }
    }
}

/// `leaderElection`: always on, with times of its own.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct LeaderElection {
    pub(crate) leader_elect: bool,
    pub(crate) lease_duration: GoDuration,
    pub(crate) renew_deadline: GoDuration,
    pub(crate) retry_period: GoDuration,
    pub(crate) resource_lock: String,
    pub(crate) resource_name: String,
    pub(crate) resource_namespace: String,
}

impl Default for LeaderElection {
    fn default() -> Self {
        Self {
            leader_elect: true,
            lease_duration: GoDuration::seconds(15),
            renew_deadline: GoDuration::seconds(10),
            retry_period: GoDuration::seconds(2),
            resource_lock: "leases".to_owned(),
            resource_name: "c1f6bfd2.kueue.x-k8s.io".to_owned(),
            resource_namespace: String::new(),
        }
    }
}

/// `controller`: one loop decides, so there is nothing to set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Controller {
    pub(crate) group_kind_concurrency: BTreeMap<String, u32>,
    pub(crate) cache_sync_timeout: Option<GoDuration>,
}

/// `clientConnection`: calls are bounded by how many run at once.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ClientConnection {
    pub(crate) qps: Option<f64>,
    pub(crate) burst: Option<i32>,
}

/// `internalCertManagement`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct InternalCertManagement {
    /// Whether the hub makes its own certificates.
    pub(crate) enable: bool,
    pub(crate) webhook_service_name: String,
    pub(crate) webhook_secret_name: String,
}

impl Default for InternalCertManagement {
    fn default() -> Self {
        Self {
            enable: true,
            webhook_service_name: "kueue-webhook-service".to_owned(),
            webhook_secret_name: "kueue-webhook-server-cert".to_owned(),
        }
    }
}

/// `multiKueue`: the hub has sessions with its spokes instead.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct MultiKueue {
    pub(crate) gc_interval: GoDuration,
    pub(crate) origin: String,
    pub(crate) worker_lost_timeout: GoDuration,
    pub(crate) dispatcher_name: String,
    pub(crate) incremental_dispatcher_config: Option<Dispatcher>,
    pub(crate) external_frameworks: Vec<Named>,
    pub(crate) cluster_profile: Option<ClusterProfile>,
}

impl Default for MultiKueue {
    fn default() -> Self {
        Self {
            gc_interval: GoDuration::seconds(60),
            origin: "multikueue".to_owned(),
            worker_lost_timeout: GoDuration::seconds(900),
            dispatcher_name: "kueue.x-k8s.io/multikueue-dispatcher-all-at-once".to_owned(),
            incremental_dispatcher_config: None,
            external_frameworks: Vec::new(),
            cluster_profile: None,
        }
    }
}

/// `multiKueue.incrementalDispatcherConfig`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Dispatcher {
    pub(crate) step_size: i32,
}

impl Default for Dispatcher {
    fn default() -> Self {
        Self { step_size: 3 }
    }
}

/// Something with a name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Named {
    pub(crate) name: String,
}

/// `multiKueue.clusterProfile`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ClusterProfile {
    pub(crate) access_providers: Vec<Provider>,
    pub(crate) credentials_providers: Vec<Provider>,
}

/// One of the providers; how it is run is somebody else's shape.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Provider {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) exec_config: Value,
}

/// One of `resources.deviceClassMappings`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct DeviceClassMapping {
    /// The resource that stands for the classes.
    pub name: String,
    /// The classes.
    pub device_class_names: Vec<String>,
    /// Where amounts come from.
    pub sources: Vec<Source>,
}

/// Where a mapping's amount comes from: exactly one of the two.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Source {
    pub(crate) counter: Option<SourceOf>,
    pub(crate) capacity: Option<SourceOf>,
}

/// A counter or a capacity of a driver's devices.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SourceOf {
    pub(crate) name: String,
    pub(crate) driver: String,
    pub(crate) device_selector: Value,
}
