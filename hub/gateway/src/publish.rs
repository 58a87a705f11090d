//! Tells `kubectl fairlead join` where the gateway is and what to pin.

use fairlead_model::ObjectKey;
use fairlead_pki::CaPin;
use fairlead_runtime::store::{Op, Outcome, Store};
use serde_json::json;

use crate::objects::{CONFIG_MAPS, describe, execute};

/// The ConfigMap, in the hub's namespace.
pub(crate) const GATEWAY_CONFIG_MAP: &str = "fairlead-gateway";

/// The ConfigMap could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the ConfigMap {GATEWAY_CONFIG_MAP}: {0}")]
pub struct PublishError(String);

/// Writes address, pin and version into the ConfigMap. Public values all of them.
pub async fn publish(store: &Store, namespace: &str, address: &str, pin: &CaPin) -> Result<(), PublishError> {
    let key = ObjectKey::new(namespace, GATEWAY_CONFIG_MAP);
    let data = json!({"address": address, "caPin": pin.to_string(), "version": env!("CARGO_PKG_VERSION")});
    let create = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": namespace, "name": GATEWAY_CONFIG_MAP}, "data": data,
    });
    let outcome = match execute(store, &CONFIG_MAPS, &key, Op::Create(create)).await {
        Outcome::AlreadyExists => execute(store, &CONFIG_MAPS, &key, Op::Patch(json!({"data": data}))).await,
        other => other,
    };
    match outcome {
        Outcome::Done(_) => Ok(()),
        other => Err(PublishError(describe(other))),
    }
}
