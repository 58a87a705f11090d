//! An object as raw JSON with the few fields that everybody needs.

use std::sync::Arc;

use fairlead_model::{Millis, ObjectKey, Uid};
use serde_json::Value;

use crate::clock;

/// A Kubernetes object: its identity and version, parsed once, and the whole JSON without `managedFields`.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: Uid,
    /// `metadata.resourceVersion`. The API server promises that versions of one kind compare as numbers.
    pub version: u64,
    /// `metadata.deletionTimestamp`.
    pub deleting: Option<Millis>,
    /// The object.
    pub json: Arc<Value>,
}

/// JSON that is not an object of the API server: a field of its metadata is missing or of the wrong type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("metadata.{0} is missing or malformed")]
pub struct Malformed(pub &'static str);

impl Object {
    /// Reads the metadata and drops `managedFields`, which can be larger than the rest.
    pub fn from_json(mut json: Value) -> Result<Self, Malformed> {
        let metadata =
            json.get_mut("metadata").and_then(Value::as_object_mut).ok_or(Malformed("metadata"))?;
        metadata.remove("managedFields");
        let text = |field: &'static str| metadata.get(field).and_then(Value::as_str).ok_or(Malformed(field));
        let deleting = match metadata.get("deletionTimestamp").and_then(Value::as_str) {
            None => None,
            Some(time) => Some(clock::parse_time(time).ok_or(Malformed("deletionTimestamp"))?),
        };
        let key = ObjectKey::new(text("namespace").unwrap_or_default(), text("name")?);
        let uid = Uid::new(text("uid")?);
        let version =
            text("resourceVersion")?.parse().map_err(|_not_a_number| Malformed("resourceVersion"))?;
        Ok(Self { key, uid, version, deleting, json: Arc::new(json) })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_is_read_and_managed_fields_are_dropped() {
        let object = Object::from_json(json!({
            "metadata": {"namespace": "a", "name": "b", "uid": "u", "resourceVersion": "17",
                         "deletionTimestamp": "2023-11-14T22:13:20Z", "managedFields": [{"manager": "x"}]},
            "spec": {"newer": {"than": "us"}},
        }))
        .unwrap();
        assert_eq!(object.key, ObjectKey::new("a", "b"));
        assert_eq!((object.uid.as_str(), object.version), ("u", 17));
        assert_eq!(object.deleting, Some(Millis(1_700_000_000_000)));
        assert_eq!(object.json["spec"]["newer"]["than"], "us");
        assert!(object.json["metadata"].get("managedFields").is_none());
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(Object::from_json(json!({})).unwrap_err(), Malformed("metadata"));
        let no_uid = json!({"metadata": {"name": "b", "resourceVersion": "1"}});
        assert_eq!(Object::from_json(no_uid).unwrap_err(), Malformed("uid"));
        let odd = json!({"metadata": {"name": "b", "uid": "u", "resourceVersion": "new"}});
        assert_eq!(Object::from_json(odd).unwrap_err(), Malformed("resourceVersion"));
    }
}
