//! The floor and the boot counter, kept in a ConfigMap.

use std::sync::Arc;

use fairlead_api::labels::FieldManager;
use fairlead_model::{Floor, Incarnation, Nonce, ObjectKey, Term};
use fairlead_runtime::Resource;
use fairlead_runtime::store::{Call, Op, Options, Outcome, Store};
use serde_json::{Value, json};

/// The ConfigMap's name.
const NAME: &str = "fairlead-floor";
const CONFIG_MAPS: Resource = Resource::new("", "v1", "configmaps", true);
/// How often the boot counter is tried to be raised when somebody else writes at the same time.
const ATTEMPTS: u32 = 5;

/// Why the floor cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum FloorError {
    /// The API server did not do it.
    #[error("ConfigMap {key}: {why}")]
    Store {
        /// Which object.
        key: ObjectKey,
        /// What the API server said.
        why: String,
    },
    /// It holds something that is no floor. Obeying below what was obeyed before must not happen, so a person has
    /// to look at it.
    #[error(
        "ConfigMap {key}: {field} is {value:?}, which is no number; repair it, or delete it only if no hub before this one may still be running"
    )]
    Malformed {
        /// Which object.
        key: ObjectKey,
        /// Which key of its data.
        field: &'static str,
        /// What is there.
        value: String,
    },
}

/// What was kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    /// The floor.
    pub(super) floor: Floor,
    /// The number of this start.
    pub(super) boot: u64,
}

/// Keeps the floor.
#[derive(Debug)]
pub(super) struct Floors {
    store: Store,
    key: ObjectKey,
}

impl Floors {
    /// Counts this start, durably, and reads the floor.
    pub(super) async fn boot(store: Store, namespace: &str) -> Result<(Self, Kept), FloorError> {
        let floors = Self { store, key: ObjectKey::new(namespace, NAME) };
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let (kept, op) = floors.next_boot().await?;
            let outcome = floors.execute(&op).await;
            if matches!(outcome, Outcome::Done(_)) {
                return Ok((floors, kept));
            }
            last = Some(outcome);
        }
        Err(floors.failed(last.as_ref().map_or_else(String::new, describe)))
    }

    /// What is kept after this start is counted, and the write that counts it.
    async fn next_boot(&self) -> Result<(Kept, Op), FloorError> {
        match self.execute(&Op::Get).await {
            Outcome::Done(object) => {
                let mut kept = self.read(&object.json)?;
                kept.boot = kept.boot.saturating_add(1);
                let version = object.version.to_string();
                let metadata = json!({"resourceVersion": version});
                Ok((kept.clone(), Op::Patch(json!({"metadata": metadata, "data": data(&kept)}))))
            }
            Outcome::NotFound => {
                let kept = Kept { floor: Floor::default(), boot: 1 };
                let metadata = json!({"namespace": &*self.key.namespace, "name": NAME,
                                      "labels": {"app.kubernetes.io/part-of": "fairlead"}});
                let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
                                    "data": data(&kept)});
                Ok((kept, Op::Create(object)))
            }
            other => Err(self.failed(describe(&other))),
        }
    }

    /// Makes a floor durable.
    pub(super) async fn store(&self, floor: &Floor) -> Result<(), FloorError> {
        match self.execute(&Op::Patch(json!({"data": floor_data(floor)}))).await {
            Outcome::Done(_) => Ok(()),
            other => Err(self.failed(describe(&other))),
        }
    }

    async fn execute(&self, op: &Op) -> Outcome {
        let options = Options { field_manager: Some(FieldManager::Agent.as_str()), ..Options::default() };
        let call = Call { resource: &CONFIG_MAPS, key: &self.key, op, options: &options };
        self.store.execute(&call).await
    }

    fn failed(&self, why: String) -> FloorError {
        FloorError::Store { key: self.key.clone(), why }
    }

    fn read(&self, json: &Value) -> Result<Kept, FloorError> {
        let text = |field: &'static str| json.pointer("/data")?.get(field)?.as_str();
        let number = |field: &'static str| match text(field) {
            None => Ok(0),
            Some(value) => value.parse::<u64>().map_err(|_not_a_number| FloorError::Malformed {
                key: self.key.clone(),
                field,
                value: value.to_owned(),
            }),
        };
        Ok(Kept {
            floor: Floor {
                incarnation: Incarnation(number("incarnation")?),
                term: Term(number("term")?),
                nonce: Nonce(Arc::from(text("nonce").unwrap_or_default())),
            },
            boot: number("boot")?,
        })
    }
}

fn floor_data(floor: &Floor) -> Value {
    json!({"incarnation": floor.incarnation.0.to_string(), "term": floor.term.0.to_string(),
           "nonce": &*floor.nonce.0})
}

fn data(kept: &Kept) -> Value {
    let mut data = floor_data(&kept.floor);
    data["boot"] = json!(kept.boot.to_string());
    data
}

/// What an outcome that was not hoped for says.
pub(super) fn describe(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done(object) => format!("version {}", object.version),
        Outcome::Conflict => "it has changed meanwhile".to_owned(),
        Outcome::AlreadyExists => "it exists already".to_owned(),
        Outcome::NotFound => "it or its namespace does not exist".to_owned(),
        Outcome::Refused { reason, message, .. } => format!("{reason}: {message}"),
        Outcome::Unknown(why) => format!("no answer: {why}"),
    }
}
