//! Sections with a meaning.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Number;
use super::idle::DeviceClassMapping;
use crate::values::{GoDuration, Selector, TlsVersion};

/// `health`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Health {
    /// Where probes are answered.
    pub health_probe_bind_address: String,
    /// Name of the readiness probe.
    pub readiness_endpoint_name: String,
    /// Name of the liveness probe.
    pub liveness_endpoint_name: String,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            health_probe_bind_address: ":8081".to_owned(),
            readiness_endpoint_name: "readyz".to_owned(),
            liveness_endpoint_name: "healthz".to_owned(),
        }
    }
}

/// `metrics`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Metrics {
    /// Where metrics are served; `0` switches them off.
    pub bind_address: String,
    /// Whether quotas and usage of ClusterQueues are exported.
    pub enable_cluster_queue_resources: bool,
    /// Metrics of LocalQueues.
    pub local_queue_metrics: LocalQueueMetrics,
    /// Labels of users' objects that become labels of metrics (alpha).
    pub custom_labels: Vec<CustomLabel>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            bind_address: ":8443".to_owned(),
            enable_cluster_queue_resources: false,
            local_queue_metrics: LocalQueueMetrics::default(),
            custom_labels: Vec::new(),
        }
    }
}

/// `metrics.localQueueMetrics`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct LocalQueueMetrics {
    /// Whether there are any.
    pub enable: bool,
    /// For which LocalQueues, by their labels; all when empty.
    pub local_queue_selector: Selector,
}

impl Default for LocalQueueMetrics {
    fn default() -> Self {
        Self { enable: true, local_queue_selector: Selector::default() }
    }
}

/// One of `metrics.customLabels`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct CustomLabel {
    /// Its name, without the prefix `custom_`.
    pub name: String,
    /// ClusterQueue, LocalQueue, Cohort or Workload.
    pub source_kind: String,
    /// The label it comes from.
    pub source_label_key: String,
    /// The annotation it comes from.
    pub source_annotation_key: String,
    /// Values that are told apart.
    pub tracked_values: Vec<String>,
}

/// `waitForPodsReady`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct WaitForPodsReady {
    /// How long pods may take to become ready after admission.
    pub timeout: GoDuration,
    /// Whether nothing else is admitted meanwhile.
    pub block_admission: bool,
    /// How long a running workload may lack a ready pod; `timeout` when absent, zero for ever.
    pub recovery_timeout: Option<GoDuration>,
    /// How an evicted workload is queued again.
    pub requeuing_strategy: Requeuing,
}

impl Default for WaitForPodsReady {
    fn default() -> Self {
        Self {
            timeout: GoDuration::seconds(1800),
            block_admission: false,
            recovery_timeout: None,
            requeuing_strategy: Requeuing::default(),
        }
    }
}

impl WaitForPodsReady {
    /// How long a running workload may lack a ready pod; none for ever.
    pub fn recovery(&self) -> Option<GoDuration> {
        let timeout = self.recovery_timeout.unwrap_or(self.timeout);
        (timeout > GoDuration::seconds(0)).then_some(timeout)
    }
}

/// `waitForPodsReady.requeuingStrategy`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Requeuing {
    /// Which time orders an evicted workload.
    pub timestamp: RequeuingTimestamp,
    /// After how many evictions it is deactivated; never when absent.
    pub backoff_limit_count: Option<i32>,
    /// The first wait, in seconds.
    pub backoff_base_seconds: i32,
    /// The longest wait, in seconds.
    pub backoff_max_seconds: i32,
}

impl Default for Requeuing {
    fn default() -> Self {
        Self {
            timestamp: RequeuingTimestamp::Eviction,
            backoff_limit_count: None,
            backoff_base_seconds: 60,
            backoff_max_seconds: 3600,
        }
    }
}

/// Which time orders an evicted workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum RequeuingTimestamp {
    /// When it was evicted.
    Eviction,
    /// When it was created.
    Creation,
}

/// `integrations`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Integrations {
    /// Job kinds that are queued.
    pub frameworks: Vec<String>,
    /// Job kinds that somebody else's controller makes Workloads for, as `Kind.version.group`.
    pub external_frameworks: Vec<String>,
    /// Labels that a Workload takes over from its job.
    pub label_keys_to_copy: Vec<String>,
}

impl Default for Integrations {
    fn default() -> Self {
        Self {
            frameworks: vec!["batch/job".to_owned()],
            external_frameworks: Vec::new(),
            label_keys_to_copy: Vec::new(),
        }
    }
}

/// `fairSharing`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct FairSharing {
    /// The rules by which victims are found, in order.
    pub preemption_strategies: Vec<String>,
}

/// `admissionFairSharing`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct AdmissionFairSharing {
    /// After this time use counts half; zero forgets at once.
    pub usage_half_life_time: GoDuration,
    /// How often use is sampled.
    pub usage_sampling_interval: GoDuration,
    /// Weight per resource; a missing one counts one.
    pub resource_weights: BTreeMap<String, Number>,
}

impl Default for AdmissionFairSharing {
    fn default() -> Self {
        Self {
            usage_half_life_time: GoDuration::seconds(0),
            usage_sampling_interval: GoDuration::seconds(300),
            resource_weights: BTreeMap::new(),
        }
    }
}

/// `resources`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Resources {
    /// `BlockUndeclared` (or empty), or `IgnoreUndeclared`.
    pub quota_check_strategy: String,
    /// Resources whose names start so are not counted.
    pub exclude_resource_prefixes: Vec<String>,
    /// Resources that are counted as others.
    pub transformations: Vec<ResourceTransformation>,
    /// Device classes as resources (dynamic resource allocation).
    pub device_class_mappings: Vec<DeviceClassMapping>,
}

/// One of `resources.transformations`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourceTransformation {
    /// The resource that is looked for.
    pub input: String,
    /// What happens to it.
    #[serde(default)]
    pub strategy: Transform,
    /// The pod's own amount of this resource multiplies the outputs.
    #[serde(default)]
    pub multiply_by: String,
    /// Each output and its factor.
    #[serde(default)]
    pub outputs: BTreeMap<String, Number>,
}

/// What happens to the input of a transformation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Transform {
    /// It stays beside the outputs.
    #[default]
    Retain,
    /// The outputs stand for it.
    Replace,
}

/// `objectRetentionPolicies`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Retention {
    /// Of Workloads.
    pub workloads: WorkloadRetention,
}

/// `objectRetentionPolicies.workloads`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkloadRetention {
    /// How long a Workload stays after it finished; for ever when absent.
    pub after_finished: Option<GoDuration>,
    /// How long a Workload, with its job, stays after the hub deactivated it; for ever when absent.
    pub after_deactivated_by_kueue: Option<GoDuration>,
}

/// `visibilityServer`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct VisibilityServer {
    /// The address; every one when empty.
    pub bind_address: String,
    /// The port.
    pub bind_port: u16,
}

impl Default for VisibilityServer {
    fn default() -> Self {
        Self { bind_address: String::new(), bind_port: 8082 }
    }
}

/// `tls`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Tls {
    /// The lowest version that is spoken.
    pub min_version: TlsVersion,
    /// Cipher suites of TLS 1.2 by their IANA names; all when empty.
    pub cipher_suites: Vec<String>,
    /// Groups for the key exchange, by number or name, in order; all when empty.
    pub curve_preferences: Vec<Curve>,
}

/// A group for the key exchange, as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Curve {
    /// By number.
    Number(u16),
    /// By name.
    Name(String),
}
