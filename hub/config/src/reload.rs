//! What a changed file changes while the hub runs.

use crate::file::Configuration;

/// A section that differs between two configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The key.
    pub key: &'static str,
    /// Whether it takes effect at once. Else it does at the next start.
    pub live: bool,
}

/// What differs. Live is only what nothing was decided with: what is measured and shown. Quota, order and deadlines of a
/// running hub stay as they were, so that its decisions can be explained and replayed.
pub fn changes(old: &Configuration, new: &Configuration) -> Vec<Change> {
    let (was, is) = (&old.metrics, &new.metrics);
    let live = [
        (
            "metrics.enableClusterQueueResources",
            was.enable_cluster_queue_resources != is.enable_cluster_queue_resources,
        ),
        ("metrics.localQueueMetrics", was.local_queue_metrics != is.local_queue_metrics),
    ];
    let later = [
        ("namespace", old.namespace != new.namespace),
        ("webhook", old.webhook != new.webhook),
        ("health", old.health != new.health),
        ("metrics.bindAddress", was.bind_address != is.bind_address),
        ("internalCertManagement", old.internal_cert_management != new.internal_cert_management),
        (
            "manageJobsWithoutQueueName",
            old.manage_jobs_without_queue_name != new.manage_jobs_without_queue_name,
        ),
        ("managedJobsNamespaceSelector", old.managed_namespaces() != new.managed_namespaces()),
        ("waitForPodsReady", old.wait_for_pods_ready != new.wait_for_pods_ready),
        ("integrations", old.integrations != new.integrations),
        ("fairSharing", old.fair_sharing != new.fair_sharing),
        ("admissionFairSharing", old.admission_fair_sharing != new.admission_fair_sharing),
        ("resources", old.resources != new.resources),
        ("objectRetentionPolicies", old.object_retention_policies != new.object_retention_policies),
        ("visibilityServer", old.visibility_server != new.visibility_server),
        ("tls", old.tls != new.tls),
        ("featureGates", old.gates != new.gates),
        ("fairlead", old.fairlead != new.fairlead),
    ];
    let differing =
        |live: bool| move |(key, differs): (&'static str, bool)| differs.then_some(Change { key, live });
    live.into_iter()
        .filter_map(differing(true))
        .chain(later.into_iter().filter_map(differing(false)))
        .collect()
}
