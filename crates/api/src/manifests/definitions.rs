//! The kinds, each with its schema and the rules that look at the whole object.

use kube::CustomResourceExt;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::tidy;
use crate::labels;

/// What is known of one kind before it becomes a definition.
pub(super) struct Definition {
    /// The derived definition: names, scope, columns; without a schema.
    pub(super) derived: Value,
    /// Where the fields are.
    pub(super) fields: Fields,
    /// The schema of the status, if there is one.
    pub(super) status: Option<Value>,
    /// Rules over the whole object.
    pub(super) rules: Vec<Value>,
}

/// Where a kind keeps its fields.
pub(super) enum Fields {
    /// Below `spec`.
    Spec(Value),
    /// At the root, as in WorkloadPriorityClass.
    Root(Value),
}

impl Definition {
    /// A kind with its fields below `spec` and no status.
    pub(super) fn of<Kind: CustomResourceExt, Spec: JsonSchema>() -> Self {
        Self {
            derived: serde_json::to_value(Kind::crd()).unwrap_or_default(),
            fields: Fields::Spec(schema_of::<Spec>()),
            status: None,
            rules: Vec::new(),
        }
    }

    /// The same with the fields at the root.
    pub(super) fn without_spec(mut self) -> Self {
        self.fields = match self.fields {
            Fields::Spec(schema) | Fields::Root(schema) => Fields::Root(schema),
        };
        self
    }

    /// The same with a status.
    pub(super) fn with_status<Status: JsonSchema>(mut self) -> Self {
        self.status = Some(schema_of::<Status>());
        self
    }

    /// The same with rules over the whole object.
    pub(super) fn with_rules(mut self, rules: Vec<Value>) -> Self {
        self.rules = rules;
        self
    }

    /// The schema of the whole object.
    pub(super) fn schema(&self) -> Value {
        let (Fields::Spec(fields) | Fields::Root(fields)) = &self.fields;
        let mut root = json!({
            "type": "object",
            "description": fields.get("description").cloned().unwrap_or_default(),
            "properties": {
                "apiVersion": { "type": "string", "description": "The group and version of this object." },
                "kind": { "type": "string", "description": "The kind of this object." },
                // The API server refuses anything but the type here, even a description.
                "metadata": { "type": "object" },
            },
        });
        match &self.fields {
            Fields::Spec(spec) => {
                root["properties"]["spec"] = spec_field(spec);
                root["required"] = json!(["spec"]);
            }
            Fields::Root(fields) => add_at_root(&mut root, fields),
        }
        if let Some(status) = &self.status {
            root["properties"]["status"] = status.clone();
        }
        if !self.rules.is_empty() {
            root["x-kubernetes-validations"] = Value::Array(self.rules.clone());
        }
        root
    }
}

/// The property `spec`. Where nothing in it is required it defaults to `{}`, because people leave it out: the sample
/// ResourceFlavor that Kueue's users start from has none.
fn spec_field(schema: &Value) -> Value {
    let mut spec = schema.clone();
    if spec.get("required").is_none() {
        spec["default"] = json!({});
    }
    spec["description"] = json!("What is wanted.");
    spec
}

fn add_at_root(root: &mut Value, fields: &Value) {
    if let Some(Value::Object(properties)) = fields.get("properties") {
        for (name, property) in properties {
            root["properties"][name] = property.clone();
        }
    }
    if let Some(required) = fields.get("required") {
        root["required"] = required.clone();
    }
}

/// The structural schema of a type.
fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
        settings.transforms.clear();
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    tidy::structural(&mut schema);
    schema
}

/// Labels and annotations of every definition.
pub(super) fn metadata(derived: &Value) -> Value {
    json!({
        "name": derived.pointer("/metadata/name").cloned().unwrap_or_default(),
        "annotations": { "helm.sh/resource-policy": "keep" },
        "labels": {
            "app.kubernetes.io/part-of": "fairlead",
            labels::SCHEMA: crate::SCHEMA_VERSION,
        },
    })
}
