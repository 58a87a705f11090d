//! The leader lease: at most one process acts.
//!
//! A `coordination.k8s.io` Lease of 10 s, renewed every 2 s, each write conditional on the version read before.
//! A candidate takes a lease over only after it has *seen* it unchanged for its whole duration on its own steady
//! clock, so no two clocks need to agree. The holder counts from the moment it *sent* a renewal, so it always
//! believes in less time than the others wait.
//!
//! The lease alone fences nothing: a write may be under way when it ends. That is what terms are for, and why
//! commits start only with more than [`COMMIT_MARGIN_MS`] left.

mod decide;
mod wire;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use fairlead_model::{Millis, ObjectKey};
use kube::Client;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::store::{Call, Op, Options, Outcome, Store};
use crate::{Resource, clock, entropy};

pub use self::decide::{Decision, Record, Seen, decide};

/// How long a lease is held without renewal.
pub const DURATION_MS: i64 = 10_000;
/// How often it is renewed, and how often a candidate looks.
pub const RENEW_MS: i64 = 2_000;
/// An admission commit starts only with more than this left.
pub const COMMIT_MARGIN_MS: i64 = 4_000;
/// How long a new leader waits after taking over a lease that was held.
pub const TAKEOVER_WAIT: Duration = Duration::from_secs(2);
/// With less than this left, the holder gives up rather than hope.
const LAST_MS: i64 = 1_000;

const LEASES: Resource = Resource::new("coordination.k8s.io", "v1", "leases", true);

/// How long this process may still act: shared with everyone who has effects.
#[derive(Clone, Debug)]
pub struct Tenure(Arc<AtomicI64>);

impl Tenure {
    /// A tenure that ends at this reading of the steady clock.
    pub fn until(end: Millis) -> Self {
        Self(Arc::new(AtomicI64::new(end.0)))
    }

    /// Milliseconds left; negative when it is over.
    pub fn remaining_ms(&self, mono: Millis) -> i64 {
        self.0.load(Ordering::SeqCst).saturating_sub(mono.0)
    }

    /// Ends at once.
    pub fn end(&self) {
        self.0.store(i64::MIN, Ordering::SeqCst);
    }

    fn extend(&self, end: Millis) {
        self.0.store(end.0, Ordering::SeqCst);
    }
}

/// Leadership is lost; the process must stop and leave with an error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// Another process holds the lease.
    #[error("the lease is held by {0}")]
    Taken(String),
    /// It could not be renewed in time.
    #[error("the lease could not be renewed in time: {0}")]
    Expired(String),
}

/// A claim to a lease: a candidate first, then its holder.
#[derive(Debug)]
pub struct Claim {
    store: Store,
    key: ObjectKey,
    identity: String,
    seen: Option<Seen>,
    tenure: Tenure,
}

/// How a lease was acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acquired {
    /// Whether it was taken from a holder that let it lapse, rather than found free.
    pub taken_over: bool,
}

impl Claim {
    /// A claim to the lease of that name. The identity is made unique by a random part; `name` is for people.
    pub fn new(client: Client, key: ObjectKey, name: &str) -> Result<Self, entropy::NoEntropy> {
        let identity = format!("{name}_{}", entropy::token()?);
        Ok(Self {
            store: Store::new(client),
            key,
            identity,
            seen: None,
            tenure: Tenure::until(Millis(i64::MIN)),
        })
    }

    /// Who claims.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The time left, for those who have effects.
    pub fn tenure(&self) -> Tenure {
        self.tenure.clone()
    }

    /// Waits until the lease is acquired. `None` when cancelled before.
    pub async fn acquire(&mut self, cancel: &CancellationToken) -> Option<Acquired> {
        let mut waits_for = String::new();
        loop {
            let pause = match self.attempt().await {
                Ok(Some(acquired)) => return Some(acquired),
                Ok(None) => {
                    self.announce(&mut waits_for);
                    RENEW_MS
                }
                Err(why) => {
                    warn!(lease = %self.key, why, "cannot read or take the lease");
                    500
                }
            };
            let jitter = i64::try_from(entropy::below(200)).unwrap_or(0);
            tokio::select! {
                () = cancel.cancelled() => return None,
                () = pause_ms(pause.saturating_add(jitter)) => {}
            }
        }
    }

    fn announce(&self, waits_for: &mut String) {
        let holder = self.seen.as_ref().and_then(|seen| seen.record.holder.clone()).unwrap_or_default();
        if *waits_for != holder {
            info!(lease = %self.key, %holder, "waiting for the lease");
            *waits_for = holder;
        }
    }

    /// Looks once, and takes the lease if that is allowed.
    async fn attempt(&mut self) -> Result<Option<Acquired>, String> {
        self.look().await?;
        let now = clock::now();
        let taken_over = match decide(self.seen.as_ref(), &self.identity, now.mono) {
            Decision::Yield => return Ok(None),
            Decision::Acquire { taken_over } => taken_over,
            Decision::Renew => false,
        };
        let written = match self.seen.as_ref() {
            None => self.write(Op::Create(wire::fresh(&self.key, &self.identity, now.wall))).await,
            Some(seen) => self.write(Op::Patch(wire::takeover(&seen.record, &self.identity, now.wall))).await,
        };
        match written {
            Outcome::Done(object) => {
                self.hold(&object, now.mono);
                info!(lease = %self.key, identity = self.identity, taken_over, "acquired the lease");
                Ok(Some(Acquired { taken_over }))
            }
            Outcome::Conflict | Outcome::AlreadyExists | Outcome::NotFound => Ok(None),
            Outcome::Refused { message, .. } | Outcome::Unknown(message) => Err(message),
        }
    }

