//! When a workload has to give its quota back although its job is there, when it is to be deactivated, and when it may
//! be queued again, [A-4], [A-9], [A-10], [Q-11], [Q-12], [W-1].
//!
//! An eviction that the Workload's status says (`Evicted=True`, and quota still reserved) is carried through whatever
//! becomes of its cause: nothing was stopped in vain, and a new leader goes on where the last one was.

use std::sync::Arc;

use fairlead_api::conditions::{
    self, DeactivationReason, EvictedReason, PodsReadyReason, RequeuedReason, WorkloadCondition,
};
use fairlead_api::kueue::CheckStateName;
use fairlead_engine::fact::EvictionCause;
use fairlead_model::{Millis, ObjectKey, Reason};
use fairlead_placement::State;

use super::Brain;
use super::run::{Run, Workload};
use crate::jobs::json;
use crate::ports::Kind;

/// What reasons of `Evicted` begin with when the hub has deactivated the workload.
pub(crate) const DUE_TO: &str = "DeactivatedDueTo";

/// Why a run has to give its quota back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Eviction {
    /// The reason of the `Evicted` condition: an [`EvictedReason`], or `DeactivatedDueTo<Cause>`.
    pub(crate) reason: Arc<str>,
    /// What led to it, for the counters; may be empty.
    pub(crate) underlying: Arc<str>,
    /// A sentence for people.
    pub(crate) message: Arc<str>,
}

impl Eviction {
    fn new(reason: EvictedReason, underlying: &str, message: impl Into<Arc<str>>) -> Self {
        Self { reason: reason.as_str().into(), underlying: underlying.into(), message: message.into() }
    }

    /// Whether it is this one.
    pub(crate) fn is(&self, reason: EvictedReason) -> bool {
        &*self.reason == reason.as_str()
    }

    /// Whether the workload is inactive.
    pub(crate) fn deactivates(&self) -> bool {
        self.is(EvictedReason::Deactivated) || self.reason.starts_with(DUE_TO)
    }

    /// The reason as the counters have it, where the cause stands apart.
    pub(crate) fn counted_as(&self) -> &str {
        if self.deactivates() { EvictedReason::Deactivated.as_str() } else { &self.reason }
    }

    /// Whether it may be queued again at once.
    pub(crate) fn requeues(&self) -> bool {
        self.is(EvictedReason::Preempted) || self.is(EvictedReason::NodeFailures)
    }

    /// As the engine knows it.
    pub(crate) fn cause(&self) -> EvictionCause {
        match EvictedReason::from_token(&self.reason) {
            Some(EvictedReason::Preempted) => EvictionCause::Preempted,
            Some(EvictedReason::PodsReadyTimeout) => EvictionCause::PodsReadyTimeout,
            Some(EvictedReason::AdmissionCheck) => EvictionCause::AdmissionCheck,
            Some(EvictedReason::ClusterQueueStopped | EvictedReason::LocalQueueStopped) => {
                EvictionCause::QueueStopped
            }
            Some(EvictedReason::NodeFailures) => EvictionCause::NodeFailures,
            _ => EvictionCause::Deactivated,
        }
    }

    /// Our own token for a workload that has been through it.
    pub(crate) fn token(&self) -> Reason {
        match self.cause() {
            EvictionCause::Deactivated => Reason::Deactivated,
            EvictionCause::QueueStopped => Reason::QueueStopped,
            EvictionCause::AdmissionCheck => Reason::WaitingForAdmissionChecks,
            EvictionCause::Preempted | EvictionCause::NodeFailures => Reason::WaitingForQuota,
            EvictionCause::PodsReadyTimeout => Reason::PendingEvaluation,
        }
    }
}

/// Pods that were not ready in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unready {
    /// What was waited for.
    pub(crate) cause: PodsReadyReason,
    /// The number of this eviction, from 1.
    pub(crate) count: i32,
    /// How long to wait before the next try, in milliseconds; none when there is none.
    pub(crate) wait_ms: Option<i64>,
}

