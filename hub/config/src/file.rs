//! The file's shape: Kueue's names and defaults.
//!
//! Sections that mean nothing on a hub are here too, so that their keys are known; `meaningless` lists them.

use std::collections::BTreeMap;

use fairlead_api::Quantity;
use serde::Deserialize;

use crate::gates::{Gate, Gates};
use crate::values::{GoDuration, Selector};

mod idle;
mod sections;

pub use idle::{
    ClientConnection, Controller, DeviceClassMapping, InternalCertManagement, LeaderElection, MultiKueue,
    Webhook,
};
pub use sections::{
    AdmissionFairSharing, Curve, CustomLabel, FairSharing, Health, Integrations, LocalQueueMetrics, Metrics,
    Requeuing, RequeuingTimestamp, ResourceTransformation, Resources, Retention, Tls, Transform,
    VisibilityServer, WaitForPodsReady, WorkloadRetention,
};

/// What the operator has set, with every default filled in.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Configuration {
    /// The namespace of the hub's own objects.
    pub namespace: String,
    /// Webhooks; of it, only where certificates lie.
    pub webhook: Webhook,
    /// Probes.
    pub health: Health,
    /// What is measured, and where it is served.
    pub metrics: Metrics,
    /// Leader election, which is always on.
    pub leader_election: LeaderElection,
    /// Where Go's profiles would be served.
    pub pprof_bind_address: String,
    /// How many reconcilers would run.
    pub controller: Controller,
    /// How many calls a second would be made.
    pub client_connection: ClientConnection,
    /// Who makes certificates.
    pub internal_cert_management: InternalCertManagement,
    /// Whether jobs without a queue label, in managed namespaces, are queued too.
    pub manage_jobs_without_queue_name: bool,
    /// The namespaces whose jobs are managed; see [`Configuration::managed_namespaces`].
    pub managed_jobs_namespace_selector: Option<Selector>,
    /// Readiness of pods; see [`Configuration::pods_ready`].
    pub wait_for_pods_ready: WaitForPodsReady,
    /// Job kinds.
    pub integrations: Integrations,
    /// MultiKueue, which the hub's sessions stand for.
    pub multi_kueue: MultiKueue,
    /// Fair sharing between ClusterQueues; off when absent.
    pub fair_sharing: Option<FairSharing>,
    /// Fair sharing between the LocalQueues of a ClusterQueue; off when absent.
    pub admission_fair_sharing: Option<AdmissionFairSharing>,
    /// How requests are counted.
    pub resources: Resources,
    /// When finished objects go.
    pub object_retention_policies: Retention,
    /// Where the visibility API is served.
    pub visibility_server: VisibilityServer,
    /// TLS of everything that is served, but to spokes.
    pub tls: Tls,
    /// Feature gates as the file sets them; see [`Configuration::gates`].
    pub feature_gates: BTreeMap<String, bool>,
    /// What Kueue does not have.
    pub fairlead: Fairlead,
    /// The feature gates that hold, from the file or the flag.
    #[serde(skip)]
    pub gates: Gates,
}

/// Fairlead's own section.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Fairlead {
    /// Where spokes are listened for.
    pub listen: String,
    /// How spokes reach that address: `HOST:PORT`.
    pub advertise: Option<String>,
    /// How long a finished copy stays on its spoke, so that its logs can be read.
    pub retain_finished: GoDuration,
    /// After how long without a heartbeat a spoke is suspect.
    pub suspect_after: GoDuration,
    /// After how long a deletion that no spoke confirmed is carried on by a Tombstone.
    pub tombstone_after: GoDuration,
    /// Folder with `tls.crt` and `tls.key` for what is served over TLS, such as a mounted Secret of cert-manager. Without
    /// it the hub makes its own certificates.
    pub cert_dir: Option<String>,
    /// Names of further Services, in the hub's namespace, by which metrics and the visibility API are reached: they come
    /// into the certificate that the hub makes.
    pub services: Vec<String>,
}

impl Default for Fairlead {
    fn default() -> Self {
        Self {
            listen: "0.0.0.0:7443".to_owned(),
            advertise: None,
            retain_finished: GoDuration::seconds(3600),
            suspect_after: GoDuration::seconds(30),
            tombstone_after: GoDuration::seconds(300),
            cert_dir: None,
            services: Vec::new(),
        }
    }
}

impl Configuration {
    /// Readiness of pods; none where it is switched off.
    pub fn pods_ready(&self) -> Option<&WaitForPodsReady> {
        (!self.gates.is_on(Gate::DisableWaitForPodsReady)).then_some(&self.wait_for_pods_ready)
    }

    /// The namespaces whose jobs are managed. Never the hub's own and `kube-system`.
    pub fn managed_namespaces(&self) -> Selector {
        let all = || Selector::all_namespaces_but(&["kube-system", &self.namespace]);
        self.managed_jobs_namespace_selector.clone().unwrap_or_else(all)
    }

    /// Folder with the certificate for what is served over TLS; none when the hub makes its own.
    pub fn certificates_from(&self) -> Option<&str> {
        let external = !self.internal_cert_management.enable;
        let folder = self.fairlead.cert_dir.as_deref();
        folder.or_else(|| external.then_some(self.webhook.cert_dir.as_str()))
    }

    /// Whether LocalQueues have metrics at all.
    pub fn local_queue_metrics(&self) -> bool {
        self.metrics.local_queue_metrics.enable && self.gates.is_on(Gate::LocalQueueMetrics)
    }
}

/// A quantity as YAML has it: text or a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number(pub Quantity);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let quantity = match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => Quantity(text),
            serde_json::Value::Number(number) => Quantity(number.to_string()),
            other => return Err(serde::de::Error::custom(format!("{other} is not a number"))),
        };
        quantity.billionths().map_err(serde::de::Error::custom)?;
        Ok(Self(quantity))
    }
}
