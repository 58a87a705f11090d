//! What admission checks add to the pods of a job when it is started.

use std::collections::BTreeMap;
use std::fmt;

use fairlead_api::kueue::PodSetUpdate;
use serde_json::{Map, Value, json};

use super::json;

/// What is added to a pod template.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Additions {
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    node_selector: BTreeMap<String, String>,
    tolerations: Vec<Value>,
}

/// Two values for one key. It is for good: the job cannot be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Where: `labels`, `annotations` or `nodeSelector`.
    pub field: &'static str,
    /// The key.
    pub key: String,
    /// The two values.
    pub values: (String, String),
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (one, other) = &self.values;
        write!(f, "{} {}: {one:?} and {other:?} contradict each other", self.field, self.key)
    }
}

impl std::error::Error for Conflict {}

/// The sum of the updates of one pod set, beside its template and its flavors.
///
/// # Errors
///
/// [`Conflict`] when a key would get two values.
pub fn merge<'a>(
    template: &Value,
    flavors: &[Value],
    updates: impl Iterator<Item = &'a PodSetUpdate>,
) -> Result<Additions, Conflict> {
    let mut sum = Additions::default();
    let own = |path: &[&str]| -> Vec<(String, String)> {
        json::entries(template, path).map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    };
    let (labels, annotations) = (own(&["metadata", "labels"]), own(&["metadata", "annotations"]));
    let mut selector = own(&["spec", "nodeSelector"]);
    for flavor in flavors {
        let entries = json::entries(flavor, &["nodeLabels"]);
        selector.extend(entries.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }
    for update in updates {
        add("labels", &mut sum.labels, &update.labels, &labels)?;
        add("annotations", &mut sum.annotations, &update.annotations, &annotations)?;
        add("nodeSelector", &mut sum.node_selector, &update.node_selector, &selector)?;
        for toleration in &update.tolerations {
            let toleration = serde_json::to_value(toleration).unwrap_or_default();
            if !sum.tolerations.contains(&toleration) {
                sum.tolerations.push(toleration);
            }
        }
    }
    Ok(sum)
}

fn add(
    field: &'static str,
    sum: &mut BTreeMap<String, String>,
    more: &BTreeMap<String, String>,
    there: &[(String, String)],
) -> Result<(), Conflict> {
    for (key, value) in more {
        let known = there.iter().find(|(other, _)| other == key).map(|(_, known)| known);
        let other = sum.get(key).or(known).filter(|other| *other != value);
        if let Some(other) = other {
            return Err(Conflict { field, key: key.clone(), values: (other.clone(), value.clone()) });
        }
        sum.insert(key.clone(), value.clone());
    }
    Ok(())
}

impl Additions {
    /// Whether nothing is added.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Node selection and tolerations as those of a flavor, which are injected alike.
    pub fn as_flavor(&self) -> Value {
        json!({"nodeLabels": self.node_selector, "tolerations": self.tolerations})
    }

    /// Adds labels and annotations to the `metadata` of a pod template, or of a patch of one.
    pub fn stamp(&self, template: &mut Map<String, Value>) {
        let metadata = template.entry("metadata").or_insert_with(|| json!({}));
        for (field, entries) in [("labels", &self.labels), ("annotations", &self.annotations)] {
            if entries.is_empty() {
                continue;
            }
            let Some(metadata) = metadata.as_object_mut() else {
                return;
            };
            let map = metadata.entry(field).or_insert_with(|| json!({}));
            if let Some(map) = map.as_object_mut() {
                map.extend(entries.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str()))));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(fields: &Value) -> PodSetUpdate {
        let mut json = fields.clone();
        json["name"] = json!("main");
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a5_updates_add_up_and_the_same_value_twice_is_no_conflict() {
        let template =
            json!({"metadata": {"labels": {"app": "x"}}, "spec": {"nodeSelector": {"disk": "ssd"}}});
        let one = update(&json!({"labels": {"a": "1"}, "nodeSelector": {"pool": "p", "disk": "ssd"}}));
        let two = update(&json!({"labels": {"a": "1"}, "annotations": {"b": "2"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}]}));
        let sum = merge(&template, &[], [&one, &two].into_iter()).unwrap();
        assert_eq!(sum.as_flavor()["nodeLabels"], json!({"pool": "p", "disk": "ssd"}));
        assert_eq!(sum.as_flavor()["tolerations"][0]["key"], "gpu");
        let mut patch = Map::new();
        sum.stamp(&mut patch);
        assert_eq!(patch["metadata"], json!({"labels": {"a": "1"}, "annotations": {"b": "2"}}));
    }

    #[test]
    fn a5_two_values_for_one_key_are_a_conflict_wherever_they_come_from() {
        let template =
            json!({"metadata": {"labels": {"app": "x"}}, "spec": {"nodeSelector": {"disk": "ssd"}}});
        let flavor = json!({"nodeLabels": {"zone": "a"}});
        let conflicts = [
            json!({"labels": {"app": "y"}}),
            json!({"nodeSelector": {"disk": "hdd"}}),
            json!({"nodeSelector": {"zone": "b"}}),
        ];
        for fields in conflicts {
            let update = update(&fields);
            let found = merge(&template, std::slice::from_ref(&flavor), [&update].into_iter());
            assert!(found.is_err(), "{fields}");
        }
        let (one, two) =
            (update(&json!({"annotations": {"k": "1"}})), update(&json!({"annotations": {"k": "2"}})));
        let conflict = merge(&template, &[], [&one, &two].into_iter()).unwrap_err();
        assert_eq!(conflict.to_string(), "annotations k: \"1\" and \"2\" contradict each other");
    }
}
