//! From a JSON schema, as derived, to the structural schema that Kubernetes asks for.
//!
//! A derive writes `Option<T>` as "T or null" and a documented enum as "one of these constants". Kubernetes wants
//! plain types: an optional field is simply not required, and an enum is a list. Nothing here is nullable, so a
//! `null` in a patch removes a field and a `null` in an object is refused.

use serde_json::{Map, Value, json};

/// Makes a derived schema structural, all the way down.
pub(super) fn structural(schema: &mut Value) {
    let Some(node) = schema.as_object_mut() else {
        // `true` accepts anything. No field of ours is derived that way; kept for the sake of the type.
        *schema = json!({ "x-kubernetes-preserve-unknown-fields": true });
        return;
    };
    for key in ["$schema", "title", "writeOnly", "readOnly"] {
        node.remove(key);
    }
    drop_null(node);
    list_constants(node);
    fix_format(node);
    for key in ["items", "additionalProperties"] {
        if let Some(child) = node.get_mut(key) {
            structural(child);
        }
    }
    if let Some(Value::Object(properties)) = node.get_mut("properties") {
        properties.values_mut().for_each(structural);
    }
}

/// Removes "or null": from a list of types, and from a choice of two of which one is null.
fn drop_null(node: &mut Map<String, Value>) {
    if node.get("default") == Some(&Value::Null) {
        node.remove("default");
    }
    if let Some(Value::Array(types)) = node.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            node.insert("type".to_owned(), only);
        }
    }
    if node.contains_key("x-kubernetes-int-or-string") {
        return;
    }
    let Some(Value::Array(choices)) = node.get_mut("anyOf") else {
        return;
    };
    choices.retain(|choice| choice.get("type") != Some(&json!("null")));
    if let [Value::Object(only)] = choices.as_slice() {
        let only = only.clone();
        node.remove("anyOf");
        merge(node, only);
    }
}

/// Adds what `node` does not say itself. The description of a field outranks that of its type.
fn merge(node: &mut Map<String, Value>, inner: Map<String, Value>) {
    for (key, value) in inner {
        node.entry(key).or_insert(value);
    }
}

/// Turns a choice of described constants into an enum, and keeps what was said of each.
fn list_constants(node: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = node.get("oneOf") else {
        return;
    };
    let mut names = Vec::new();
    let mut lines = Vec::new();
    for choice in choices {
        let Some(name) = choice.get("const").and_then(Value::as_str) else {
            return;
        };
        let text = choice.get("description").and_then(Value::as_str).unwrap_or_default();
        lines.push(format!("- `{name}`: {text}"));
        names.push(json!(name));
    }
    let said = node.get("description").and_then(Value::as_str).unwrap_or_default();
    let description = format!("{said}\n{}", lines.join("\n"));
    node.remove("oneOf");
    node.insert("type".to_owned(), json!("string"));
    node.insert("enum".to_owned(), Value::Array(names));
    node.insert("description".to_owned(), json!(description));
}

/// Kubernetes knows signed integers only.
fn fix_format(node: &mut Map<String, Value>) {
    match node.get("format").and_then(Value::as_str) {
        Some("uint8" | "uint16" | "uint32") => drop(node.insert("format".to_owned(), json!("int32"))),
        Some("uint64") => drop(node.insert("format".to_owned(), json!("int64"))),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tidied(mut schema: Value) -> Value {
        structural(&mut schema);
        schema
    }

    #[test]
    fn optional_fields_are_plain_and_keep_their_own_description() {
        let inner = json!({ "type": "object", "description": "the type", "properties": {} });
        let field = json!({ "anyOf": [inner, { "type": "null" }], "description": "the field" });
        assert_eq!(tidied(field), json!({ "type": "object", "description": "the field", "properties": {} }));
        assert_eq!(tidied(json!({ "type": ["string", "null"] })), json!({ "type": "string" }));
    }

    #[test]
    fn constants_become_an_enum_that_says_what_each_means() {
        let choice = json!({ "description": "Which.", "oneOf": [
            { "type": "string", "const": "A", "description": "First." },
            { "type": "string", "const": "B", "description": "Second." },
        ]});
        assert_eq!(
            tidied(choice),
            json!({ "type": "string", "enum": ["A", "B"], "description": "Which.\n- `A`: First.\n- `B`: Second." })
        );
    }

    #[test]
    fn optional_quantities_keep_their_choice_of_types() {
        let quantity = json!({
            "anyOf": [{ "type": "integer" }, { "type": "string" }], "x-kubernetes-int-or-string": true
        });
        let optional = json!({ "anyOf": [quantity, { "type": "null" }], "description": "How much." });
        assert_eq!(
            tidied(optional),
            json!({
                "anyOf": [{ "type": "integer" }, { "type": "string" }],
                "description": "How much.",
                "x-kubernetes-int-or-string": true
            })
        );
    }
}
