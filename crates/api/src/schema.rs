//! Schemas that more than one kind uses and that a derive cannot express.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// A label key, which is also the form of a resource's name.
pub(crate) const LABEL_KEY: &str = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?\
                                    [A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$";
/// A label value; it may be empty.
pub(crate) const LABEL_VALUE: &str = "^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$";
/// The name of an object.
pub(crate) const OBJECT_NAME: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

/// `status.conditions`: a list keyed by `type`, at most 16.
pub(crate) fn conditions(generator: &mut SchemaGenerator) -> Schema {
    let time = generator.subschema_for::<Time>();
    json_schema!({
        "type": "array",
        "maxItems": 16,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": {
                    "type": "string",
                    "maxLength": 316,
                    "description": "What the condition is about, in CamelCase."
                },
                "status": {
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                    "description": "Whether the condition holds."
                },
                "observedGeneration": {
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                    "description": "The metadata.generation that the condition was set from. When it is lower than \
                                    the object's, the condition is out of date."
                },
                "lastTransitionTime": with_description(time, "When the status last changed."),
                "reason": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "description": "A CamelCase token that says why. Scripts may rely on it."
                },
                "message": {
                    "type": "string",
                    "maxLength": 32768,
                    "description": "A sentence for people."
                }
            }
        }
    })
}

/// The rule that a field keeps the value that it was created with.
pub(crate) fn immutable(field: &str) -> Value {
    json!([{ "rule": "self == oldSelf", "message": format!("{field} cannot be changed") }])
}

/// Any JSON object, stored as it is given. The API server does not look inside, so the hub validates it.
pub(crate) fn raw_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// A 64-bit counter. Kubernetes integers are signed, so the upper half of `u64` cannot be stored.
pub(crate) fn counter(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "format": "int64", "minimum": 0 })
}

fn with_description(mut schema: Schema, text: &str) -> Schema {
    schema.insert("description".to_owned(), text.into());
    schema
}
