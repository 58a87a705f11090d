//! Pods of home jobs with a topology: each waits at a gate until it is told its place [TAS-6].

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_engine::fact::TopologyAssignment;
use fairlead_model::{Millis, ObjectKey, RunId, Uid};
use serde_json::json;

use super::Brain;
use super::ledger::{Purpose, Readiness, Slot, Verb};
use super::run::Run;
use super::writes::guard;
use crate::jobs::pods::PlacedPod;
use crate::mirror::topology;
use crate::ports::{Kind, Object, Op, Outcome, Version};

/// A pod that an assignment accounts for.
#[derive(Debug)]
struct Entry {
    key: ObjectKey,
    version: Version,
    pod: PlacedPod,
    slot: Slot,
}

/// The pods of home jobs with a topology, by run.
#[derive(Debug, Default)]
pub(crate) struct Pods {
    by_run: BTreeMap<RunId, BTreeMap<Uid, Entry>>,
    owners: BTreeMap<Uid, RunId>,
}

impl Pods {
    fn insert(&mut self, object: &Object, pod: PlacedPod) -> RunId {
        let run = RunId::new(Arc::clone(&pod.job));
        self.owners.insert(object.uid.clone(), run.clone());
        let pods = self.by_run.entry(run.clone()).or_default();
        let slot = pods.get(&object.uid).map(|known| known.slot).unwrap_or_default();
        let entry = Entry { key: object.key.clone(), version: object.version, pod, slot };
        pods.insert(object.uid.clone(), entry);
        run
    }

    fn remove(&mut self, uid: &Uid) -> Option<RunId> {
        let run = self.owners.remove(uid)?;
        let pods = self.by_run.get_mut(&run)?;
        pods.remove(uid);
        if pods.is_empty() {
            self.by_run.remove(&run);
        }
        Some(run)
    }

    /// Runs that have such pods.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &RunId> {
        self.by_run.keys()
    }

    /// Whether pods of a run are on this node and neither end nor go.
    pub(crate) fn live_on(&self, run: &RunId, node: &str) -> bool {
        let pods = self.by_run.get(run).into_iter().flat_map(BTreeMap::values);
        pods.map(|entry| &entry.pod)
            .any(|pod| !pod.ended && !pod.deleting && pod.node.as_deref() == Some(node))
    }
}

impl Brain {
    /// A pod of the hub's own cluster is as given.
    pub(crate) fn pod_seen(&mut self, object: &Object) {
        for fact in self.mirror.upsert(object) {
            self.absorb(fact);
        }
        if let Some(pod) = PlacedPod::of(&object.json) {
            let run = self.pods.insert(object, pod);
            self.dirty.insert(run);
        }
    }

    /// A pod of the hub's own cluster is gone.
    pub(crate) fn pod_gone(&mut self, key: &ObjectKey, uid: &Uid) {
        for fact in self.mirror.gone(Kind::Pod, key) {
            self.absorb(fact);
        }
        if let Some(run) = self.pods.remove(uid) {
            self.dirty.insert(run);
        }
    }

    /// Tells the pods of a run their places, as far as that is due.
    pub(crate) fn place_pods(&mut self, run: &Run) {
        if !self.pods.by_run.contains_key(&run.id) || !run.runs_at_home() {
            return;
        }
        let Some((assignment, unhealthy)) = places_of(run) else {
            return;
        };
        let Some(mut pods) = self.pods.by_run.remove(&run.id) else {
            return;
        };
        // One that stands where the assignment has no place any more is on its way out.
        let counts =
            |pod: &PlacedPod| !pod.ended && (pod.gated || pod.in_topology(&assignment).domain.is_some());
        let live: Vec<Uid> =
            pods.iter().filter(|(_, entry)| counts(&entry.pod)).map(|(uid, _)| uid.clone()).collect();
        let seen: Vec<_> = live
            .iter()
            .filter_map(|uid| pods.get(uid))
            .map(|entry| entry.pod.in_topology(&assignment))
            .collect();
        let due = assignment.ungate(&seen, &unhealthy);
        let due: Vec<(Uid, usize)> = due
            .into_iter()
            .filter_map(|(position, domain)| Some((live.get(position)?.clone(), domain)))
            .collect();
        for (uid, domain) in due {
            if let Some(entry) = pods.get_mut(&uid).filter(|entry| entry.pod.gated) {
                self.release_pod(run, (&uid, entry), (&assignment, domain));
            }
        }
        self.pods.by_run.insert(run.id.clone(), pods);
    }

    fn release_pod(
        &mut self,
        run: &Run,
        (uid, entry): (&Uid, &mut Entry),
        (assignment, domain): (&TopologyAssignment, usize),
    ) {
        let op = match entry.slot.readiness(self.now.mono) {
            Readiness::Busy => return,
            Readiness::MustRead => Op::Get,
            Readiness::Free => {
                let Some(spec) = entry.pod.release(assignment, domain) else {
                    return;
                };
                Op::Patch(json!({"metadata": guard(uid, entry.version), "spec": spec}))
            }
        };
        let purpose = Purpose::Pod(run.id.clone(), uid.clone());
        let id = self.send(purpose, Kind::Pod, &entry.key.clone(), op);
        entry.slot.take(id, entry.version);
    }

    /// Takes in what became of a write to a pod.
    pub(crate) fn pod_outcome(&mut self, (run, uid): (&RunId, &Uid), outcome: &Outcome, verb: Verb) {
        let now = self.now.mono;
        let entry = self.pods.by_run.get_mut(run).and_then(|pods| pods.get_mut(uid));
        if let Some(entry) = entry {
            entry.slot.settle(outcome, verb, entry.version, now);
            let replaced = matches!(outcome, Outcome::Done(object) if object.uid != *uid);
            if matches!(outcome, Outcome::NotFound) || replaced {
                self.pods.remove(uid);
            }
        }
        self.dirty.insert(run.clone());
    }

    /// When to try again with a run's pods, after a failure.
    pub(crate) fn pods_wake(&self, run: &RunId) -> Option<Millis> {
        let pods = self.pods.by_run.get(run)?;
        pods.values().filter_map(|entry| entry.slot.wake()).min()
    }
}

/// Where the pods of an admitted run stand, and the nodes among them that have failed.
pub(crate) fn places_of(run: &Run) -> Option<(TopologyAssignment, Vec<Arc<str>>)> {
    let status = &run.workload.as_ref()?.status;
    let set = status.admission.as_ref()?.pod_set_assignments.first()?;
    let assignment = topology::read(set.topology_assignment.as_ref()?)?;
    let unhealthy = status.unhealthy_nodes.iter().map(|node| node.name.as_str().into()).collect();
    Some((assignment, unhealthy))
}
