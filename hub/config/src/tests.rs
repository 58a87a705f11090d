//! Whole files: what they give, what they are refused for, what is warned about.

use fairlead_engine::policy::{Factor, FairStrategy, TransformationStrategy};

use super::*;

const HEAD: &str = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n";

/// What a Kueue installation ships, with the keys that operators of it set most.
const KUEUES: &str = r#"
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
health: {healthProbeBindAddress: ":8081"}
metrics: {bindAddress: ":8443", enableClusterQueueResources: true}
webhook: {port: 9443}
leaderElection: {leaderElect: true, resourceName: c1f6bfd2.kueue.x-k8s.io}
controller: {groupKindConcurrency: {Job.batch: 5, Pod: 5, Workload.kueue.x-k8s.io: 10}}
clientConnection: {qps: 50, burst: 100}
managedJobsNamespaceSelector:
  matchExpressions:
  - {key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system, fairlead-system]}
waitForPodsReady: {timeout: 5m, requeuingStrategy: {timestamp: Creation, backoffLimitCount: 3}}
fairSharing: {preemptionStrategies: [LessThanOrEqualToFinalShare, LessThanInitialShare]}
admissionFairSharing: {usageHalfLifeTime: 10m, resourceWeights: {cpu: 2, memory: 0.5}}
resources:
  excludeResourcePrefixes: [example.com/]
  transformations:
  - {input: nvidia.com/mig-1g.5gb, strategy: Replace, outputs: {gpu-memory: 5Gi}}
integrations: {frameworks: [batch/job, pod]}
objectRetentionPolicies: {workloads: {afterFinished: 0s}}
internalCertManagement:
"#;

fn load(text: &str) -> Result<Loaded, ConfigError> {
    read(&format!("{HEAD}{text}"), None, "fairlead-system")
}

fn configuration(text: &str) -> Configuration {
    load(text).unwrap().configuration
}

/// `path: message` of each fault.
fn faults(text: &str) -> Vec<String> {
    load(text).unwrap_err().0.iter().map(ToString::to_string).collect()
}

#[test]
fn an_empty_file_is_kueues_defaults() {
    let loaded = read("", None, "fairlead-system").unwrap();
    assert_eq!(loaded.warnings, Vec::<String>::new());
    let all = loaded.configuration;
    assert_eq!(all, configuration(""));
    let ready = all.pods_ready().unwrap();
    assert_eq!(
        (ready.timeout, ready.recovery()),
        (GoDuration::seconds(1800), Some(GoDuration::seconds(1800)))
    );
    assert!(!ready.block_admission);
    let requeuing = &ready.requeuing_strategy;
    assert_eq!((requeuing.timestamp, requeuing.backoff_limit_count), (RequeuingTimestamp::Eviction, None));
    assert_eq!((requeuing.backoff_base_seconds, requeuing.backoff_max_seconds), (60, 3600));
    assert_eq!(all.namespace, "fairlead-system");
    assert_eq!(all.metrics_address().unwrap().to_string(), "0.0.0.0:8443");
    assert_eq!(all.health_address().unwrap().to_string(), "0.0.0.0:8081");
    assert_eq!(all.visibility_address().unwrap().to_string(), "0.0.0.0:8082");
    assert!(all.local_queue_metrics() && !all.metrics.enable_cluster_queue_resources);
    assert!(!all.managed_namespaces().takes_namespace("fairlead-system"));
    assert!(all.managed_namespaces().takes_namespace("team-a"));
    assert_eq!(all.object_retention_policies.workloads.after_finished, None);
    assert_eq!(all.certificates_from(), None);
    assert_eq!(all.settings(), fairlead_engine::Settings::default());
    assert_eq!(all.policy(), fairlead_engine::Policy::default());
}

#[test]
fn a_file_of_kueues_is_taken_as_it_is() {
    let loaded = read(KUEUES, None, "fairlead-system").unwrap();
    let all = loaded.configuration;
    assert_eq!(all.pods_ready().unwrap().recovery(), Some(GoDuration::seconds(300)));
    assert_eq!(all.object_retention_policies.workloads.after_finished, Some(GoDuration::seconds(0)));
    let fair = all.policy().fair_sharing.unwrap();
    assert_eq!(fair, [FairStrategy::LessThanOrEqualToFinalShare, FairStrategy::LessThanInitialShare]);
    let settings = all.settings();
    let sharing = settings.admission_fair_sharing.unwrap();
    assert_eq!((sharing.half_life_ms, sharing.sampling_ms), (600_000, 300_000));
    assert_eq!(sharing.resource_weights, [("cpu".into(), 2_000_000_000), ("memory".into(), 500_000_000)]);
    let one = settings.requests.transformations.first().unwrap();
    assert_eq!(one.strategy, TransformationStrategy::Replace);
    let five_gi = i128::from(5_u64 << 30) * 1_000_000_000;
    assert_eq!(one.outputs, [("gpu-memory".into(), Factor(five_gi))]);
    let named: Vec<&str> = loaded.warnings.iter().filter_map(|text| text.split_whitespace().next()).collect();
    let expected = [
        "webhook.port",
        "leaderElection.leaderElect",
        "leaderElection.resourceName",
        "controller.groupKindConcurrency",
        "clientConnection.qps",
        "clientConnection.burst",
        "integrations.frameworks:",
    ];
    assert_eq!(named, expected);
}

