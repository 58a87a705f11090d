//! Nodes and pods of the hub's own cluster, and spokes.

use std::sync::Arc;

use fairlead_api::labels as names;
use fairlead_engine::Fact;
use fairlead_engine::fact::{Cluster, Mode, Node, Presence, RunningPod};
use fairlead_model::SpokeId;
use serde_json::Value;

use super::key_of;
use super::pods::running_requests;
use super::read::{Unreadable, labels, list, resources, taints, text};
use crate::ports::Object;

/// Label and annotation keys on pods whose room a workload's topology assignment accounts for.
const TOPOLOGY_MARKS: [&str; 5] = [
    "kueue.x-k8s.io/podset-required-topology",
    "kueue.x-k8s.io/podset-preferred-topology",
    "kueue.x-k8s.io/podset-unconstrained-topology",
    "kueue.x-k8s.io/podset-slice-required-topology",
    "kueue.x-k8s.io/tas",
];

/// A node.
pub(super) fn node(json: &Value) -> Result<Node, Unreadable> {
    let conditions = list(json, "/status/conditions");
    let ready = conditions.iter().any(|it| text(it, "/type") == "Ready" && text(it, "/status") == "True");
    let cordoned = json.pointer("/spec/unschedulable").and_then(Value::as_bool).unwrap_or(false);
    Ok(Node {
        name: key_of(json).name,
        labels: labels(json.pointer("/metadata/labels")),
        taints: taints(list(json, "/spec/taints")),
        allocatable: resources(json.pointer("/status/allocatable"))?,
        usable: ready && !cordoned,
    })
}

/// A pod that takes room on a node; one that has ended, is not bound, or is accounted for elsewhere takes none.
pub(super) fn pod(json: &Value) -> Result<Fact, Unreadable> {
    let key = key_of(json);
    let ended = matches!(text(json, "/status/phase"), "Succeeded" | "Failed");
    let node = text(json, "/spec/nodeName");
    let marked = |map: &str| {
        let map = json.pointer(map).and_then(Value::as_object);
        map.is_some_and(|map| TOPOLOGY_MARKS.iter().any(|mark| map.contains_key(*mark)))
    };
    if ended || node.is_empty() || marked("/metadata/annotations") || marked("/metadata/labels") {
        return Ok(Fact::PodGone(key));
    }
    Ok(Fact::Pod(RunningPod { key, node: node.into(), requests: running_requests(json)? }))
}

/// A spoke. Its name is a label too, so that selectors can name it.
pub(super) fn cluster(object: &Object, presence: Presence) -> Cluster {
    let json = &object.json;
    let flag = |pointer: &str| json.pointer(pointer).and_then(Value::as_bool).unwrap_or(false);
    let mut all = labels(json.pointer("/spec/labels"));
    all.insert(names::CLUSTER.into(), Arc::clone(&object.key.name));
    Cluster {
        spoke: SpokeId::new(object.uid.as_str()),
        name: Arc::clone(&object.key.name),
        labels: all,
        cordoned: flag("/spec/cordon"),
        presence,
        mode: if text(json, "/spec/capacityMode") == "QuotaOnly" { Mode::QuotaOnly } else { Mode::Reported },
        elastic: flag("/spec/elastic"),
    }
}
