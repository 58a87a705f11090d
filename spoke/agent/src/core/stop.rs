//! Stop: deleting a copy, proving that it stopped, letting go of it.

use fairlead_model::{Now, PlacementId, Reason};
use fairlead_session::CopyState;

use super::copy::Copy;
use super::ledger::Proof;
use super::row::Row;
use super::{Core, Doing, refusal};
use crate::ports::{Kind, Op, OpId, Outcome};

impl Core {
    /// Does what the copy needs: delete it, or take our finalizer off it.
    pub(super) fn tend(&mut self, placement: &PlacementId, row: &mut Row, now: Now) {
        let stop_wanted = row.stop_wanted();
        let has_run = row.copy.as_ref().is_some_and(|copy| self.has_run(copy));
        let Some(copy) = &mut row.copy else { return };
        let suspended = copy.suspended && !copy.gone && !has_run && !copy.deleting && !stop_wanted;
        if suspended && copy.rejected.is_none() && copy.status.terminal.is_none() {
            let detail = "something on this cluster suspended the Job before it ran";
            copy.rejected = Some(refusal(Reason::SuspendedByLocalQueueing, detail));
        }
        self.watch_nodes(placement, row);
        let Some(copy) = &row.copy else { return };
        if copy.gone || row.writing.is_some() || !row.retry.due(now.mono) {
            return;
        }
        let doing = if self.must_delete(row, copy) {
            Some((Doing::Delete, Op::Delete(copy.uid.clone())))
        } else if self.may_release(row, copy) {
            Some((Doing::Release, Op::Patch(copy.release())))
        } else {
            None
        };
        if let Some((doing, op)) = doing {
            let ordered = matches!(doing, Doing::Delete);
            let tenant = Some(self.policy.tenant(&row.key.namespace));
            row.writing = Some(self.operate(placement, doing, (Kind::Job, row.key.clone(), op, tenant)));
            if let Some(copy) = &mut row.copy {
                copy.ordered |= ordered;
            }
        }
    }

    /// Remembers copies whose stop may be proven by a change of nodes.
    fn watch_nodes(&mut self, placement: &PlacementId, row: &Row) {
        let waits = |copy: &Copy| (copy.gone || copy.deleting) && !self.proven(copy);
        if row.copy.as_ref().is_some_and(waits) {
            self.awaiting_nodes.insert(placement.clone());
        } else {
            self.awaiting_nodes.remove(placement);
        }
    }

    /// Whether a delete must be sent. Somebody else's delete may leave the pods running, because our finalizer
    /// keeps the Job: then ours is needed, too, to have the pods deleted.
    fn must_delete(&self, row: &Row, copy: &Copy) -> bool {
        if copy.deleting {
            let pods_left = self.ledgers.proof(&copy.uid, 0) == Proof::Running;
            return pods_left && !copy.deleting_pods() && !copy.ordered && copy.has_finalizer();
        }
        row.stop_wanted() || copy.rejected.is_some()
    }

    /// Whether our finalizer has done its duty: the result is stored on the hub, or the stop is proven and nobody
    /// needs the Job as the record of it.
    fn may_release(&self, row: &Row, copy: &Copy) -> bool {
        if !copy.has_finalizer() {
            return false;
        }
        let stored = |state: &CopyState| match state {
            CopyState::Live(status) => status.terminal.is_some(),
            CopyState::Stopped(_) | CopyState::Refused(_) => true,
            CopyState::Accepted | CopyState::Stopping(_) | CopyState::Vanished => false,
        };
        let acknowledged = row.shown.acknowledged && row.shown.state.as_ref().is_some_and(stored);
        if copy.deleting {
            self.proven(copy) && (row.stop_wanted() || copy.rejected.is_some() || acknowledged)
        } else {
            copy.status.terminal.is_some() && acknowledged
        }
    }

    /// A delete or a release has been answered.
    pub(super) fn written(&mut self, placement: &PlacementId, id: OpId, outcome: Outcome, now: Now) {
        // The row may have been closed and opened again meanwhile: an answer that is late brings nothing back.
        let row = self.rows.get(placement).filter(|row| row.writing == Some(id));
        let Some(uid) = row.and_then(|row| row.copy.as_ref()).map(|copy| &copy.uid) else { return };
        let job = match &outcome {
            Outcome::Done(job) if job.version > 0 && job.uid == *uid => Some(job.clone()),
            _ => None,
        };
        self.change(placement, |row| {
            row.writing = None;
            match outcome {
                Outcome::Done(_) => row.retry.succeeded(),
                // Somebody was quicker; the watch brings what is there now.
                Outcome::Conflict | Outcome::NotFound | Outcome::AlreadyExists => row.retry.failed(now.mono),
                Outcome::Refused(why) | Outcome::Unknown(why) => {
                    tracing::warn!(job = %row.key, %why, "could not delete or release a Job of ours; trying again");
                    row.retry.failed(now.mono);
                }
            }
        });
        if let Some(job) = job {
            self.job(&job);
        }
    }

    /// Whether pods of the copy have been seen to run.
    pub(super) fn has_run(&self, copy: &Copy) -> bool {
        copy.has_run || self.ledgers.has_run(&copy.uid)
    }

    /// Whether it is proven that nothing of the copy runs or will run.
    pub(super) fn proven(&self, copy: &Copy) -> bool {
        let ending = copy.gone || (copy.deleting && !copy.deleting_pods());
        ending
            && match self.ledgers.proof(&copy.uid, copy.most_pods) {
                Proof::Running | Proof::Unproven => false,
                Proof::Complete if !copy.gap => true,
                Proof::Complete | Proof::Gap => {
                    copy.status.active == 0 && copy.status.terminating == 0 && self.capacity.all_ready()
                }
            }
    }
}
