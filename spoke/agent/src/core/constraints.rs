//! What a pod template demands of its nodes, and how much it asks for.

use std::sync::Arc;

use fairlead_model::{
    Labels, NodeConstraints, NodeTerm, Operator, PodDemand, Requirement, TaintEffect, Toleration,
};
use serde_json::Value;

use super::capacity::PODS;
use super::pods;

/// Reads the constraints of a pod's spec. What the API server would not accept is left out.
pub(crate) fn read(spec: &Value) -> NodeConstraints {
    let required = spec.pointer("/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution");
    let terms = required.and_then(|required| required.get("nodeSelectorTerms")).and_then(Value::as_array);
    NodeConstraints {
        selector: selector(spec.get("nodeSelector")),
        affinity: terms.map(|terms| terms.iter().map(term).collect()),
        tolerations: list(spec, "tolerations").filter_map(toleration).collect(),
    }
}

/// The pods that a Job runs side by side, from its own spec.
pub(crate) fn demand(job: &Value) -> Vec<PodDemand> {
    let count = |field: &str| job.pointer("/spec")?.get(field)?.as_u64();
    let parallelism = count("parallelism").unwrap_or(1);
    let pods = parallelism.min(count("completions").unwrap_or(u64::MAX));
    let requests = job.pointer("/spec/template/spec").map(pods::requests).unwrap_or_default();
    let requests = requests.iter().filter(|(name, _)| &***name != PODS);
    vec![PodDemand {
        requests: requests.map(|(name, amount)| (Arc::clone(name), amount)).collect(),
        count: u32::try_from(pods).unwrap_or(u32::MAX),
    }]
}

fn selector(labels: Option<&Value>) -> Labels {
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into()))).collect()
}

fn term(term: &Value) -> NodeTerm {
    NodeTerm {
        expressions: list(term, "matchExpressions").filter_map(requirement).collect(),
        fields: list(term, "matchFields").filter_map(requirement).collect(),
    }
}

fn requirement(json: &Value) -> Option<Requirement> {
    let operator = match text(json, "operator")? {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        "Gt" => Operator::Gt,
        "Lt" => Operator::Lt,
        _ => return None,
    };
    let values = list(json, "values").filter_map(Value::as_str).map(Arc::from).collect();
    Some(Requirement { key: text(json, "key")?.into(), operator, values })
}

fn toleration(json: &Value) -> Option<Toleration> {
    let effect = match text(json, "effect") {
        None | Some("") => None,
        Some("NoSchedule") => Some(TaintEffect::NoSchedule),
        Some("PreferNoSchedule") => Some(TaintEffect::PreferNoSchedule),
        Some("NoExecute") => Some(TaintEffect::NoExecute),
        Some(_) => return None,
    };
    Some(Toleration {
        key: text(json, "key").unwrap_or_default().into(),
        exists: text(json, "operator") == Some("Exists"),
        value: text(json, "value").unwrap_or_default().into(),
        effect,
    })
}

fn list<'a>(json: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    json.get(field).and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(json: &'a Value, field: &str) -> Option<&'a str> {
    json.get(field).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn constraints_are_selector_affinity_and_tolerations() {
        let constraints = read(&json!({
            "nodeSelector": {"zone": "a"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}, {"key": "x", "effect": "Never"}],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "model", "operator": "In", "values": ["h100"]}]},
            ]}}},
        }));
        assert_eq!(constraints.selector.len(), 1);
        assert_eq!(constraints.tolerations.len(), 1);
        assert_eq!(constraints.affinity.map(|terms| terms.len()), Some(1));
    }

    #[test]
    fn a_job_runs_no_more_pods_than_it_has_completions() {
        let job = |parallelism: u64, completions: Option<u64>| {
            demand(
                &json!({"spec": {"parallelism": parallelism, "completions": completions, "template": {"spec":
                {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}}}}),
            )
        };
        assert_eq!(job(3, Some(2))[0].count, 2);
        assert_eq!(job(3, None)[0].count, 3);
        assert_eq!(job(3, None)[0].requests.to_string(), "cpu=1000");
    }
}
