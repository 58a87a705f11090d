//! The answer: `PendingWorkloadsSummary`.

use fairlead_controller::measure::PendingWorkload;
use serde_json::{Value, json};

use super::{GROUP, VERSION};

/// The summary of these workloads.
pub(super) fn of(workloads: &[PendingWorkload]) -> Value {
    json!({
        "kind": "PendingWorkloadsSummary",
        "apiVersion": format!("{GROUP}/{VERSION}"),
        "metadata": {},
        "items": workloads.iter().map(item).collect::<Vec<_>>(),
    })
}

fn item(workload: &PendingWorkload) -> Value {
    json!({
        "metadata": {
            "name": &*workload.key.name,
            "namespace": &*workload.key.namespace,
            "creationTimestamp": &*workload.created,
            "ownerReferences": workload.owner_references,
        },
        "priority": workload.priority,
        "localQueueName": &*workload.local_queue,
        "positionInClusterQueue": workload.position_in_cluster_queue,
        "positionInLocalQueue": workload.position_in_local_queue,
    })
}
