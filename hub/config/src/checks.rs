//! What must hold between and within values. Every fault is found, not only the first.

use std::collections::BTreeSet;

use crate::file::{Configuration, CustomLabel, DeviceClassMapping};
use crate::values::{GoDuration, TlsVersion};
use crate::{Fault, convert};

/// Job kinds that Kueue's file may name.
const FRAMEWORKS: [&str; 18] = [
    "batch/job",
    "deployment",
    "jobset.x-k8s.io/jobset",
    "kubeflow.org/jaxjob",
    "kubeflow.org/mpijob",
    "kubeflow.org/paddlejob",
    "kubeflow.org/pytorchjob",
    "kubeflow.org/tfjob",
    "kubeflow.org/xgboostjob",
    "leaderworkerset.x-k8s.io/leaderworkerset",
    "pod",
    "ray.io/raycluster",
    "ray.io/rayjob",
    "ray.io/rayservice",
    "sparkoperator.k8s.io/sparkapplication",
    "statefulset",
    "trainer.kubeflow.org/trainjob",
    "workload.codeflare.dev/appwrapper",
];

const INCREMENTAL: &str = "kueue.x-k8s.io/multikueue-dispatcher-incremental";

/// Collects faults.
#[derive(Default)]
struct Faults(Vec<Fault>);

impl Faults {
    /// `wrong` must not hold.
    fn when(&mut self, wrong: bool, path: &str, message: &str) {
        if wrong {
            self.0.push(Fault { path: path.to_owned(), message: message.to_owned() });
        }
    }

    fn negative(&mut self, value: GoDuration, path: &str) {
        self.when(value < GoDuration::seconds(0), path, "must not be negative");
    }

    fn not_positive(&mut self, value: GoDuration, path: &str) {
        self.when(value <= GoDuration::seconds(0), path, "must be longer than zero");
    }
}

/// Everything that is wrong.
pub(crate) fn check(configuration: &Configuration) -> Vec<Fault> {
    let mut faults = Faults::default();
    namespaces(configuration, &mut faults);
    pods_ready(configuration, &mut faults);
    integrations(configuration, &mut faults);
    multikueue(configuration, &mut faults);
    sharing(configuration, &mut faults);
    resources(configuration, &mut faults);
    retention(configuration, &mut faults);
    metrics(&configuration.metrics.custom_labels, &mut faults);
    tls(configuration, &mut faults);
    fairlead(configuration, &mut faults);
    faults.0
}

fn namespaces(configuration: &Configuration, faults: &mut Faults) {
    let selector = configuration.managed_namespaces();
    for name in ["kube-system", &configuration.namespace] {
        let message =
            format!("must not select the namespace {name}: exclude it by kubernetes.io/metadata.name");
        faults.when(selector.takes_namespace(name), "managedJobsNamespaceSelector", &message);
    }
}

fn pods_ready(configuration: &Configuration, faults: &mut Faults) {
    let ready = &configuration.wait_for_pods_ready;
    faults.negative(ready.timeout, "waitForPodsReady.timeout");
    if let Some(recovery) = ready.recovery_timeout {
        faults.negative(recovery, "waitForPodsReady.recoveryTimeout");
    }
    let strategy = &ready.requeuing_strategy;
    for (value, key) in [
        (strategy.backoff_limit_count.unwrap_or(0), "backoffLimitCount"),
        (strategy.backoff_base_seconds, "backoffBaseSeconds"),
        (strategy.backoff_max_seconds, "backoffMaxSeconds"),
    ] {
        let path = format!("waitForPodsReady.requeuingStrategy.{key}");
        faults.when(value < 0, &path, "must not be negative");
    }
}

fn integrations(configuration: &Configuration, faults: &mut Faults) {
    let integrations = &configuration.integrations;
    for (number, name) in integrations.frameworks.iter().enumerate() {
        let path = format!("integrations.frameworks[{number}]");
        let known = FRAMEWORKS.contains(&name.as_str());
        faults.when(!known, &path, &format!("{name:?} is none of {}", FRAMEWORKS.join(", ")));
    }
    twice(&integrations.frameworks, "integrations.frameworks", faults);
    for (number, name) in integrations.external_frameworks.iter().enumerate() {
        let path = format!("integrations.externalFrameworks[{number}]");
        let wrong = name.splitn(3, '.').filter(|part| !part.is_empty()).count() != 3;
        faults.when(wrong, &path, &format!("{name:?} is not Kind.version.group"));
    }
    twice(&integrations.external_frameworks, "integrations.externalFrameworks", faults);
}

