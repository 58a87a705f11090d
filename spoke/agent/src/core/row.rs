//! One placement as the agent sees it: what is wanted, what is being tried, what is there, what was said.

use std::collections::BTreeSet;
use std::sync::Arc;

use fairlead_model::{Epoch, Millis, ObjectKey, RunId};
use fairlead_session::{Command, CopyState, Desired, Intent, Refusal};

use super::copy::{Copy, Stamps};
use crate::ports::OpId;

/// How far an order to prepare or to start has come.
#[derive(Clone, Debug, Default)]
pub(crate) enum Attempt {
    /// Nothing is under way.
    #[default]
    Idle,
    /// Prepare: look-ups are under way, room is held.
    Checking {
        /// Revision of the command.
        revision: u64,
        /// Look-ups that have not come back.
        pending: BTreeSet<OpId>,
    },
    /// Prepare was accepted, room is held.
    Held {
        /// Until when, on the monotonic clock.
        until: Millis,
    },
    /// Prepare was accepted and nobody came in time.
    Lapsed,
    /// Start: the create is under way.
    Creating,
    /// Start: a read settles what became of the create.
    Settling {
        /// When the read was sent, on the monotonic clock, if one is under way.
        read: Option<Millis>,
    },
    /// The answer is no.
    Refused {
        /// Revision of the command.
        revision: u64,
        /// Why.
        refusal: Refusal,
    },
}

/// When a failed operation may be tried again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Retry {
    /// Not before this time on the monotonic clock.
    pub(crate) at: Option<Millis>,
    failures: u32,
}

/// The shortest and the longest wait between two tries, in milliseconds.
const RETRY_MS: (i64, i64) = (50, 5_000);

impl Retry {
    /// Another failure: waits twice as long as the time before, up to the longest wait.
    pub(crate) fn failed(&mut self, now: Millis) {
        let wait = RETRY_MS.0.checked_shl(self.failures.min(16)).unwrap_or(RETRY_MS.1).min(RETRY_MS.1);
        self.failures = self.failures.saturating_add(1);
        self.at = Some(now.plus(wait));
    }

    /// It went well.
    pub(crate) fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// Whether a try is due.
    pub(crate) fn due(&self, now: Millis) -> bool {
        self.at.is_none_or(|at| at <= now)
    }
}

/// What the hub was told last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown {
    /// The state.
    pub(crate) state: Option<CopyState>,
    /// Its version.
    pub(crate) version: u64,
    /// Whether the hub has stored it.
    pub(crate) acknowledged: bool,
}

/// One placement.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The run.
    pub(crate) run: RunId,
    /// The promise's epoch.
    pub(crate) epoch: Epoch,
    /// Namespace and name of the copy; empty until known.
    pub(crate) key: ObjectKey,
    /// The command in force.
    pub(crate) command: Option<Command>,
    /// The hub said that it wants nothing of this placement.
    pub(crate) withdrawn: bool,
    /// How far an order has come.
    pub(crate) attempt: Attempt,
    /// The Job.
    pub(crate) copy: Option<Copy>,
    /// A delete or a release that is under way.
    pub(crate) writing: Option<OpId>,
    /// When to try again.
    pub(crate) retry: Retry,
    /// After this time on the monotonic clock, a read that finds nothing proves that a lost create came to nothing.
    pub(crate) unsettled: Option<Millis>,
    /// A refusal that may be said only once a lost create is settled.
    pub(crate) verdict: Option<Refusal>,
    /// What the hub was told.
    pub(crate) shown: Shown,
    /// The hub has stored the last word on it: nothing more is said.
    pub(crate) settled: bool,
    /// When this row wants to be looked at.
    pub(crate) timer: Option<Millis>,
}

impl Row {
    /// A placement of which only the command is known.
    pub(crate) fn of_command(command: &Command) -> Self {
        Self::new(command.run.clone(), command.epoch, key_of(command))
    }

    /// A placement of which only the Job is known.
    pub(crate) fn of_stamps(stamps: &Stamps, key: &ObjectKey) -> Self {
        Self::new(stamps.run.clone(), stamps.epoch, key.clone())
    }

