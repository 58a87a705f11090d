//! Tells the API server which CA to trust here: the `caBundle` of the APIService that the chart installs.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairlead_model::ObjectKey;
use fairlead_runtime::store::{Call, Op, Options, Outcome, Store};
use fairlead_runtime::{Resource, TaskError};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::API_SERVICE;

const API_SERVICES: Resource = Resource::new("apiregistration.k8s.io", "v1", "apiservices", false);
/// How often it is looked at: somebody may apply the chart again.
const EVERY: Duration = Duration::from_secs(60);
/// The same while there is none, or it could not be written.
const SOON: Duration = Duration::from_secs(5);

/// Keeps the bundle at this CA (PEM) until cancelled. An installation without the APIService is left alone.
///
/// # Errors
///
/// None: what cannot be written is said in the log, once.
pub async fn keep(store: Store, ca: String, cancel: CancellationToken) -> Result<(), TaskError> {
    let bundle = STANDARD.encode(ca);
    let mut said = String::new();
    loop {
        let pause = match look(&store, &bundle).await {
            Ok(Some(true)) => {
                info!("told the API server whom to trust as {API_SERVICE}");
                EVERY
            }
            Ok(Some(false)) => EVERY,
            Ok(None) => SOON,
            Err(why) => {
                if why != said {
                    warn!("the APIService {API_SERVICE} cannot be kept: {why}");
                }
                said = why;
                SOON
            }
        };
        tokio::select! {
            () = cancel.cancelled() => return Ok(()),
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Whether the bundle had to be written; none when there is no APIService.
async fn look(store: &Store, bundle: &str) -> Result<Option<bool>, String> {
    match execute(store, Op::Get).await {
        Outcome::Done(found) => match patch(&found.json, bundle) {
            None => Ok(Some(false)),
            Some(patch) => match execute(store, Op::Patch(patch)).await {
                Outcome::Done(_) => Ok(Some(true)),
                other => Err(format!("{other:?}")),
            },
        },
        Outcome::NotFound => Ok(None),
        other => Err(format!("{other:?}")),
    }
}

/// What has to be written, if anything.
fn patch(found: &Value, bundle: &str) -> Option<Value> {
    let spec = found.get("spec")?;
    let same = spec.get("caBundle").and_then(Value::as_str) == Some(bundle);
    let insecure = spec.get("insecureSkipTLSVerify").and_then(Value::as_bool).unwrap_or(false);
    // Whoever wants no verification says so there; a bundle beside it would be refused.
    (!same && !insecure).then(|| json!({"spec": {"caBundle": bundle}}))
}

async fn execute(store: &Store, op: Op) -> Outcome {
    let key = ObjectKey::new("", API_SERVICE);
    let options = Options { field_manager: Some("fairlead-serving"), ..Options::default() };
    store.execute(&Call { resource: &API_SERVICES, key: &key, op: &op, options: &options }).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundle_is_written_only_where_it_differs() {
        let with = |spec: Value| patch(&json!({"spec": spec}), "abc");
        assert_eq!(with(json!({})), Some(json!({"spec": {"caBundle": "abc"}})));
        assert_eq!(with(json!({"caBundle": "old"})), Some(json!({"spec": {"caBundle": "abc"}})));
        assert_eq!(with(json!({"caBundle": "abc"})), None);
        assert_eq!(with(json!({"insecureSkipTLSVerify": true})), None);
    }
}
