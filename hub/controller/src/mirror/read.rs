//! Reads the common parts of Kubernetes objects.

use std::sync::Arc;

use fairlead_api::Quantity;
use fairlead_model::{
    LabelSelector, Labels, Millis, NodeConstraints, NodeTerm, Operator, Requirement, Resources, Taint,
    TaintEffect, Toleration,
};
use serde_json::Value;

/// What could not be read.
pub(super) type Unreadable = String;

/// A string below `json`; empty when it is missing.
pub(super) fn text<'j>(json: &'j Value, pointer: &str) -> &'j str {
    json.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A string below `json`; none when it is missing or empty.
pub(super) fn maybe_text(json: &Value, pointer: &str) -> Option<Arc<str>> {
    Some(text(json, pointer)).filter(|text| !text.is_empty()).map(Arc::from)
}

/// The items of a list below `json`.
pub(super) fn list<'j>(json: &'j Value, pointer: &str) -> &'j [Value] {
    json.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Strings of a list.
pub(super) fn texts(items: &[Value]) -> Vec<Arc<str>> {
    items.iter().filter_map(Value::as_str).map(Arc::from).collect()
}

/// A map of strings.
pub(super) fn labels(json: Option<&Value>) -> Labels {
    let map = json.and_then(Value::as_object).into_iter().flatten();
    map.filter_map(|(key, value)| Some((Arc::from(key.as_str()), Arc::from(value.as_str()?)))).collect()
}

/// One quantity: a string or a number.
pub(super) fn quantity(json: &Value) -> Result<Quantity, Unreadable> {
    match json {
        Value::String(text) => Ok(Quantity(text.clone())),
        Value::Number(number) => Ok(Quantity(number.to_string())),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            Err(format!("{json} is not a quantity"))
        }
    }
}

/// An amount of a resource in its smallest unit.
pub(super) fn amount(resource: &str, json: &Value) -> Result<i64, Unreadable> {
    quantity(json)?.parse(resource).map_err(|error| format!("{resource}: {error}"))
}

/// A resource list; nothing when it is missing.
pub(super) fn resources(json: Option<&Value>) -> Result<Resources, Unreadable> {
    let map = json.and_then(Value::as_object).into_iter().flatten();
    map.map(|(name, value)| Ok((Arc::from(name.as_str()), amount(name, value)?))).collect()
}

/// A time below `json`.
pub(super) fn time(json: &Value, pointer: &str) -> Option<Millis> {
    let parsed: jiff::Timestamp = json.pointer(pointer)?.as_str()?.parse().ok()?;
    Some(Millis(parsed.as_millisecond()))
}

/// An integer that is not negative.
pub(super) fn count(json: Option<&Value>) -> Option<u32> {
    json.and_then(Value::as_u64).and_then(|count| u32::try_from(count).ok())
}

fn operator(text: &str) -> Option<Operator> {
    match text {
        "In" => Some(Operator::In),
        "NotIn" => Some(Operator::NotIn),
        "Exists" => Some(Operator::Exists),
        "DoesNotExist" => Some(Operator::DoesNotExist),
        "Gt" => Some(Operator::Gt),
        "Lt" => Some(Operator::Lt),
        _ => None,
    }
}

/// Conditions of the form `{key, operator, values}`.
fn requirements(items: &[Value]) -> Result<Vec<Requirement>, Unreadable> {
    let one = |item: &Value| {
        let name = text(item, "/operator");
        let operator = operator(name).ok_or_else(|| format!("{name:?} is no selector operator"))?;
        Ok(Requirement { key: text(item, "/key").into(), operator, values: texts(list(item, "/values")) })
    };
    items.iter().map(one).collect()
}

/// A `metav1.LabelSelector`.
pub(super) fn selector(json: &Value) -> Result<LabelSelector, Unreadable> {
    let equal = labels(json.get("matchLabels"));
    let mut all: Vec<Requirement> = equal
        .into_iter()
        .map(|(key, value)| Requirement { key, operator: Operator::In, values: vec![value] })
        .collect();
    all.extend(requirements(list(json, "/matchExpressions"))?);
    Ok(LabelSelector { requirements: all })
}

fn effect(text: &str) -> Option<TaintEffect> {
    match text {
        "NoSchedule" => Some(TaintEffect::NoSchedule),
        "PreferNoSchedule" => Some(TaintEffect::PreferNoSchedule),
        "NoExecute" => Some(TaintEffect::NoExecute),
        _ => None,
    }
}

/// Node or flavor taints; those with an unknown effect have none.
pub(super) fn taints(items: &[Value]) -> Vec<Taint> {
    let one = |item: &Value| {
        let effect = effect(text(item, "/effect"))?;
        Some(Taint { key: text(item, "/key").into(), value: text(item, "/value").into(), effect })
    };
    items.iter().filter_map(one).collect()
}

/// Tolerations of a pod or a flavor.
pub(super) fn tolerations(items: &[Value]) -> Vec<Toleration> {
    let one = |item: &Value| Toleration {
        key: text(item, "/key").into(),
        exists: text(item, "/operator") == "Exists",
        value: text(item, "/value").into(),
        effect: effect(text(item, "/effect")),
    };
    items.iter().map(one).collect()
}

/// What a pod spec demands of nodes.
pub(super) fn node_constraints(spec: &Value) -> Result<NodeConstraints, Unreadable> {
    let required = spec.pointer("/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution");
    let term = |term: &Value| -> Result<NodeTerm, Unreadable> {
        Ok(NodeTerm {
            expressions: requirements(list(term, "/matchExpressions"))?,
            fields: requirements(list(term, "/matchFields"))?,
        })
    };
    let terms = required.map(|required| list(required, "/nodeSelectorTerms").iter().map(term).collect());
    Ok(NodeConstraints {
        selector: labels(spec.get("nodeSelector")),
        affinity: terms.transpose()?,
        tolerations: tolerations(list(spec, "/tolerations")),
    })
}
