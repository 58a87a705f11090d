//! The rest of a workload's life: what is due when, what is kept how long, and what its status depends on.

use fairlead_api::conditions::{self, FinishedReason, Status, Wanted, WorkloadCondition};
use fairlead_api::kueue::PlacementState;
use fairlead_api::labels;
use fairlead_model::{Millis, ObjectKey};
use serde_json::{Value, json};

use super::Brain;
use super::events::Said;
use super::evict::{DUE_TO, execution_deadline, requeue_at};
use super::prebuilt::agrees;
use super::run::{Run, Workload, api_time};
use super::wanted::Around;
use super::writes::{GATHER_MS, guard};
use crate::jobs::json;
use crate::ports::Op;

/// The finalizer with which Kubernetes lets dependents of a deleted object live on.
const ORPHAN: &str = "orphan";

impl Brain {
    /// What the status of a run's Workload depends on beside its record.
    pub(crate) fn around(&self, run: &Run) -> Around {
        let queue = self.cluster_queue_of_run(run).unwrap_or_default();
        let long = |since: Option<Millis>| since.is_some_and(|since| self.now.mono >= since.plus(GATHER_MS));
        let checks = self.catalog.checks_in_use(&queue);
        // The flavors matter only to checks that are for some of them.
        let partial = checks.iter().any(|check| !check.flavors.is_empty());
        let flavors = if partial { self.flavors_of(&queue) } else { Vec::new() };
        Around {
            checks,
            flavors,
            evict: self.eviction_of(run),
            unready: self.unready(run),
            deactivate: self.deactivation_of(run),
            requeue: self.requeue_of(run),
            stopped: self.is_stopped(run),
            conflict: self.additions_of(run).err().map(|conflict| conflict.to_string()),
            lost: long(run.unready_since),
            reclaimable: reclaimable(run).filter(|_| long(run.reclaim_since)),
            out_of_sync: is_out_of_sync(run),
            failed_nodes: self.newly_failed(run),
            now: self.now.wall,
        }
    }

    /// The flavors of a ClusterQueue.
    fn flavors_of(&self, cluster_queue: &str) -> Vec<std::sync::Arc<str>> {
        let queue = self.catalog.cluster_queues.get(&ObjectKey::new("", cluster_queue));
        let groups =
            queue.map_or(&[][..], |queue| json::list(&queue.object.json, &["spec", "resourceGroups"]));
        let flavors = groups.iter().flat_map(|group| json::list(group, &["flavors"]));
        flavors.filter_map(|flavor| json::text(flavor, &["name"])).map(Into::into).collect()
    }

    /// When something of a run's life is due next (wall clock).
    pub(crate) fn lifecycle_due(&self, run: &Run) -> Option<Millis> {
        let workload = run.workload.as_ref()?;
        let waits = self.requeue_of(run).is_none().then(|| requeue_at(workload)).flatten();
        let due = [
            self.readiness_deadline(run).map(|(deadline, _)| deadline),
            execution_deadline(run),
            waits,
            self.workload_retention_end(workload),
            self.job_retention_end(run),
        ];
        due.into_iter().flatten().filter(|at| *at > self.now.wall).min()
    }

    /// Until when a finished Workload is kept.
    fn workload_retention_end(&self, workload: &Workload) -> Option<Millis> {
        let keep = self.config.lifecycle.retain_finished_workloads_ms?;
        let since = workload.since(WorkloadCondition::Finished);
        since.filter(|_| workload.is(WorkloadCondition::Finished)).map(|since| since.plus(keep))
    }

    /// Until when a job is kept whose workload the hub has deactivated, once nothing of it runs.
    fn job_retention_end(&self, run: &Run) -> Option<Millis> {
        let keep = self.config.lifecycle.retain_deactivated_jobs_ms?;
        let workload = run.workload.as_ref().filter(|workload| !workload.is_active())?;
        let said = conditions::find(&workload.status.conditions, WorkloadCondition::Evicted.as_str())?;
        let by_us = said.status == "True" && said.reason.starts_with(DUE_TO);
        let over = workload.since(WorkloadCondition::Evicted)?.plus(keep);
        (by_us && !run.holds_quota()).then_some(over)
    }

    /// Deletes the Workload whose time is over; true when that is under way.
    pub(crate) fn retire_workload(&mut self, run: &mut Run) -> bool {
        let Some(workload) = &run.workload else {
            return false;
        };
        // The job says it before the Workload goes; one that never ended keeps its Workload.
        let shown = run.job.as_ref().is_none_or(|job| job.view.finished);
        if !shown
            || workload.deleted_at.is_some()
            || self.workload_retention_end(workload).is_none_or(|end| end > self.now.wall)
        {
            return false;
        }
        let (key, uid) = (workload.key.clone(), workload.uid.clone());
        self.take_workload(run, &key, Op::Delete(uid), false);
        self.tell_retired(run);
        true
    }

