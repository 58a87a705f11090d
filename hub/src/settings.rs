//! What the hub runs with: the configuration file, and what was given as options, which counts more.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use fairlead_api::labels::SYSTEM_NAMESPACE;
use fairlead_config::{Configuration, GoDuration, Loaded};
use fairlead_controller::brain::BrainConfig;
use fairlead_controller::brain::settings::{Lifecycle, Requeuing, RequeuingTimestamp, WaitForPodsReady};
use fairlead_model::Leadership;
use fairlead_serving::https::TlsChoice;
use fairlead_serving::metrics::Shown;
use tracing::warn;

use crate::args::{Advertised, RunArgs, advertised};

/// Everything that is set.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The options, for what the file does not know.
    pub(crate) args: RunArgs,
    /// The file, with every default filled in.
    pub(crate) configuration: Configuration,
    /// Namespace of the hub's own objects.
    pub(crate) namespace: String,
    /// Where spokes are listened for.
    pub(crate) listen: SocketAddr,
    /// How spokes reach that.
    pub(crate) advertise: Advertised,
    /// Where probes are answered.
    pub(crate) health: Option<SocketAddr>,
    /// Where metrics are served.
    pub(crate) metrics: Option<SocketAddr>,
    /// Where the visibility API is served.
    pub(crate) visibility: Option<SocketAddr>,
}

/// Where the file is, and what it is read with: to read it again.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The file.
    pub(crate) path: PathBuf,
    feature_gates: Option<String>,
    namespace: String,
}

impl Source {
    /// Reads the file as it is now.
    pub(crate) fn read(&self) -> anyhow::Result<Loaded> {
        load(Some(&self.path), self.feature_gates.as_deref(), &self.namespace)
    }
}

impl Settings {
    /// Reads the file, if there is one, and puts the options on top. Says in the log which keys have no effect.
    pub(crate) fn read(args: RunArgs) -> anyhow::Result<Self> {
        let usual = args.namespace.as_deref().unwrap_or(SYSTEM_NAMESPACE);
        let loaded = load(args.config.as_deref(), args.feature_gates.as_deref(), usual)?;
        for warning in &loaded.warnings {
            warn!("configuration: {warning}");
        }
        let mut configuration = loaded.configuration;
        if let Some(retain) = args.retain_finished {
            configuration.fairlead.retain_finished =
                GoDuration(jiff::SignedDuration::try_from(retain).unwrap_or(jiff::SignedDuration::MAX));
        }
        let listen = match args.listen {
            Some(listen) => listen,
            None => configuration.fairlead.listen.parse().context("fairlead.listen")?,
        };
        let advertise = match (&args.advertise, &configuration.fairlead.advertise) {
            (Some(given), _) => given.clone(),
            (None, Some(text)) => {
                advertised(text).map_err(anyhow::Error::msg).context("fairlead.advertise")?
            }
            (None, None) => {
                bail!("how do spokes reach this hub? Give --advertise or fairlead.advertise in the file")
            }
        };
        Ok(Self {
            namespace: args.namespace.clone().unwrap_or_else(|| configuration.namespace.clone()),
            listen,
            advertise,
            health: args.health.or_else(|| configuration.health_address()),
            metrics: args.metrics.or_else(|| configuration.metrics_address()),
            visibility: args.visibility.or_else(|| configuration.visibility_address()),
            configuration,
            args,
        })
    }

    /// The file to follow.
    pub(crate) fn source(&self) -> Option<Source> {
        let (feature_gates, namespace) = (self.args.feature_gates.clone(), self.namespace.clone());
        self.args.config.clone().map(|path| Source { path, feature_gates, namespace })
    }

    /// What the brain decides with.
    pub(crate) fn brain(&self, leadership: Leadership) -> BrainConfig {
        let ours = &self.configuration.fairlead;
        BrainConfig {
            settings: self.configuration.settings(),
            policy: self.configuration.policy(),
            suspect_ms: ours.suspect_after.millis(),
            retain_finished_ms: ours.retain_finished.millis(),
            tombstone_ms: ours.tombstone_after.millis(),
            lifecycle: self.lifecycle(),
            ..BrainConfig::new(leadership)
        }
    }

