//! Becoming the leader: the lease, then the term, then the wait.

use std::time::Duration;

use fairlead_api::fairlead::HubStateSpec;
use fairlead_api::labels::{FieldManager, HUB_STATE_NAME};
use fairlead_model::{Incarnation, Leadership, Nonce, ObjectKey, Term};
use fairlead_runtime::lease::{Claim, TAKEOVER_WAIT};
use fairlead_runtime::store::{Call, Op, Options, Outcome, Store};
use fairlead_runtime::{Object, Resource, clock, entropy};
use kube::Client;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

const HUB_STATES: Resource = Resource::new("fairlead.dev", "v1alpha1", "hubstates", false);
/// How often the term is tried to be raised before the lease would run short.
const ATTEMPTS: u32 = 3;

/// This process leads.
#[derive(Debug)]
pub struct Lead {
    /// Its numbers, durable.
    pub leadership: Leadership,
    /// The lease; whoever has it must [keep](Claim::keep) it.
    pub claim: Claim,
}

/// Why this process cannot lead.
#[derive(Debug, thiserror::Error)]
pub enum LeadError {
    /// No randomness for the nonce.
    #[error(transparent)]
    Entropy(#[from] entropy::NoEntropy),
    /// The HubState cannot be read or written.
    #[error("cannot raise the term in the HubState {HUB_STATE_NAME}: {0}")]
    Term(String),
}

/// Waits for the lease named by `key`, raises the term with a new nonce, and waits out what an ousted leader may
/// have under way. No effect happens before this returns. `None` when cancelled.
///
/// `client` should be the leader's own, so that no burst of other calls delays a renewal.
pub async fn lead(
    client: Client,
    key: ObjectKey,
    name: &str,
    cancel: &CancellationToken,
) -> Result<Option<Lead>, LeadError> {
    let store = Store::new(client.clone());
    let mut claim = Claim::new(client, key, name)?;
    let Some(acquired) = claim.acquire(cancel).await else { return Ok(None) };
    let leadership = match raise_term(&store).await {
        Ok(leadership) => leadership,
        Err(why) => {
            claim.release().await;
            return Err(why);
        }
    };
    info!(term = leadership.term.0, incarnation = leadership.incarnation.0, "raised the term");
    show(&store, claim.identity()).await;
    if acquired.taken_over {
        tokio::time::sleep(TAKEOVER_WAIT).await;
    }
    Ok(Some(Lead { leadership, claim }))
}

/// Shows people who leads since when. Nothing rests on it, so a failure is no more than logged.
async fn show(store: &Store, identity: &str) {
    let status = json!({"holder": identity, "acquiredAt": clock::micro_time(clock::now().wall)});
    match execute(store, &Op::PatchStatus(json!({"status": status}))).await {
        Outcome::Done(_) => {}
        other => warn!(why = describe(other), "could not write the HubState's status"),
    }
}

/// Raises the term by compare-and-set. A write whose outcome is unknown is settled by reading.
async fn raise_term(store: &Store) -> Result<Leadership, LeadError> {
    let nonce = entropy::token()?;
    let mut trouble = String::new();
    for _ in 0..ATTEMPTS {
        let (wanted, op) = match execute(store, &Op::Get).await {
            Outcome::Done(found) => {
                let current = read(&found).map_err(LeadError::Term)?;
                if current.nonce == nonce {
                    return Ok(Leadership::from(&current));
                }
                let wanted = next(Some(&current), &nonce);
                let patch = json!({
                    "metadata": {"resourceVersion": found.version.to_string()},
                    "spec": HubStateSpec::from(&wanted),
                });
                (wanted, Op::Patch(patch))
            }
            Outcome::NotFound => {
                let wanted = next(None, &nonce);
                let create = Op::Create(fresh(&wanted));
                (wanted, create)
            }
            other => {
                trouble = describe(other);
                continue;
            }
        };
        match execute(store, &op).await {
            Outcome::Done(written) if read(&written).is_ok_and(|spec| Leadership::from(&spec) == wanted) => {
                return Ok(wanted);
            }
            Outcome::Done(_) => {
                return Err(LeadError::Term("the API server did not store it as sent".to_owned()));
            }
            other => trouble = describe(other),
        }
        warn!(trouble, "could not raise the term");
    }
    Err(LeadError::Term(trouble))
}

/// The leadership that follows the stored one.
fn next(current: Option<&HubStateSpec>, nonce: &str) -> Leadership {
    Leadership {
        incarnation: Incarnation(current.map_or(1, |state| state.incarnation)),
        term: Term(current.map_or(1, |state| state.term.saturating_add(1))),
        nonce: Nonce(nonce.into()),
    }
}

fn fresh(leadership: &Leadership) -> Value {
    json!({
        "apiVersion": "fairlead.dev/v1alpha1", "kind": "HubState", "metadata": {"name": HUB_STATE_NAME},
        "spec": HubStateSpec::from(leadership),
    })
}

fn read(object: &Object) -> Result<HubStateSpec, String> {
    let spec = object.json.get("spec").cloned().unwrap_or_default();
    serde_json::from_value(spec).map_err(|why| why.to_string())
}

fn describe(outcome: Outcome) -> String {
    match outcome {
        Outcome::Refused { message, .. } | Outcome::Unknown(message) => message,
        Outcome::Conflict | Outcome::AlreadyExists => "another process changed it".to_owned(),
        Outcome::NotFound => "the API server does not know the kind".to_owned(),
        Outcome::Done(_) => "done".to_owned(),
    }
}

async fn execute(store: &Store, op: &Op) -> Outcome {
    let options = Options {
        field_manager: Some(FieldManager::Leadership.as_str()),
        timeout: Duration::from_secs(1),
        ..Options::default()
    };
    let key = ObjectKey::new("", HUB_STATE_NAME);
    store.execute(&Call { resource: &HUB_STATES, key: &key, op, options: &options }).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_acquisition_raises_the_term_by_one_with_its_own_nonce() {
        let first = next(None, "a");
        assert_eq!((first.incarnation.0, first.term.0, &*first.nonce.0), (1, 1, "a"));
        let second = next(Some(&HubStateSpec::from(&first)), "b");
        assert_eq!((second.incarnation.0, second.term.0, &*second.nonce.0), (1, 2, "b"));
    }

    #[test]
    fn what_is_created_is_what_is_read() {
        let wanted = next(None, "a");
        let mut json = fresh(&wanted);
        json["metadata"]["uid"] = "u".into();
        json["metadata"]["resourceVersion"] = "1".into();
        let spec = read(&Object::from_json(json).unwrap()).unwrap();
        assert_eq!(Leadership::from(&spec), wanted);
    }
}