    /// Reads the lease and notes since when it has been as it is.
    async fn look(&mut self) -> Result<(), String> {
        match self.write(Op::Get).await {
            Outcome::Done(object) => {
                let record = wire::read(&object);
                let unchanged = self.seen.as_ref().is_some_and(|seen| seen.record.version == record.version);
                if !unchanged {
                    self.seen = Some(Seen { record, since: clock::now().mono });
                }
                Ok(())
            }
            Outcome::NotFound => {
                self.seen = None;
                Ok(())
            }
            Outcome::Conflict | Outcome::AlreadyExists => Err("an answer that a read cannot have".to_owned()),
            Outcome::Refused { message, .. } | Outcome::Unknown(message) => Err(message),
        }
    }

    /// Renews the lease every 2 s until it is lost, or until cancelled: then it is still held.
    pub async fn keep(&mut self, cancel: &CancellationToken) -> Result<(), Lost> {
        let mut trouble = String::new();
        loop {
            // Counted from the last renewal, whatever has taken time since.
            let due = self.tenure.remaining_ms(clock::now().mono).saturating_sub(DURATION_MS - RENEW_MS);
            let pause = if trouble.is_empty() { due.clamp(0, RENEW_MS) } else { RENEW_MS / 4 };
            tokio::select! {
                () = cancel.cancelled() => return Ok(()),
                () = pause_ms(pause) => {}
            }
            trouble = match self.renew().await {
                Ok(()) => String::new(),
                Err(RenewError::Lost(lost)) => {
                    self.tenure.end();
                    return Err(lost);
                }
                Err(RenewError::Trouble(why)) => {
                    warn!(lease = %self.key, why, "could not renew the lease");
                    why
                }
            };
            if self.tenure.remaining_ms(clock::now().mono) <= LAST_MS {
                self.tenure.end();
                return Err(Lost::Expired(trouble));
            }
        }
    }

    async fn renew(&mut self) -> Result<(), RenewError> {
        let now = clock::now();
        let Some(seen) = self.seen.as_ref() else {
            return Err(RenewError::Trouble("never acquired".to_owned()));
        };
        match self.write(Op::Patch(wire::renewal(&seen.record, now.wall))).await {
            Outcome::Done(object) => {
                self.hold(&object, now.mono);
                Ok(())
            }
            // Either someone else wrote it, or an earlier renewal of ours arrived although its answer did not.
            Outcome::Conflict | Outcome::AlreadyExists => {
                self.look().await.map_err(RenewError::Trouble)?;
                match self.seen.as_ref().and_then(|seen| seen.record.holder.clone()) {
                    Some(holder) if holder == self.identity => {
                        Err(RenewError::Trouble("an earlier renewal was unanswered".to_owned()))
                    }
                    holder => {
                        Err(RenewError::Lost(Lost::Taken(holder.unwrap_or_else(|| "nobody".to_owned()))))
                    }
                }
            }
            Outcome::NotFound => Err(RenewError::Lost(Lost::Taken("nobody: it was deleted".to_owned()))),
            Outcome::Refused { message, .. } | Outcome::Unknown(message) => Err(RenewError::Trouble(message)),
        }
    }

    /// Gives the lease back, so that a successor need not wait. Call it when no effect is under way any more.
    pub async fn release(mut self) {
        self.tenure.end();
        let Some(seen) = self.seen.take() else { return };
        if seen.record.holder.as_deref() != Some(self.identity.as_str()) {
            return;
        }
        match self.write(Op::Patch(wire::release(&seen.record, clock::now().wall))).await {
            Outcome::Done(_) => info!(lease = %self.key, "released the lease"),
            other => warn!(lease = %self.key, outcome = ?other, "could not release the lease"),
        }
    }

    fn hold(&mut self, object: &crate::Object, sent: Millis) {
        self.seen = Some(Seen { record: wire::read(object), since: sent });
        self.tenure.extend(sent.plus(DURATION_MS));
    }

    async fn write(&self, op: Op) -> Outcome {
        let options = Options {
            field_manager: Some("fairlead-leadership"),
            timeout: Duration::from_secs(2),
            ..Options::default()
        };
        self.store.execute(&Call { resource: &LEASES, key: &self.key, op: &op, options: &options }).await
    }
}

enum RenewError {
    Lost(Lost),
    Trouble(String),
}

impl fmt::Debug for RenewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(lost) => fmt::Debug::fmt(lost, f),
            Self::Trouble(why) => f.write_str(why),
        }
    }
}

async fn pause_ms(ms: i64) {
    tokio::time::sleep(Duration::from_millis(u64::try_from(ms).unwrap_or(0))).await;
}