fn twice(names: &[String], path: &str, faults: &mut Faults) {
    let mut seen = BTreeSet::new();
    for name in names {
        faults.when(!seen.insert(name), path, &format!("{name:?} is there twice"));
    }
}

fn multikueue(configuration: &Configuration, faults: &mut Faults) {
    let multikueue = &configuration.multi_kueue;
    faults.negative(multikueue.gc_interval, "multiKueue.gcInterval");
    faults.negative(multikueue.worker_lost_timeout, "multiKueue.workerLostTimeout");
    if let Some(incremental) = &multikueue.incremental_dispatcher_config {
        let path = "multiKueue.incrementalDispatcherConfig";
        let other = multikueue.dispatcher_name != INCREMENTAL;
        faults.when(other, path, &format!("is for the dispatcher {INCREMENTAL} only"));
        faults.when(incremental.step_size < 1, &format!("{path}.stepSize"), "must be at least 1");
    }
    let names: Vec<String> = multikueue.external_frameworks.iter().map(|one| one.name.clone()).collect();
    twice(&names, "multiKueue.externalFrameworks", faults);
    let both = multikueue.cluster_profile.as_ref().is_some_and(|profile| {
        !profile.access_providers.is_empty() && !profile.credentials_providers.is_empty()
    });
    let path = "multiKueue.clusterProfile";
    faults.when(both, path, "credentialsProviders is the old name of accessProviders; use one of them");
}

fn sharing(configuration: &Configuration, faults: &mut Faults) {
    if let Some(fair) = &configuration.fair_sharing {
        let path = "fairSharing.preemptionStrategies";
        faults.when(convert::strategies(fair).is_none(), path, convert::STRATEGIES);
    }
    if let Some(fair) = &configuration.admission_fair_sharing {
        faults.negative(fair.usage_half_life_time, "admissionFairSharing.usageHalfLifeTime");
        faults.not_positive(fair.usage_sampling_interval, "admissionFairSharing.usageSamplingInterval");
        for (name, weight) in &fair.resource_weights {
            let path = format!("admissionFairSharing.resourceWeights.{name}");
            let negative = weight.0.billionths().is_ok_and(|weight| weight < 0);
            faults.when(negative, &path, "must not be negative");
        }
    }
}

fn resources(configuration: &Configuration, faults: &mut Faults) {
    let resources = &configuration.resources;
    let strategy = resources.quota_check_strategy.as_str();
    let path = "resources.quotaCheckStrategy";
    let known = matches!(strategy, "" | "BlockUndeclared" | "IgnoreUndeclared");
    faults.when(!known, path, "must be BlockUndeclared or IgnoreUndeclared");
    let both = strategy == "IgnoreUndeclared" && !resources.exclude_resource_prefixes.is_empty();
    faults.when(both, path, "IgnoreUndeclared and excludeResourcePrefixes exclude each other");
    let inputs: Vec<String> = resources.transformations.iter().map(|one| one.input.clone()).collect();
    twice(&inputs, "resources.transformations", faults);
    for (number, one) in resources.transformations.iter().enumerate() {
        let path = format!("resources.transformations[{number}].input");
        faults.when(one.input.is_empty(), &path, "must name a resource");
    }
    devices(&resources.device_class_mappings, faults);
}

fn devices(mappings: &[DeviceClassMapping], faults: &mut Faults) {
    let path = "resources.deviceClassMappings";
    faults.when(mappings.len() > 16, path, "has more than 16 entries");
    for (number, mapping) in mappings.iter().enumerate() {
        let path = format!("{path}[{number}]");
        faults.when(mapping.name.is_empty(), &format!("{path}.name"), "must name a resource");
        let classes = mapping.device_class_names.len();
        faults.when(
            !(1..=8).contains(&classes),
            &format!("{path}.deviceClassNames"),
            "must have 1 to 8 entries",
        );
        let one = mapping.sources.iter().all(|source| source.counter.is_some() != source.capacity.is_some());
        faults.when(!one, &format!("{path}.sources"), "each must be a counter or a capacity");
        let counters = mapping.sources.iter().filter(|source| source.counter.is_some()).count();
        let mixed = counters != 0 && counters != mapping.sources.len();
        faults.when(mixed, &format!("{path}.sources"), "must all be counters or all be capacities");
    }
}

