//! AdmissionChecks with their parameters resolved.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_engine::fact::{AdmissionCheck, CheckKind, DispatchPolicy};
use fairlead_model::LabelSelector;
use serde_json::Value;

use super::read::{list, selector, text, texts};

/// Objects by name.
type ByName = BTreeMap<Arc<str>, Arc<Value>>;

/// A check as the engine sees it. One of ours whose parameters are named but missing or unreadable is not usable.
pub(super) fn check(json: &Value, policies: &ByName, multikueue: &ByName) -> AdmissionCheck {
    let name = Arc::from(text(json, "/metadata/name"));
    if !crate::brain::is_dispatch_controller(text(json, "/spec/controllerName")) {
        return AdmissionCheck { name, kind: CheckKind::Other, usable: is_active(json) };
    }
    let parameters = (text(json, "/spec/parameters/kind"), text(json, "/spec/parameters/name"));
    let policy = match parameters {
        ("", _) => Some(DispatchPolicy::default()),
        ("PlacementPolicy", name) => policies.get(name).and_then(|policy| placement_policy(policy)),
        ("MultiKueueConfig", name) => multikueue.get(name).map(|config| DispatchPolicy {
            names: Some(texts(list(config, "/spec/clusters"))),
            ..DispatchPolicy::default()
        }),
        _ => None,
    };
    AdmissionCheck { name, usable: policy.is_some(), kind: CheckKind::Dispatch(policy.unwrap_or_default()) }
}

/// Another controller's check counts as usable unless that controller says otherwise.
fn is_active(json: &Value) -> bool {
    let conditions = list(json, "/status/conditions");
    let active = conditions.iter().find(|condition| text(condition, "/type") == "Active");
    active.is_none_or(|condition| text(condition, "/status") != "False")
}

fn placement_policy(json: &Value) -> Option<DispatchPolicy> {
    let required = json.pointer("/spec/clusterSelector/required");
    let required = required.map_or_else(|| Ok(LabelSelector::default()), selector).ok()?;
    let preferred =
        list(json, "/spec/clusterSelector/preferred").first().and_then(|first| first.get("selector"));
    let preferred = preferred.map(selector).transpose().ok()?;
    Some(DispatchPolicy { required, preferred, names: None })
}
