//! After a restart: promises that an earlier leader made, from the statuses of Workloads.

use fairlead_api::conditions::{self, WorkloadCondition};
use fairlead_api::kueue::{self, PlacementState};
use fairlead_engine::fact;
use fairlead_model::{Epoch, Millis, Resources, SpokeId};
use fairlead_placement::{Event, Placement, Promise, Restored, StopCause};

use super::Brain;
use super::run::{Grant, Held, Preempted, Promised, Run, Workload, read_time};
use crate::jobs::json;
use crate::mirror::topology;

impl Brain {
    /// Takes up the open promise that a Workload lists and this leader does not know.
    ///
    /// Nothing is ordered for it before the spoke's inventory is known: an entry there is kept, and without one the
    /// start is ordered again, which is idempotent.
    pub(crate) fn restore(&mut self, run: &mut Run) {
        run.preempted = run.preempted.take().or_else(|| preempted_of(run));
        if run.promised.is_some() {
            return;
        }
        let Some(workload) = &run.workload else {
            return;
        };
        let Some(stored) = workload.open_placement().cloned() else {
            return restore_held(run);
        };
        if run.settled.as_ref().is_some_and(|settled| settled.as_str() == stored.id) {
            return;
        }
        let promise = Promise {
            run: run.id.clone(),
            spoke: SpokeId::new(stored.cluster_uid.as_str()),
            epoch: Epoch::from(stored.epoch),
        };
        let known = known_of(run, &stored);
        let promised = Promised {
            placement: Placement::restored(promise, known),
            cluster: stored.cluster.as_str().into(),
            grant: grant_of(workload),
            intent: None,
            orders: 0,
            copy: None,
        };
        self.adopt(run, promised);
        if stored.state == PlacementState::Stopping && !run.is_ending() {
            self.feed(run, &Event::Stop(StopCause::Evicted));
        }
        self.touch_namesakes(run);
    }

    /// Registers a promise with its run and its spoke, and feeds it what that spoke has already said.
    pub(crate) fn adopt(&mut self, run: &mut Run, promised: Promised) {
        let id = promised.id();
        let spoke_id = promised.placement.promise().spoke.clone();
        run.promised = Some(promised);
        self.runs.by_placement.insert(id.clone(), run.id.clone());
        let spoke = self.spoke_mut(&spoke_id);
        spoke.promises.insert(id.clone(), run.id.clone());
        let (complete, entry) = (spoke.complete, spoke.entries.get(&id).cloned());
        let present = entry.is_some();
        if let Some(observation) = entry {
            self.observed(run, &observation);
        }
        if complete && run.promised.as_ref().is_some_and(|promised| promised.state().is_committed()) {
            self.feed(run, &Event::Inventory { present });
        }
    }
}

/// Takes up quota that the status says is reserved without a promise.
fn restore_held(run: &mut Run) {
    let Some(workload) = run.workload.as_ref().filter(|_| run.held.is_none() && !run.finished) else {
        return;
    };
    if workload.reserves() && !run.workload_slot.is_uncertain() {
        let admitted = workload.is(WorkloadCondition::Admitted);
        run.held = Some(Held { grant: grant_of(workload), durable: true, admitted });
    }
}

/// The preemption that is under way by the stored status: admitted still, and marked. An admission clears the mark.
fn preempted_of(run: &Run) -> Option<Preempted> {
    let status = &run.workload.as_ref()?.status;
    status.admission.as_ref()?;
    let list = &status.conditions;
    let evicted = conditions::find(list, "Evicted").filter(|evicted| evicted.status == "True")?;
    let preempted = conditions::find(list, "Preempted").filter(|_| evicted.reason == "Preempted")?;
    Some(Preempted {
        cause: preempted.reason.as_str().into(),
        message: preempted.message.as_str().into(),
        at: Millis(evicted.last_transition_time.0.as_millisecond()),
    })
}

/// How far a stored promise had come. A result counts as stored only when the Job shows it too, since otherwise the
/// spoke still has to tell it again.
fn known_of(run: &Run, stored: &kueue::Placement) -> Restored {
    let shown = run.job.as_ref().is_none_or(|job| job.view.finished);
    match stored.state {
        _ if run.is_ending() && !run.is_finished() => Restored::Committed,
        _ if run.is_finished() && shown => Restored::Finished,
        PlacementState::Committed => Restored::Committed,
        _ => Restored::Seen,
    }
}

/// The grant that a Workload's stored admission describes.
pub(crate) fn grant_of(workload: &Workload) -> Grant {
    let status = &workload.status;
    let admission = status.admission.clone().unwrap_or_default();
    let reserved = conditions::find(&status.conditions, "QuotaReserved");
    let created = json::text(&workload.json, &["metadata", "creationTimestamp"]).map(read_time);
    let at = reserved.map(|condition| Millis(condition.last_transition_time.0.as_millisecond()));
    Grant {
        cluster_queue: admission.cluster_queue.as_str().into(),
        at: at.or(created).unwrap_or_default(),
        pod_sets: admission.pod_set_assignments.iter().map(assignment_of).collect(),
        demand: [].into(),
        verdict: None,
    }
}

fn assignment_of(set: &kueue::PodSetAssignment) -> fact::PodSetAssignment {
    let usage: Resources = set
        .resource_usage
        .iter()
        .map(|(resource, quantity)| (resource.as_str().into(), quantity.parse(resource).unwrap_or(0)))
        .collect();
    fact::PodSetAssignment {
        name: set.name.as_str().into(),
        count: set.count.and_then(|count| u32::try_from(count).ok()).unwrap_or(0),
        flavors: set
            .flavors
            .iter()
            .map(|(key, value)| (key.as_str().into(), value.as_str().into()))
            .collect(),
        usage,
        topology: set.topology_assignment.as_ref().and_then(topology::read),
    }
}