    /// The order to delete a job whose time is over.
    pub(crate) fn retired_job(&self, run: &Run) -> Option<Op> {
        let due = self.job_retention_end(run).is_some_and(|end| end <= self.now.wall);
        due.then(|| Op::Delete(fairlead_model::Uid::new(run.id.as_str())))
    }

    pub(crate) fn tell_retired(&mut self, run: &Run) {
        let note = "Its time to be kept is over";
        self.tell(run, Said { warning: false, reason: "Deleted", action: "Delete", note });
    }

    /// A hub's deactivation becomes `spec.active: false`; true when that is under way.
    pub(crate) fn sync_active(&mut self, run: &mut Run) -> bool {
        let Some(workload) = run.workload.as_ref().filter(|_| !run.is_finished()) else {
            return false;
        };
        if !workload.is(WorkloadCondition::DeactivationTarget) || !workload.is_active() {
            return false;
        }
        let key = workload.key.clone();
        let patch = json!({"metadata": guard(&workload.uid, workload.version), "spec": {"active": false}});
        self.take_workload(run, &key, Op::Patch(patch), false);
        true
    }

    /// The Workload of a job that is gone, and that was to live on: it ends, and is let go.
    pub(crate) fn end_orphan(&mut self, run: &mut Run) {
        if run.job.is_some() || !Self::may_let_go(run) || self.retire_workload(run) {
            return;
        }
        let Some(workload) = run.workload.clone() else {
            return;
        };
        if workload.is(WorkloadCondition::Finished) {
            self.take_finalizer(run);
            return;
        }
        let generation = json::integer(&workload.json, &["metadata", "generation"]);
        let kind = WorkloadCondition::Finished;
        let gone = Wanted::new(kind, Status::True, FinishedReason::OwnerNotFound, "The job is gone");
        let mut list = workload.status.conditions.clone();
        conditions::set_condition(&mut list, gone.at_generation(generation), &api_time(self.now.wall));
        let mut placements = workload.status.placements.clone();
        for open in placements.iter_mut().filter(|placement| placement.state.is_open()) {
            open.state = PlacementState::Closed;
        }
        let metadata = guard(&workload.uid, workload.version);
        let mut status = json!({"conditions": list});
        if let Some(status) = status.as_object_mut().filter(|_| !placements.is_empty()) {
            status.insert("placements".into(), json!(placements));
        }
        let patch = json!({"metadata": metadata, "status": status});
        self.take_workload(run, &workload.key, Op::PatchStatus(patch), false);
    }
}

/// Whether a Job that has not been started names a Workload that is for other pods [J-3].
pub(crate) fn is_out_of_sync(run: &Run) -> bool {
    let (Some(job), Some(workload)) = (&run.job, &run.workload) else {
        return false;
    };
    let set = json::list(&workload.json, &["spec", "podSets"]).first();
    let waits =
        job.view.prebuilt.is_some() && !run.holds_quota() && run.held.is_none() && run.promised.is_none();
    waits && set.is_some_and(|set| !crate::jobs::home::is_started(&job.json, set) && !agrees(&job.json, set))
}

/// Whether a run's Workload was meant to outlive its job: Kubernetes took, or is about to take, its owner off.
pub(crate) fn is_orphan(run: &Run) -> bool {
    let Some(workload) = run.workload.as_ref().filter(|workload| workload.deleted_at.is_none()) else {
        return false;
    };
    let owners = json::list(&workload.json, &["metadata", "ownerReferences"]);
    let owned = owners.iter().any(|owner| json::text(owner, &["uid"]) == Some(run.id.as_str()));
    let about_to = run.job.as_ref().is_some_and(|job| {
        let finalizers = json::list(&job.json, &["metadata", "finalizers"]);
        job.view.deleting && finalizers.iter().any(|finalizer| finalizer.as_str() == Some(ORPHAN))
    });
    !owned || about_to
}

/// The finalizers of a Workload without ours.
pub(crate) fn other_finalizers(workload: &Workload) -> Vec<&Value> {
    json::list(&workload.json, &["metadata", "finalizers"])
        .iter()
        .filter(|finalizer| finalizer.as_str() != Some(labels::RESOURCE_IN_USE))
        .collect()
}

/// How many pods of a running job are done with, where that is more than its Workload says and others still run.
pub(crate) fn reclaimable(run: &Run) -> Option<i64> {
    let (_, succeeded) = run.pods()?;
    let (job, workload) = (run.job.as_ref()?, run.workload.as_ref()?);
    let completions = json::integer(&job.json, &["spec", "completions"])?;
    let left = completions.saturating_sub(succeeded);
    let count = workload.pod_count();
    let done = count.saturating_sub(left);
    let said = workload.status.reclaimable_pods.first().map_or(0, |pods| i64::from(pods.count));
    // With none left the end is near, and that says it all.
    (left > 0 && done > said && done < count).then_some(done)
}
