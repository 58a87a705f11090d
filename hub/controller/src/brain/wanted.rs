//! What a run's Workload status should say: a pure function of the run's record.
//!
//! All writers of one status are merged here. The brain compares the result with what is stored and writes the
//! difference, so equal values cost nothing and nothing that became true in the meantime needs a write of its own. What
//! the hub holds to be true it says again where somebody else has changed it.

mod admit;
mod evict;

use fairlead_api::conditions::{
    self, DeactivationReason, FinishedReason, PodsReadyReason, RequeuedReason, Status, Wanted,
    WorkloadCondition,
};
use fairlead_api::kueue::{self, PlacementState, Verdict, WorkloadStatus};
use fairlead_model::Millis;
use fairlead_placement::State;

use super::checks::CheckUse;
use super::evict::{Eviction, Unready};
use super::run::{Held, Promised, Run, Workload, api_time};
use crate::jobs::json;
use crate::jobs::view::{condition, condition_is_true};

/// Closed promises that a Workload remembers.
const REMEMBERED: usize = 3;

/// A status to be written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Write {
    pub(crate) status: WorkloadStatus,
    /// It gives quota or a promise.
    pub(crate) commit: bool,
}

/// What there is to know beside the run's own record.
#[derive(Clone, Debug)]
pub(crate) struct Around {
    /// The checks of the run's ClusterQueue.
    pub(crate) checks: Vec<CheckUse>,
    /// The flavors of that ClusterQueue.
    pub(crate) flavors: Vec<std::sync::Arc<str>>,
    /// Why what it holds is to be given back, if it is.
    pub(crate) evict: Option<Eviction>,
    /// Pods that were not ready in time.
    pub(crate) unready: Option<Unready>,
    /// Why the hub is to deactivate it, if it is.
    pub(crate) deactivate: Option<(DeactivationReason, String)>,
    /// Why it may be queued again, if it was not allowed to.
    pub(crate) requeue: Option<RequeuedReason>,
    /// Its queue admits nothing new.
    pub(crate) stopped: bool,
    /// Why its checks' additions to the pods cannot be made, if they cannot.
    pub(crate) conflict: Option<String>,
    /// Pods that were ready have not been for long enough to say so.
    pub(crate) lost: bool,
    /// How many pods are done with, where it is time to say so.
    pub(crate) reclaimable: Option<i64>,
    /// The Job names a Workload that is for other pods.
    pub(crate) out_of_sync: bool,
    /// Nodes of its places that have failed since it was said last.
    pub(crate) failed_nodes: Vec<std::sync::Arc<str>>,
    /// Wall clock.
    pub(crate) now: Millis,
}

impl Around {
    /// The dispatch check, which makes the queue federated.
    fn dispatch(&self) -> Option<&CheckUse> {
        self.checks.iter().find(|check| check.ours)
    }
}

/// The status that this run's Workload should have; none when it is already as it should be.
pub(crate) fn wanted(run: &Run, around: &Around) -> Option<Write> {
    let workload = run.workload.as_ref()?;
    let mut draft = Draft { status: workload.status.clone(), workload, around };
    let finished = workload.is(WorkloadCondition::Finished);
    let commit = !finished && draft.fill(run);
    draft.keep_up();
    let changed = draft.status != workload.status;
    changed.then_some(Write { status: draft.status, commit })
}

struct Draft<'a> {
    status: WorkloadStatus,
    workload: &'a Workload,
    around: &'a Around,
}