    fn lifecycle(&self) -> Lifecycle {
        let retention = &self.configuration.object_retention_policies.workloads;
        Lifecycle {
            pods_ready: self.configuration.pods_ready().map(pods_ready),
            retain_finished_workloads_ms: retention.after_finished.map(GoDuration::millis),
            retain_deactivated_jobs_ms: retention.after_deactivated_by_kueue.map(GoDuration::millis),
        }
    }

    /// TLS of what is served to operators.
    pub(crate) fn tls(&self) -> TlsChoice {
        let tls = &self.configuration.tls;
        TlsChoice {
            only_13: tls.min_version == fairlead_config::TlsVersion::Tls13,
            suites: tls.cipher_suites.clone(),
            groups: self.configuration.key_exchange_groups(),
        }
    }
}

fn pods_ready(ready: &fairlead_config::WaitForPodsReady) -> WaitForPodsReady {
    let strategy = &ready.requeuing_strategy;
    WaitForPodsReady {
        timeout_ms: ready.timeout.millis(),
        recovery_timeout_ms: ready.recovery().map(GoDuration::millis),
        block_admission: ready.block_admission,
        requeuing: Requeuing {
            timestamp: match strategy.timestamp {
                fairlead_config::RequeuingTimestamp::Eviction => RequeuingTimestamp::Eviction,
                fairlead_config::RequeuingTimestamp::Creation => RequeuingTimestamp::Creation,
            },
            limit: strategy.backoff_limit_count,
            base_ms: i64::from(strategy.backoff_base_seconds).saturating_mul(1000),
            max_ms: i64::from(strategy.backoff_max_seconds).saturating_mul(1000),
        },
    }
}

/// What metrics show with this configuration.
pub(crate) fn shown(configuration: &Configuration) -> Shown {
    let selector = &configuration.metrics.local_queue_metrics.local_queue_selector;
    Shown {
        resources: configuration.metrics.enable_cluster_queue_resources,
        local_queues: configuration.local_queue_metrics().then(|| selector.0.clone()),
        cohorts: configuration.gates.is_on(fairlead_config::Gate::MetricsForCohorts),
    }
}

fn load(path: Option<&Path>, gates: Option<&str>, namespace: &str) -> anyhow::Result<Loaded> {
    let text = match path {
        Some(path) => std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?,
        None => String::new(),
    };
    fairlead_config::read(&text, gates, namespace)
        .with_context(|| path.map_or_else(|| "the options".to_owned(), |path| path.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brain(text: &str) -> Lifecycle {
        let args = <RunArgs as clap::FromArgMatches>::from_arg_matches(
            &<RunArgs as clap::Args>::augment_args(clap::Command::new("run")).get_matches_from([
                "run",
                "--advertise",
                "hub:1",
            ]),
        );
        let mut settings = Settings::read(args.unwrap()).unwrap();
        let text =
            format!("apiVersion: {}\nkind: {}\n{text}", fairlead_config::API_VERSION, fairlead_config::KIND);
        settings.configuration = fairlead_config::read(&text, None, "ns").unwrap().configuration;
        settings.lifecycle()
    }

    #[test]
    fn the_life_of_a_workload_is_as_the_file_says() {
        let usual = brain("");
        assert_eq!(usual.pods_ready, Some(WaitForPodsReady::default()), "on without a word");
        assert_eq!(usual.retain_finished_workloads_ms, None);
        assert_eq!(brain("featureGates: {DisableWaitForPodsReady: true}").pods_ready, None);
        let set = brain(
            "waitForPodsReady: {timeout: 5m, recoveryTimeout: 0s, blockAdmission: true, requeuingStrategy: \
             {timestamp: Creation, backoffLimitCount: 3, backoffBaseSeconds: 10, backoffMaxSeconds: 20}}\n\
             objectRetentionPolicies: {workloads: {afterFinished: 1h, afterDeactivatedByKueue: 0s}}",
        );
        let requeuing = Requeuing {
            timestamp: RequeuingTimestamp::Creation,
            limit: Some(3),
            base_ms: 10_000,
            max_ms: 20_000,
        };
        let ready = WaitForPodsReady {
            timeout_ms: 300_000,
            recovery_timeout_ms: None,
            block_admission: true,
            requeuing,
        };
        assert_eq!(set.pods_ready, Some(ready));
        assert_eq!(
            (set.retain_finished_workloads_ms, set.retain_deactivated_jobs_ms),
            (Some(3_600_000), Some(0))
        );
    }
}
