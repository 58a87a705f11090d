//! Which pods of our copies have been seen, and what proves that they stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairlead_model::Uid;

use super::pods::Pod;

/// The pods of one Job.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// Pods that exist and have not provably stopped.
    running: BTreeSet<Uid>,
    /// How many different pods have been seen.
    seen: u64,
    /// Pods that were deleted while nothing proved that their containers had stopped.
    unproven: BTreeSet<Uid>,
    /// Pods vanished while we were not watching.
    gap: bool,
    /// A pod has run.
    has_run: bool,
}

/// What the pods of a Job prove about its stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// Pods are still there.
    Running,
    /// A pod was removed by force, or its node was lost: nothing proves that it stopped.
    Unproven,
    /// Every pod that was seen has provably stopped, and none was missed as far as the count can tell.
    Complete,
    /// Pods came or went unseen; the Job's own count and its nodes must do.
    Gap,
}

/// The pods of all our copies, by the UID of their Job.
#[derive(Debug, Default)]
pub(crate) struct Ledgers {
    jobs: BTreeMap<Uid, Ledger>,
    owners: BTreeMap<Uid, (Uid, Arc<str>)>,
    by_placement: BTreeMap<Arc<str>, BTreeSet<Uid>>,
}

impl Ledgers {
    /// A pod was added or has changed.
    pub(crate) fn pod(&mut self, uid: &Uid, pod: &Pod) {
        let (Some(job), Some(placement)) = (&pod.job, &pod.placement) else { return };
        let ledger = self.jobs.entry(job.clone()).or_default();
        if !self.owners.contains_key(uid) {
            ledger.seen = ledger.seen.saturating_add(1);
            self.owners.insert(uid.clone(), (job.clone(), Arc::clone(placement)));
        }
        ledger.has_run |= pod.has_run;
        if pod.stopped {
            ledger.running.remove(uid);
            self.unlist(uid, placement);
        } else {
            ledger.running.insert(uid.clone());
            self.by_placement.entry(Arc::clone(placement)).or_default().insert(uid.clone());
        }
    }

    /// A pod has gone. `last` is its final state where the API server sent it; without one it went while we were
    /// not watching.
    pub(crate) fn pod_gone(&mut self, uid: &Uid, last: Option<&Pod>) {
        let Some((job, placement)) = self.owners.remove(uid) else { return };
        self.unlist(uid, &placement);
        let Some(ledger) = self.jobs.get_mut(&job) else { return };
        if !ledger.running.remove(uid) {
            return;
        }
        match last {
            Some(pod) if pod.stopped || pod.node.is_none() => {}
            Some(_) => {
                tracing::warn!(pod = %uid, job = %job, "a pod was removed, and nothing proves that it stopped");
                ledger.unproven.insert(uid.clone());
            }
            None => ledger.gap = true,
        }
    }

    fn unlist(&mut self, uid: &Uid, placement: &Arc<str>) {
        if let Some(pods) = self.by_placement.get_mut(placement) {
            pods.remove(uid);
            if pods.is_empty() {
                self.by_placement.remove(placement);
            }
        }
    }

    /// The Job that a pod belongs to.
    pub(crate) fn job_of(&self, pod: &Uid) -> Option<&Uid> {
        self.owners.get(pod).map(|(job, _)| job)
    }

    /// What the pods of a Job prove, if its status once spoke of `most_pods` of them.
    pub(crate) fn proof(&self, job: &Uid, most_pods: u64) -> Proof {
        let nothing = Ledger::default();
        let ledger = self.jobs.get(job).unwrap_or(&nothing);
        if !ledger.running.is_empty() {
            Proof::Running
        } else if !ledger.unproven.is_empty() {
            Proof::Unproven
        } else if ledger.gap || ledger.seen < most_pods {
            Proof::Gap
        } else {
            Proof::Complete
        }
    }

    /// Whether a pod of this Job has been seen to run.
    pub(crate) fn has_run(&self, job: &Uid) -> bool {
        self.jobs.get(job).is_some_and(|ledger| ledger.has_run)
    }

    /// Whether pods that carry this placement's label have not stopped, whatever became of their Job.
    pub(crate) fn any_running(&self, placement: &str) -> bool {
        self.by_placement.contains_key(placement)
    }

    /// The Job's row has been closed.
    pub(crate) fn forget(&mut self, job: &Uid) {
        if self.jobs.get(job).is_some_and(|ledger| ledger.running.is_empty()) {
            self.jobs.remove(job);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(node: Option<&str>, stopped: bool) -> Pod {
        Pod {
            job: Some("job".into()),
            placement: Some("p1-1".into()),
            node: node.map(Arc::from),
            requests: fairlead_model::Resources::new(),
            finished: stopped,
            has_run: node.is_some(),
            stopped,
        }
    }

    fn ledgers() -> Ledgers {
        let mut ledgers = Ledgers::default();
        ledgers.pod(&"a".into(), &pod(Some("n"), false));
        ledgers
    }

    fn proof(ledgers: &Ledgers) -> Proof {
        ledgers.proof(&"job".into(), 1)
    }

    #[test]
    fn a_reported_end_is_proof_before_and_after_the_pod_goes() {
        let mut ledgers = ledgers();
        assert_eq!(proof(&ledgers), Proof::Running);
        assert!(ledgers.any_running("p1-1"));
        ledgers.pod(&"a".into(), &pod(Some("n"), true));
        assert_eq!(proof(&ledgers), Proof::Complete);
        assert!(!ledgers.any_running("p1-1"));
        ledgers.pod_gone(&"a".into(), Some(&pod(Some("n"), true)));
        assert_eq!(proof(&ledgers), Proof::Complete);
    }

    #[test]
    fn the_final_state_may_come_with_the_deletion() {
        let mut ledgers = ledgers();
        ledgers.pod_gone(&"a".into(), Some(&pod(Some("n"), true)));
        assert_eq!(proof(&ledgers), Proof::Complete);
    }

    #[test]
    fn a_forced_deletion_is_never_proof_and_an_unbound_pod_never_ran() {
        let mut forced = ledgers();
        forced.pod_gone(&"a".into(), Some(&pod(Some("n"), false)));
        assert_eq!(proof(&forced), Proof::Unproven);
        let mut unbound = Ledgers::default();
        unbound.pod(&"a".into(), &pod(None, false));
        unbound.pod_gone(&"a".into(), Some(&pod(None, false)));
        assert_eq!(proof(&unbound), Proof::Complete);
    }

    #[test]
    fn what_happened_unseen_is_a_gap() {
        let mut vanished = ledgers();
        vanished.pod_gone(&"a".into(), None);
        assert_eq!(proof(&vanished), Proof::Gap);
        assert_eq!(ledgers().proof(&"job".into(), 2), Proof::Running);
        assert_eq!(Ledgers::default().proof(&"job".into(), 1), Proof::Gap);
        assert_eq!(Ledgers::default().proof(&"job".into(), 0), Proof::Complete);
    }
}