impl Brain {
    /// Why a run's quota is to be given back although its job is there.
    pub(crate) fn eviction_of(&self, run: &Run) -> Option<Eviction> {
        let workload = run.workload.as_ref().filter(|_| !run.has_result())?;
        if !workload.is_active() {
            return Some(deactivated(workload));
        }
        if let Some(preempted) = &run.preempted {
            return Some(Eviction::new(EvictedReason::Preempted, "", Arc::clone(&preempted.message)));
        }
        if !run.holds_quota() {
            return None;
        }
        under_way(workload)
            .or_else(|| self.drained(run, workload))
            .or_else(|| self.lost_nodes(run, workload))
            .or_else(|| self.retried(workload))
            .or_else(|| self.timed_out(run))
    }

    /// Whether nothing new may be started for a run: its queue is stopped, or it is to go.
    pub(crate) fn is_barred(&self, run: &Run) -> bool {
        run.is_ending() || self.is_stopped(run) || self.eviction_of(run).is_some()
    }

    /// Whether a queue of the run is stopped, so that it admits nothing new and reservations are taken back.
    pub(crate) fn is_stopped(&self, run: &Run) -> bool {
        let stops = |(kind, key): (Kind, ObjectKey)| self.stop_policy(kind, &key) != "None";
        self.queues_of(run).into_iter().flatten().any(stops)
    }

    /// The LocalQueue and the ClusterQueue of a run.
    fn queues_of(&self, run: &Run) -> [Option<(Kind, ObjectKey)>; 2] {
        let workload = run.workload.as_ref();
        let local = workload.map(|workload| {
            (Kind::LocalQueue, ObjectKey::new(Arc::clone(&workload.key.namespace), workload.queue()))
        });
        let queue = self.cluster_queue_of_run(run);
        [local, queue.map(|queue| (Kind::ClusterQueue, ObjectKey::new("", queue)))]
    }

    /// The stop policy of a queue; one that is gone has none.
    fn stop_policy(&self, kind: Kind, key: &ObjectKey) -> &str {
        let queue = match kind {
            Kind::LocalQueue => self.catalog.local_queues.get(key),
            Kind::ClusterQueue => self.catalog.cluster_queues.get(key),
            _ => None,
        };
        queue
            .and_then(|queue| json::text(&queue.object.json, &["spec", "stopPolicy"]))
            .filter(|policy| !policy.is_empty())
            .unwrap_or("None")
    }

    /// An admitted workload of a queue that is stopped and drained.
    fn drained(&self, run: &Run, workload: &Workload) -> Option<Eviction> {
        if !workload.is(WorkloadCondition::Admitted) {
            return None;
        }
        let drains = |(kind, key): &(Kind, ObjectKey)| self.stop_policy(*kind, key) == "HoldAndDrain";
        let (kind, key) = self.queues_of(run).into_iter().flatten().find(drains)?;
        let (reason, name) = match kind {
            Kind::LocalQueue => (EvictedReason::LocalQueueStopped, "LocalQueue"),
            _ => (EvictedReason::ClusterQueueStopped, "ClusterQueue"),
        };
        Some(Eviction::new(reason, "", format!("The {name} {} is stopped and drained", key.name)))
    }

    /// A node failed under the run and there is no other room, or a second one did [TAS-7].
    fn lost_nodes(&self, run: &Run, workload: &Workload) -> Option<Eviction> {
        let known = workload.status.unhealthy_nodes.len();
        let failed = known.saturating_add(self.newly_failed(run).len());
        let why = if failed > 1 { "More than one of its nodes failed" } else { run.displaced.as_deref()? };
        Some(Eviction::new(EvictedReason::NodeFailures, "", why))
    }

    /// A check of another controller asks for another try.
    fn retried(&self, workload: &Workload) -> Option<Eviction> {
        let names = self.checks_in(workload, CheckStateName::Retry);
        let message = format!("To be tried again: {}", names.join(", "));
        (!names.is_empty()).then(|| Eviction::new(EvictedReason::AdmissionCheck, "", message))
    }

