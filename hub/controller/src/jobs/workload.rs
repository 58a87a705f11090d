//! The Workload made from a Job.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use fairlead_api::{kueue, labels};
use serde_json::{Map, Value, json};

use super::json;
use super::naming::workload_name;
use super::topology;
use super::view::GVK;

/// Priorities by the name of their class.
#[derive(Clone, Debug, Default)]
pub struct Priorities {
    /// WorkloadPriorityClasses.
    pub workload: BTreeMap<Arc<str>, i32>,
    /// PriorityClasses.
    pub pod: BTreeMap<Arc<str>, i32>,
    /// The PriorityClass of pods that name none.
    pub pod_default: Option<Arc<str>>,
}

/// No Workload can be made of the Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// It names a class that does not exist (yet).
    NoSuchClass {
        /// `WorkloadPriorityClass` or `PriorityClass`.
        kind: &'static str,
        /// Its name.
        name: Arc<str>,
    },
    /// A field cannot be read.
    Malformed {
        /// Which.
        field: &'static str,
        /// What stands there.
        value: Arc<str>,
    },
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchClass { kind, name } => write!(f, "{kind} {name} does not exist"),
            Self::Malformed { field, value } => write!(f, "{field} {value:?} cannot be read"),
        }
    }
}

impl std::error::Error for Unusable {}

/// The name of a Job's Workload.
pub fn name_of(name: &str, uid: &str) -> String {
    workload_name(GVK.2, GVK.0, name, uid)
}

/// The Workload of a Job, to be created beside it.
///
/// # Errors
///
/// [`Unusable`] when the Job names a class that does not exist, or a field cannot be read.
pub fn workload_of(job: &Value, priorities: &Priorities) -> Result<Value, Unusable> {
    let name = json::text(job, &["metadata", "name"]).unwrap_or_default();
    let uid = json::text(job, &["metadata", "uid"]).unwrap_or_default();
    let mut fields = json::into_object(Some(json!({"active": true, "podSets": [pod_set(job)?]})));
    if let Some(queue) = json::text(job, &["metadata", "labels", labels::QUEUE_NAME]) {
        fields.insert("queueName".into(), queue.into());
    }
    if let Some((value, reference)) = priority(job, priorities)? {
        fields.insert("priority".into(), value.into());
        fields.insert("priorityClassRef".into(), reference);
    }
    if let Some(seconds) = max_execution_seconds(job)? {
        fields.insert("maximumExecutionTimeSeconds".into(), seconds.into());
    }
    let mut metadata = ownership(name, uid);
    let own = json!({
        "name": name_of(name, uid),
        "namespace": json::text(job, &["metadata", "namespace"]).unwrap_or_default(),
        "finalizers": [labels::RESOURCE_IN_USE],
    });
    json::apply_merge_patch(&mut metadata, &own);
    Ok(json!({
        "apiVersion": format!("{}/{}", kueue::GROUP, kueue::VERSION),
        "kind": "Workload",
        "metadata": metadata,
        "spec": fields,
    }))
}

/// The metadata by which a Workload is a Job's.
pub fn ownership(name: &str, uid: &str) -> Value {
    json!({
        "labels": {labels::JOB_UID: uid},
        "annotations": {
            labels::JOB_OWNER_GVK: format!("{}/{}, Kind={}", GVK.0, GVK.1, GVK.2),
            labels::JOB_OWNER_NAME: name,
        },
        "ownerReferences": [{
            "apiVersion": format!("{}/{}", GVK.0, GVK.1),
            "kind": GVK.2,
            "name": name,
            "uid": uid,
            "controller": true,
            "blockOwnerDeletion": true,
        }],
    })
}

/// The one pod set of a Job.
///
/// # Errors
///
/// [`Unusable`] when an annotation cannot be meant as it stands there.
pub fn pod_set(job: &Value) -> Result<Value, Unusable> {
    let (count, template) = (pod_count(job), template(job));
    let request = topology::request(&template, count);
    let request = request.map_err(|(field, value)| Unusable::Malformed { field, value: value.into() })?;
    let mut set = json::into_object(Some(json!({
        "name": kueue::MAIN_POD_SET, "count": count, "template": template,
    })));
    if let Some(least) = min_count(job, count)? {
        set.insert("minCount".into(), least.into());
    }
    if let Some(request) = request {
        set.insert("topologyRequest".into(), request);
    }
    Ok(Value::Object(set))
}

/// How few pods are enough to start the Job, where that is fewer than all.
fn min_count(job: &Value, count: i64) -> Result<Option<i64>, Unusable> {
    let Some(text) = json::text(job, &["metadata", "annotations", labels::JOB_MIN_PARALLELISM]) else {
        return Ok(None);
    };
    match text.parse::<i64>() {
        Ok(least) if least > 0 => Ok((least < count).then_some(least)),
        _ => Err(Unusable::Malformed { field: labels::JOB_MIN_PARALLELISM, value: text.into() }),
    }
}

