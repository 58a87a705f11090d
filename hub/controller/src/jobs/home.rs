//! Jobs of home queues: started and stopped in place, on the hub's own cluster.

use std::collections::BTreeMap;

use fairlead_api::{kueue, labels};
use serde_json::{Map, Value, json};

use super::{copy, json};

/// Where a Job of a home queue was admitted.
#[derive(Clone, Debug, Default)]
pub struct HomePlace {
    /// The `spec` of each assigned ResourceFlavor.
    pub flavors: Vec<Value>,
    /// Its ClusterQueue.
    pub cluster_queue: String,
    /// Its LocalQueue.
    pub local_queue: String,
    /// Its Workload.
    pub workload: String,
}

/// The patch that starts the Job in place: unsuspended, with the flavors' node labels and tolerations.
///
/// The pod template starts from the Workload's, so that what an earlier admission injected does not stay.
pub fn start_patch(job: &Value, original: &Value, place: &HomePlace) -> Value {
    let mut pod = json::into_object(json::at(original, &["spec"]).cloned());
    copy::inject(&mut pod, &place.flavors);
    let mut template = Map::new();
    let mut spec = Map::new();
    for field in ["nodeSelector", "tolerations"] {
        let old = json::at(job, &["spec", "template", "spec", field]);
        let new = pod.get(field);
        let change = match (old, new) {
            (Some(old), Some(new)) => json::merge_patch(old, new),
            (Some(_), None) => Some(Value::Null),
            (None, new) => new.cloned(),
        };
        if let Some(change) = change {
            spec.insert(field.into(), change);
        }
    }
    if !spec.is_empty() {
        template.insert("spec".into(), spec.into());
    }
    template.insert("metadata".into(), stamps(place));
    json!({"spec": {"suspend": false, "template": template}})
}

/// The labels and annotations that Kueue's users find on the pods.
fn stamps(place: &HomePlace) -> Value {
    let names: BTreeMap<&str, &str> = [
        (labels::POD_SET, kueue::MAIN_POD_SET),
        (labels::CLUSTER_QUEUE_NAME, place.cluster_queue.as_str()),
        (labels::LOCAL_QUEUE_NAME, place.local_queue.as_str()),
    ]
    .into_iter()
    .filter(|(_, value)| value.len() <= 63)
    .collect();
    json!({"labels": names, "annotations": {labels::WORKLOAD: place.workload}})
}

/// The patch that stops a Job in place.
pub fn stop_patch() -> Value {
    json!({"spec": {"suspend": true}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_started_with_its_flavor_and_the_traces_of_the_last_one_go() {
        let original = json!({"spec": {"nodeSelector": {"disk": "ssd"}}});
        let mut job = json!({"spec": {"suspend": true, "template": {"spec": {
            "nodeSelector": {"disk": "ssd", "gpu": "old"}, "tolerations": [{"key": "old", "operator": "Exists"}]}}}});
        let place = HomePlace {
            flavors: vec![json!({"nodeLabels": {"gpu": "new"}})],
            cluster_queue: "cq".into(),
            local_queue: "x".repeat(64),
            workload: "job-a-12345".into(),
        };
        let patch = start_patch(&job, &original, &place);
        json::apply_merge_patch(&mut job, &patch);
        assert_eq!(
            job,
            json!({"spec": {"suspend": false, "template": {
                "metadata": {
                    "labels": {"kueue.x-k8s.io/podset": "main", "kueue.x-k8s.io/cluster-queue-name": "cq"},
                    "annotations": {"kueue.x-k8s.io/workload": "job-a-12345"},
                },
                "spec": {"nodeSelector": {"disk": "ssd", "gpu": "new"}},
            }}})
        );
    }
}