fn retention(configuration: &Configuration, faults: &mut Faults) {
    let workloads = &configuration.object_retention_policies.workloads;
    for (value, key) in [
        (workloads.after_finished, "afterFinished"),
        (workloads.after_deactivated_by_kueue, "afterDeactivatedByKueue"),
    ] {
        if let Some(value) = value {
            faults.negative(value, &format!("objectRetentionPolicies.workloads.{key}"));
        }
    }
}

fn metrics(labels: &[CustomLabel], faults: &mut Faults) {
    let path = "metrics.customLabels";
    faults.when(labels.len() > 20, path, "has more than 20 entries");
    let names: Vec<String> = labels.iter().map(|label| label.name.clone()).collect();
    twice(&names, path, faults);
    for (kind, most) in [("ClusterQueue", 6), ("LocalQueue", 6), ("Cohort", 6), ("Workload", 2)] {
        let of_kind = labels.iter().filter(|label| label.source_kind == kind).count();
        faults.when(of_kind > most, path, &format!("has more than {most} entries for {kind}"));
    }
    for (number, label) in labels.iter().enumerate() {
        let path = format!("{path}[{number}]");
        let mut characters = label.name.chars();
        let first = characters.next().is_some_and(|first| first.is_ascii_alphabetic());
        let rest = characters.all(|other| other.is_ascii_alphanumeric() || other == '_');
        faults.when(!first || !rest, &format!("{path}.name"), "must match ^[a-zA-Z][a-zA-Z0-9_]*$");
        let both = !label.source_label_key.is_empty() && !label.source_annotation_key.is_empty();
        faults.when(both, &path, "sourceLabelKey and sourceAnnotationKey exclude each other");
        let values = if label.source_kind == "Workload" { 1..=12 } else { 0..=16 };
        let many = !values.contains(&label.tracked_values.len());
        let message = format!("must have {} to {} entries", values.start(), values.end());
        faults.when(many, &format!("{path}.trackedValues"), &message);
    }
}

fn tls(configuration: &Configuration, faults: &mut Faults) {
    let tls = &configuration.tls;
    let only13 = tls.min_version == TlsVersion::Tls13 && !tls.cipher_suites.is_empty();
    faults.when(
        only13,
        "tls.cipherSuites",
        "suites of TLS 1.3 cannot be chosen; leave them out or lower minVersion",
    );
    for (number, name) in tls.cipher_suites.iter().enumerate() {
        let path = format!("tls.cipherSuites[{number}]");
        let message = format!("{name:?} is none of {}", convert::SUITES.join(", "));
        faults.when(!convert::SUITES.contains(&name.as_str()), &path, &message);
    }
    for (number, curve) in tls.curve_preferences.iter().enumerate() {
        let path = format!("tls.curvePreferences[{number}]");
        let names: Vec<&str> = convert::GROUPS.iter().map(|(_, name)| *name).collect();
        let message = format!("is none of {}", names.join(", "));
        faults.when(convert::group(curve).is_none(), &path, &message);
    }
}

fn fairlead(configuration: &Configuration, faults: &mut Faults) {
    let ours = &configuration.fairlead;
    let listen = ours.listen.parse::<std::net::SocketAddr>().is_ok();
    faults.when(!listen, "fairlead.listen", "must be ADDRESS:PORT, such as 0.0.0.0:7443");
    faults.negative(ours.retain_finished, "fairlead.retainFinished");
    faults.not_positive(ours.suspect_after, "fairlead.suspectAfter");
    faults.not_positive(ours.tombstone_after, "fairlead.tombstoneAfter");
    for (value, path) in [
        (configuration.metrics.bind_address.as_str(), "metrics.bindAddress"),
        (configuration.health.health_probe_bind_address.as_str(), "health.healthProbeBindAddress"),
    ] {
        faults.when(
            convert::address(value).is_err(),
            path,
            "must be ADDRESS:PORT or :PORT, or 0 for nowhere",
        );
    }
    let visibility = &configuration.visibility_server.bind_address;
    let address = visibility.is_empty() || visibility.parse::<std::net::IpAddr>().is_ok();
    faults.when(!address, "visibilityServer.bindAddress", "must be an IP address or empty");
}
