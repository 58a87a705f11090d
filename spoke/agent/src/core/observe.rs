//! What the hub is told of a placement. Only changes are told; a burst of changes is told once.

use std::sync::Arc;

use fairlead_model::{Now, PlacementId};
use fairlead_session::{CopyState, CopyStatus, Desired, Observation};

use super::copy::Copy;
use super::row::{Attempt, Row};
use super::{Core, Effect};

/// What there is to say.
enum Statement {
    /// What was said last still holds, or nothing can be said yet.
    Unchanged,
    /// Nothing is here.
    Nothing,
    /// This is here.
    Is(CopyState),
}

impl Core {
    /// Tells the hub what has changed, and closes the row when the hub has stored the last word.
    pub(super) fn show(&mut self, placement: &PlacementId, row: &mut Row, now: Now) {
        if matches!(row.attempt, Attempt::Held { until } if until <= now.mono) {
            row.attempt = Attempt::Lapsed;
        }
        if row.settled {
            return;
        }
        match self.statement(placement, row) {
            Statement::Unchanged => {}
            Statement::Nothing => self.forget(placement, row),
            Statement::Is(state) => self.observe(placement, row, state),
        }
        if self.last_word(row) {
            self.forget(placement, row);
            row.settled = true;
        }
    }

    fn observe(&mut self, placement: &PlacementId, row: &mut Row, state: CopyState) {
        if row.shown.state.as_ref() == Some(&state) {
            return;
        }
        let version = self.next_version;
        self.next_version = self.next_version.saturating_add(1);
        let observation = Observation {
            run: row.run.clone(),
            epoch: row.epoch,
            boot: self.boot,
            version,
            namespace: Arc::clone(&row.key.namespace),
            name: Arc::clone(&row.key.name),
            state: state.clone(),
        };
        row.shown.state = Some(state);
        row.shown.version = version;
        row.shown.acknowledged = false;
        self.effects.push(Effect::Observe(placement.clone(), observation));
    }

    fn forget(&mut self, placement: &PlacementId, row: &mut Row) {
        if row.shown.state.take().is_some() {
            row.shown.acknowledged = false;
            self.effects.push(Effect::Forget(placement.clone()));
        }
    }

    /// Whether the hub has stored a final state and nothing is left that could change it. A withdrawn placement
    /// whose copy has provably stopped needs no acknowledgement.
    fn last_word(&self, row: &Row) -> bool {
        let stored = row.shown.acknowledged;
        match (&row.shown.state, &row.copy) {
            (Some(CopyState::Stopped(_) | CopyState::Refused(_)), copy) => {
                !row.exists() && (stored || (row.withdrawn && copy.is_some()))
            }
            // Proof may still come while pods are left.
            (Some(CopyState::Vanished), Some(copy)) => {
                stored && self.ledgers.proof(&copy.uid, 0) != super::ledger::Proof::Running
            }
            (Some(CopyState::Vanished), None) => stored,
            (Some(CopyState::Accepted | CopyState::Live(_) | CopyState::Stopping(_)) | None, _) => false,
        }
    }

    fn statement(&self, placement: &PlacementId, row: &Row) -> Statement {
        match &row.copy {
            Some(copy) => self.of_copy(row, copy),
            None => self.of_attempt(placement, row),
        }
    }

    fn of_copy(&self, row: &Row, copy: &Copy) -> Statement {
        let status = || copy.status.clone();
        let stopped = || match &copy.rejected {
            Some(refusal) if !self.has_run(copy) => CopyState::Refused(refusal.clone()),
            Some(_) | None => CopyState::Stopped(status()),
        };
        if copy.gone {
            return Statement::Is(match self.proven(copy) {
                true => stopped(),
                false if copy.ordered || copy.deleting => CopyState::Stopping(status()),
                false => CopyState::Vanished,
            });
        }
        // Our own order ends with the finalizer's removal: only then is the name free and the proof complete.
        let ours = row.stop_wanted() || copy.rejected.is_some();
        if copy.deleting && self.proven(copy) && !(ours && copy.has_finalizer()) {
            return Statement::Is(stopped());
        }
        if copy.rejected.is_some() {
            return Statement::Unchanged;
        }
        Statement::Is(if copy.deleting { CopyState::Stopping(status()) } else { CopyState::Live(status()) })
    }

    fn of_attempt(&self, placement: &PlacementId, row: &Row) -> Statement {
        match &row.attempt {
            Attempt::Held { .. } => Statement::Is(CopyState::Accepted),
            Attempt::Refused { refusal, .. } => Statement::Is(CopyState::Refused(refusal.clone())),
            // A refusal does not stand while the same placement is tried anew.
            Attempt::Checking { .. } | Attempt::Creating | Attempt::Settling { .. } => {
                match row.shown.state {
                    Some(CopyState::Refused(_)) => Statement::Nothing,
                    _ => Statement::Unchanged,
                }
            }
            Attempt::Lapsed => Statement::Nothing,
            Attempt::Idle if !self.inventory_ready() => Statement::Unchanged,
            Attempt::Idle => match row.desired() {
                Some(Desired::Stop(_)) if self.ledgers.any_running(placement.as_str()) => {
                    Statement::Is(CopyState::Stopping(CopyStatus::default()))
                }
                Some(Desired::Stop(_)) => Statement::Is(CopyState::Stopped(CopyStatus::default())),
                Some(Desired::Keep) => Statement::Is(CopyState::Vanished),
                Some(Desired::Prepare(_) | Desired::Start(_)) => Statement::Unchanged,
                None => Statement::Nothing,
            },
        }
    }
}
