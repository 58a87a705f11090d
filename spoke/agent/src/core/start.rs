//! Start: the Job is created once, or found to be there already.

use fairlead_model::{Millis, Now, PlacementId, Reason};
use fairlead_session::{Desired, Intent, Refusal};

use super::copy::Stamps;
use super::prepare::{claim_of, occupied, taken_by};
use super::row::{Attempt, Row};
use super::{Core, Doing, refusal};
use crate::ports::{CREATE_TIMEOUT_MS, Kind, Op, Outcome};

/// How long after the API server has given up on a create a read is trusted to show what became of it.
const SETTLE_MARGIN_MS: i64 = 2_000;

impl Core {
    /// A Start is in force.
    pub(super) fn start(
        &mut self,
        placement: &PlacementId,
        row: &mut Row,
        (intent, revision): (&Intent, u64),
        now: Now,
    ) {
        let begun = match &row.attempt {
            Attempt::Creating | Attempt::Settling { .. } => true,
            Attempt::Refused { revision: refused, .. } => *refused == revision,
            Attempt::Idle | Attempt::Checking { .. } | Attempt::Held { .. } | Attempt::Lapsed => false,
        };
        // A copy that is there has been started; one that has gone is never made again.
        if begun || row.copy.is_some() || !self.inventory_ready() || !row.retry.due(now.mono) {
            return;
        }
        match self.validate(placement, row, intent) {
            Ok(valid) => {
                let claim = claim_of(intent, &valid.manifest);
                let stamps = Stamps { placement: placement.clone(), run: row.run.clone(), epoch: row.epoch };
                let Some(job) = stamps.write(valid.manifest, &row.key) else {
                    let refusal = refusal(Reason::InvalidJob, "the manifest has no pod template");
                    return deny(row, (revision, refusal), now);
                };
                self.claims.entry(placement.clone()).or_insert(claim);
                let create = (Kind::Job, row.key.clone(), Op::Create(job), Some(valid.tenant));
                self.operate(placement, Doing::Create, create);
                row.attempt = Attempt::Creating;
            }
            Err(refusal) => deny(row, (revision, refusal), now),
        }
    }

    /// A create has been answered.
    pub(super) fn created(&mut self, placement: &PlacementId, outcome: Outcome, now: Now) {
        if let Outcome::Done(job) = &outcome {
            self.change(placement, |row| {
                row.attempt = Attempt::Idle;
                row.unsettled = None;
                row.retry.succeeded();
            });
            self.job(job);
            return;
        }
        let Some(mut row) = self.rows.remove(placement) else { return };
        let revision = row.command.as_ref().map_or(0, |command| command.revision);
        match outcome {
            Outcome::AlreadyExists => row.attempt = Attempt::Settling { read: None },
            Outcome::Unknown(why) => {
                tracing::warn!(%placement, %why, "it is not known whether the Job was created");
                row.unsettled = Some(now.mono.plus(CREATE_TIMEOUT_MS + SETTLE_MARGIN_MS));
                row.attempt = Attempt::Settling { read: None };
            }
            Outcome::NotFound => {
                let detail = format!("namespace {} does not exist here", row.key.namespace);
                deny(&mut row, (revision, refusal(Reason::NamespaceNotFound, detail)), now);
            }
            Outcome::Refused(message) => {
                deny(&mut row, (revision, refusal(Reason::RejectedByApiServer, message)), now);
            }
            Outcome::Conflict | Outcome::Done(_) => {
                deny(&mut row, (revision, refusal(Reason::RejectedByApiServer, "conflict")), now);
            }
        }
        self.rows.insert(placement.clone(), row);
    }

