//! Reading and comparing raw JSON objects.

use serde_json::{Map, Value};

/// The text at this path of object keys.
pub fn text<'a>(value: &'a Value, path: &[&str]) -> Option<&'a str> {
    at(value, path).and_then(Value::as_str)
}

/// The integer at this path.
pub fn integer(value: &Value, path: &[&str]) -> Option<i64> {
    at(value, path).and_then(Value::as_i64)
}

/// The boolean at this path; false when it is missing.
pub fn flag(value: &Value, path: &[&str]) -> bool {
    at(value, path).and_then(Value::as_bool).unwrap_or(false)
}

/// The value at this path of object keys.
pub fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}

/// The string entries of the object at this path.
pub fn entries<'a>(value: &'a Value, path: &[&str]) -> impl Iterator<Item = (&'a str, &'a str)> {
    at(value, path)
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| value.as_str().map(|value| (key.as_str(), value)))
}

/// The elements of the list at this path.
pub fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    at(value, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The members of an object; none for anything else.
pub fn into_object(value: Option<Value>) -> Map<String, Value> {
    match value {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    }
}

/// The JSON merge patch that turns `old` into `new`; none when they are equal.
///
/// Lists are replaced whole, as merge patches do. Keys that `new` lacks become `null`.
pub fn merge_patch(old: &Value, new: &Value) -> Option<Value> {
    let (Value::Object(old), Value::Object(new)) = (old, new) else {
        return (old != new).then(|| new.clone());
    };
    let mut patch = Map::new();
    for (key, after) in new {
        let change = match old.get(key) {
            Some(before) => merge_patch(before, after),
            None => Some(after.clone()),
        };
        if let Some(change) = change {
            patch.insert(key.clone(), change);
        }
    }
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// Applies a JSON merge patch (RFC 7386).
pub fn apply_merge_patch(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    let mut members = into_object(Some(target.take()));
    for (key, change) in patch {
        if change.is_null() {
            members.remove(key);
        } else {
            apply_merge_patch(members.entry(key.as_str()).or_insert(Value::Null), change);
        }
    }
    *target = Value::Object(members);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_made_from_two_objects_turns_one_into_the_other() {
        let old = json!({"a": 1, "b": {"c": [1, 2], "d": "x"}, "e": true});
        let new = json!({"a": 1, "b": {"c": [1], "d": "x", "f": {"g": 2}}});
        let patch = merge_patch(&old, &new).unwrap();
        assert_eq!(patch, json!({"b": {"c": [1], "f": {"g": 2}}, "e": null}));
        let mut target = old;
        apply_merge_patch(&mut target, &patch);
        assert_eq!(target, new);
        assert_eq!(merge_patch(&new, &new), None);
    }
}
