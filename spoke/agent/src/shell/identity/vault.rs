//! The Secret with this spoke's key and certificate.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairlead_api::labels::FieldManager;
use fairlead_model::{ObjectKey, Uid};
use fairlead_pki::{PkiError, SpokeKey, UnixTime};
use fairlead_runtime::Resource;
use fairlead_runtime::store::{Call, Op, Options, Outcome, Propagation, Store};
use serde_json::{Value, json};

use crate::shell::floor::describe;

/// The Secret's name.
const NAME: &str = fairlead_api::labels::AGENT_IDENTITY;
const SECRETS: Resource = Resource::new("", "v1", "secrets", true);

const KEY: &str = "tls.key";
const CERTIFICATE: &str = "tls.crt";
const CA: &str = "ca.crt";
const HUB: &str = "hub";
const CLUSTER: &str = "cluster";
const CLUSTER_UID: &str = "cluster-uid";
const EXPIRES: &str = "expires";
/// A key for which a certificate has been asked for.
const PENDING: &str = "pending.key";

/// Who this spoke is, and to whom.
#[derive(Debug)]
pub struct Identity {
    /// Its private key.
    pub key: SpokeKey,
    /// Its certificate, PEM.
    pub certificate_pem: String,
    /// The hub's CA, PEM.
    pub ca_pem: String,
    /// Address of the hub, `host:port`.
    pub hub: String,
    /// Name of this cluster on the hub, for people.
    pub cluster: String,
    /// UID of the hub's Cluster object: the identity in the certificate.
    pub cluster_uid: String,
    /// Last second of the certificate.
    pub expires: UnixTime,
}

/// Why the identity cannot be read or kept.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The API server did not do it.
    #[error("Secret {secret}: {why}")]
    Store {
        /// Which Secret.
        secret: String,
        /// What the API server said.
        why: String,
    },
    /// A field is missing or cannot be read.
    #[error("Secret {secret}: {field} is missing or cannot be read; delete the Secret and join anew")]
    Malformed {
        /// Which Secret.
        secret: String,
        /// Which key of its data.
        field: &'static str,
    },
    /// There is no identity.
    #[error(
        "Secret {0} holds no certificate: run `fairlead-spoke join` with the command that `kubectl fairlead join NAME` prints on the hub"
    )]
    Nothing(String),
    /// The stored key cannot be used.
    #[error("the stored key cannot be used: {0}")]
    Key(#[from] PkiError),
}

/// What the Secret holds.
#[derive(Debug, Default)]
pub struct Stored {
    /// A complete identity.
    pub identity: Option<Identity>,
    /// A key for which a certificate has been asked for.
    pub pending: Option<SpokeKey>,
    /// The Secret's version; none when there is no Secret.
    pub version: Option<u64>,
}

/// The Secret.
#[derive(Clone, Debug)]
pub struct Vault {
    store: Store,
    key: ObjectKey,
}

impl fmt::Display for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)
    }
}

impl Vault {
    /// The Secret in this namespace.
    pub fn new(store: Store, namespace: &str) -> Self {
        Self { store, key: ObjectKey::new(namespace, NAME) }
    }

    /// Reads what is there.
    pub async fn load(&self) -> Result<Stored, IdentityError> {
        match self.execute(&Op::Get).await {
            Outcome::Done(secret) => Ok(Stored { version: Some(secret.version), ..self.read(&secret.json)? }),
            Outcome::NotFound => Ok(Stored::default()),
            other => Err(self.failed(&other)),
        }
    }

    /// Keeps a key before a certificate is asked for it.
    pub(super) async fn store_pending(
        &self,
        key: &SpokeKey,
        version: Option<u64>,
    ) -> Result<(), IdentityError> {
        let pending = json!({PENDING: key.to_pem()});
        let op = match version {
            Some(version) => {
                let metadata = json!({"resourceVersion": version.to_string()});
                Op::Patch(json!({"metadata": metadata, "stringData": pending}))
            }
            None => Op::Create(json!({
                "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
                "metadata": {"namespace": &*self.key.namespace, "name": &*self.key.name,
                             "labels": {"app.kubernetes.io/part-of": "fairlead"}},
                "stringData": pending,
            })),
        };
        self.write(&op).await
    }

