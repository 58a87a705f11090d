//! Keys that are accepted and change nothing: each is named when it is set.

use serde_json::Value;

use crate::file::Configuration;

/// Key (with dots) and why it has no effect.
const KEYS: [(&str, &str); 22] = [
    ("webhook.host", "the hub has no webhook: the API server's own admission policies do its work"),
    ("webhook.port", "the hub has no webhook: the API server's own admission policies do its work"),
    ("health.readinessEndpointName", "readiness is at /readyz"),
    ("health.livenessEndpointName", "liveness is at /livez"),
    ("metrics.customLabels", "custom labels of metrics are not built yet"),
    ("leaderElection.leaderElect", "there is always an election"),
    ("leaderElection.leaseDuration", "the lease is of 10 s, since fencing depends on it"),
    ("leaderElection.renewDeadline", "the lease is of 10 s, since fencing depends on it"),
    ("leaderElection.retryPeriod", "the lease is renewed every 2 s, since fencing depends on it"),
    ("leaderElection.resourceLock", "the lock is a Lease"),
    ("leaderElection.resourceName", "the Lease is called fairlead-hub"),
    ("leaderElection.resourceNamespace", "the Lease is in the hub's namespace"),
    ("pprofBindAddress", "profiles of Go do not exist here"),
    ("controller.groupKindConcurrency", "one loop decides; there are no reconcilers to run side by side"),
    ("controller.cacheSyncTimeout", "the hub waits for its lists and says at /readyz which are missing"),
    ("clientConnection.qps", "calls are bounded by how many run at once, not by a rate"),
    ("clientConnection.burst", "calls are bounded by how many run at once, not by a rate"),
    ("internalCertManagement.webhookServiceName", "the hub has no webhook"),
    ("internalCertManagement.webhookSecretName", "the hub has no webhook"),
    (
        "integrations.externalFrameworks",
        "Workloads made by somebody else are queued without being named here",
    ),
    (
        "multiKueue",
        "spokes have sessions with the hub, which has no dispatcher, no garbage to collect and no kubeconfigs",
    ),
    ("resources.deviceClassMappings", "dynamic resource allocation is not built yet"),
];

/// The job kinds that are queued by this version.
const BUILT: [&str; 1] = ["batch/job"];

/// One sentence for each key that is set and has no effect.
pub(crate) fn warnings(json: &Value, configuration: &Configuration) -> Vec<String> {
    let set = |key: &str| key.split('.').try_fold(json, |at, part| at.get(part)).is_some();
    let keys =
        KEYS.iter().filter(|(key, _)| set(key)).map(|(key, why)| format!("{key} has no effect: {why}"));
    let kinds = configuration.integrations.frameworks.iter().filter(|name| !BUILT.contains(&name.as_str()));
    let kinds = kinds.map(|name| format!("integrations.frameworks: {name} is not queued by this version"));
    let gates = configuration.gates.idle();
    let gates = gates.map(|(name, on)| {
        format!("featureGates.{name} has no effect: the hub behaves as if it were {}", !on)
    });
    keys.chain(kinds).chain(gates).collect()
}
