//! A join token and a signing request become a certificate.
//!
//! The token's record lies in the Secret `fairlead-join-<id>`. Redeeming it is one conditional write on that
//! Secret, with the key and the certificate in it: of two that redeem at once one wins, and the loser reads what
//! the winner wrote. A refusal writes nothing.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairlead_link::{EnrolRefusal, EnrolRequest, Enrolled};
use fairlead_model::{ObjectKey, Reason, Uid};
use fairlead_pki::{
    Ca, JoinRefusal, JoinToken, JoinTokenRecord, Redeem, Redemption, SPOKE_CERTIFICATE_LIFE, SpokeIdentity,
    TrustDomain, UnixTime, VerifiedCsr, redeem,
};
use fairlead_runtime::Object;
use fairlead_runtime::store::{Op, Outcome, Store};
use serde_json::{Value, json};
use tracing::info;

use crate::authority::{data, unix_now};
use crate::objects::{CLUSTERS, SECRETS, describe, execute};

/// How often a lost race is run again.
const ATTEMPTS: u32 = 5;

/// Enrols spokes.
#[derive(Debug)]
pub struct Enrolment {
    store: Store,
    namespace: Arc<str>,
    ca: Arc<Ca>,
    trust_domain: TrustDomain,
}

fn refused(reason: Reason, detail: impl Into<String>) -> EnrolRefusal {
    EnrolRefusal { reason, detail: detail.into() }
}

fn unavailable(what: &str, outcome: Outcome) -> EnrolRefusal {
    refused(Reason::HubUnavailable, format!("{what}: {}", describe(outcome)))
}

fn by_token(why: &JoinRefusal) -> EnrolRefusal {
    refused(why.reason(), why.to_string())
}

impl Enrolment {
    /// Enrols with this CA, for tokens in this namespace.
    pub fn new(store: Store, namespace: &str, ca: Arc<Ca>, trust_domain: TrustDomain) -> Self {
        Self { store, namespace: namespace.into(), ca, trust_domain }
    }

    /// Redeems the token for the Cluster that it names, with the key of the signing request.
    pub async fn enrol(&self, request: &EnrolRequest) -> Result<Enrolled, EnrolRefusal> {
        let token: JoinToken = request.token.parse().map_err(|why| by_token(&why))?;
        let csr = VerifiedCsr::from_der(&request.csr_der)
            .map_err(|why| refused(Reason::SigningRequestRefused, why.to_string()))?;
        let (name, key) = (&request.cluster, self.secret_key(&token));
        for _ in 0..ATTEMPTS {
            let secret = self.secret(&key).await?;
            let record = secret.as_ref().and_then(record);
            let verdict = redeem(record.as_ref(), &token, csr.fingerprint(), name, unix_now())
                .map_err(|why| by_token(&why))?;
            let (Some(secret), Some(record)) = (secret, record) else {
                return Err(by_token(&JoinRefusal::Unknown));
            };
            let cluster = self.cluster(name).await?;
            if !is_of(&secret, &cluster) {
                return Err(by_token(&JoinRefusal::Unknown));
            }
            let redemption = match verdict {
                Redeem::Again(redemption) => redemption,
                Redeem::First => match self.redeem_first(&key, &secret, record, (&csr, &cluster)).await? {
                    Some(redemption) => redemption,
                    None => continue,
                },
            };
            info!(cluster = name, uid = %cluster, key = %csr.fingerprint(), "enrolled");
            return Ok(self.enrolled(&cluster, redemption));
        }
        Err(refused(Reason::HubUnavailable, "the token's record keeps changing; try again"))
    }

    fn enrolled(&self, cluster: &Uid, redemption: Redemption) -> Enrolled {
        Enrolled {
            certificate_pem: redemption.certificate,
            ca_pem: self.ca.certificate_pem().to_owned(),
            cluster_uid: cluster.to_string(),
            expires: UnixTime::since_unix_epoch(Duration::from_secs(redemption.certificate_expires_at)),
        }
    }

    fn secret_key(&self, token: &JoinToken) -> ObjectKey {
        ObjectKey::new(&*self.namespace, format!("fairlead-join-{}", token.id()))
    }

    async fn secret(&self, key: &ObjectKey) -> Result<Option<Object>, EnrolRefusal> {
        match execute(&self.store, &SECRETS, key, Op::Get).await {
            Outcome::Done(secret) => Ok(Some(secret)),
            Outcome::NotFound => Ok(None),
            other => Err(unavailable("the token's record cannot be read", other)),
        }
    }

    async fn cluster(&self, name: &str) -> Result<Uid, EnrolRefusal> {
        match execute(&self.store, &CLUSTERS, &ObjectKey::new("", name), Op::Get).await {
            Outcome::Done(cluster) if cluster.deleting.is_none() => Ok(cluster.uid),
            Outcome::Done(_) | Outcome::NotFound => Err(refused(
                Reason::ClusterNotFound,
                format!("there is no Cluster {name}, or it is being deleted"),
            )),
            other => Err(unavailable("the Cluster cannot be read", other)),
        }
    }

    /// Issues a certificate and stores it with the token. `None` when somebody else changed the record meanwhile:
    /// the certificate is thrown away then.
    async fn redeem_first(
        &self,
        key: &ObjectKey,
        secret: &Object,
        mut record: JoinTokenRecord,
        (csr, cluster): (&VerifiedCsr, &Uid),
    ) -> Result<Option<Redemption>, EnrolRefusal> {
        let failed = |why: &dyn ToString| refused(Reason::HubUnavailable, why.to_string());
        let uid = cluster.as_str().parse().map_err(|why| failed(&why))?;
        let identity = SpokeIdentity::issue(self.trust_domain.clone(), uid);
        let certificate = self
            .ca
            .issue_spoke(csr, &identity, unix_now(), SPOKE_CERTIFICATE_LIFE)
            .map_err(|why| failed(&why))?;
        let redemption = Redemption {
            key: csr.fingerprint(),
            certificate: certificate.pem,
            certificate_expires_at: certificate.not_after.as_secs(),
        };
        record.redeemed = Some(redemption.clone());
        let patch = patch(secret.version, &record).map_err(|why| failed(&why))?;
        match execute(&self.store, &SECRETS, key, Op::Patch(patch)).await {
            Outcome::Done(_) => Ok(Some(redemption)),
            // Unknown: the next read tells, and the same key then gets what was stored.
            Outcome::Conflict | Outcome::Unknown(_) => Ok(None),
            Outcome::NotFound => Err(by_token(&JoinRefusal::Unknown)),
            other => Err(unavailable("the token's record cannot be written", other)),
        }
    }
}

fn record(secret: &Object) -> Option<JoinTokenRecord> {
    serde_json::from_str(&data(secret, "record")?).ok()
}

/// Whether the token was made for this very Cluster and not for one of the same name before it.
fn is_of(secret: &Object, cluster: &Uid) -> bool {
    let owners = secret.json.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    owners.is_none_or(|owners| {
        let of_cluster = |owner: &&Value| owner.get("kind").and_then(Value::as_str) == Some("Cluster");
        owners
            .iter()
            .find(of_cluster)
            .is_none_or(|owner| owner.get("uid").and_then(Value::as_str) == Some(cluster.as_str()))
    })
}

fn patch(version: u64, record: &JoinTokenRecord) -> Result<Value, serde_json::Error> {
    Ok(json!({
        "metadata": {"resourceVersion": version.to_string()},
        "data": {"record": STANDARD.encode(serde_json::to_string(record)?)},
    }))
}

#[cfg(test)]
#[path = "enrol_tests.rs"]
mod tests;
