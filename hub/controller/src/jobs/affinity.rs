//! Node conditions on cluster and cloud: decided on the hub for the chosen cluster, then removed from the copy,
//! because nodes of a spoke do not carry these labels.

use std::collections::BTreeMap;

use fairlead_api::labels::HUB_ONLY_NODE_KEYS;
use serde_json::{Map, Value};

use super::json;

/// The hub-only labels of the chosen cluster's nodes.
pub type PlaceLabels = BTreeMap<&'static str, String>;

/// Whether a node label is evaluated on the hub.
pub fn is_hub_only(key: &str) -> bool {
    HUB_ONLY_NODE_KEYS.contains(&key)
}

/// Removes the hub-only keys from a pod spec's node selector and node affinity, given where its pods go.
///
/// A term of the affinity that the place does not meet is dropped, since it can never hold there. A term that
/// consisted of hub-only conditions alone holds, so it makes the whole requirement true, and that is dropped.
pub fn strip(pod: &mut Map<String, Value>, place: &PlaceLabels) {
    if let Some(selector) = pod.get_mut("nodeSelector").and_then(Value::as_object_mut) {
        selector.retain(|key, _| !is_hub_only(key));
    }
    let Some(affinity) = pod.get_mut("affinity").and_then(|affinity| affinity.get_mut("nodeAffinity")) else {
        return;
    };
    let Some(affinity) = affinity.as_object_mut() else {
        return;
    };
    strip_required(affinity, place);
    strip_preferred(affinity, place);
}

fn strip_required(affinity: &mut Map<String, Value>, place: &PlaceLabels) {
    const FIELD: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    let Some(terms) = affinity.get_mut(FIELD).and_then(|field| field.get_mut("nodeSelectorTerms")) else {
        return;
    };
    let Some(terms) = terms.as_array_mut() else {
        return;
    };
    let before = terms.len();
    let mut always = false;
    terms.retain_mut(|term| match strip_term(term, place) {
        Stripped::Untouched | Stripped::Rest => true,
        Stripped::Never => false,
        Stripped::Always => {
            always = true;
            false
        }
    });
    // With every term dropped as unmeetable the requirement must not silently become "anywhere": an impossible
    // term stays. The engine does not choose such a cluster.
    if always {
        affinity.remove(FIELD);
    } else if terms.is_empty() && before > 0 {
        terms.push(serde_json::json!({"matchExpressions": [
            {"key": HUB_ONLY_NODE_KEYS.first(), "operator": "In", "values": ["none-fits"]}]}));
    }
}

fn strip_preferred(affinity: &mut Map<String, Value>, place: &PlaceLabels) {
    const FIELD: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    let Some(preferences) = affinity.get_mut(FIELD).and_then(Value::as_array_mut) else {
        return;
    };
    preferences.retain_mut(|preference| match preference.get_mut("preference") {
        // What holds on every node of the place, or on none, prefers nothing there.
        Some(term) => matches!(strip_term(term, place), Stripped::Untouched | Stripped::Rest),
        None => true,
    });
    if preferences.is_empty() {
        affinity.remove(FIELD);
    }
}

/// What is left of a term.
enum Stripped {
    /// It had no hub-only condition.
    Untouched,
    /// The place meets its hub-only conditions; others are left.
    Rest,
    /// The place meets all that it asked for.
    Always,
    /// The place does not meet it.
    Never,
}

fn strip_term(term: &mut Value, place: &PlaceLabels) -> Stripped {
    let has_fields = !json::list(term, &["matchFields"]).is_empty();
    let Some(expressions) = term.get_mut("matchExpressions").and_then(Value::as_array_mut) else {
        return Stripped::Untouched;
    };
    let before = expressions.len();
    let key = |expression: &Value| json::text(expression, &["key"]).is_some_and(is_hub_only);
    if expressions.iter().filter(|expression| key(expression)).any(|expression| !holds(expression, place)) {
        return Stripped::Never;
    }
    expressions.retain(|expression| !key(expression));
    match (before == expressions.len(), expressions.is_empty() && !has_fields) {
        (true, _) => Stripped::Untouched,
        (false, true) => Stripped::Always,
        (false, false) => Stripped::Rest,
    }
}

fn holds(expression: &Value, place: &PlaceLabels) -> bool {
    let value = json::text(expression, &["key"]).and_then(|key| place.get(key));
    let listed = value.is_some_and(|value| {
        json::list(expression, &["values"]).iter().any(|listed| listed.as_str() == Some(value.as_str()))
    });
    match json::text(expression, &["operator"]) {
        Some("In") => listed,
        Some("NotIn") => !listed,
        Some("Exists") => value.is_some(),
        Some("DoesNotExist") => value.is_none(),
        // Greater and less compare integers, which neither names nor clouds are.
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stripped(pod: Value) -> Value {
        let place = PlaceLabels::from([
            ("fairlead.dev/cluster", "east".to_owned()),
            ("fairlead.dev/cloud", "aws".to_owned()),
        ]);
        let Value::Object(mut pod) = pod else { panic!("a pod spec") };
        strip(&mut pod, &place);
        Value::Object(pod)
    }

    fn required(terms: &Value) -> Value {
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": terms}}}})
    }

    fn term(key: &str, operator: &str, value: &str) -> Value {
        json!({"key": key, "operator": operator, "values": [value]})
    }

    #[test]
    fn hub_only_selector_keys_go_and_others_stay() {
        let pod = json!({"nodeSelector": {"fairlead.dev/cluster": "east", "disk": "ssd"}});
        assert_eq!(stripped(pod), json!({"nodeSelector": {"disk": "ssd"}}));
    }

    #[test]
    fn a_term_met_by_the_place_alone_lifts_the_requirement() {
        let terms = json!([
            {"matchExpressions": [term("fairlead.dev/cloud", "In", "aws")]},
            {"matchExpressions": [term("disk", "In", "ssd")]},
        ]);
        assert_eq!(stripped(required(&terms)), json!({"affinity": {"nodeAffinity": {}}}));
    }

    #[test]
    fn the_rest_of_a_met_term_stays_and_an_unmet_term_goes() {
        let terms = json!([
            {"matchExpressions": [term("fairlead.dev/cluster", "In", "west"), term("disk", "In", "ssd")]},
            {"matchExpressions": [term("fairlead.dev/cloud", "NotIn", "gcp"), term("gpu", "Exists", "")]},
        ]);
        let left = json!([{"matchExpressions": [term("gpu", "Exists", "")]}]);
        assert_eq!(stripped(required(&terms)), required(&left));
    }

    #[test]
    fn a_requirement_that_cannot_be_met_does_not_become_anywhere() {
        let terms = json!([{"matchExpressions": [term("fairlead.dev/cluster", "In", "west")]}]);
        let left = stripped(required(&terms));
        let required = &left["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        assert_eq!(required["nodeSelectorTerms"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn preferences_that_no_longer_tell_nodes_apart_go() {
        let preferred =
            |key: &str| json!({"weight": 1, "preference": {"matchExpressions": [term(key, "Exists", "")]}});
        let pod = |list: Value| {
            json!({"affinity": {"nodeAffinity":
            {"preferredDuringSchedulingIgnoredDuringExecution": list}}})
        };
        let before = pod(json!([preferred("fairlead.dev/cloud"), preferred("disk")]));
        assert_eq!(stripped(before), pod(json!([preferred("disk")])));
    }
}
