//! The books of the brain: which operation is in flight for what, and which version of each object it has seen.

use std::collections::{BTreeMap, VecDeque};

use fairlead_model::{Millis, ObjectKey, PlacementId, RunId, Uid};

use crate::ports::{Kind, OpId, Outcome, Version};

/// How long the UID of a deleted object is remembered, so that a late outcome of a write does not bring it back.
const GONE_MS: i64 = 600_000;
/// First and longest wait after a failed operation.
const RETRY_MS: (i64, i64) = (500, 30_000);

/// What an operation is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A run's Workload.
    Workload(RunId),
    /// A run's Job.
    Job(RunId),
    /// The status, labels or finalizers of a queue, check or cluster.
    Upkeep(Kind, ObjectKey),
    /// The Tombstone of a placement.
    Tombstone(PlacementId),
    /// A pod of a run that waits for its place.
    Pod(RunId, Uid),
    /// An Event. Nobody waits for it.
    Event,
}

/// What kind of operation it was, as far as its outcome is read differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// A consistent read.
    Read,
    /// A create or patch.
    Write,
    /// A delete.
    Delete,
}

/// Operations in flight and versions seen.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    issued: u64,
    open: BTreeMap<OpId, (Purpose, Verb)>,
    seen: BTreeMap<(Kind, Uid), Version>,
    gone: BTreeMap<(Kind, Uid), Version>,
    gone_order: VecDeque<(Millis, (Kind, Uid))>,
}

impl Ledger {
    /// Opens an operation.
    pub(crate) fn open(&mut self, purpose: Purpose, verb: Verb) -> OpId {
        self.issued = self.issued.saturating_add(1);
        let id = OpId(self.issued);
        self.open.insert(id, (purpose, verb));
        id
    }

    /// Closes an operation and says what it was for.
    pub(crate) fn close(&mut self, id: OpId) -> Option<(Purpose, Verb)> {
        self.open.remove(&id)
    }

    /// Rule a: whether this version of an object is news. One at or below what was seen, or written by us, is not,
    /// and nothing brings back an object that is gone.
    pub(crate) fn is_news(&mut self, kind: Kind, uid: &Uid, version: Version) -> bool {
        let id = (kind, uid.clone());
        if self.gone.contains_key(&id) {
            return false;
        }
        match self.seen.get_mut(&id) {
            Some(seen) if *seen >= version => false,
            Some(seen) => {
                *seen = version;
                true
            }
            None => {
                self.seen.insert(id, version);
                true
            }
        }
    }

    /// The object is gone.
    pub(crate) fn bury(&mut self, kind: Kind, uid: &Uid, version: Version, now: Millis) {
        let id = (kind, uid.clone());
        self.seen.remove(&id);
        if self.gone.insert(id.clone(), version).is_none() {
            self.gone_order.push_back((now, id));
        }
        while let Some((at, id)) = self.gone_order.front()
            && now.since(*at) > GONE_MS
        {
            self.gone.remove(id);
            self.gone_order.pop_front();
        }
    }

    /// How many operations were opened so far; makes names of Events unique within a term.
    pub(crate) const fn issued(&self) -> u64 {
        self.issued
    }
}

/// Rule d: the one place for an operation on an object. While it is taken, everything that is wanted in the
/// meantime merges into the next write, which is made from the state as it is then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slot {
    op: Option<OpId>,
    /// The object's version that the write started from.
    base: Version,
    unsettled: bool,
    failures: u32,
    blocked_until: Option<Millis>,
}

/// What to do with a slot now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// An operation is in flight, or the last one failed a moment ago.
    Busy,
    /// What the last write did is not known: read first.
    MustRead,
    /// A write may be made.
    Free,
}

impl Slot {
    /// Takes the slot.
    pub(crate) const fn take(&mut self, op: OpId, base: Version) {
        self.op = Some(op);
        self.base = base;
    }

    /// Makes nothing of it until then.
    pub(crate) const fn block(&mut self, until: Millis) {
        self.blocked_until = Some(until);
    }

    /// Whether it holds an operation whose outcome may have happened already, unseen.
    pub(crate) const fn is_uncertain(&self) -> bool {
        self.op.is_some() || self.unsettled
    }

    /// What may be done now.
    pub(crate) fn readiness(&self, now: Millis) -> Readiness {
        if self.op.is_some() || self.blocked_until.is_some_and(|until| now < until) {
            Readiness::Busy
        } else if self.unsettled {
            Readiness::MustRead
        } else {
            Readiness::Free
        }
    }