impl Draft<'_> {
    /// Changes the status as the record asks for, and says whether that gives quota or a promise.
    fn fill(&mut self, run: &Run) -> bool {
        if self.finish(run) {
            return false;
        }
        self.deactivate();
        let committed = match &run.promised {
            Some(promised) => self.follow(run, promised),
            None if run.is_ending() => false,
            None => {
                if let Some(held) = &run.held {
                    self.follow_held(run, held)
                } else {
                    self.wait(run);
                    false
                }
            }
        };
        self.reclaim();
        committed
    }

    /// What was said of an earlier generation of the spec, and holds for this one, says so: who waits for a condition
    /// after a change of the spec believes no other.
    fn keep_up(&mut self) {
        let generation = json::integer(&self.workload.json, &["metadata", "generation"]);
        for condition in &mut self.status.conditions {
            let ours = WorkloadCondition::from_token(&condition.type_).is_some();
            if ours && condition.observed_generation.is_some_and(|seen| Some(seen) < generation) {
                condition.observed_generation = generation;
            }
        }
    }

    /// The result, once there is one.
    fn finish(&mut self, run: &Run) -> bool {
        let copy =
            run.promised.as_ref().filter(|promised| matches!(promised.state(), State::Finished { .. }));
        let terminal =
            copy.and_then(|promised| promised.copy.as_ref()).and_then(|copy| copy.terminal.as_ref());
        let (succeeded, message) = match (terminal, &run.job) {
            (Some(terminal), _) => (terminal.succeeded, terminal.message.to_string()),
            (None, Some(job)) if job.view.finished && !run.may_have_copy() => {
                let succeeded = condition_is_true(&job.json, "Complete");
                let said = condition(&job.json, if succeeded { "Complete" } else { "Failed" });
                (
                    succeeded,
                    said.and_then(|said| json::text(said, &["message"])).unwrap_or_default().to_owned(),
                )
            }
            (None, _) => return self.fail_to_start(run),
        };
        let reason = if succeeded { FinishedReason::Succeeded } else { FinishedReason::Failed };
        if succeeded && conditions::find(&self.status.conditions, "PodsReady").is_some() {
            self.set(
                WorkloadCondition::PodsReady,
                true,
                PodsReadyReason::Started,
                "All pods were ready or succeeded",
            );
        }
        self.set(WorkloadCondition::Finished, true, reason, &message);
        if let Some(promised) = &run.promised {
            self.placement(promised, PlacementState::Finished, None);
        }
        true
    }

    /// A job that cannot be started as its checks want ends here.
    fn fail_to_start(&mut self, run: &Run) -> bool {
        if self.around.out_of_sync {
            let why = "The pods of the job are others than the workload's";
            self.set(WorkloadCondition::Finished, true, FinishedReason::OutOfSync, why);
            return true;
        }
        let Some(conflict) = self.around.conflict.as_ref().filter(|_| run.promised.is_none()) else {
            return false;
        };
        if self.around.evict.is_some() {
            return false;
        }
        self.set(WorkloadCondition::Finished, true, FinishedReason::FailedToStart, conflict);
        true
    }

    /// A promise: its commit, its progress, or its end without a result.
    fn follow(&mut self, run: &Run, promised: &Promised) -> bool {
        let stored = self.workload.placement(&promised.id()).is_some_and(|stored| stored.state.is_open());
        let barred = run.is_ending() || self.around.evict.is_some() || self.around.stopped;
        match (promised.state(), stored) {
            (State::Accepted, false) if !barred => {
                self.admit(&promised.grant, Some(promised));
                return true;
            }
            (State::Closed(how), true) => self.release(run, promised, how),
            (State::Starting | State::Running | State::Vanished | State::Stopping(_), true) => {
                if let Some(eviction) = &self.around.evict {
                    self.mark(run, eviction);
                    self.placement(promised, PlacementState::Stopping, Some(&eviction.reason));
                } else if !run.is_ending() {
                    self.say_again(promised);
                    self.pods_ready(run);
                }
            }
            _ => {}
        }
        false
    }

    /// Quota without a promise: its admission, its progress, its end.
    fn follow_held(&mut self, run: &Run, held: &Held) -> bool {
        if let Some(eviction) = &self.around.evict {
            // Kueue's order: the mark first; quota goes when no pod is active any more.
            self.mark(run, eviction);
            if run.is_quiet() {
                self.withdraw(&eviction.message, eviction.token());
            }
            return false;
        }
        if self.around.stopped && !held.admitted {
            if held.durable {
                self.withdraw("The queue is stopped", fairlead_model::Reason::QueueStopped);
            }
            return false;
        }
        if held.durable && !self.workload.reserves() && run.is_quiet() {
            // Somebody took the reservation back before anything ran: it counts.
            return false;
        }
        let admitted = self.workload.is(WorkloadCondition::Admitted);
        self.hold(run, held);
        self.pods_ready(run);
        let now_admitted = conditions::is_true(&self.status.conditions, WorkloadCondition::Admitted.as_str());
        !self.workload.reserves() || admitted != now_admitted
    }

    /// Whether all pods are ready: said when that begins, and when it has been over for a while.
    fn pods_ready(&mut self, run: &Run) {
        let Some((there, _)) = run.pods() else {
            return;
        };
        let kind = WorkloadCondition::PodsReady;
        let shown = conditions::find(&self.status.conditions, kind.as_str());
        let (was, why) = shown.map_or((false, ""), |shown| (shown.status == "True", &*shown.reason));
        let is = there >= self.workload.admitted_count() && there > 0;
        if is && !was {
            let recovered = why == PodsReadyReason::WaitForRecovery.as_str();
            let reason = if recovered { PodsReadyReason::Recovered } else { PodsReadyReason::Started };
            self.set(kind, true, reason, "All pods are ready");
            if let Some(promised) = &run.promised {
                self.placement(promised, PlacementState::Running, None);
            }
        } else if was && !is && self.around.lost {
            self.set(kind, false, PodsReadyReason::WaitForRecovery, "Not all pods are ready any more");
        }
    }

    /// Pods that are done with give their quota back while the others run [W-3].
    fn reclaim(&mut self) {
        let (Some(count), Some(set)) = (self.around.reclaimable, self.main_pod_set()) else {
            return;
        };
        let count = i32::try_from(count).unwrap_or(i32::MAX);
        let known = self.status.reclaimable_pods.iter_mut().find(|known| known.name == set);
        match known {
            Some(known) => known.count = known.count.max(count),
            None => self.status.reclaimable_pods.push(kueue::ReclaimablePod { name: set, count }),
        }
    }

    fn main_pod_set(&self) -> Option<String> {
        let set = json::list(&self.workload.json, &["spec", "podSets"]).first()?;
        Some(json::text(set, &["name"]).unwrap_or(kueue::MAIN_POD_SET).to_owned())
    }

    /// Why it waits; written only when the first failing rule changes.
    fn explain(&mut self, run: &Run) {
        let Some(verdict) = &run.verdict else {
            return;
        };
        let token = verdict.reason.token();
        let condition = conditions::find(&self.status.conditions, WorkloadCondition::QuotaReserved.as_str());
        let said = self.status.verdict.as_ref().is_some_and(|stored| stored.code == token);
        let shown = condition
            .is_some_and(|shown| shown.status == "True" || shown.reason == verdict.reason.condition());
        if said && shown {
            return;
        }
        self.status.verdict = Some(Verdict::of(verdict, api_time(self.around.now)));
        if run.held.is_none() {
            let reason = verdict.reason.condition();
            self.set(WorkloadCondition::QuotaReserved, false, reason, &verdict.message);
            self.sync_checks(None);
        }
    }

    fn placement(&mut self, promised: &Promised, state: PlacementState, reason: Option<&str>) {
        let promise = promised.placement.promise();
        let id = promise.id().to_string();
        let entry = kueue::Placement {
            id: id.clone(),
            cluster: promised.cluster.to_string(),
            cluster_uid: promise.spoke.to_string(),
            epoch: promise.epoch.into(),
            state,
            reason: reason.map(str::to_owned),
        };
        let placements = &mut self.status.placements;
        if let Some(stored) = placements.iter_mut().find(|stored| stored.id == id) {
            *stored = entry;
        } else {
            let closed = placements.iter().filter(|stored| !stored.state.is_open()).count();
            let mut surplus = closed.saturating_sub(REMEMBERED);
            placements.retain(|stored| {
                let drop = surplus > 0 && !stored.state.is_open();
                surplus = surplus.saturating_sub(usize::from(drop));
                !drop
            });
            placements.push(entry);
        }
    }

    fn set(&mut self, kind: WorkloadCondition, holds: bool, reason: impl Into<String>, message: &str) {
        let generation = json::integer(&self.workload.json, &["metadata", "generation"]);
        let wanted = Wanted::new(kind, Status::from(holds), reason, message).at_generation(generation);
        conditions::set_condition(&mut self.status.conditions, wanted, &api_time(self.around.now));
    }
}
