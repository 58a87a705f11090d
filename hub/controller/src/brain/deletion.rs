//! Deletion: letting go of Workloads, and Tombstones for those whose copies nobody has confirmed to have stopped.

use std::sync::Arc;

use fairlead_api::Quantity;
use fairlead_api::fairlead::{HeldUsage, TombstoneJob, TombstoneReason, TombstoneSpec};
use fairlead_engine::fact;
use fairlead_model::{Epoch, Millis, ObjectKey, Reason, Resources, RunId, SpokeId, Uid};
use fairlead_placement::{Placement, Promise, Restored};
use serde_json::json;

use super::Brain;
use super::events::Said;
use super::ledger::{Purpose, Readiness};
use super::run::{Grant, Promised, Run};
use crate::jobs::{home, json};
use crate::ports::{Kind, Object, Op};

impl Brain {
    /// Whether our finalizer may go: nothing of the run can be running, or a Tombstone carries the debt.
    pub(crate) fn may_let_go(run: &Run) -> bool {
        let stopped = run.promised.as_ref().is_none_or(|promised| promised.closing().is_some());
        run.tombstone || (stopped && !has_traces(run))
    }

    /// When a Tombstone has to carry on what this run owes (wall clock); none while it owes nothing.
    pub(crate) fn tombstone_due(&self, run: &Run) -> Option<Millis> {
        let owes = run.promised.as_ref().is_some_and(|promised| promised.state().is_committed());
        if !owes || run.tombstone || !run.is_ending() {
            return None;
        }
        match &run.workload {
            // Somebody took the finalizer off.
            None => Some(self.now.wall),
            Some(_) if self.catalog.is_terminating(&run.key.namespace) => Some(self.now.wall),
            Some(workload) => workload.deleted_at.map(|at| at.plus(self.config.tombstone_ms)),
        }
    }

    /// Makes the Tombstone that is due, or removes the one whose debt is paid.
    pub(crate) fn write_tombstone(&mut self, run: &mut Run) {
        if run.tombstone_slot.readiness(self.now.mono) == Readiness::Busy {
            return;
        }
        let Some(promised) = &run.promised else {
            return;
        };
        let id = promised.id();
        let key = ObjectKey::new("", id.as_str());
        let op = if run.tombstone && promised.closing().is_some() {
            match &run.tombstone_uid {
                Some(uid) => Op::Delete(uid.clone()),
                None => Op::Get,
            }
        } else if self.tombstone_due(run).is_some_and(|due| due <= self.now.wall) {
            Op::Create(self.tombstone_of(run, promised))
        } else {
            return;
        };
        let made = matches!(op, Op::Create(_));
        let op = self.send(Purpose::Tombstone(id), Kind::Tombstone, &key, op);
        run.tombstone_slot.take(op, 0);
        if made {
            let note = "The copy's stop is not confirmed; a Tombstone carries the debt on";
            self.tell(
                run,
                Said { warning: true, reason: Reason::StopUnproven.token(), action: "Delete", note },
            );
        }
    }

    fn tombstone_of(&self, run: &Run, promised: &Promised) -> serde_json::Value {
        let promise = promised.placement.promise();
        let reason = match &run.workload {
            None => TombstoneReason::FinalizerRemoved,
            Some(_) if self.catalog.is_terminating(&run.key.namespace) => {
                TombstoneReason::NamespaceTerminating
            }
            Some(_) => TombstoneReason::DeadlineExceeded,
        };
        let finished = run.is_finished();
        let held = promised.grant.pod_sets.iter().filter(|_| !finished).flat_map(|set| {
            set.usage.iter().map(|(resource, amount)| HeldUsage {
                cluster_queue: promised.grant.cluster_queue.to_string(),
                flavor: set.flavors.get(resource).map(ToString::to_string).unwrap_or_default(),
                resource: resource.to_string(),
                amount: Quantity::of(resource, amount),
            })
        });
        let spec = TombstoneSpec {
            run: run.id.to_string(),
            placement: promise.id().to_string(),
            cluster: promised.cluster.to_string(),
            cluster_uid: promise.spoke.to_string(),
            epoch: promise.epoch.into(),
            job: TombstoneJob {
                namespace: run.key.namespace.to_string(),
                name: run.key.name.to_string(),
                uid: None,
            },
            held_usage: held.collect(),
            reason,
        };
        json!({
            "apiVersion": "fairlead.dev/v1alpha1",
            "kind": "Tombstone",
            "metadata": {"name": promise.id().as_str()},
            "spec": spec,
        })
    }

