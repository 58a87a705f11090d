//! Just enough reading of Kubernetes objects.

use std::sync::Arc;

use fairlead_fit::topology::{Assignment, Level, Node, Slice};
use fairlead_model::{
    Labels, NodeConstraints, NodeTerm, Operator, Requirement, ResourceName, Resources, Taint, TaintEffect,
    Toleration,
};
use serde_json::Value;

pub(crate) fn text(value: &Value) -> Arc<str> {
    value.as_str().unwrap_or_default().into()
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn quantity(name: &str, text: &str) -> i64 {
    let digits = text.trim_end_matches(|c: char| c.is_alphabetic());
    let number: i64 = digits.parse().expect("a whole quantity");
    let thousandths = match &text[digits.len()..] {
        "m" => number,
        "" => number * 1000,
        "k" => number * 1_000_000,
        "Mi" => (number << 20) * 1000,
        "Gi" => (number << 30) * 1000,
        other => panic!("unit {other}"),
    };
    if name == "cpu" { thousandths } else { thousandths / 1000 }
}

pub(crate) fn resources(value: &Value) -> Resources {
    let entries = value.as_object().into_iter().flatten();
    let entry = |(name, amount): (&String, &Value)| {
        let amount = quantity(name, amount.as_str().expect("a quantity"));
        (ResourceName::from(name.as_str()), amount)
    };
    entries.map(entry).collect()
}

pub(crate) fn labels(value: &Value) -> Labels {
    let entries = value.as_object().into_iter().flatten();
    entries.map(|(key, value)| (key.as_str().into(), text(value))).collect()
}

fn effect(value: &Value) -> Option<TaintEffect> {
    match value.as_str()? {
        "NoSchedule" => Some(TaintEffect::NoSchedule),
        "PreferNoSchedule" => Some(TaintEffect::PreferNoSchedule),
        "NoExecute" => Some(TaintEffect::NoExecute),
        other => panic!("effect {other}"),
    }
}

pub(crate) fn tolerations(value: &Value) -> Vec<Toleration> {
    let toleration = |value: &Value| Toleration {
        key: text(&value["key"]),
        exists: value["operator"] == "Exists",
        value: text(&value["value"]),
        effect: effect(&value["effect"]),
    };
    list(value).iter().map(toleration).collect()
}

pub(crate) fn node(value: &Value) -> Node {
    let taint = |value: &Value| Taint {
        key: text(&value["key"]),
        value: text(&value["value"]),
        effect: effect(&value["effect"]).expect("an effect"),
    };
    let ready = |value: &Value| value["type"] == "Ready" && value["status"] == "True";
    Node {
        name: text(&value["metadata"]["name"]),
        labels: labels(&value["metadata"]["labels"]),
        taints: list(&value["spec"]["taints"]).iter().map(taint).collect(),
        allocatable: resources(&value["status"]["allocatable"]),
        usable: value["spec"]["unschedulable"] != true
            && list(&value["status"]["conditions"]).iter().any(ready),
    }
}

/// Requests of all containers of a pod.
pub(crate) fn pod_requests(spec: &Value) -> Resources {
    let mut sum = Resources::new();
    for container in list(&spec["containers"]) {
        sum.add(&resources(&container["resources"]["requests"]));
    }
    sum
}

pub(crate) fn constraints(spec: &Value) -> NodeConstraints {
    let requirement = |value: &Value| Requirement {
        key: text(&value["key"]),
        operator: match value["operator"].as_str() {
            Some("In") => Operator::In,
            Some("NotIn") => Operator::NotIn,
            Some("Exists") => Operator::Exists,
            Some("DoesNotExist") => Operator::DoesNotExist,
            other => panic!("operator {other:?}"),
        },
        values: list(&value["values"]).iter().map(text).collect(),
    };
    let requirements = |value: &Value| list(value).iter().map(requirement).collect();
    let term = |value: &Value| NodeTerm {
        expressions: requirements(&value["matchExpressions"]),
        fields: requirements(&value["matchFields"]),
    };
    let required = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    NodeConstraints {
        selector: labels(&spec["nodeSelector"]),
        affinity: required
            .as_object()
            .map(|_| list(&required["nodeSelectorTerms"]).iter().map(term).collect()),
        tolerations: tolerations(&spec["tolerations"]),
    }
}

pub(crate) fn level(request: &Value) -> Level<'_> {
    match (request["required"].as_str(), request["preferred"].as_str()) {
        (Some(level), _) => Level::Required(level),
        (None, Some(level)) => Level::Preferred(level),
        (None, None) => Level::Unconstrained,
    }
}

pub(crate) fn slices(request: &Value) -> Vec<Slice> {
    let size = |value: &Value| u32::try_from(value.as_u64().expect("a size")).expect("a small size");
    if let Some(level) = request["podSetSliceRequiredTopology"].as_str() {
        return vec![Slice { level: level.into(), size: size(&request["podSetSliceSize"]) }];
    }
    let slice = |value: &Value| Slice { level: text(&value["topology"]), size: size(&value["size"]) };
    list(&request["podsetSliceRequiredTopologyConstraints"]).iter().map(slice).collect()
}

pub(crate) fn assignment(value: &Value) -> Assignment {
    let count = |value: &Value| u32::try_from(value.as_u64().expect("a count")).expect("a small count");
    let domain = |value: &Value| (list(&value["values"]).iter().map(text).collect(), count(&value["count"]));
    Assignment {
        levels: list(&value["levels"]).iter().map(text).collect(),
        domains: list(&value["domains"]).iter().map(domain).collect(),
    }
}