/// Whether the completions of the Job follow its parallelism.
pub fn completions_follow(job: &Value) -> bool {
    let key = labels::JOB_COMPLETIONS_EQUAL_PARALLELISM;
    json::text(job, &["metadata", "annotations", key]) == Some(labels::TRUE)
}

/// The merge patch of a Workload's `spec` that brings its priority up to its Job's class; none when it is.
///
/// # Errors
///
/// [`Unusable`] when the Job names a class that does not exist.
pub fn priority_patch(job: &Value, spec: &Value, priorities: &Priorities) -> Result<Option<Value>, Unusable> {
    let Some((value, reference)) = priority(job, priorities)? else {
        return Ok(None);
    };
    let same = json::integer(spec, &["priority"]) == Some(value.into())
        && json::at(spec, &["priorityClassRef"]) == Some(&reference);
    Ok((!same).then(|| json!({"priority": value, "priorityClassRef": reference})))
}

/// How many pods run side by side at most: `min(parallelism, completions)`.
pub fn pod_count(job: &Value) -> i64 {
    let parallelism = json::integer(job, &["spec", "parallelism"]).unwrap_or(1);
    json::integer(job, &["spec", "completions"]).unwrap_or(parallelism).min(parallelism).max(0)
}

/// The pod template without what the API server generates, with each environment variable once.
fn template(job: &Value) -> Value {
    let mut template = json::at(job, &["spec", "template"]).cloned().unwrap_or_else(|| json!({}));
    super::copy::drop_generated_labels(&mut template);
    if let Some(metadata) = template.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, value| {
            key != "creationTimestamp" && value.as_object().is_none_or(|map| !map.is_empty())
        });
    }
    if let Some(map) = template.as_object_mut()
        && map.get("metadata").and_then(Value::as_object).is_some_and(Map::is_empty)
    {
        map.remove("metadata");
    }
    for kind in ["containers", "initContainers"] {
        let containers = template.get_mut("spec").and_then(|spec| spec.get_mut(kind));
        for container in containers.and_then(Value::as_array_mut).into_iter().flatten() {
            keep_last_of_each_name(container);
        }
    }
    template
}

/// Environment variables are a list keyed by name in the Workload's schema; the last of a name wins, as in a pod.
fn keep_last_of_each_name(container: &mut Value) {
    let Some(variables) = container.get_mut("env").and_then(Value::as_array_mut) else {
        return;
    };
    let names: Vec<Option<String>> =
        variables.iter().map(|entry| json::text(entry, &["name"]).map(str::to_owned)).collect();
    let mut index = 0;
    variables.retain(|_| {
        let later = names.get(index + 1..).unwrap_or_default();
        let keep = names.get(index).is_none_or(|name| !later.contains(name));
        index += 1;
        keep
    });
}

/// The priority and the class it came from: the WorkloadPriorityClass of the label, else the default one, else the
/// PriorityClass of the pods, else the default PriorityClass, else none.
fn priority(job: &Value, priorities: &Priorities) -> Result<Option<(i32, Value)>, Unusable> {
    let default = labels::DEFAULT_PRIORITY_CLASS;
    let default = priorities.workload.contains_key(default).then_some(default);
    let named = json::text(job, &["metadata", "labels", labels::PRIORITY_CLASS]);
    if let Some(name) = named.filter(|name| !name.is_empty()).or(default) {
        let value = class("WorkloadPriorityClass", name, &priorities.workload)?;
        let reference = json!({"group": kueue::GROUP, "kind": "WorkloadPriorityClass", "name": name});
        return Ok(Some((value, reference)));
    }
    let named =
        json::text(job, &["spec", "template", "spec", "priorityClassName"]).filter(|name| !name.is_empty());
    let Some(name) = named.or(priorities.pod_default.as_deref()) else {
        return Ok(None);
    };
    let value = class("PriorityClass", name, &priorities.pod)?;
    Ok(Some((value, json!({"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": name}))))
}

fn class(kind: &'static str, name: &str, known: &BTreeMap<Arc<str>, i32>) -> Result<i32, Unusable> {
    known.get(name).copied().ok_or_else(|| Unusable::NoSuchClass { kind, name: name.into() })
}

fn max_execution_seconds(job: &Value) -> Result<Option<i32>, Unusable> {
    let Some(text) = json::text(job, &["metadata", "labels", labels::MAX_EXEC_TIME_SECONDS]) else {
        return Ok(None);
    };
    match text.parse::<i32>() {
        Ok(seconds) if seconds > 0 => Ok(Some(seconds)),
        _ => Err(Unusable::Malformed { field: labels::MAX_EXEC_TIME_SECONDS, value: text.into() }),
    }
}

#[cfg(test)]
#[path = "workload_tests.rs"]
mod tests;