    /// The names of other controllers' checks that are in this state.
    fn checks_in<'w>(&self, workload: &'w Workload, state: CheckStateName) -> Vec<&'w str> {
        let listed = workload.status.admission_checks.iter();
        let theirs =
            listed.filter(|check| check.state == state && !self.catalog.is_dispatch_check(&check.name));
        theirs.map(|check| check.name.as_str()).collect()
    }

    fn timed_out(&self, run: &Run) -> Option<Eviction> {
        let unready = self.unready(run).filter(|unready| unready.wait_ms.is_some())?;
        let message = match unready.cause {
            PodsReadyReason::WaitForRecovery => "Pods that were lost have not come back in time",
            _ => "The pods were not ready in time",
        };
        Some(Eviction::new(EvictedReason::PodsReadyTimeout, unready.cause.as_str(), message))
    }

    /// Pods that were not ready in time. While the spoke cannot tell, nothing is late.
    pub(crate) fn unready(&self, run: &Run) -> Option<Unready> {
        let (deadline, cause) = self.readiness_deadline(run)?;
        if deadline > self.now.wall || !self.can_tell(run) {
            return None;
        }
        let rules = &self.config.lifecycle.pods_ready.as_ref()?.requeuing;
        let state = run.workload.as_ref()?.status.requeue_state.as_ref();
        let count = state.and_then(|state| state.count).unwrap_or(0).saturating_add(1);
        let tries_left = rules.limit.is_none_or(|limit| count <= limit);
        Some(Unready { cause, count, wait_ms: tries_left.then(|| rules.wait_ms(count)) })
    }

    /// Until when the pods of an admitted run have to be ready (wall clock), and what for.
    pub(crate) fn readiness_deadline(&self, run: &Run) -> Option<(Millis, PodsReadyReason)> {
        let rules = self.config.lifecycle.pods_ready.as_ref()?;
        let workload = run.workload.as_ref().filter(|_| !run.has_result())?;
        if !workload.is(WorkloadCondition::Admitted) || workload.is(WorkloadCondition::PodsReady) {
            return None;
        }
        let shown = conditions::find(&workload.status.conditions, WorkloadCondition::PodsReady.as_str());
        let lost = PodsReadyReason::WaitForRecovery;
        if shown.is_some_and(|shown| shown.reason == lost.as_str()) {
            let since = workload.since(WorkloadCondition::PodsReady)?;
            return Some((since.plus(rules.recovery_timeout_ms?), lost));
        }
        let since = workload.since(WorkloadCondition::Admitted)?;
        Some((since.plus(rules.timeout_ms), PodsReadyReason::WaitForStart))
    }

    /// Whether what is known of the run's pods is fresh.
    fn can_tell(&self, run: &Run) -> bool {
        run.promised.as_ref().is_none_or(|promised| {
            let spoke = self.spokes.get(&promised.placement.promise().spoke);
            let there = matches!(promised.state(), State::Starting | State::Running);
            there && spoke.is_some_and(|spoke| spoke.connected && spoke.complete)
        })
    }

    /// Why the hub is to deactivate a run's workload, and says so for the first time.
    pub(crate) fn deactivation_of(&self, run: &Run) -> Option<(DeactivationReason, String)> {
        let workload = run.workload.as_ref().filter(|_| !run.has_result())?;
        if !workload.is_active() || workload.is(WorkloadCondition::DeactivationTarget) {
            return None;
        }
        let rejected = self.checks_in(workload, CheckStateName::Rejected);
        if !rejected.is_empty() {
            let message = format!("Rejected by {}", rejected.join(", "));
            return Some((DeactivationReason::AdmissionCheck, message));
        }
        if under_way(workload).is_some() {
            return None;
        }
        if execution_deadline(run).is_some_and(|deadline| deadline <= self.now.wall) {
            let message = "The maximum execution time is over".to_owned();
            return Some((DeactivationReason::MaximumExecutionTimeExceeded, message));
        }
        let unready = self.unready(run)?;
        let message = "The pods were not ready in time, once more than allowed".to_owned();
        unready.wait_ms.is_none().then_some((DeactivationReason::RequeuingLimitExceeded, message))
    }

    /// Why a workload that was put back may be queued again, if `Requeued` says that it may not and its time has come.
    pub(crate) fn requeue_of(&self, run: &Run) -> Option<RequeuedReason> {
        let workload = run.workload.as_ref()?;
        let list = &workload.status.conditions;
        let blocked = conditions::find(list, WorkloadCondition::Requeued.as_str())?;
        if blocked.status != "False" || !workload.is_active() {
            return None;
        }
        let [local, cluster] = self.queues_of(run);
        let open = |queue: Option<(Kind, ObjectKey)>| {
            queue.is_some_and(|(kind, key)| self.stop_policy(kind, &key) == "None")
        };
        match EvictedReason::from_token(&blocked.reason) {
            Some(EvictedReason::ClusterQueueStopped) => {
                open(cluster).then_some(RequeuedReason::ClusterQueueRestarted)
            }
            Some(EvictedReason::LocalQueueStopped) => {
                open(local).then_some(RequeuedReason::LocalQueueRestarted)
            }
            Some(EvictedReason::Deactivated) => Some(RequeuedReason::Reactivated),
            _ if blocked.reason.starts_with(DUE_TO) => Some(RequeuedReason::Reactivated),
            _ => {
                let due = requeue_at(workload).is_none_or(|at| at <= self.now.wall);
                due.then_some(RequeuedReason::BackoffFinished)
            }
        }
    }
}

