//! What a Pod object says: what it takes, whose it is, and whether its containers have stopped.

use std::sync::Arc;

use fairlead_api::labels;
use fairlead_model::{Resources, Uid};
use serde_json::Value;

use super::capacity::PODS;
use super::nodes::resources;

/// The label that the Job controller puts on its pods.
const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";

/// A pod as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pod {
    /// UID of the Job that made it, if it is one of our copies' (it carries our placement label).
    pub(crate) job: Option<Uid>,
    /// The placement it is labelled with.
    pub(crate) placement: Option<Arc<str>>,
    /// The node it is bound to.
    pub(crate) node: Option<Arc<str>>,
    /// Its effective requests, `pods` included.
    pub(crate) requests: Resources,
    /// Its phase is Succeeded or Failed: the scheduler no longer counts it.
    pub(crate) finished: bool,
    /// It has run, or is running.
    pub(crate) has_run: bool,
    /// The kubelet reported that every container has terminated and none will start again, or it was never bound.
    pub(crate) stopped: bool,
}

/// Reads a Pod.
pub(crate) fn read(json: &Value) -> Pod {
    let label = |key: &str| json.pointer("/metadata/labels")?.get(key)?.as_str();
    let placement = label(labels::PLACEMENT);
    let job = placement.and_then(|_ours| label(CONTROLLER_UID));
    let spec = json.get("spec").unwrap_or(&Value::Null);
    let node = spec.get("nodeName").and_then(Value::as_str).filter(|name| !name.is_empty());
    let phase = json.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
    Pod {
        job: job.map(Uid::from),
        placement: placement.map(Arc::from),
        node: node.map(Arc::from),
        requests: requests(spec),
        finished: matches!(phase, "Succeeded" | "Failed"),
        has_run: matches!(phase, "Running" | "Succeeded" | "Failed"),
        stopped: stopped(json, phase),
    }
}

/// Whether the kubelet's own report proves that nothing of the pod runs or will run.
///
/// The phase alone is no proof: the pod collector sets Failed on pods of nodes that are gone.
fn stopped(json: &Value, phase: &str) -> bool {
    let statuses = |field: &str| {
        let list = json.pointer(&format!("/status/{field}")).and_then(Value::as_array);
        list.map_or(&[][..], Vec::as_slice)
    };
    let containers = statuses("containerStatuses");
    let init = statuses("initContainerStatuses");
    let terminated = |status: &Value| status.pointer("/state/terminated").is_some();
    let running = |status: &Value| status.pointer("/state/running").is_some();
    let expected = json.pointer("/spec/containers").and_then(Value::as_array).map_or(0, Vec::len);
    let all_terminated = !containers.is_empty()
        && containers.len() >= expected
        && containers.iter().all(terminated)
        && !init.iter().any(running);
    match phase {
        "Succeeded" | "Failed" => {
            // Turned away by the kubelet before any container was made: it says why, and by itself.
            let rejected = containers.is_empty() && json.pointer("/status/reason").is_some();
            // Containers that never started because an earlier step failed stay waiting in a pod that has ended.
            let none_running = !containers.is_empty() && !containers.iter().chain(init).any(running);
            all_terminated || (!collected(json) && (rejected || none_running))
        }
        // Until it is being deleted, the kubelet may start a terminated container again.
        _ => all_terminated && json.pointer("/metadata/deletionTimestamp").is_some(),
    }
}

/// Whether the phase was set by the pod collector because the node is gone, not by the kubelet.
fn collected(json: &Value) -> bool {
    let conditions = json.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    conditions.into_iter().any(|condition| {
        let field = |name| condition.get(name).and_then(Value::as_str);
        field("type") == Some("DisruptionTarget") && field("reason") == Some("DeletionByPodGC")
    })
}

/// The pod's effective requests: the larger of what its containers ask for together and what any step of its
/// start asks for, with sidecars counted in both, plus overhead; requests of the pod as a whole replace the sum.
pub(crate) fn requests(spec: &Value) -> Resources {
    let list = |field: &str| spec.get(field).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let asked = |container: &Value| resources(container.pointer("/resources/requests"));
    let mut sidecars = Resources::new();
    let mut peak = Resources::new();
    for container in list("initContainers") {
        let mut step = asked(container);
        if container.get("restartPolicy").and_then(Value::as_str) == Some("Always") {
            sidecars.add(&step);
            peak = larger(&peak, &sidecars);
        } else {
            step.add(&sidecars);
            peak = larger(&peak, &step);
        }
    }
    let mut total = sidecars;
    for container in list("containers") {
        total.add(&asked(container));
    }
    let mut total = larger(&total, &peak);
    for (name, amount) in resources(spec.pointer("/resources/requests")).iter() {
        total.set(Arc::clone(name), amount);
    }
    total.add(&resources(spec.get("overhead")));
    total.set(PODS, 1);
    total
}

/// The larger amount of each resource.
fn larger(a: &Resources, b: &Resources) -> Resources {
    let mut result = a.clone();
    for (name, amount) in b.iter() {
        if amount > result.get(name) {
            result.set(Arc::clone(name), amount);
        }
    }
    result
}

#[cfg(test)]
#[path = "pods_tests.rs"]
mod tests;