    /// Keeps an identity; its key is no longer pending.
    pub(super) async fn store(&self, identity: &Identity) -> Result<(), IdentityError> {
        let data = json!({
            KEY: identity.key.to_pem(), CERTIFICATE: identity.certificate_pem, CA: identity.ca_pem,
            HUB: identity.hub, CLUSTER: identity.cluster, CLUSTER_UID: identity.cluster_uid,
            EXPIRES: identity.expires.as_secs().to_string(),
        });
        self.write(&Op::Patch(json!({"stringData": data, "data": {PENDING: null}}))).await
    }

    /// Forgets a key that got no certificate, and the Secret with it unless there is an identity in it.
    pub(super) async fn drop_pending(&self, keep_secret: bool) -> Result<(), IdentityError> {
        if !keep_secret && self.delete().await {
            return Ok(());
        }
        self.write(&Op::Patch(json!({"data": {PENDING: null}}))).await
    }

    /// Deletes the Secret, if that is allowed.
    async fn delete(&self) -> bool {
        let uid: Uid = match self.execute(&Op::Get).await {
            Outcome::Done(secret) => secret.uid,
            other => return matches!(other, Outcome::NotFound),
        };
        let delete = Op::Delete { uid, propagation: Propagation::Background };
        matches!(self.execute(&delete).await, Outcome::Done(_) | Outcome::NotFound)
    }

    async fn write(&self, op: &Op) -> Result<(), IdentityError> {
        match self.execute(op).await {
            Outcome::Done(_) => Ok(()),
            other => Err(self.failed(&other)),
        }
    }

    async fn execute(&self, op: &Op) -> Outcome {
        let options = Options { field_manager: Some(FieldManager::Agent.as_str()), ..Options::default() };
        self.store.execute(&Call { resource: &SECRETS, key: &self.key, op, options: &options }).await
    }

    fn failed(&self, outcome: &Outcome) -> IdentityError {
        IdentityError::Store { secret: self.to_string(), why: describe(outcome) }
    }

    fn read(&self, json: &Value) -> Result<Stored, IdentityError> {
        let malformed = |field| IdentityError::Malformed { secret: self.to_string(), field };
        let field = |name: &'static str| -> Result<Option<String>, IdentityError> {
            let Some(encoded) = json.pointer("/data").and_then(|data| data.get(name)).and_then(Value::as_str)
            else {
                return Ok(None);
            };
            let bytes = STANDARD.decode(encoded).map_err(|_not_base64| malformed(name))?;
            String::from_utf8(bytes).map(Some).map_err(|_not_text| malformed(name))
        };
        let wanted = |name: &'static str| field(name)?.ok_or_else(|| malformed(name));
        let pending = field(PENDING)?.map(|pem| SpokeKey::from_pem(&pem)).transpose()?;
        let Some(certificate_pem) = field(CERTIFICATE)? else {
            return Ok(Stored { identity: None, pending, version: None });
        };
        let expires: u64 = wanted(EXPIRES)?.parse().map_err(|_not_a_number| malformed(EXPIRES))?;
        let identity = Identity {
            key: SpokeKey::from_pem(&wanted(KEY)?)?,
            certificate_pem,
            ca_pem: wanted(CA)?,
            hub: wanted(HUB)?,
            cluster: wanted(CLUSTER)?,
            cluster_uid: wanted(CLUSTER_UID)?,
            expires: UnixTime::since_unix_epoch(Duration::from_secs(expires)),
        };
        Ok(Stored { identity: Some(identity), pending, version: None })
    }
}