/// Until when an admitted run may go on (wall clock).
pub(crate) fn execution_deadline(run: &Run) -> Option<Millis> {
    let workload = run.workload.as_ref().filter(|_| !run.has_result())?;
    let most = json::integer(&workload.json, &["spec", "maximumExecutionTimeSeconds"])?;
    let past = i64::from(workload.status.accumulated_past_execution_time_seconds.unwrap_or(0));
    let admitted = workload.is(WorkloadCondition::Admitted);
    let since = workload.since(WorkloadCondition::Admitted).filter(|_| admitted)?;
    Some(since.plus(most.saturating_sub(past).saturating_mul(1000)))
}

/// Until when a workload has to wait (wall clock).
pub(crate) fn requeue_at(workload: &Workload) -> Option<Millis> {
    let at = workload.status.requeue_state.as_ref()?.requeue_at.as_ref()?;
    Some(Millis(at.0.as_millisecond()))
}

fn deactivated(workload: &Workload) -> Eviction {
    let list = &workload.status.conditions;
    let is_true = |kind: WorkloadCondition| {
        conditions::find(list, kind.as_str()).filter(|condition| condition.status == "True")
    };
    let said = is_true(WorkloadCondition::Evicted).filter(|said| said.reason.starts_with("Deactivated"));
    match (is_true(WorkloadCondition::DeactivationTarget), said) {
        (Some(target), _) => Eviction {
            reason: format!("{DUE_TO}{}", target.reason).into(),
            underlying: target.reason.as_str().into(),
            message: format!("The workload is deactivated: {}", target.message).into(),
        },
        (None, Some(said)) => Eviction {
            reason: said.reason.as_str().into(),
            underlying: said.reason.strip_prefix(DUE_TO).unwrap_or_default().into(),
            message: said.message.as_str().into(),
        },
        (None, None) => Eviction::new(EvictedReason::Deactivated, "", "The workload is deactivated"),
    }
}

/// The eviction that the status says is under way: marked, and quota still reserved. An admission takes the mark back.
pub(crate) fn under_way(workload: &Workload) -> Option<Eviction> {
    let said = conditions::find(&workload.status.conditions, WorkloadCondition::Evicted.as_str())?;
    let marked = said.status == "True" && workload.status.admission.is_some();
    marked.then(|| Eviction {
        reason: said.reason.as_str().into(),
        underlying: said.reason.strip_prefix(DUE_TO).unwrap_or_default().into(),
        message: said.message.as_str().into(),
    })
}