#[test]
fn unknown_keys_kinds_and_values_are_refused_with_their_path() {
    for (text, start) in [
        ("nonsense: 1", "nonsense: unknown field `nonsense`"),
        ("waitForPodsReady: {timeot: 1m}", "waitForPodsReady.timeot: unknown field"),
        ("waitForPodsReady: {timeout: soon}", "waitForPodsReady.timeout: \"soon\" is not a duration"),
        (
            "waitForPodsReady: {requeuingStrategy: {timestamp: Never}}",
            "waitForPodsReady.requeuingStrategy.timestamp",
        ),
        (
            "resources: {transformations: [{input: a, outputs: {b: many}}]}",
            "resources.transformations[0].outputs",
        ),
        (
            "resources: {transformations: [{strategy: Replace}]}",
            "resources.transformations[0]: missing field",
        ),
        ("fairlead: {lisen: x}", "fairlead.lisen: unknown field"),
        (
            "managedJobsNamespaceSelector: {matchExpressions: [{key: a, operator: In}]}",
            "managedJobsNamespaceSelector",
        ),
        ("tls: {minVersion: VersionTLS11}", "tls.minVersion: unknown variant `VersionTLS11`"),
    ] {
        let found = faults(text);
        assert!(matches!(found.as_slice(), [one] if one.starts_with(start)), "{text}: {found:?}");
    }
    let heads =
        ["kind: Configuration", "apiVersion: v1\nkind: Configuration", &HEAD.replace("Configuration", "Job")];
    for text in heads {
        assert!(read(text, None, "ns").is_err(), "{text}");
    }
    assert!(read("- a", None, "ns").is_err());
    assert!(read("a: [", None, "ns").is_err());
    assert!(read(&format!("{HEAD}metrics: {{}}\nmetrics: {{}}"), None, "ns").is_err(), "a key twice");
}

#[test]
fn values_that_contradict_each_other_are_refused() {
    for (text, start) in [
        ("waitForPodsReady: {timeout: -1s}", "waitForPodsReady.timeout"),
        ("waitForPodsReady: {recoveryTimeout: -1s}", "waitForPodsReady.recoveryTimeout"),
        (
            "waitForPodsReady: {requeuingStrategy: {backoffLimitCount: -1}}",
            "waitForPodsReady.requeuingStrategy.backoffL",
        ),
        (
            "managedJobsNamespaceSelector: {}",
            "managedJobsNamespaceSelector: must not select the namespace kube-system",
        ),
        ("integrations: {frameworks: [job]}", "integrations.frameworks[0]"),
        ("integrations: {externalFrameworks: [Job]}", "integrations.externalFrameworks[0]"),
        ("fairSharing: {}", "fairSharing.preemptionStrategies"),
        (
            "fairSharing: {preemptionStrategies: [LessThanInitialShare, LessThanOrEqualToFinalShare]}",
            "fairSharing",
        ),
        ("admissionFairSharing: {usageSamplingInterval: 0s}", "admissionFairSharing.usageSamplingInterval"),
        ("admissionFairSharing: {resourceWeights: {cpu: -1}}", "admissionFairSharing.resourceWeights.cpu"),
        ("resources: {quotaCheckStrategy: Other}", "resources.quotaCheckStrategy"),
        (
            "resources: {quotaCheckStrategy: IgnoreUndeclared, excludeResourcePrefixes: [a]}",
            "resources.quotaCheck",
        ),
        ("resources: {transformations: [{input: a}, {input: a}]}", "resources.transformations"),
        (
            "resources: {deviceClassMappings: [{name: a}]}",
            "resources.deviceClassMappings[0].deviceClassNames",
        ),
        (
            "objectRetentionPolicies: {workloads: {afterFinished: -1h}}",
            "objectRetentionPolicies.workloads.afterFinished",
        ),
        (
            "multiKueue: {incrementalDispatcherConfig: {stepSize: 2}}",
            "multiKueue.incrementalDispatcherConfig",
        ),
        ("multiKueue: {externalFrameworks: [{name: a}, {name: a}]}", "multiKueue.externalFrameworks"),
        ("metrics: {customLabels: [{name: 1a, sourceKind: Cohort}]}", "metrics.customLabels[0].name"),
        ("metrics: {bindAddress: nowhere}", "metrics.bindAddress"),
        (
            "tls: {minVersion: VersionTLS13, cipherSuites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]}",
            "tls.cipherSuites",
        ),
        ("tls: {cipherSuites: [TLS_RSA_WITH_RC4_128_SHA]}", "tls.cipherSuites[0]"),
        ("tls: {curvePreferences: [25]}", "tls.curvePreferences[0]"),
        ("fairlead: {listen: here}", "fairlead.listen"),
        ("visibilityServer: {bindAddress: here}", "visibilityServer.bindAddress"),
    ] {
        let found = faults(text);
        assert!(found.first().is_some_and(|one| one.starts_with(start)), "{text}: {found:?}");
    }
    let both = faults("fairSharing: {}\nwaitForPodsReady: {timeout: -1s}");
    assert_eq!(both.len(), 2, "all faults at once: {both:?}");
}