    fn new(run: RunId, epoch: Epoch, key: ObjectKey) -> Self {
        Self {
            run,
            epoch,
            key,
            command: None,
            withdrawn: false,
            attempt: Attempt::Idle,
            copy: None,
            writing: None,
            retry: Retry::default(),
            unsettled: None,
            verdict: None,
            shown: Shown::default(),
            settled: false,
            timer: None,
        }
    }

    /// Takes over a command.
    pub(crate) fn order(&mut self, command: Command) {
        self.withdrawn = false;
        self.settled = false;
        self.attempt = match (std::mem::take(&mut self.attempt), &command.desired) {
            (kept @ (Attempt::Creating | Attempt::Settling { .. }), _)
            | (kept @ Attempt::Held { .. }, Desired::Prepare(_) | Desired::Start(_)) => kept,
            (kept @ Attempt::Refused { revision, .. }, Desired::Prepare(_) | Desired::Start(_))
                if revision == command.revision =>
            {
                kept
            }
            (kept @ Attempt::Checking { revision, .. }, Desired::Prepare(_))
                if revision == command.revision =>
            {
                kept
            }
            _ => Attempt::Idle,
        };
        self.command = Some(command);
    }

    /// The session has ended: what was ordered in it and not begun is off.
    pub(crate) fn void(&mut self) {
        let voidable =
            |command: &mut Command| matches!(command.desired, Desired::Prepare(_) | Desired::Start(_));
        if self.command.take_if(voidable).is_some() && !self.creating() && !self.refused() {
            self.attempt = Attempt::Idle;
        }
    }

    /// The hub wants nothing of this placement any more.
    pub(crate) fn withdraw(&mut self) {
        self.command = None;
        self.withdrawn = true;
        if !self.creating() {
            self.attempt = Attempt::Idle;
        }
    }

    /// Whether a create is under way or its outcome unknown.
    pub(crate) const fn creating(&self) -> bool {
        self.unsettled.is_some() || matches!(self.attempt, Attempt::Creating | Attempt::Settling { .. })
    }

    /// Whether the answer is no.
    pub(crate) const fn refused(&self) -> bool {
        matches!(self.attempt, Attempt::Refused { .. })
    }

    /// The command's wish.
    pub(crate) fn desired(&self) -> Option<&Desired> {
        self.command.as_ref().map(|command| &command.desired)
    }

    /// Whether the hub wants the copy gone.
    pub(crate) fn stop_wanted(&self) -> bool {
        matches!(self.desired(), Some(Desired::Stop(_)))
    }

    /// Whether there is an object of this placement.
    pub(crate) fn exists(&self) -> bool {
        self.copy.as_ref().is_some_and(|copy| !copy.gone)
    }

    /// Whether nothing is left to do or to say.
    pub(crate) fn over(&self) -> bool {
        let nothing_there = self.copy.as_ref().is_none_or(|copy| copy.gone && self.settled);
        self.command.is_none() && nothing_there && !self.creating() && self.shown.state.is_none()
    }

    /// When this row wants to be looked at next.
    pub(crate) fn wake(&self, now: Millis) -> Option<Millis> {
        let retry = self.retry.at.filter(|at| *at > now);
        let held = if let Attempt::Held { until } = self.attempt { Some(until) } else { None };
        retry.into_iter().chain(held).min()
    }
}

/// What is to be created, if the command says so.
pub(crate) const fn intent(desired: &Desired) -> Option<&Intent> {
    match desired {
        Desired::Prepare(intent) | Desired::Start(intent) => Some(intent),
        Desired::Keep | Desired::Stop(_) => None,
    }
}

/// Namespace and name that a command speaks of; empty where it says none.
pub(crate) fn key_of(command: &Command) -> ObjectKey {
    match intent(&command.desired) {
        Some(intent) => ObjectKey::new(Arc::clone(&intent.namespace), Arc::clone(&intent.name)),
        None => ObjectKey::new("", ""),
    }
}
