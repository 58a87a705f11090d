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
/// How long raising the term is tried: the lease must outlast it and the wait that follows.
const PATIENCE_MS: i64 = 4_000;

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
    let (nonce, begin) = (entropy::token()?, clock::now().mono);
    loop {
        let why = match attempt(store, &nonce).await {
            Ok(leadership) => return Ok(leadership),
            Err(Attempt::Never(why)) => return Err(LeadError::Term(why)),
            Err(Attempt::Again(why)) => why,
        };
        if clock::now().mono.since(begin) >= PATIENCE_MS {
            return Err(LeadError::Term(why));
        }
        warn!(why, "could not raise the term yet");
        tokio::time::sleep(Duration::from_millis(20 + entropy::below(80))).await;
    }
}

/// Why one attempt to raise the term failed.
enum Attempt {
    /// Another may succeed.
    Again(String),
    /// None will.
    Never(String),
}

impl From<Outcome> for Attempt {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Refused { .. } => Self::Never(describe(outcome)),
            Outcome::Done(_)
            | Outcome::Conflict
            | Outcome::AlreadyExists
            | Outcome::NotFound
            | Outcome::Unknown(_) => Self::Again(describe(outcome)),
        }
    }
}

async fn attempt(store: &Store, nonce: &str) -> Result<Leadership, Attempt> {
    let (wanted, op) = match execute(store, &Op::Get).await {
        Outcome::Done(found) => {
            let current = read(&found).map_err(Attempt::Never)?;
            if current.nonce == nonce {
                return Ok(Leadership::from(&current));
            }
            let wanted = next(Some(&current), nonce);
            let op = Op::Patch(replacement(&wanted, found.version));
            (wanted, op)
        }
        Outcome::NotFound => {
            let wanted = next(None, nonce);
            let op = Op::Create(fresh(&wanted));
            (wanted, op)
        }
        other => return Err(other.into()),
    };
    match execute(store, &op).await {
        Outcome::Done(written) if read(&written).is_ok_and(|spec| Leadership::from(&spec) == wanted) => {
            Ok(wanted)
        }
        Outcome::Done(_) => Err(Attempt::Never("the API server did not store it as sent".to_owned())),
        other => Err(other.into()),
    }
}

/// The leadership that follows the stored one.
fn next(current: Option<&HubStateSpec>, nonce: &str) -> Leadership {
    Leadership {
        incarnation: Incarnation(current.map_or(1, |state| state.incarnation)),
        term: Term(current.map_or(1, |state| state.term.saturating_add(1))),
        nonce: Nonce(nonce.into()),
    }
}

fn replacement(leadership: &Leadership, version: u64) -> Value {
    json!({"metadata": {"resourceVersion": version.to_string()}, "spec": HubStateSpec::from(leadership)})
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
