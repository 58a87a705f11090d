//! Pod templates and LimitRanges.

use std::sync::Arc;

use fairlead_engine::fact::{Container, LimitRange, LimitRangeItem, LimitType, PodTemplate};
use serde_json::Value;

use super::key_of;
use super::read::{Unreadable, list, maybe_text, node_constraints, resources, text};

fn container(json: &Value) -> Result<Container, Unreadable> {
    Ok(Container {
        requests: resources(json.pointer("/resources/requests"))?,
        limits: resources(json.pointer("/resources/limits"))?,
        sidecar: text(json, "/restartPolicy") == "Always",
    })
}

fn containers(items: &[Value]) -> Result<Vec<Container>, Unreadable> {
    items.iter().map(container).collect()
}

/// The part of a pod template (a `PodTemplateSpec`) that matters to admission.
pub(super) fn template(json: &Value) -> Result<PodTemplate, Unreadable> {
    let nothing = Value::Null;
    let spec = json.get("spec").unwrap_or(&nothing);
    let pod = spec.get("resources").map(|_| container(spec)).transpose()?;
    let overhead = spec.get("overhead").map(|overhead| resources(Some(overhead))).transpose()?;
    Ok(PodTemplate {
        containers: containers(list(spec, "/containers"))?,
        init_containers: containers(list(spec, "/initContainers"))?,
        pod: pod.map(|pod| Container { sidecar: false, ..pod }),
        overhead,
        runtime_class: maybe_text(spec, "/runtimeClassName"),
        claims: !list(spec, "/resourceClaims").is_empty(),
        nodes: node_constraints(spec)?,
    })
}

/// A LimitRange; items of other types limit nothing that is decided here.
pub(super) fn limit_range(json: &Value) -> Result<LimitRange, Unreadable> {
    let mut items = Vec::new();
    for item in list(json, "/spec/limits") {
        let kind = match text(item, "/type") {
            "Container" => LimitType::Container,
            "Pod" => LimitType::Pod,
            _ => continue,
        };
        items.push(LimitRangeItem {
            kind,
            max: resources(item.get("max"))?,
            min: resources(item.get("min"))?,
            default: resources(item.get("default"))?,
            default_request: resources(item.get("defaultRequest"))?,
        });
    }
    Ok(LimitRange { key: key_of(json), items })
}

/// The effective request of a running pod, without `pods`.
pub(super) fn running_requests(pod: &Value) -> Result<fairlead_model::Resources, Unreadable> {
    Ok(fairlead_engine::effective_requests(&template(pod)?))
}

/// A pod set's template, shared.
pub(super) fn shared_template(json: &Value) -> Result<Arc<PodTemplate>, Unreadable> {
    template(json).map(Arc::new)
}
