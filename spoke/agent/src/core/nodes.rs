//! What a Node object says about capacity.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_api::Quantity;
use fairlead_model::{NodeClass, Resources, Taint, TaintEffect};
use serde_json::Value;

/// The label that tells nodes of one class apart.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// A node as read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NodeFacts {
    /// Labels without the hostname, and taints.
    pub(crate) class: NodeClass,
    /// `status.allocatable`.
    pub(crate) allocatable: Resources,
    /// The Ready condition holds.
    pub(crate) ready: bool,
    /// Ready, and not marked unschedulable.
    pub(crate) usable: bool,
}

/// Reads a Node.
pub(crate) fn read(json: &Value) -> NodeFacts {
    let ready =
        json.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten().any(|condition| {
            text(condition, "type") == Some("Ready") && text(condition, "status") == Some("True")
        });
    let open = json.pointer("/spec/unschedulable").and_then(Value::as_bool) != Some(true);
    let deleting = json.pointer("/metadata/deletionTimestamp").is_some();
    NodeFacts {
        class: NodeClass { labels: labels(json), taints: taints(json) },
        allocatable: resources(json.pointer("/status/allocatable")),
        ready,
        usable: ready && open && !deleting,
    }
}

/// Reads a resource list; what is no quantity counts as absent.
pub(crate) fn resources(list: Option<&Value>) -> Resources {
    let entries = list.and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(name, amount)| Some((Arc::from(name.as_str()), quantity(name, amount)?))).collect()
}

fn quantity(resource: &str, amount: &Value) -> Option<i64> {
    let quantity = match amount {
        Value::String(text) => Quantity(text.clone()),
        Value::Number(number) => Quantity(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    quantity.parse(resource).ok()
}

fn labels(json: &Value) -> BTreeMap<Arc<str>, Arc<str>> {
    let labels = json.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    labels
        .filter(|(key, _)| *key != HOSTNAME)
        .filter_map(|(key, value)| Some((Arc::from(key.as_str()), Arc::from(value.as_str()?))))
        .collect()
}

fn taints(json: &Value) -> Vec<Taint> {
    let taints = json.pointer("/spec/taints").and_then(Value::as_array).into_iter().flatten();
    let mut taints: Vec<Taint> = taints.filter_map(taint).collect();
    taints.sort();
    taints
}

fn taint(json: &Value) -> Option<Taint> {
    let effect = match text(json, "effect")? {
        "NoSchedule" => TaintEffect::NoSchedule,
        "PreferNoSchedule" => TaintEffect::PreferNoSchedule,
        "NoExecute" => TaintEffect::NoExecute,
        _ => return None,
    };
    let value = text(json, "value").unwrap_or_default();
    Some(Taint { key: text(json, "key")?.into(), value: value.into(), effect })
}

fn text<'a>(json: &'a Value, field: &str) -> Option<&'a str> {
    json.get(field).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_is_its_labels_taints_and_allocatable() {
        let facts = read(&json!({
            "metadata": {"labels": {"zone": "a", "kubernetes.io/hostname": "n1"}},
            "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]},
            "status": {"allocatable": {"cpu": "7900m", "memory": "1Gi", "pods": "110"},
                       "conditions": [{"type": "Ready", "status": "True"}]},
        }));
        assert_eq!(facts.class.labels.len(), 1);
        assert_eq!(facts.class.taints.len(), 1);
        assert_eq!(facts.allocatable.get("cpu"), 7900);
        assert_eq!(facts.allocatable.get("memory"), 1 << 30);
        assert!(facts.ready && facts.usable);
    }

    #[test]
    fn a_node_that_is_not_ready_cordoned_or_going_is_not_usable() {
        let ready = json!([{"type": "Ready", "status": "True"}]);
        let cordoned = read(&json!({"spec": {"unschedulable": true}, "status": {"conditions": ready}}));
        assert!(cordoned.ready && !cordoned.usable);
        let going = read(&json!({"metadata": {"deletionTimestamp": "t"}, "status": {"conditions": ready}}));
        assert!(going.ready && !going.usable);
        for status in ["False", "Unknown"] {
            let conditions = json!([{"type": "Ready", "status": status}]);
            assert!(!read(&json!({"status": {"conditions": conditions}})).ready);
        }
        assert!(!read(&json!({})).ready);
    }
}