    /// Reads what became of a create, when a read is due.
    pub(super) fn settle(&mut self, placement: &PlacementId, row: &mut Row, now: Now) {
        // A lost create stays to be settled, also when nobody wants the Job any more.
        let started = matches!(row.desired(), Some(Desired::Start(_)));
        if row.unsettled.is_some() && !started && matches!(row.attempt, Attempt::Idle) {
            row.attempt = Attempt::Settling { read: None };
        }
        if !matches!(row.attempt, Attempt::Settling { read: None }) {
            return;
        }
        if row.copy.is_some() {
            // The watch was quicker than the read.
            (row.attempt, row.unsettled, row.verdict) = (Attempt::Idle, None, None);
        } else if row.retry.due(now.mono) {
            let read = (Kind::Job, row.key.clone(), Op::Get, None);
            self.operate(placement, Doing::Settle, read);
            row.attempt = Attempt::Settling { read: Some(now.mono) };
        }
    }

    /// The read that settles a create has been answered.
    pub(super) fn settled(&mut self, placement: &PlacementId, outcome: Outcome, now: Now) {
        let Some(row) = self.rows.get_mut(placement) else { return };
        let revision = row.command.as_ref().map_or(0, |command| command.revision);
        let Attempt::Settling { read: Some(sent) } = row.attempt else { return };
        match outcome {
            Outcome::Done(job) => {
                let owner = taken_by(&job.json);
                if owner.as_ref() == Some(placement) {
                    row.attempt = Attempt::Idle;
                    (row.unsettled, row.verdict) = (None, None);
                    row.retry.succeeded();
                    if !self.job(&job) {
                        self.disown(placement, revision);
                    }
                } else {
                    // The name is somebody else's; should it be freed in time, a lost create could still land.
                    row.unsettled = row.unsettled.filter(|at| *at > sent);
                    deny(row, (revision, occupied(&job.key, owner.as_ref())), now);
                }
            }
            Outcome::NotFound => nothing_found(row, (revision, sent), now),
            Outcome::Conflict | Outcome::AlreadyExists | Outcome::Refused(_) | Outcome::Unknown(_) => {
                row.retry.failed(now.mono);
                row.attempt = Attempt::Settling { read: None };
            }
        }
    }

    /// A Job has this placement's label and is not its copy: other stamps differ.
    fn disown(&mut self, placement: &PlacementId, revision: u64) {
        let detail = "a Job with this placement's label and other stamps has the name";
        let refusal = refusal(Reason::NameTaken, detail);
        self.change(placement, |row| row.attempt = Attempt::Refused { revision, refusal });
    }
}

/// Says no: at once, or when a create whose answer was lost has been settled. Where Start is no longer wanted there
/// is nothing to refuse; what is wanted instead gets its own answer.
fn deny(row: &mut Row, (revision, refusal): (u64, Refusal), now: Now) {
    let wanted = matches!(row.desired(), Some(Desired::Start(_)));
    if row.unsettled.is_some() {
        row.verdict = wanted.then_some(refusal);
        row.retry.at = row.unsettled.filter(|at| *at > now.mono);
        row.attempt = Attempt::Settling { read: None };
    } else {
        row.attempt = if wanted { Attempt::Refused { revision, refusal } } else { Attempt::Idle };
    }
}

/// The Job was not there when the read came. After a lost create that is proof only if the API server had given up
/// on it before the read was sent; while Start is in force the create is simply sent again, since it can succeed
/// only once.
fn nothing_found(row: &mut Row, (revision, sent): (u64, Millis), now: Now) {
    let started = matches!(row.desired(), Some(Desired::Start(_)));
    let wanted = started && row.verdict.is_none();
    match row.unsettled.filter(|at| *at > sent) {
        _ if wanted => {
            row.retry.failed(now.mono);
            row.attempt = Attempt::Idle;
        }
        Some(at) => {
            row.retry.at = Some(at);
            row.attempt = Attempt::Settling { read: None };
        }
        None => {
            row.unsettled = None;
            row.retry.succeeded();
            row.attempt = match row.verdict.take().filter(|_| started) {
                Some(refusal) => Attempt::Refused { revision, refusal },
                None => Attempt::Idle,
            };
        }
    }
}
