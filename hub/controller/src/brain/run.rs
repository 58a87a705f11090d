//! The record of one run: the user's Job, its Workload, and the promise made for it.

use std::sync::Arc;

use fairlead_api::conditions;
use fairlead_api::kueue::{self, WorkloadStatus};
use fairlead_api::{conditions::WorkloadCondition, labels};
use fairlead_engine::fact;
use fairlead_model::{Millis, ObjectKey, PlacementId, PodDemand, Reason, RunId, SpokeId, Uid, Verdict};
use fairlead_placement::{Closing, Placement, State};
use fairlead_session::{CopyStatus, Intent};
use serde_json::Value;

use super::ledger::Slot;
use super::tally::Tally;
use crate::jobs::{JobView, ManagedBy, json};
use crate::ports::{Object, Version};

/// The user's Job as last seen.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) json: Arc<Value>,
    pub(crate) version: Version,
    pub(crate) view: JobView,
}

/// The run's Workload as last seen or written.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    pub(crate) uid: Uid,
    pub(crate) key: ObjectKey,
    pub(crate) version: Version,
    pub(crate) json: Arc<Value>,
    pub(crate) status: WorkloadStatus,
    /// When it was asked to go.
    pub(crate) deleted_at: Option<Millis>,
    /// Whether our finalizer is on it.
    pub(crate) held: bool,
}

impl Workload {
    pub(crate) fn of(object: &Object) -> Result<Self, serde_json::Error> {
        let status = match object.json.get("status") {
            Some(status) => serde_json::from_value(status.clone())?,
            None => WorkloadStatus::default(),
        };
        let deleted_at = json::text(&object.json, &["metadata", "deletionTimestamp"]).map(read_time);
        let held = json::list(&object.json, &["metadata", "finalizers"])
            .iter()
            .any(|finalizer| finalizer.as_str() == Some(labels::RESOURCE_IN_USE));
        Ok(Self {
            uid: object.uid.clone(),
            key: object.key.clone(),
            version: object.version,
            json: Arc::clone(&object.json),
            status,
            deleted_at,
            held,
        })
    }

    /// Whether this condition holds.
    pub(crate) fn is(&self, condition: WorkloadCondition) -> bool {
        conditions::is_true(&self.status.conditions, condition.as_str())
    }

    /// Whether its status says that quota is reserved for it, and by what.
    pub(crate) fn reserves(&self) -> bool {
        self.is(WorkloadCondition::QuotaReserved) && self.status.admission.is_some()
    }

    /// When a condition took its present status (wall clock).
    pub(crate) fn since(&self, condition: WorkloadCondition) -> Option<Millis> {
        let found = conditions::find(&self.status.conditions, condition.as_str());
        found.map(|condition| Millis(condition.last_transition_time.0.as_millisecond()))
    }

    /// Its LocalQueue.
    pub(crate) fn queue(&self) -> &str {
        json::text(&self.json, &["spec", "queueName"]).unwrap_or_default()
    }

    /// `spec.active`.
    pub(crate) fn is_active(&self) -> bool {
        json::at(&self.json, &["spec", "active"]).and_then(Value::as_bool).unwrap_or(true)
    }

    /// How many pods it has side by side.
    pub(crate) fn pod_count(&self) -> i64 {
        json::list(&self.json, &["spec", "podSets"])
            .iter()
            .map(|set| json::integer(set, &["count"]).unwrap_or(1))
            .fold(0, i64::saturating_add)
    }

    /// How many pods were admitted, which may be fewer.
    pub(crate) fn admitted_count(&self) -> i64 {
        let admission = self.status.admission.as_ref();
        let counts = admission.map(|admission| admission.pod_set_assignments.iter().map(|set| set.count));
        let sum = counts.and_then(Iterator::sum::<Option<i32>>);
        sum.map_or_else(|| self.pod_count(), i64::from)
    }

    /// The stored promise with this id.
    pub(crate) fn placement(&self, id: &PlacementId) -> Option<&kueue::Placement> {
        self.status.placements.iter().find(|stored| stored.id == id.as_str())
    }

    /// The one stored promise that is open.
    pub(crate) fn open_placement(&self) -> Option<&kueue::Placement> {
        self.status.placements.iter().find(|stored| stored.state.is_open())
    }
}

