//! What became of operations.

use fairlead_model::{ObjectKey, PlacementId, RunId};

use super::Brain;
use super::ledger::{Purpose, Verb};
use crate::jobs::json;
use crate::ports::{Kind, Object, OpId, Outcome, Version};

/// How long to wait for a name that somebody else's Workload has, in milliseconds.
const TAKEN_MS: i64 = 5_000;

impl Brain {
    /// Takes in the outcome of one operation. The object that comes with it is a fact like any other, so nothing
    /// waits for the watch to repeat it.
    pub(crate) fn outcome(&mut self, id: OpId, outcome: &Outcome) {
        let Some((purpose, verb)) = self.ledger.close(id) else {
            return;
        };
        if let Outcome::Refused(text) = outcome {
            self.warn(format!("{purpose:?} was refused: {text}"));
        }
        match purpose {
            Purpose::Workload(run) => self.workload_outcome(&run, outcome, verb),
            Purpose::Job(run) => self.job_outcome(&run, outcome, verb),
            Purpose::Upkeep(kind, key) => self.upkeep_outcome(kind, &key, outcome, verb),
            Purpose::Tombstone(placement) => self.tombstone_outcome(&placement, outcome, verb),
            Purpose::Pod(run, uid) => {
                self.absorb_done(outcome, verb);
                self.pod_outcome((&run, &uid), outcome, verb);
            }
            Purpose::Event => {}
        }
    }

    /// Absorbs the object of a successful operation. A Delete may answer without one, or with one that is gone.
    fn absorb_done(&mut self, outcome: &Outcome, verb: Verb) {
        let there = |object: &Object| {
            verb != Verb::Delete || !json::list(&object.json, &["metadata", "finalizers"]).is_empty()
        };
        if let Outcome::Done(object) = outcome
            && object.version > 0
            && there(object)
        {
            self.object(object);
        }
    }

    fn workload_outcome(&mut self, id: &RunId, outcome: &Outcome, verb: Verb) {
        self.absorb_done(outcome, verb);
        let now = self.now.mono;
        let lost = self.with_run(id, |brain, run| {
            let known = run.workload.as_ref().map_or(0, |workload| workload.version);
            run.workload_slot.settle(outcome, verb, known, now);
            if let (Outcome::Done(object), Verb::Read, None) = (outcome, verb, &run.workload) {
                // Somebody else's Workload has the name that ours would get.
                run.workload_slot.block(now.plus(TAKEN_MS));
                brain.warn(format!("Workload {} is in the way of {}'s", object.key, run.key));
            }
            if verb == Verb::Read && matches!(outcome, Outcome::NotFound) {
                run.workload.clone()
            } else {
                None
            }
        });
        if let Some(Some(workload)) = lost {
            // A consistent read says that it is gone; the watch will say so too.
            self.gone(Kind::Workload, &workload.key, &workload.uid, workload.version);
        }
        self.dirty.insert(id.clone());
    }

    fn job_outcome(&mut self, id: &RunId, outcome: &Outcome, verb: Verb) {
        self.absorb_done(outcome, verb);
        let now = self.now.mono;
        self.with_run(id, |_, run| {
            let known = run.job.as_ref().map_or(0, |job| job.version);
            run.job_slot.settle(outcome, verb, known, now);
            // Gone, or replaced by a namesake of another UID: in both cases this run's Job is no more.
            let replaced = matches!(outcome, Outcome::Done(object) if object.uid.as_str() != run.id.as_str());
            if verb == Verb::Read && (replaced || matches!(outcome, Outcome::NotFound)) {
                run.job = None;
            }
        });
        self.dirty.insert(id.clone());
    }

    fn upkeep_outcome(&mut self, kind: Kind, key: &ObjectKey, outcome: &Outcome, verb: Verb) {
        self.absorb_done(outcome, verb);
        let now = self.now.mono;
        if kind == Kind::Cluster {
            let spoke =
                self.spokes.values_mut().find(|spoke| spoke.cluster.as_ref().is_some_and(|c| c.key == *key));
            if let Some(spoke) = spoke {
                let known = spoke.cluster.as_ref().map_or(0, |cluster| cluster.version);
                spoke.slot.settle(outcome, verb, known, now);
            }
        } else if let Some(kept) = self.catalog.kept_mut(kind, key) {
            let known: Version = kept.object.version;
            kept.slot.settle(outcome, verb, known, now);
        }
        self.sums.touch(kind, key.clone());
    }

    fn tombstone_outcome(&mut self, placement: &PlacementId, outcome: &Outcome, verb: Verb) {
        self.absorb_done(outcome, verb);
        let now = self.now.mono;
        let Some(id) = self.runs.by_placement.get(placement).cloned() else {
            return;
        };
        self.with_run(&id, |_, run| {
            run.tombstone_slot.settle(outcome, verb, 0, now);
            match outcome {
                Outcome::AlreadyExists => run.tombstone = true,
                Outcome::NotFound => run.tombstone = false,
                _ => {}
            }
        });
        self.dirty.insert(id);
    }
}
