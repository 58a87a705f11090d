//! Taking quota back, and waiting for another try, [A-4], [A-7]…[A-9], [Q-12].

use std::sync::Arc;

use fairlead_api::conditions::{
    self, AdmittedReason, DeactivationReason, EvictedReason, PodsReadyReason, QuotaReservedReason,
    WorkloadCondition,
};
use fairlead_api::kueue::{self, CheckStateName, GatePosition, PlacementState, RequeueState, Verdict};
use fairlead_model::{self as model, Millis, Reason};
use fairlead_placement::Closing;

use super::Draft;
use crate::brain::evict::Eviction;
use crate::brain::run::{Promised, Run, api_time};

impl Draft<'_> {
    /// The first step of a deactivation by the hub; `spec.active` follows, and then the eviction.
    pub(super) fn deactivate(&mut self) {
        if let Some((reason, message)) = &self.around.deactivate {
            self.set(WorkloadCondition::DeactivationTarget, true, *reason, message);
        }
    }

    /// Marks an eviction, once: what is to happen is durable before anything is stopped.
    pub(super) fn mark(&mut self, run: &Run, eviction: &Eviction) {
        let marked = conditions::find(&self.status.conditions, WorkloadCondition::Evicted.as_str());
        if marked.is_some_and(|marked| marked.status == "True" && *marked.reason == *eviction.reason) {
            return;
        }
        if let Some(preempted) = run.preempted.as_ref().filter(|_| eviction.is(EvictedReason::Preempted)) {
            self.set(WorkloadCondition::Preempted, true, &*preempted.cause, &preempted.message);
        }
        self.set(WorkloadCondition::Evicted, true, &*eviction.reason, &eviction.message);
        self.count(eviction);
        self.back_off(eviction);
        self.reset_checks();
        self.close_gates(eviction);
        self.status.cluster_name = None;
        self.status.nominated_cluster_names.clear();
        self.status.unhealthy_nodes.clear();
    }

    fn count(&mut self, eviction: &Eviction) {
        let stats = self.status.scheduling_stats.get_or_insert_default();
        let (reason, cause) = (eviction.counted_as(), &*eviction.underlying);
        let known = stats
            .evictions
            .iter_mut()
            .find(|known| known.reason == reason && known.underlying_cause == cause);
        if let Some(known) = known {
            known.count = known.count.saturating_add(1);
            return;
        }
        let (reason, underlying_cause) = (reason.to_owned(), cause.to_owned());
        stats.evictions.push(kueue::Eviction { reason, underlying_cause, count: 1 });
    }

    /// How long it has to wait before it is tried again.
    fn back_off(&mut self, eviction: &Eviction) {
        if eviction.deactivates() {
            self.status.requeue_state = None;
            let target = WorkloadCondition::DeactivationTarget.as_str();
            self.status.conditions.retain(|condition| condition.type_ != target);
        } else if eviction.is(EvictedReason::AdmissionCheck) {
            self.wait_for_checks();
        } else if let Some(unready) =
            self.around.unready.filter(|_| eviction.is(EvictedReason::PodsReadyTimeout))
        {
            let wait = unready.wait_ms.unwrap_or(0);
            self.status.requeue_state = Some(RequeueState {
                count: Some(unready.count),
                requeue_at: Some(api_time(self.around.now.plus(wait))),
            });
        }
    }

    /// The latest time that a check asks to be waited for.
    fn wait_for_checks(&mut self) {
        let retried = self.workload.status.admission_checks.iter();
        let after = retried.filter(|check| check.state == CheckStateName::Retry).map(|check| {
            let since = Millis(check.last_transition_time.0.as_millisecond());
            since.plus(i64::from(check.requeue_after_seconds.unwrap_or(0)).saturating_mul(1000))
        });
        if let Some(at) = after.max() {
            self.status.requeue_state.get_or_insert_default().requeue_at = Some(api_time(at));
        }
    }

    /// Every check starts again.
    fn reset_checks(&mut self) {
        let now = api_time(self.around.now);
        for check in &mut self.status.admission_checks {
            let was = check.state;
            if was == CheckStateName::Pending {
                continue;
            }
            if was == CheckStateName::Retry {
                check.retry_count = Some(check.retry_count.unwrap_or(0).saturating_add(1));
            }
            check.message = format!("Reset after {was:?}");
            check.state = CheckStateName::Pending;
            check.last_transition_time = now.clone();
            check.requeue_after_seconds = None;
            check.pod_set_updates.clear();
        }
    }

    fn close_gates(&mut self, eviction: &Eviction) {
        let now = api_time(self.around.now);
        for gate in self.status.preemption_gates.iter_mut().filter(|gate| gate.position == GatePosition::Open)
        {
            gate.position = GatePosition::Closed;
            gate.last_transition_time = now.clone();
        }
        let blocked = WorkloadCondition::BlockedOnPreemptionGates;
        if conditions::is_true(&self.status.conditions, blocked.as_str()) {
            self.set(blocked, false, &*eviction.reason, &eviction.message);
        }
    }

    /// The promise ended without a result: the admission goes, and the workload waits again.
    pub(super) fn release(&mut self, run: &Run, promised: &Promised, how: &Closing) {
        let evict = self.around.evict.as_ref();
        let (reason, message): (Reason, Arc<str>) = match (how, evict) {
            (Closing::Refused { reason, detail }, _) => (*reason, Arc::clone(detail)),
            (Closing::NoAnswer, _) => (Reason::NoAnswer, "The spoke did not answer".into()),
            (Closing::Stopped, Some(eviction)) => (eviction.token(), Arc::clone(&eviction.message)),
            (Closing::Stopped, None) => {
                (Reason::CopyVanished, "The copy was stopped by somebody else".into())
            }
            (Closing::Released, _) => (Reason::PendingEvaluation, "The promise was taken back".into()),
        };
        self.placement(promised, PlacementState::Closed, Some(reason.token()));
        if run.is_ending() {
            return;
        }
        if let Some(eviction) = evict {
            self.mark(run, eviction);
        }
        // A new copy begins from the start.
        self.status.reclaimable_pods.clear();
        self.withdraw(&message, reason);
    }

    /// Gives quota and admission back, and says whether the workload may be queued again.
    pub(super) fn withdraw(&mut self, message: &str, reason: Reason) {
        self.accumulate();
        let shown = match reason {
            Reason::Deactivated | Reason::QueueStopped => reason.condition(),
            _ => QuotaReservedReason::PendingEvaluation.as_str(),
        };
        self.set(WorkloadCondition::QuotaReserved, false, shown, message);
        let none = "No quota is reserved";
        self.set(WorkloadCondition::Admitted, false, AdmittedReason::NoReservation, none);
        self.set(WorkloadCondition::PodsReady, false, PodsReadyReason::WaitForStart, none);
        if let Some(eviction) = &self.around.evict {
            let (now, message) = (eviction.requeues(), &eviction.message);
            self.set(WorkloadCondition::Requeued, now, &*eviction.reason, message);
        }
        self.status.admission = None;
        self.status.cluster_name = None;
        self.reset_checks();
        self.sync_checks(None);
        self.forget_dispatch();
        let message: Arc<str> = message.into();
        let verdict = model::Verdict { reason, cluster: None, message, candidates: Vec::new() };
        self.status.verdict = Some(Verdict::of(&verdict, api_time(self.around.now)));
    }

    /// Alone, the dispatch check is listed with its promise only.
    fn forget_dispatch(&mut self) {
        if let [only] = self.status.admission_checks.as_slice()
            && self.around.checks.iter().any(|check| check.ours && *check.name == *only.name)
        {
            self.status.admission_checks.clear();
        }
    }

    /// The time for which it was admitted.
    fn accumulate(&mut self) {
        let Some(since) = self.workload.since(WorkloadCondition::Admitted) else {
            return;
        };
        if !self.workload.is(WorkloadCondition::Admitted) {
            return;
        }
        let over = DeactivationReason::MaximumExecutionTimeExceeded;
        if self.around.evict.as_ref().is_some_and(|eviction| &*eviction.underlying == over.as_str()) {
            self.status.accumulated_past_execution_time_seconds = None;
            return;
        }
        let seconds = i32::try_from(self.around.now.since(since).max(0) / 1000).unwrap_or(i32::MAX);
        let past = self.status.accumulated_past_execution_time_seconds.unwrap_or(0);
        self.status.accumulated_past_execution_time_seconds = Some(past.saturating_add(seconds));
    }

    /// It waits: why, and whether it may be tried again.
    pub(super) fn wait(&mut self, run: &Run) {
        if self.workload.reserves() {
            return;
        }
        // An admission without a reservation is nobody's.
        self.status.admission = None;
        if let Some(eviction) = &self.around.evict {
            self.mark(run, eviction);
            self.set(WorkloadCondition::Requeued, eviction.requeues(), &*eviction.reason, &eviction.message);
        } else if let Some(reason) = self.around.requeue {
            self.requeue(reason);
        } else {
            self.retry_unreserved();
        }
        self.explain(run);
    }

    fn requeue(&mut self, reason: conditions::RequeuedReason) {
        let state = self.status.requeue_state.take();
        if reason != conditions::RequeuedReason::Reactivated {
            self.status.requeue_state = state.and_then(|state| {
                state.count.map(|count| RequeueState { count: Some(count), requeue_at: None })
            });
        }
        self.set(WorkloadCondition::Requeued, true, reason, "The workload may be admitted again");
    }

    /// A check asks for another try before quota was reserved: there is nothing to evict, only to wait.
    fn retry_unreserved(&mut self) {
        let ours = self.around.checks.iter().find(|check| check.ours);
        let mut listed = self.status.admission_checks.iter();
        let retried = listed.any(|check| {
            check.state == CheckStateName::Retry && ours.is_none_or(|ours| *ours.name != *check.name)
        });
        if !retried {
            return;
        }
        self.wait_for_checks();
        self.reset_checks();
        let reason = EvictedReason::AdmissionCheck;
        self.set(WorkloadCondition::Requeued, false, reason, "An admission check asks for another try");
    }
}
