//! Jobs of home queues: started and stopped in place, on the hub's own cluster, and put back to what their users wrote.

use std::collections::BTreeMap;

use fairlead_api::{kueue, labels};
use serde_json::{Map, Value, json};

use super::{copy, json, workload};

/// Fields of a pod's spec that a start may change; the API server lets them change while the Job is suspended.
const FIELDS: [&str; 3] = ["nodeSelector", "tolerations", "schedulingGates"];

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
    /// How many pods were admitted, where they are fewer than the Job asks for.
    pub count: Option<i64>,
    /// Its pods are told their places one by one, and wait at a gate until then.
    pub topology: bool,
}

/// The patch that starts the Job in place: unsuspended, with the flavors' node labels and tolerations.
///
/// The pod template starts from the Workload's, so that what an earlier admission injected does not stay.
pub fn start_patch(job: &Value, original: &Value, place: &HomePlace) -> Value {
    let mut target = original.clone();
    let mut pod = json::into_object(json::at(original, &["spec"]).cloned());
    copy::inject(&mut pod, &place.flavors);
    if place.topology {
        let gates = pod.entry("schedulingGates").or_insert_with(|| json!([]));
        if let Some(gates) = gates.as_array_mut() {
            gates.push(json!({"name": labels::TOPOLOGY_GATE}));
        }
    }
    json::apply_merge_patch(&mut target, &json!({"spec": pod, "metadata": stamps(place)}));
    let mut spec = json::into_object(place.count.map(|count| counts(job, count)));
    spec.insert("suspend".into(), false.into());
    if let Some(template) = template_patch(job, &target) {
        spec.insert("template".into(), template);
    }
    json!({ "spec": spec })
}

/// The labels and annotations that Kueue's users find on the pods.
fn stamps(place: &HomePlace) -> Value {
    let mut names: BTreeMap<&str, &str> = [
        (labels::POD_SET, kueue::MAIN_POD_SET),
        (labels::CLUSTER_QUEUE_NAME, place.cluster_queue.as_str()),
        (labels::LOCAL_QUEUE_NAME, place.local_queue.as_str()),
    ]
    .into_iter()
    .filter(|(_, value)| value.len() <= 63)
    .collect();
    if place.topology {
        names.insert(labels::TOPOLOGY_AWARE, labels::TRUE);
    }
    json!({"labels": names, "annotations": {labels::WORKLOAD: place.workload}})
}

/// Whether a start has changed the Job's pod template, and nothing has put it back: it has our mark, and the Workload's
/// pod set has not.
pub fn is_started(job: &Value, pod_set: &Value) -> bool {
    let mark = |template: Option<&Value>| {
        template
            .and_then(|template| json::text(template, &["metadata", "annotations", labels::WORKLOAD]))
            .map(str::to_owned)
    };
    let now = mark(json::at(job, &["spec", "template"]));
    now.is_some() && now != mark(pod_set.get("template"))
}

/// The patch that stops a Job in place.
pub fn stop_patch() -> Value {
    json!({"spec": {"suspend": true}})
}

/// The patch that puts a stopped Job back to what its user wrote: the pod template and the number of pods of its
/// Workload's pod set. None while the API server would refuse it, and where there is nothing to put back.
pub fn restore_patch(job: &Value, pod_set: &Value) -> Option<Value> {
    if !is_started(job, pod_set) || !may_change(job) {
        return None;
    }
    let count = json::integer(pod_set, &["count"]).unwrap_or(1);
    let partial = json::at(pod_set, &["minCount"]).is_some();
    let mut spec = json::into_object(partial.then(|| counts(job, count)));
    if let Some(template) = pod_set.get("template").and_then(|original| template_patch(job, original)) {
        spec.insert("template".into(), template);
    }
    (!spec.is_empty()).then(|| json!({ "spec": spec }))
}

/// Whether the pod template may be changed: the Job controller has seen that the Job is suspended, and no pod is left.
fn may_change(job: &Value) -> bool {
    let never_started = json::at(job, &["status", "startTime"]).is_none();
    let stopped = never_started || super::view::condition_is_true(job, "Suspended");
    let active = json::integer(job, &["status", "active"]).unwrap_or(0);
    json::flag(job, &["spec", "suspend"]) && stopped && active == 0
}

/// So many pods side by side, as a change of the Job's spec. Completions follow only where the user says so: they
/// cannot be changed otherwise.
fn counts(job: &Value, count: i64) -> Value {
    let mut spec = Map::new();
    if json::integer(job, &["spec", "parallelism"]) != Some(count) {
        spec.insert("parallelism".into(), count.into());
    }
    if workload::completions_follow(job) && json::integer(job, &["spec", "completions"]) != Some(count) {
        spec.insert("completions".into(), count.into());
    }
    Value::Object(spec)
}

/// The change of the Job's pod template to `target`, in the fields that may change. What the API server put there
/// itself stays.
fn template_patch(job: &Value, target: &Value) -> Option<Value> {
    let mut patch = Map::new();
    let spec: Map<String, Value> = FIELDS
        .into_iter()
        .filter_map(|field| Some((field.to_owned(), change(job, target, "spec", field)?)))
        .collect();
    if !spec.is_empty() {
        patch.insert("spec".into(), spec.into());
    }
    let mut metadata = Map::new();
    for field in ["labels", "annotations"] {
        let place = ["spec", "template", "metadata", field];
        let generated =
            json::entries(job, &place).filter(|(key, _)| field == "labels" && copy::is_generated(key));
        let mut map = json::into_object(json::at(target, &["metadata", field]).cloned());
        map.extend(generated.map(|(key, value)| (key.to_owned(), value.into())));
        let old = json::at(job, &place).cloned().unwrap_or_else(|| json!({}));
        if let Some(change) = json::merge_patch(&old, &Value::Object(map)) {
            metadata.insert(field.into(), change);
        }
    }
    if !metadata.is_empty() {
        patch.insert("metadata".into(), metadata.into());
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

fn change(job: &Value, target: &Value, part: &str, field: &str) -> Option<Value> {
    let old = json::at(job, &["spec", "template", part, field]);
    match (old, json::at(target, &[part, field])) {
        (Some(old), Some(new)) => json::merge_patch(old, new),
        (Some(_), None) => Some(Value::Null),
        (None, new) => new.cloned(),
    }
}

#[cfg(test)]
#[path = "home_tests.rs"]
mod tests;
