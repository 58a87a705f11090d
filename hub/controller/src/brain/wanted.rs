//! What a run's Workload status should say: a pure function of the run's record.
//!
//! All writers of one status are merged here. The brain compares the result with what is stored and writes the
//! difference, so equal values cost nothing and nothing that became true in the meantime needs a write of its own.

use fairlead_api::conditions::{
    self, AdmittedReason, EvictedReason, FinishedReason, PodsReadyReason, QuotaReservedReason, Status,
    Wanted, WorkloadCondition,
};
use fairlead_api::kueue::{
    Admission, AdmissionCheckState, CheckStateName, PlacementState, PodSetAssignment, Verdict, WorkloadStatus,
};
use fairlead_api::{Quantity, kueue};
use fairlead_model::{self as model, Millis, Reason};
use fairlead_placement::{Closing, State};
use std::sync::Arc;

use super::run::{Grant, Promised, Run, Workload, api_time};
use crate::jobs::json;
use crate::jobs::view::{condition, condition_is_true};

/// Closed promises that a Workload remembers.
const REMEMBERED: usize = 3;

/// A status to be written, and whether it is the commit of a promise.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Write {
    pub(crate) status: WorkloadStatus,
    pub(crate) commit: bool,
}

/// What there is to know beside the run's own record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Around<'a> {
    /// The dispatch check of the run's ClusterQueue, if it has one.
    pub(crate) check: Option<&'a Arc<str>>,
    /// Why what it holds is to be given back, if it is.
    pub(crate) evict: Option<EvictedReason>,
    /// Wall clock.
    pub(crate) now: Millis,
}

/// The status that this run's Workload should have; none when it is already as it should be.
pub(crate) fn wanted(run: &Run, around: Around<'_>) -> Option<Write> {
    let workload = run.workload.as_ref()?;
    if workload.is(WorkloadCondition::Finished) {
        return None;
    }
    let mut draft = Draft { status: workload.status.clone(), workload, around };
    let commit = draft.fill(run);
    let changed = draft.status != workload.status;
    changed.then_some(Write { status: draft.status, commit })
}

struct Draft<'a> {
    status: WorkloadStatus,
    workload: &'a Workload,
    around: Around<'a>,
}