    /// A Tombstone is there: it carries the debt of a run, known or not.
    pub(crate) fn tombstone_seen(&mut self, object: &Object) {
        let spec = object.json.get("spec").cloned().unwrap_or_default();
        let spec: TombstoneSpec = match serde_json::from_value(spec) {
            Ok(spec) => spec,
            Err(error) => {
                let key = &object.key;
                self.warn(format!("Tombstone {key} cannot be read: {error}"));
                return;
            }
        };
        let id = RunId::new(spec.run.as_str());
        let key = ObjectKey::new(spec.job.namespace.as_str(), spec.job.name.as_str());
        self.runs.ensure(&id, &key);
        self.with_run(&id, |brain, run| {
            run.tombstone = true;
            run.tombstone_uid = Some(object.uid.clone());
            if run.promised.is_none() {
                brain.restore_debt(run, &spec, &object.uid);
            }
        });
        self.dirty.insert(id);
    }

    /// A Tombstone is gone.
    pub(crate) fn tombstone_gone(&mut self, key: &ObjectKey) {
        let placement = fairlead_model::PlacementId::new(Arc::clone(&key.name));
        let Some(id) = self.runs.by_placement.get(&placement).cloned() else {
            return;
        };
        self.with_run(&id, |_, run| {
            run.tombstone = false;
            run.tombstone_uid = None;
        });
        self.dirty.insert(id);
    }

    fn restore_debt(&mut self, run: &mut Run, spec: &TombstoneSpec, uid: &Uid) {
        let promise = Promise {
            run: run.id.clone(),
            spoke: SpokeId::new(spec.cluster_uid.as_str()),
            epoch: Epoch::from(spec.epoch),
        };
        let grant = Grant {
            cluster_queue: spec.held_usage.first().map_or("", |held| held.cluster_queue.as_str()).into(),
            at: self.now.wall,
            pod_sets: spec.held_usage.iter().map(held_set).collect(),
            demand: [].into(),
            verdict: None,
        };
        if run.base.is_none() && !spec.held_usage.is_empty() {
            let base = debtor(uid, run, &grant);
            self.runs.by_workload.insert(base.uid.clone(), run.id.clone());
            run.base = Some(Arc::new(base));
        }
        let promised = Promised {
            placement: Placement::restored(promise, Restored::Deleted),
            cluster: spec.cluster.as_str().into(),
            grant,
            intent: None,
            orders: 0,
            copy: None,
        };
        self.adopt(run, promised);
    }
}

/// Whether the Job still is as a start left it: only its Workload knows what its user wrote.
fn has_traces(run: &Run) -> bool {
    let Some(job) = run.job.as_ref().filter(|job| !job.view.deleting && !job.view.finished) else {
        return false;
    };
    let workload = run.workload.as_ref();
    let set = workload.and_then(|workload| json::list(&workload.json, &["spec", "podSets"]).first());
    set.is_some_and(|set| home::is_started(&job.json, set))
}

/// One held amount as the assignment of a pod set of its own.
fn held_set(held: &HeldUsage) -> fact::PodSetAssignment {
    let mut usage = Resources::new();
    usage.set(held.resource.as_str(), held.amount.parse(&held.resource).unwrap_or(0));
    fact::PodSetAssignment {
        name: format!("{}-{}", held.flavor, held.resource).into(),
        count: 1,
        flavors: [(held.resource.as_str().into(), held.flavor.as_str().into())].into(),
        usage,
        topology: None,
    }
}

/// A row in the engine that holds the quota of a run whose Workload is gone.
fn debtor(uid: &Uid, run: &Run, grant: &Grant) -> fact::Workload {
    fact::Workload::new(uid.clone(), run.key.clone(), "".into(), grant.at, [])
}