/// What the engine gave a run.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    pub(crate) cluster_queue: Arc<str>,
    pub(crate) at: Millis,
    pub(crate) pod_sets: Arc<[fact::PodSetAssignment]>,
    pub(crate) demand: Arc<[PodDemand]>,
    pub(crate) verdict: Option<Verdict>,
}

/// Quota that a run holds without a promise: on the hub's own cluster, or until its admission checks are ready and a
/// cluster is chosen. It is kept here until nothing of the run can be active, whatever becomes of the stored status.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) grant: Grant,
    /// The Workload's status has said so.
    pub(crate) durable: bool,
    /// It was admitted to the hub's own cluster, durably.
    pub(crate) admitted: bool,
}

/// A promise to a spoke and what belongs to it.
#[derive(Clone, Debug)]
pub(crate) struct Promised {
    pub(crate) placement: Placement,
    pub(crate) cluster: Arc<str>,
    pub(crate) grant: Grant,
    pub(crate) intent: Option<Intent>,
    /// Orders given so far by this leader.
    pub(crate) orders: u32,
    /// The newest status of the copy.
    pub(crate) copy: Option<CopyStatus>,
}

impl Promised {
    pub(crate) fn id(&self) -> PlacementId {
        self.placement.promise().id()
    }

    pub(crate) const fn state(&self) -> &State {
        self.placement.state()
    }

    pub(crate) const fn closing(&self) -> Option<&Closing> {
        match self.placement.state() {
            State::Closed(how) => Some(how),
            _ => None,
        }
    }
}

/// A spoke that is not to be chosen for this run for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Excluded {
    pub(crate) spoke: SpokeId,
    pub(crate) reason: Reason,
    pub(crate) detail: Arc<str>,
    /// Monotonic time at which it may be tried again.
    pub(crate) until: Millis,
    pub(crate) tries: u32,
}

/// A workload that has to make room for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Preempted {
    /// The reason of its `Preempted` condition.
    pub(crate) cause: Arc<str>,
    pub(crate) message: Arc<str>,
    /// When that was decided (wall clock).
    pub(crate) at: Millis,
}

/// One run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) id: RunId,
    /// Namespace and name of the Job, here and on its spoke.
    pub(crate) key: ObjectKey,
    pub(crate) job: Option<Job>,
    pub(crate) workload: Option<Workload>,
    pub(crate) job_slot: Slot,
    pub(crate) workload_slot: Slot,
    /// The engine's view of the Workload, less what this record knows better. Outlives the Workload while a copy
    /// still holds quota.
    pub(crate) base: Option<Arc<fact::Workload>>,
    /// Why the Workload cannot be read, if it cannot.
    pub(crate) unreadable: Option<Arc<str>>,
    /// The Workload has said `Finished`; that never turns back.
    pub(crate) finished: bool,
    pub(crate) promised: Option<Promised>,
    /// A promise that is over, as far as the spoke proved, although the Workload may still list it.
    pub(crate) settled: Option<PlacementId>,
    /// Quota without a promise; the write is due or done.
    pub(crate) held: Option<Held>,
    pub(crate) excluded: Vec<Excluded>,
    /// It has to make room; until its stop is proven it holds its quota.
    pub(crate) preempted: Option<Preempted>,
    /// Its nodes have failed and there is no room elsewhere, in words.
    pub(crate) displaced: Option<Arc<str>>,
    /// Another run's copy of the same name has not stopped.
    pub(crate) busy: bool,
    /// Why it waits, as the engine said last.
    pub(crate) verdict: Option<Verdict>,
    /// Monotonic time of the first status of the copy that is not shown yet.
    pub(crate) unshown_since: Option<Millis>,
    /// Monotonic time since which pods that were ready are not.
    pub(crate) unready_since: Option<Millis>,
    /// Monotonic time since which more pods are done with than the Workload says.
    pub(crate) reclaim_since: Option<Millis>,
    /// A Tombstone carries its debt.
    pub(crate) tombstone: bool,
    pub(crate) tombstone_uid: Option<Uid>,
    pub(crate) tombstone_slot: Slot,
    /// What it counts for in its queues' statuses.
    pub(crate) tally: Option<Tally>,
    /// The Job and the Workload as they were when they were last found to agree.
    pub(crate) compared: Option<u64>,
    /// When to look at it again.
    pub(crate) wake: Option<Millis>,
    /// What people were told of it last, so that it is not told twice.
    pub(crate) told: Option<Reason>,
}

