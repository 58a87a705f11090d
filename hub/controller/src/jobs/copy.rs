//! The copy of a Job for a spoke: the Job's raw JSON less a listed set of fields, plus what its flavors ask for.

use fairlead_api::labels;
use serde_json::{Map, Value, json};

use super::affinity::{self, PlaceLabels};
use super::{json, workload};

/// Labels that the API server puts on the pod template of a Job. Those of the copy are made by the spoke's.
const GENERATED_LABELS: [&str; 4] =
    ["controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name"];
/// Fields of the Job's spec that the copy must not have: what the spoke generates, who else would manage it, and
/// what would delete it before its result is stored on the hub.
const DROPPED_SPEC: [&str; 4] = ["selector", "managedBy", "suspend", "ttlSecondsAfterFinished"];
/// The annotation that kubectl keeps for itself.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Keys with this prefix are the agent's stamps and the hub's switches.
const OURS: &str = "fairlead.dev/";

/// Where a copy goes, as far as its manifest depends on it.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// Cluster and cloud, by their node labels.
    pub labels: PlaceLabels,
    /// The `spec` of each assigned ResourceFlavor.
    pub flavors: Vec<Value>,
    /// How many pods were admitted, where they are fewer than the Job asks for.
    pub count: Option<i64>,
}

/// The copy of this Job, complete but for the agent's stamps.
pub fn copy_of(job: &Value, place: &Place) -> Value {
    let mut spec = json::into_object(json::at(job, &["spec"]).cloned());
    let own_selector = spec.get("manualSelector") == Some(&Value::Bool(true));
    spec.retain(|field, _| !DROPPED_SPEC.contains(&field.as_str()) || (field == "selector" && own_selector));
    spec.insert("suspend".into(), false.into());
    if let Some(count) = place.count {
        spec.insert("parallelism".into(), count.into());
        if workload::completions_follow(job) {
            spec.insert("completions".into(), count.into());
        }
    }
    let mut template = json::into_object(spec.remove("template"));
    let mut metadata = json::into_object(template.remove("metadata"));
    metadata.remove("creationTimestamp");
    keep_foreign_keys(&mut metadata, |key| {
        key.starts_with(labels::KUEUE_PREFIX) || (!own_selector && GENERATED_LABELS.contains(&key))
    });
    let mut pod = json::into_object(template.remove("spec"));
    affinity::strip(&mut pod, &place.labels);
    inject(&mut pod, &place.flavors);
    template.insert("metadata".into(), metadata.into());
    template.insert("spec".into(), pod.into());
    spec.insert("template".into(), template.into());
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata_of(job), "spec": spec})
}

/// Whether the API server makes this label for the pods of a Job.
pub(crate) fn is_generated(label: &str) -> bool {
    GENERATED_LABELS.contains(&label)
}

/// Removes the labels that an API server generates for the pods of a Job.
pub(crate) fn drop_generated_labels(template: &mut Value) {
    if let Some(labels) = template.get_mut("metadata").and_then(|metadata| metadata.get_mut("labels"))
        && let Some(labels) = labels.as_object_mut()
    {
        labels.retain(|key, _| !GENERATED_LABELS.contains(&key.as_str()));
    }
}

/// Adds the flavors' node labels and tolerations to a pod spec. Hub-only labels are left out; a label that the pod
/// selects already stays as it is, since the flavor was chosen to match it.
pub(crate) fn inject(pod: &mut Map<String, Value>, flavors: &[Value]) {
    for flavor in flavors {
        for (key, value) in
            json::entries(flavor, &["nodeLabels"]).filter(|(key, _)| !affinity::is_hub_only(key))
        {
            let selector = pod.entry("nodeSelector").or_insert_with(|| json!({}));
            if let Some(selector) = selector.as_object_mut() {
                selector.entry(key).or_insert_with(|| value.into());
            }
        }
        for toleration in json::list(flavor, &["tolerations"]) {
            let tolerations = pod.entry("tolerations").or_insert_with(|| json!([]));
            if let Some(tolerations) = tolerations.as_array_mut()
                && !tolerations.contains(toleration)
            {
                tolerations.push(toleration.clone());
            }
        }
    }
}

/// Name, namespace, and the labels and annotations that mean something on the spoke.
fn metadata_of(job: &Value) -> Value {
    let metadata = json::at(job, &["metadata"]);
    let mut kept = Map::new();
    for key in ["name", "namespace", "labels", "annotations"] {
        if let Some(value) = metadata.and_then(|metadata| metadata.get(key)) {
            kept.insert(key.into(), value.clone());
        }
    }
    keep_foreign_keys(&mut kept, |key| {
        key.starts_with(labels::KUEUE_PREFIX)
            || key.starts_with(OURS)
            || key == LAST_APPLIED
            || GENERATED_LABELS.contains(&key)
    });
    Value::Object(kept)
}

/// Removes labels and annotations for which `drop` says so, and the maps that are empty then.
fn keep_foreign_keys(metadata: &mut Map<String, Value>, drop: impl Fn(&str) -> bool) {
    for field in ["labels", "annotations"] {
        let Some(map) = metadata.get_mut(field).and_then(Value::as_object_mut) else {
            continue;
        };
        map.retain(|key, _| !drop(key));
        if map.is_empty() {
            metadata.remove(field);
        }
    }
}

#[cfg(test)]
#[path = "copy_tests.rs"]
mod tests;
