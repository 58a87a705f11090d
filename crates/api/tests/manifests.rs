//! The committed manifests are those that this crate generates, and every field says what it means.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use fairlead_api::manifests;
use serde_json::Value;

fn charts() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../charts")
}

fn definitions() -> Vec<Value> {
    manifests::hub_crds().into_iter().chain(manifests::spoke_crds()).collect()
}

fn name(definition: &Value) -> &str {
    definition.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

/// Set `FAIRLEAD_WRITE_MANIFESTS=1` to write the files instead, as `cargo xtask crds` does.
#[test]
fn the_committed_manifests_are_the_generated_ones() {
    if std::env::var_os("FAIRLEAD_WRITE_MANIFESTS").is_some() {
        manifests::write(&charts()).unwrap();
    }
    let stale: Vec<String> = manifests::stale(&charts()).unwrap().into_iter().map(|file| file.path).collect();
    assert!(stale.is_empty(), "run `cargo xtask crds`; these differ: {stale:#?}");
}

#[test]
fn no_generated_folder_holds_a_file_that_is_not_generated() {
    let generated: BTreeSet<PathBuf> =
        manifests::files().into_iter().map(|file| charts().join(file.path)).collect();
    let folders: BTreeSet<PathBuf> = generated
        .iter()
        .filter_map(|path| path.parent())
        .filter(|folder| folder.ends_with("crds") || folder.ends_with("admission"))
        .map(PathBuf::from)
        .collect();
    for folder in folders {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            assert!(generated.contains(&path), "{} is generated no more; delete it", path.display());
        }
    }
}

#[test]
fn every_generated_file_is_yaml_with_kind_and_name() {
    for file in manifests::files() {
        for document in serde_yaml::Deserializer::from_str(&file.text) {
            let value: Value = serde::Deserialize::deserialize(document).unwrap();
            for path in ["/apiVersion", "/kind", "/metadata/name"] {
                assert!(
                    value.pointer(path).and_then(Value::as_str).is_some_and(|text| !text.is_empty()),
                    "{}: {path}",
                    file.path
                );
            }
        }
    }
}

#[test]
fn every_field_has_a_description() {
    let mut missing = Vec::new();
    for definition in definitions() {
        for version in definition.pointer("/spec/versions").and_then(Value::as_array).unwrap() {
            let schema = version.pointer("/schema/openAPIV3Schema").unwrap();
            assert!(described(schema), "{}", name(&definition));
            walk(name(&definition), schema, &mut |path, schema| {
                // The API server allows no description on the root's metadata.
                if !described(schema)
                    && !path.ends_with("k8s.io.metadata")
                    && !path.ends_with("fairlead.dev.metadata")
                {
                    missing.push(path.to_owned());
                }
            });
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

fn described(schema: &Value) -> bool {
    schema
        .get("description")
        .and_then(Value::as_str)
        .is_some_and(|text| text.ends_with(['.', ':']) || text.contains("- `"))
}

/// Calls `visit` with each property below `schema`.
fn walk(path: &str, schema: &Value, visit: &mut impl FnMut(&str, &Value)) {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        for (key, property) in properties {
            let below = format!("{path}.{key}");
            visit(&below, property);
            walk(&below, property, visit);
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(child) = schema.get(key) {
            walk(&format!("{path}[]"), child, visit);
        }
    }
}

#[test]
fn schemas_use_only_what_a_structural_schema_allows() {
    const FORBIDDEN: [&str; 10] = [
        "$ref",
        "$schema",
        "definitions",
        "$defs",
        "const",
        "nullable",
        "title",
        "oneOf",
        "allOf",
        "examples",
    ];
    fn check(path: &str, value: &Value) {
        if let Some(object) = value.as_object() {
            for (key, child) in object {
                // Below `properties`, keys are names of fields.
                let field = path.ends_with("/properties");
                assert!(field || !FORBIDDEN.contains(&key.as_str()), "{path}/{key}");
                assert!(field || key != "type" || child.is_string(), "{path}/{key}");
                check(&format!("{path}/{key}"), child);
            }
        }
    }
    for definition in definitions() {
        for version in definition.pointer("/spec/versions").and_then(Value::as_array).unwrap() {
            check(name(&definition), version.pointer("/schema/openAPIV3Schema").unwrap());
        }
    }
}

#[test]
fn names_are_unique_and_columns_few() {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for definition in definitions() {
        let spec = definition.get("spec").unwrap();
        let own = spec.get("names").unwrap();
        let short = own.get("shortNames").and_then(Value::as_array).into_iter().flatten();
        for text in short.chain([own.get("plural").unwrap(), own.get("singular").unwrap()]) {
            let text = text.as_str().unwrap().to_owned();
            let other = names.insert(text.clone(), name(&definition).to_owned());
            assert_eq!(other, None, "{text}");
        }
        assert_eq!(own.get("categories"), Some(&serde_json::json!(["fairlead"])), "{}", name(&definition));
        let columns = spec.pointer("/versions/0/additionalPrinterColumns").and_then(Value::as_array).unwrap();
        let shown = columns.iter().filter(|column| column.get("priority").is_none_or(|p| p == 0)).count();
        assert!((1..=6).contains(&shown), "{}: {shown}", name(&definition));
    }
}

#[test]
fn every_definition_is_marked_and_kept_by_helm() {
    for definition in definitions() {
        let at = |path: &str| definition.pointer(path).and_then(Value::as_str);
        assert_eq!(at("/metadata/labels/fairlead.dev~1schema"), Some(fairlead_api::SCHEMA_VERSION));
        assert_eq!(at("/metadata/annotations/helm.sh~1resource-policy"), Some("keep"));
    }
}

#[test]
fn v1beta1_is_served_and_not_stored() {
    for definition in manifests::hub_crds() {
        let versions = definition.pointer("/spec/versions").and_then(Value::as_array).unwrap();
        let stored: Vec<_> = versions.iter().filter(|version| version["storage"] == true).collect();
        assert_eq!(stored.len(), 1, "{}", name(&definition));
        let legacy = versions.iter().find(|version| version["name"] == "v1beta1");
        let has =
            name(&definition).ends_with(".kueue.x-k8s.io") && !name(&definition).starts_with("workloads.");
        assert_eq!(legacy.is_some(), has, "{}", name(&definition));
        if let Some(legacy) = legacy {
            assert_eq!((&legacy["served"], &legacy["storage"]), (&true.into(), &false.into()));
        }
    }
}