impl Run {
    pub(crate) fn new(id: RunId, key: ObjectKey) -> Self {
        Self {
            id,
            key,
            job: None,
            workload: None,
            job_slot: Slot::default(),
            workload_slot: Slot::default(),
            base: None,
            unreadable: None,
            finished: false,
            promised: None,
            settled: None,
            held: None,
            excluded: Vec::new(),
            preempted: None,
            displaced: None,
            busy: false,
            verdict: None,
            unshown_since: None,
            unready_since: None,
            reclaim_since: None,
            tombstone: false,
            tombstone_uid: None,
            tombstone_slot: Slot::default(),
            tally: None,
            compared: None,
            wake: None,
            told: None,
        }
    }

    /// Whether its Job is gone or going, so nothing of it may run.
    pub(crate) fn is_ending(&self) -> bool {
        let job = self.job.as_ref().is_none_or(|job| job.view.deleting);
        job || self.workload.as_ref().is_some_and(|workload| workload.deleted_at.is_some())
    }

    /// Whether the Workload's result is durable, or was as long as there was a Workload.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Whether it was admitted to the hub's own cluster, durably.
    pub(crate) fn runs_at_home(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.admitted)
    }

    /// Whether no pod of it is active on the hub's own cluster, as far as its Job says.
    pub(crate) fn is_quiet(&self) -> bool {
        self.job.as_ref().is_none_or(|job| {
            let count = |field| json::integer(&job.json, &["status", field]).unwrap_or(0);
            // What a Job of ours shows was mirrored from a copy.
            let elsewhere = job.view.managed_by == ManagedBy::Fairlead;
            elsewhere || (job.view.suspended && count("active") == 0 && count("terminating") == 0)
        })
    }

    /// Whether it has come to its end, stored or not.
    pub(crate) fn has_result(&self) -> bool {
        let copy = self.promised.as_ref().map(Promised::state);
        let ended = self.job.as_ref().is_some_and(|job| job.view.finished);
        self.finished || ended || matches!(copy, Some(State::Finished { .. }))
    }

    /// Whether a quota reservation of it is durable, as far as this record knows.
    pub(crate) fn holds_quota(&self) -> bool {
        let stored = self.workload.as_ref().is_some_and(Workload::reserves);
        stored || self.may_have_copy() || self.held.as_ref().is_some_and(|held| held.durable)
    }

    /// What of its pods is known: how many are ready or have succeeded, and how many have succeeded.
    pub(crate) fn pods(&self) -> Option<(i64, i64)> {
        if let Some(promised) = &self.promised {
            let copy = promised.copy.as_ref().filter(|_| *promised.state() == State::Running)?;
            return Some((
                i64::from(copy.ready).saturating_add(copy.succeeded.into()),
                copy.succeeded.into(),
            ));
        }
        let job = self.job.as_ref().filter(|_| self.runs_at_home())?;
        let count = |field| json::integer(&job.json, &["status", field]).unwrap_or(0);
        Some((count("ready").saturating_add(count("succeeded")), count("succeeded")))
    }

    /// Whether a copy of it may still exist somewhere.
    pub(crate) fn may_have_copy(&self) -> bool {
        self.promised.as_ref().is_some_and(|promised| promised.state().is_committed())
    }
}

/// How many pods were admitted, where they are fewer than the Workload has (partial admission).
pub(crate) fn admitted_part(run: &Run, count: Option<i64>) -> Option<i64> {
    let workload = run.workload.as_ref()?;
    count.filter(|count| *count < workload.pod_count())
}

/// Reads an RFC 3339 time; the epoch when it is none.
pub(crate) fn read_time(text: &str) -> Millis {
    text.parse::<jiff::Timestamp>().map_or(Millis(0), |time| Millis(time.as_millisecond()))
}

/// A time as conditions hold it.
pub(crate) fn api_time(time: Millis) -> k8s_openapi::apimachinery::pkg::apis::meta::v1::Time {
    let seconds = time.0.div_euclid(1000);
    k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
        jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH),
    )
}

impl Run {
    /// Whether nothing is left to be done for it.
    pub(crate) fn is_over(&self) -> bool {
        let unwanted = self.job.as_ref().is_none_or(|job| !job.view.is_ours() || job.view.finished);
        let quiet = !self.workload_slot.is_uncertain() && !self.tombstone_slot.is_uncertain();
        self.workload.is_none() && self.promised.is_none() && unwanted && quiet && !self.tombstone
    }
}
