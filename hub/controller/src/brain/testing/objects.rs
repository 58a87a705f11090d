//! The objects of tests.

use serde_json::{Value, json};

use crate::ports::Kind;

/// Namespace `team`, flavor `default`, check `dispatch`, a ClusterQueue of these cpus and LocalQueue `team/q`.
pub(crate) fn queue_set(name: &str, cpus: &str, federated: bool) -> Vec<(Kind, Value)> {
    let checks = if federated { json!({"admissionChecks": [{"name": "dispatch"}]}) } else { json!({}) };
    vec![
        (Kind::Namespace, json!({"metadata": {"name": "team", "labels": {}}})),
        (Kind::ResourceFlavor, json!({"metadata": {"name": "default"}, "spec": {}})),
        (
            Kind::AdmissionCheck,
            json!({"metadata": {"name": "dispatch"}, "spec": {"controllerName": "fairlead.dev/dispatch"}}),
        ),
        (
            Kind::ClusterQueue,
            json!({"metadata": {"name": name}, "spec": {
                "namespaceSelector": {},
                "admissionChecksStrategy": checks,
                "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
                    {"name": "default", "resources": [{"name": "cpu", "nominalQuota": cpus}]}]}],
            }}),
        ),
        (
            Kind::LocalQueue,
            json!({"metadata": {"name": "q", "namespace": "team"}, "spec": {"clusterQueue": name}}),
        ),
    ]
}

/// A one-pod Job for `team/q`, as the entry policies leave it.
pub(crate) fn job(name: &str, cpus: &str) -> (Kind, Value) {
    let json = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "team", "labels": {"kueue.x-k8s.io/queue-name": "q"}},
        "spec": {
            "suspend": true,
            "managedBy": "fairlead.dev/dispatch",
            "parallelism": 1,
            "completions": 1,
            "template": {"spec": {"containers": [
                {"name": "main", "image": "x", "resources": {"requests": {"cpu": cpus}}}]}},
        },
    });
    (Kind::Job, json)
}

/// A Cluster whose UID is `uid-<name>`.
pub(crate) fn cluster(name: &str) -> (Kind, Value) {
    (Kind::Cluster, json!({"metadata": {"name": name, "uid": format!("uid-{name}")}, "spec": {"labels": {}}}))
}