#[test]
fn gates_come_from_the_file_or_the_flag_but_not_both() {
    let with = |text: &str, flag| read(&format!("{HEAD}{text}"), flag, "ns");
    let file = "featureGates: {DisableWaitForPodsReady: true}";
    assert_eq!(with(file, None).unwrap().configuration.pods_ready(), None);
    let flag = with("", Some("DisableWaitForPodsReady=true, LocalQueueMetrics=False")).unwrap().configuration;
    assert_eq!(flag.pods_ready(), None);
    assert!(!flag.local_queue_metrics());
    let both = with(file, Some("LocalQueueMetrics=false")).unwrap_err();
    assert!(both.to_string().contains("use one of them"), "{both}");
    for (flag, part) in [
        ("Nonsense=true", "no such feature gate"),
        ("TLSOptions=false", "settled"),
        ("LocalQueueMetrics", "is not Name=true"),
        ("LocalQueueMetrics=maybe", "is not Name=true"),
        ("UnadmittedWorkloadsObservability=false,UnadmittedWorkloadsExplicitStatus=true", "needs Unadmitted"),
        ("TopologyAwareScheduling=false,TASProfileMixed=true", "needs TopologyAwareScheduling"),
    ] {
        let error = with("", Some(flag)).unwrap_err().to_string();
        assert!(error.contains(part), "{flag}: {error}");
    }
    let closed = with("featureGates: {VisibilityOnDemand: false}", None).unwrap();
    assert_eq!(closed.configuration.visibility_address(), None);
    let idle = with("featureGates: {PartialAdmission: false}", None).unwrap().warnings;
    assert!(
        matches!(idle.as_slice(), [one] if one.starts_with("featureGates.PartialAdmission has no effect"))
    );
}

#[test]
fn every_gate_with_an_effect_is_declared_once() {
    for gate in Gate::ALL {
        let on = read("", Some(&format!("{}=true", gate.name())), "ns").unwrap().configuration;
        assert!(on.gates.is_on(gate), "{}", gate.name());
    }
}

#[test]
fn certificates_come_from_a_folder_when_they_are_not_managed_internally() {
    let folder = |text| configuration(text).certificates_from().map(str::to_owned);
    assert_eq!(
        folder("internalCertManagement: {enable: false}\nwebhook: {certDir: /certs}"),
        Some("/certs".into())
    );
    assert_eq!(folder("fairlead: {certDir: /tls}"), Some("/tls".into()));
    assert_eq!(folder("webhook: {certDir: /certs}"), None);
}

#[test]
fn curves_are_given_by_number_or_name() {
    let all = configuration("tls: {minVersion: VersionTLS13, curvePreferences: [29, CurveP256, P384]}");
    assert_eq!(all.key_exchange_groups(), [29, 23, 24]);
    assert_eq!(all.tls.min_version, TlsVersion::Tls13);
}

#[test]
fn only_what_is_shown_changes_while_the_hub_runs() {
    let before = configuration("");
    let shown =
        configuration("metrics: {enableClusterQueueResources: true, localQueueMetrics: {enable: false}}");
    let live: Vec<bool> = changes(&before, &shown).iter().map(|change| change.live).collect();
    assert_eq!(live, [true, true]);
    let decided = configuration("waitForPodsReady: {timeout: 1m}\nfairlead: {retainFinished: 2h}");
    let keys: Vec<&str> = changes(&before, &decided).iter().map(|change| change.key).collect();
    assert_eq!(keys, ["waitForPodsReady", "fairlead"]);
    assert!(changes(&before, &decided).iter().all(|change| !change.live));
    assert_eq!(changes(&before, &before), []);
}