impl Draft<'_> {
    /// Changes the status as the record asks for, and says whether that commits a promise.
    fn fill(&mut self, run: &Run) -> bool {
        if self.finish(run) {
            return false;
        }
        match &run.promised {
            Some(promised) => return self.follow(run, promised),
            None if run.is_ending() => {}
            None if run.runs_at_home() => self.follow_home(run),
            None => match &run.home {
                Some(grant) => {
                    self.admit(grant, None);
                    return true;
                }
                None => self.wait(run),
            },
        }
        false
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
            (None, _) => return false,
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

    /// A promise: its commit, its progress, or its end without a result.
    fn follow(&mut self, run: &Run, promised: &Promised) -> bool {
        let stored = self.workload.placement(&promised.id()).is_some_and(|stored| stored.state.is_open());
        match (promised.state(), stored) {
            (State::Accepted, false) if !run.is_ending() && self.around.evict.is_none() => {
                self.admit(&promised.grant, Some(promised));
                return true;
            }
            (State::Closed(how), true) => self.release(run, promised, how),
            (State::Stopping(_), true) => self.evicted(run, promised),
            (State::Running, true) => self.pods_ready(run, promised),
            _ => {}
        }
        false
    }

    fn admit(&mut self, grant: &Grant, promised: Option<&Promised>) {
        let cluster = promised.map(|promised| &*promised.cluster);
        let queue = &grant.cluster_queue;
        let reserved = format!("Quota reserved in ClusterQueue {queue}");
        let admitted = match cluster {
            Some(cluster) => format!("Admitted by ClusterQueue {queue} to cluster {cluster}"),
            None => format!("Admitted by ClusterQueue {queue}"),
        };
        self.set(WorkloadCondition::QuotaReserved, true, QuotaReservedReason::QuotaReserved, &reserved);
        self.set(WorkloadCondition::Admitted, true, AdmittedReason::Admitted, &admitted);
        let waiting = "Not all pods are ready";
        self.set(WorkloadCondition::PodsReady, false, PodsReadyReason::WaitForStart, waiting);
        for past in [WorkloadCondition::Evicted, WorkloadCondition::Preempted] {
            if conditions::is_true(&self.status.conditions, past.as_str()) {
                self.set(past, false, QuotaReservedReason::QuotaReserved, &reserved);
            }
        }
        self.status.admission = Some(admission_of(grant));
        self.status.cluster_name = cluster.map(str::to_owned);
        self.status.resource_requests.clear();
        if let Some(promised) = promised {
            self.check_ready(&promised.cluster);
            self.placement(promised, PlacementState::Committed, None);
        }
        if let Some(verdict) = &grant.verdict {
            self.status.verdict = Some(Verdict::of(verdict, api_time(self.around.now)));
        }
    }

    fn check_ready(&mut self, cluster: &str) {
        let Some(check) = self.around.check else {
            return;
        };
        let state = AdmissionCheckState {
            name: check.to_string(),
            state: CheckStateName::Ready,
            last_transition_time: api_time(self.around.now),
            message: format!("Promised to cluster {cluster}"),
            requeue_after_seconds: None,
            retry_count: None,
            pod_set_updates: Vec::new(),
        };
        self.status.admission_checks.retain(|other| other.name != state.name);
        self.status.admission_checks.push(state);
    }

    /// All pods are ready: said once. It is the only write between admission and the end.
    fn pods_ready(&mut self, run: &Run, promised: &Promised) {
        let Some(copy) = &promised.copy else {
            return;
        };
        let there = i64::from(copy.ready).saturating_add(copy.succeeded.into());
        let ending = run.is_ending() || self.around.evict.is_some();
        if ending || there < self.workload.pod_count() || there == 0 {
            return;
        }
        if !conditions::is_true(&self.status.conditions, "PodsReady") {
            self.set(WorkloadCondition::PodsReady, true, PodsReadyReason::Started, "All pods are ready");
            self.placement(promised, PlacementState::Running, None);
        }
    }

    fn follow_home(&mut self, run: &Run) {
        if let Some(reason) = self.around.evict {
            // Kueue's order: the mark first; quota goes when no pod is active any more.
            self.mark_evicted(run, reason);
            let active =
                run.job.as_ref().and_then(|job| json::integer(&job.json, &["status", "active"])).unwrap_or(0);
            let suspended = run.job.as_ref().is_none_or(|job| job.view.suspended);
            if active == 0 && suspended {
                self.withdraw_admission(&reason.as_str().into(), self.evict_token());
            }
            return;
        }
        let Some(job) = &run.job else {
            return;
        };
        let count = |field| json::integer(&job.json, &["status", field]).unwrap_or(0);
        let there = count("ready").saturating_add(count("succeeded"));
        if there >= self.workload.pod_count() && there > 0 {
            self.set(WorkloadCondition::PodsReady, true, PodsReadyReason::Started, "All pods are ready");
        }
    }

    /// A stop is ordered; quota stays held until it is proven.
    fn evicted(&mut self, run: &Run, promised: &Promised) {
        if let Some(reason) = self.around.evict {
            self.mark_evicted(run, reason);
            self.placement(promised, PlacementState::Stopping, Some(reason.as_str()));
        }
    }

    fn mark_evicted(&mut self, run: &Run, reason: EvictedReason) {
        let message = match (reason, &run.preempted) {
            (EvictedReason::Preempted, Some(preempted)) => {
                self.set(WorkloadCondition::Preempted, true, &*preempted.cause, &preempted.message);
                &preempted.message
            }
            (EvictedReason::Deactivated, _) => "The workload is deactivated",
            _ => "The queue is stopped and drained",
        };
        self.set(WorkloadCondition::Evicted, true, reason, message);
    }

    /// The promise ended without a result: the admission goes, and the workload waits again.
    fn release(&mut self, run: &Run, promised: &Promised, how: &Closing) {
        let (reason, message): (Reason, Arc<str>) = match how {
            Closing::Refused { reason, detail } => (*reason, Arc::clone(detail)),
            Closing::NoAnswer => (Reason::NoAnswer, "The spoke did not answer".into()),
            Closing::Stopped if self.around.evict.is_some() => {
                (self.evict_token(), "The copy has stopped".into())
            }
            Closing::Stopped => (Reason::CopyVanished, "The copy was stopped by somebody else".into()),
            Closing::Released => (Reason::PendingEvaluation, "The promise was taken back".into()),
        };
        self.placement(promised, PlacementState::Closed, Some(reason.token()));
        if !run.is_ending() {
            self.withdraw_admission(&message, reason);
        }
    }

    /// Our own token for the eviction under way.
    const fn evict_token(&self) -> Reason {
        match self.around.evict {
            Some(EvictedReason::Deactivated) => Reason::Deactivated,
            Some(EvictedReason::Preempted) => Reason::WaitingForQuota,
            _ => Reason::QueueStopped,
        }
    }

    fn withdraw_admission(&mut self, message: &Arc<str>, reason: Reason) {
        let pending = QuotaReservedReason::PendingEvaluation;
        self.set(WorkloadCondition::QuotaReserved, false, pending, message);
        let none = "No quota is reserved";
        self.set(WorkloadCondition::Admitted, false, AdmittedReason::NoReservation, none);
        self.set(WorkloadCondition::PodsReady, false, PodsReadyReason::WaitForStart, none);
        self.status.admission = None;
        self.status.cluster_name = None;
        self.status.admission_checks.clear();
        let candidates = Vec::new();
        let verdict = model::Verdict { reason, cluster: None, message: Arc::clone(message), candidates };
        self.status.verdict = Some(Verdict::of(&verdict, api_time(self.around.now)));
    }

    /// Why it waits; written only when the first failing rule changes.
    fn wait(&mut self, run: &Run) {
        if self.status.admission.is_some() {
            return;
        }
        let Some(verdict) = &run.verdict else {
            return;
        };
        let token = verdict.reason.token();
        let condition = conditions::find(&self.status.conditions, "QuotaReserved");
        let said = self.status.verdict.as_ref().is_some_and(|stored| stored.code == token);
        let shown = condition.is_some_and(|shown| shown.reason == verdict.reason.condition());
        if said && shown {
            return;
        }
        self.status.verdict = Some(Verdict::of(verdict, api_time(self.around.now)));
        self.set(WorkloadCondition::QuotaReserved, false, verdict.reason.condition(), &verdict.message);
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

/// The stored form of a grant.
pub(crate) fn admission_of(grant: &Grant) -> Admission {
    let sets = grant.pod_sets.iter().map(|set| PodSetAssignment {
        name: set.name.to_string(),
        flavors: set
            .flavors
            .iter()
            .map(|(resource, flavor)| (resource.to_string(), flavor.to_string()))
            .collect(),
        resource_usage: set
            .usage
            .iter()
            .map(|(resource, amount)| (resource.to_string(), Quantity::of(resource, amount)))
            .collect(),
        count: i32::try_from(set.count).ok(),
        ..PodSetAssignment::default()
    });
    Admission { cluster_queue: grant.cluster_queue.to_string(), pod_set_assignments: sets.collect() }
}
