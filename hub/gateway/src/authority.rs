//! The hub's CA in its Secret, and the gateway's own certificate.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairlead_model::ObjectKey;
use fairlead_pki::tls::CertificateSlot;
use fairlead_pki::{Ca, PkiError, UnixTime};
use fairlead_runtime::store::{Op, Outcome, Store};
use fairlead_runtime::{Object, TaskError, clock};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::objects::{SECRETS, describe, execute};

/// The Secret that holds the CA, in the hub's namespace.
pub const CA_SECRET: &str = "fairlead-ca";
/// How long the CA lives. There is no exchange of CAs yet, so it must outlive the installation.
const CA_LIFE: Duration = Duration::from_hours(10 * 365 * 24);
/// How long the gateway's own certificate lives; it is exchanged when a third of that is left.
const SERVER_LIFE: Duration = Duration::from_hours(30 * 24);

/// Why there is no CA to work with.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The Secret cannot be read or created.
    #[error("cannot read or create the CA's Secret: {0}")]
    Secret(String),
    /// The Secret's content is not a CA.
    #[error("the CA's Secret does not hold one: {0}")]
    Content(String),
    /// A key or certificate could not be made.
    #[error(transparent)]
    Pki(#[from] PkiError),
}

/// The wall clock as certificates count it.
pub fn unix_now() -> UnixTime {
    let seconds = u64::try_from(clock::now().wall.0 / 1000).unwrap_or(0);
    UnixTime::since_unix_epoch(Duration::from_secs(seconds))
}

/// Reads the CA, or makes it when there is none. Of several that make it at once one wins, by create-only, and
/// all use that one's.
pub async fn load_or_create(store: &Store, namespace: &str) -> Result<Ca, AuthorityError> {
    load_or_create_at(store, &ObjectKey::new(namespace, CA_SECRET), "Fairlead hub CA").await
}

/// The same for another CA, in the Secret `key`.
pub async fn load_or_create_at(store: &Store, key: &ObjectKey, name: &str) -> Result<Ca, AuthorityError> {
    match execute(store, &SECRETS, key, Op::Get).await {
        Outcome::Done(secret) => return read(&secret),
        Outcome::NotFound => {}
        other => return Err(AuthorityError::Secret(describe(other))),
    }
    let ca = Ca::generate(name, unix_now(), CA_LIFE)?;
    match execute(store, &SECRETS, key, Op::Create(secret(key, &ca))).await {
        Outcome::Done(_) => {
            info!(secret = %key, pin = %ca.pin(), "made a new CA");
            Ok(ca)
        }
        // Another process was quicker, or our own create went through unanswered: either way it is there now.
        Outcome::AlreadyExists | Outcome::Unknown(_) => match execute(store, &SECRETS, key, Op::Get).await {
            Outcome::Done(secret) => read(&secret),
            other => Err(AuthorityError::Secret(describe(other))),
        },
        other => Err(AuthorityError::Secret(describe(other))),
    }
}

fn secret(key: &ObjectKey, ca: &Ca) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"namespace": &*key.namespace, "name": &*key.name},
        "data": {
            "ca.crt": STANDARD.encode(ca.certificate_pem()),
            "ca.key": STANDARD.encode(ca.key_pem()),
        },
    })
}

fn read(secret: &Object) -> Result<Ca, AuthorityError> {
    let text = |name| {
        data(secret, name)
            .ok_or_else(|| AuthorityError::Content(format!("{name} is missing or not base64 text")))
    };
    Ca::from_pem(&text("ca.crt")?, &text("ca.key")?).map_err(|why| AuthorityError::Content(why.to_string()))
}

/// One entry of a Secret's data, as text.
pub(crate) fn data(secret: &Object, name: &str) -> Option<String> {
    let encoded = secret.json.get("data")?.get(name)?.as_str()?;
    String::from_utf8(STANDARD.decode(encoded).ok()?).ok()
}

/// The gateway's certificate, to be reached under `names`.
pub fn server_certificate(ca: &Ca, names: &[String]) -> Result<Arc<CertificateSlot>, AuthorityError> {
    let certificate = ca.issue_server(names, unix_now(), SERVER_LIFE)?;
    Ok(Arc::new(CertificateSlot::of_server(certificate)?))
}

/// Exchanges the gateway's certificate before it ends, until cancelled.
pub async fn renew_server(
    ca: Arc<Ca>,
    names: Vec<String>,
    slot: Arc<CertificateSlot>,
    cancel: CancellationToken,
) -> Result<(), TaskError> {
    loop {
        tokio::select! {
            () = cancel.cancelled() => return Ok(()),
            () = tokio::time::sleep(SERVER_LIFE / 3 * 2) => {}
        }
        slot.replace_server(ca.issue_server(&names, unix_now(), SERVER_LIFE)?)?;
        info!(?names, "exchanged the server's certificate");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_what_is_read() {
        let ca = Ca::generate("test", unix_now(), CA_LIFE).unwrap();
        let mut json = secret(&ObjectKey::new("ns", CA_SECRET), &ca);
        json["metadata"]["uid"] = "u".into();
        json["metadata"]["resourceVersion"] = "1".into();
        let again = read(&Object::from_json(json.clone()).unwrap()).unwrap();
        assert_eq!(again.pin(), ca.pin());
        json["data"]["ca.key"] = "%".into();
        assert!(matches!(read(&Object::from_json(json).unwrap()), Err(AuthorityError::Content(_))));
    }
}
