//! Joining a hub, and the Secret in which the identity is kept.

mod vault;

use std::sync::Arc;
use std::time::Duration;

use fairlead_link::client::{EnrolError, delay, enrol};
use fairlead_link::{EnrolRefusal, EnrolRequest, Enrolled};
use fairlead_model::Reason;
use fairlead_pki::{CaPin, PkiError, SpokeKey, SystemTime, TimeProvider};
use fairlead_runtime::entropy;
use tokio::time::{Instant, sleep};

pub use vault::{Identity, IdentityError, Stored, Vault};

/// For so long a hub that cannot be reached is tried.
const PATIENCE: Duration = Duration::from_secs(30);

/// What `fairlead-spoke join` was told.
#[derive(Clone)]
pub struct JoinRequest {
    /// Address of the hub, `host:port`.
    pub hub: String,
    /// Fingerprint of the hub's CA.
    pub pin: CaPin,
    /// Name of this cluster on the hub.
    pub cluster: String,
    /// The join token.
    pub token: String,
}

impl std::fmt::Debug for JoinRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinRequest")
            .field("hub", &self.hub)
            .field("cluster", &self.cluster)
            .finish_non_exhaustive()
    }
}

/// Why this cluster has not joined.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The hub said no.
    #[error("the hub refuses to let this cluster join: {0}\n{step}", step = next_step(.0.reason))]
    Refused(EnrolRefusal),
    /// The hub was not reached, or is not the one whose CA is pinned.
    #[error(
        "{0}\nCheck that --hub is the address printed by `kubectl fairlead join`, that this machine reaches it, and that --ca-pin is that hub's; the token is not used up, so the same command may be run again."
    )]
    Unreachable(EnrolError),
    /// The identity cannot be kept.
    #[error(transparent)]
    Vault(#[from] IdentityError),
    /// A key could not be made.
    #[error("cannot make a key: {0}")]
    Key(#[from] PkiError),
    /// This cluster has joined already, otherwise.
    #[error(
        "this cluster has joined {hub} as {cluster}\nTo join anew, delete Secret {secret} on this cluster, then run the command again."
    )]
    Joined {
        /// Where.
        hub: String,
        /// As what.
        cluster: String,
        /// The Secret that says so.
        secret: String,
    },
}

/// What a person can do about a refusal.
const fn next_step(reason: Reason) -> &'static str {
    match reason {
        Reason::TokenMistyped => "Copy the whole command again as `kubectl fairlead join` printed it.",
        Reason::TokenWrongName => {
            "Use the --name that the token was made for, or make a token for this name with `kubectl fairlead join`."
        }
        Reason::TokenUnknown => {
            "Check that token and --hub come from the same hub; make a new token with `kubectl fairlead join`."
        }
        _ => "Make a new token on the hub with `kubectl fairlead join`, and run the command that it prints.",
    }
}

/// Gets a certificate for a key that is made here, and keeps both.
///
/// The key is stored before it is sent, so that after a lost answer, or a crash, the same command gets the same
/// certificate: the hub gives a token's certificate again to the same key. Refused, nothing stays stored. A cluster
/// that has joined this hub under this name already keeps the identity it has.
pub async fn join(vault: &Vault, request: &JoinRequest) -> Result<Identity, JoinError> {
    let time: Arc<dyn TimeProvider> = Arc::new(SystemTime);
    let stored = vault.load().await?;
    let had_identity = stored.identity.is_some();
    let now = time.current_time();
    if let Some(identity) = stored.identity.filter(|identity| now.is_some_and(|now| now < identity.expires)) {
        if identity.hub == request.hub && identity.cluster == request.cluster {
            tracing::info!(hub = %identity.hub, cluster = %identity.cluster, "this cluster has joined already");
            return Ok(identity);
        }
        let Identity { hub, cluster, .. } = identity;
        return Err(JoinError::Joined { hub, cluster, secret: vault.to_string() });
    }
    let key = if let Some(key) = stored.pending {
        key
    } else {
        let key = SpokeKey::generate()?;
        vault.store_pending(&key, stored.version).await?;
        key
    };
    match ask(request, &key, &time).await {
        Ok(enrolled) => {
            let identity = identity(request, key, enrolled);
            vault.store(&identity).await?;
            Ok(identity)
        }
        Err(EnrolError::Refused(refusal)) => {
            vault.drop_pending(had_identity).await?;
            Err(JoinError::Refused(refusal))
        }
        Err(error) => Err(JoinError::Unreachable(error)),
    }
}

fn identity(request: &JoinRequest, key: SpokeKey, enrolled: Enrolled) -> Identity {
    Identity {
        key,
        certificate_pem: enrolled.certificate_pem,
        ca_pem: enrolled.ca_pem,
        hub: request.hub.clone(),
        cluster: request.cluster.clone(),
        cluster_uid: enrolled.cluster_uid,
        expires: enrolled.expires,
    }
}

/// Asks until there is an answer, or patience ends.
async fn ask(
    request: &JoinRequest,
    key: &SpokeKey,
    time: &Arc<dyn TimeProvider>,
) -> Result<Enrolled, EnrolError> {
    let csr = key.signing_request()?;
    let since = Instant::now();
    let mut attempt = 0;
    loop {
        let wanted = EnrolRequest {
            cluster: request.cluster.clone(),
            token: request.token.clone(),
            csr_der: csr.clone(),
        };
        let error = match enrol(&request.hub, request.pin, Arc::clone(time), wanted).await {
            Err(error @ EnrolError::Unreachable(_)) => error,
            answer => return answer,
        };
        if since.elapsed() >= PATIENCE {
            return Err(error);
        }
        tracing::info!(%error, "the hub was not reached; trying again");
        sleep(delay(since.elapsed(), attempt, entropy::below(u64::MAX))).await;
        attempt = attempt.saturating_add(1);
    }
}