    /// When to look again after a failure.
    pub(crate) fn wake(&self) -> Option<Millis> {
        if self.op.is_some() { None } else { self.blocked_until }
    }

    /// Takes in an outcome of the operation in flight. `known` is the newest version seen by other ways.
    ///
    /// Rule b: a conflict needs a fresher read, which a watch may have brought already; a time-out or server error
    /// is *unknown* and needs a consistent one.
    pub(crate) fn settle(&mut self, outcome: &Outcome, verb: Verb, known: Version, now: Millis) {
        let read = verb == Verb::Read;
        self.op = None;
        match outcome {
            // The API server stored nothing new: what is wanted does not survive there. Trying at once would spin.
            Outcome::Done(object) if verb == Verb::Write && (1..=self.base).contains(&object.version) => {
                self.fail_after(true, now);
            }
            Outcome::Done(_) => *self = Self::default(),
            Outcome::NotFound if read => *self = Self::default(),
            Outcome::Conflict => {
                self.unsettled = known <= self.base;
                self.fail_after(self.failures > 2, now);
            }
            Outcome::AlreadyExists | Outcome::NotFound => {
                self.unsettled = true;
                self.fail_after(self.failures > 0, now);
            }
            Outcome::Unknown(_) => {
                self.unsettled = true;
                self.fail_after(read, now);
            }
            Outcome::Refused(_) | Outcome::NotSent => self.fail_after(true, now),
        }
    }

    fn fail_after(&mut self, wait: bool, now: Millis) {
        let factor = 1_i64.checked_shl(self.failures).unwrap_or(i64::MAX);
        self.failures = self.failures.saturating_add(1).min(16);
        self.blocked_until = wait.then(|| now.plus(RETRY_MS.0.saturating_mul(factor).min(RETRY_MS.1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_a_older_versions_and_the_gone_are_no_news() {
        let mut ledger = Ledger::default();
        let uid = Uid::from("u");
        assert!(ledger.is_news(Kind::Job, &uid, 5));
        assert!(!ledger.is_news(Kind::Job, &uid, 5), "our own write comes back from the watch");
        assert!(!ledger.is_news(Kind::Job, &uid, 4));
        assert!(ledger.is_news(Kind::Workload, &uid, 4), "kinds are apart");
        assert!(ledger.is_news(Kind::Job, &uid, 6));
        ledger.bury(Kind::Job, &uid, 7, Millis(0));
        assert!(!ledger.is_news(Kind::Job, &uid, 8), "a late outcome does not bring it back");
        ledger.bury(Kind::Job, &Uid::from("other"), 9, Millis(GONE_MS + 1));
        assert!(ledger.is_news(Kind::Job, &uid, 10), "forgotten after a while");
    }

    #[test]
    fn rule_b_unknown_needs_a_read_and_a_conflict_only_where_nothing_fresher_is_known() {
        let mut slot = Slot::default();
        slot.take(OpId(1), 7);
        assert_eq!(slot.readiness(Millis(0)), Readiness::Busy);
        slot.settle(&Outcome::Unknown("timed out".into()), Verb::Write, 7, Millis(0));
        assert_eq!(slot.readiness(Millis(0)), Readiness::MustRead);
        slot.take(OpId(2), 7);
        slot.settle(&Outcome::Unknown("timed out".into()), Verb::Read, 7, Millis(0));
        assert_eq!(slot.readiness(Millis(0)), Readiness::Busy, "a failed read waits");
        assert_eq!(slot.readiness(slot.wake().unwrap()), Readiness::MustRead);

        let mut slot = Slot::default();
        slot.take(OpId(3), 7);
        slot.settle(&Outcome::Conflict, Verb::Write, 9, Millis(0));
        assert_eq!(slot.readiness(Millis(0)), Readiness::Free, "the watch was faster");
        slot.take(OpId(4), 9);
        slot.settle(&Outcome::Conflict, Verb::Write, 9, Millis(0));
        assert_eq!(slot.readiness(Millis(0)), Readiness::MustRead);
    }

    #[test]
    fn failures_wait_longer_each_time_up_to_a_bound() {
        let mut slot = Slot::default();
        let mut last = 0;
        for _ in 0..20 {
            slot.take(OpId(1), 0);
            slot.settle(&Outcome::Refused("no".into()), Verb::Write, 0, Millis(0));
            let wait = slot.wake().unwrap().0;
            assert!(wait >= last);
            last = wait;
        }
        assert_eq!(last, RETRY_MS.1);
    }
}
