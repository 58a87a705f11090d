//! What must hold of the API server before the hub acts on it.

use fairlead_api::{SCHEMA_VERSION, labels};
use fairlead_model::ObjectKey;
use fairlead_runtime::Resource;
use fairlead_runtime::store::{Call, Op, Options, Outcome, Store};
use kube::Client;
use serde_json::Value;

use super::kinds::resource;
use crate::ports::Kind;

const DEFINITIONS: Resource = Resource::new("apiextensions.k8s.io", "v1", "customresourcedefinitions", false);

/// Why the hub refuses to run.
#[derive(Debug, thiserror::Error)]
pub enum PreflightError {
    /// A custom resource definition is missing.
    #[error("the definition of {0} is not installed; apply the CRDs of the chart fairlead-hub first")]
    Missing(String),
    /// It is not ours, or of another version: it might prune fields that a promise rests on.
    #[error(
        "the definition of {name} has the schema {found:?}, this hub needs {SCHEMA_VERSION:?}; apply the CRDs of \
         the chart fairlead-hub of this version"
    )]
    Schema {
        /// The definition.
        name: String,
        /// What its label says; empty when it has none.
        found: String,
    },
    /// The API server did not say.
    #[error("cannot read the definition of {name}: {why}")]
    Unreadable {
        /// The definition.
        name: String,
        /// Why.
        why: String,
    },
}

/// Checks that every definition is installed with this build's schema.
pub async fn preflight(client: Client) -> Result<(), PreflightError> {
    let store = Store::new(client);
    let ours = Kind::WATCHED.into_iter().map(|kind| resource(kind).to_string());
    let names = ours.chain(["hubstates.fairlead.dev".to_owned()]).filter(|name| is_ours(name));
    for name in names {
        let (key, options) = (ObjectKey::new("", name.as_str()), Options::default());
        let call = Call { resource: &DEFINITIONS, key: &key, op: &Op::Get, options: &options };
        check(name, store.execute(&call).await)?;
    }
    Ok(())
}

fn is_ours(name: &str) -> bool {
    name.ends_with(".kueue.x-k8s.io") || name.ends_with(".fairlead.dev")
}

fn check(name: String, outcome: Outcome) -> Result<(), PreflightError> {
    match outcome {
        Outcome::Done(definition) => {
            let found = definition
                .json
                .pointer("/metadata/labels")
                .and_then(|all| all.get(labels::SCHEMA))
                .and_then(Value::as_str)
                .unwrap_or_default();
            if found == SCHEMA_VERSION {
                return Ok(());
            }
            Err(PreflightError::Schema { name, found: found.to_owned() })
        }
        Outcome::NotFound => Err(PreflightError::Missing(name)),
        Outcome::Refused { message, .. } | Outcome::Unknown(message) => {
            Err(PreflightError::Unreadable { name, why: message })
        }
        Outcome::Conflict | Outcome::AlreadyExists => {
            Err(PreflightError::Unreadable { name, why: "an answer that a read cannot have".to_owned() })
        }
    }
}

#[cfg(test)]
mod tests {
    use fairlead_runtime::Object;
    use serde_json::json;

    use super::*;

    fn definition(labels: &Value) -> Outcome {
        let json = json!({"metadata": {"name": "x.fairlead.dev", "uid": "u", "resourceVersion": "1", "labels": labels}});
        Outcome::Done(Object::from_json(json).unwrap())
    }

    #[test]
    fn only_our_schema_of_this_version_will_do() {
        let name = || "x.fairlead.dev".to_owned();
        assert!(check(name(), definition(&json!({labels::SCHEMA: SCHEMA_VERSION}))).is_ok());
        for other in [json!({}), json!({labels::SCHEMA: "0"}), Value::Null] {
            assert!(
                matches!(check(name(), definition(&other)), Err(PreflightError::Schema { .. })),
                "{other}"
            );
        }
        assert!(matches!(check(name(), Outcome::NotFound), Err(PreflightError::Missing(_))));
    }

    #[test]
    fn built_in_kinds_have_no_definition() {
        assert!(is_ours("workloads.kueue.x-k8s.io"));
        assert!(!is_ours("jobs.batch"));
        assert!(!is_ours("namespaces"));
    }
}
