//! A whole world as facts and memory, from which an equal one is made: where a record begins.
//!
//! Facts alone would not do. What rounds have found out decides what the next ones look at, so it is part of the
//! checkpoint; and ordinals are given in the same order again, since the numbers that stand for what is held are made
//! of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairlead_model::{Millis, ObjectKey, Uid};

use super::World;
use super::local_use::LocalUse;
use super::rows::{ClassKey, Held, MadeWay, Past, Place, Row, TreeState};
use crate::fact::{Reservation, Workload};
use crate::names::{CqIx, RowIx, at};
use crate::record::Fault;
use crate::record::wire::{Get, Put, Reader, Writer, fields};
use crate::{Fact, Settings};

/// A world, to be written down.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    now: Millis,
    round: u64,
    version: u64,
    resources: Vec<Arc<str>>,
    flavors: Vec<Arc<str>>,
    /// Flavor and resource of each pair, by their ordinals.
    pairs: Vec<(u32, u32)>,
    queues: Vec<QueueMemory>,
    facts: Vec<Fact>,
    workloads: Vec<WorkloadMemory>,
    local_use: BTreeMap<ObjectKey, LocalUse>,
}

/// What is remembered of a ClusterQueue, in the order of ordinals.
#[derive(Debug)]
struct QueueMemory {
    name: Arc<str>,
    generation: u64,
    outside: u64,
    failed: BTreeSet<ClassKey>,
}

/// What is remembered of a workload.
#[expect(clippy::struct_excessive_bools, reason = "each is remembered for itself")]
#[derive(Debug)]
struct WorkloadMemory {
    uid: Uid,
    /// It waits among those that need not be looked at.
    parked: bool,
    /// Its backoff has not been seen to end.
    backs_off: bool,
    /// It is in no queue, and why has been told.
    told: bool,
    sticky: bool,
    past: Past,
    /// What it holds is assumed by a plan.
    assumed: bool,
    /// What it holds where its fact states no reservation, and whether it was told to go since.
    holds: Option<(Reservation, bool)>,
}

fields! {
    TreeState { outside, holdings }
    MadeWay { preemptor, purpose, state }
    Past { scan, swept, retried, made_way }
    ClassKey { priority, pod_sets, charged, reclaimed, excluded, gated }
    LocalUse { consumed, updated, penalties }
    QueueMemory { name, generation, outside, failed }
    WorkloadMemory {
        uid, parked, backs_off, told, sticky, past, assumed, holds,
    }
    Checkpoint {
        now, round, version, resources, flavors, pairs, queues, facts, workloads, local_use,
    }
}

impl World {
    /// Everything that decides what comes next. The world must be settled.
    pub(crate) fn checkpoint(&self) -> Checkpoint {
        let (mut facts, mut workloads) = (self.surroundings(), Vec::new());
        for (ix, row) in self.rows.iter() {
            facts.push(Fact::Workload(Arc::new(self.stated(row))));
            workloads.push(self.memory_of(ix, row));
        }
        Checkpoint {
            now: self.now,
            round: self.round,
            version: self.version,
            resources: self.names.resources.all().to_vec(),
            flavors: self.names.flavors.all().to_vec(),
            pairs: self.names.pairs().to_vec(),
            queues: self.queue_memories(),
            facts,
            workloads,
            local_use: self.local_use.clone(),
        }
    }

    /// A world that decides as the one that the checkpoint was taken of.
    pub(crate) fn restored(settings: Settings, checkpoint: Checkpoint) -> Self {
        let mut world = Self::new(settings);
        for name in &checkpoint.resources {
            world.names.resources.intern(name);
        }
        for name in &checkpoint.flavors {
            world.names.flavors.intern(name);
        }
        for (flavor, resource) in checkpoint.pairs {
            world.names.fr(flavor, resource);
        }
        for queue in &checkpoint.queues {
            world.queue_ix(&queue.name);
        }
        for fact in checkpoint.facts {
            let _changed = world.absorb(fact, checkpoint.now);
        }
        world.settle();
        for memory in checkpoint.workloads {
            world.recall(memory);
        }
        // What is held by now may need room in the trees.
        world.settle();
        for memory in checkpoint.queues {
            world.recall_queue(memory);
        }
        world.local_use = checkpoint.local_use;
        world.round = checkpoint.round;
        world.version = checkpoint.version;
        world
    }

    /// All facts but workloads.
    fn surroundings(&self) -> Vec<Fact> {
        let mut facts: Vec<Fact> = Vec::new();
        facts.extend(self.namespaces.values().cloned().map(Fact::Namespace));
        facts.extend(self.limit_ranges.values().cloned().map(Fact::LimitRange));
        let classes = self.runtime_classes.iter();
        facts.extend(classes.map(|(name, overhead)| Fact::RuntimeClass(Arc::clone(name), overhead.clone())));
        facts.extend(self.topologies.values().cloned().map(Fact::Topology));
        facts.extend(self.flavors.values().cloned().map(Fact::Flavor));
        facts.extend(self.checks.values().cloned().map(Fact::Check));
        facts.extend(self.cohorts.values().cloned().map(Fact::Cohort));
        let queues = self.queues.iter().filter_map(|queue| queue.fact.as_deref());
        facts.extend(queues.cloned().map(Fact::ClusterQueue));
        facts.extend(self.locals.values().cloned().map(Fact::LocalQueue));
        facts.extend(self.node_facts());
        for cluster in self.clusters.values() {
            facts.extend(cluster.fact.clone().map(Fact::Cluster));
            facts.extend(cluster.report.clone().map(Fact::Report));
        }
        facts
    }

    fn queue_memories(&self) -> Vec<QueueMemory> {
        let keys: BTreeMap<u32, &ClassKey> = self.classes.iter().map(|(key, class)| (*class, key)).collect();
        let memory = |queue: &super::Queue| QueueMemory {
            name: Arc::clone(&queue.name),
            generation: queue.generation,
            outside: queue.outside,
            failed: queue
                .failed_classes
                .iter()
                .filter_map(|class| keys.get(class).copied().cloned())
                .collect(),
        };
        self.queues.iter().map(memory).collect()
    }

    fn memory_of(&self, ix: RowIx, row: &Row) -> WorkloadMemory {
        let due = row.fact.rare().requeue_at;
        let held = row.held.as_deref().filter(|_| !row.fact.reserved);
        WorkloadMemory {
            uid: row.fact.uid.clone(),
            parked: matches!(row.place, Place::Parked(_)),
            backs_off: due.is_some_and(|due| self.backoffs.contains(&(due, ix))),
            told: matches!(row.place, Place::Outside(_)) && !self.untold.contains(&ix),
            sticky: row.sticky,
            past: row.past().clone(),
            assumed: row.assumed,
            holds: held.map(|held| (self.reservation_of(held), held.evicted)),
        }
    }

    fn recall(&mut self, memory: WorkloadMemory) {
        let Some(ix) = self.by_uid.get(&memory.uid).copied() else { return };
        if let Some((reservation, evicted)) = memory.holds {
            self.unqueue(ix);
            self.hold(ix, &reservation);
            if evicted {
                self.mark_held(ix, |_| {});
            }
        }
        let place = self.row(ix).map(|row| row.place);
        let queue = match place {
            Some(Place::Heap(queue) | Place::Parked(queue)) => Some(queue),
            _ => None,
        };
        // A queue is ordered by stickiness too, so a row that stands in one is taken out while that changes.
        if queue.is_some() {
            self.unqueue(ix);
        }
        let Some(row) = self.row_mut(ix) else { return };
        row.sticky = memory.sticky;
        row.remember(|past| *past = memory.past);
        row.assumed = memory.assumed;
        if let Some(queue) = queue {
            self.put_back(ix, queue, (memory.parked, memory.backs_off));
        }
        if memory.told {
            self.untold.remove(&ix);
        }
    }

    /// Puts a row back where it stood in its queue.
    fn put_back(&mut self, ix: RowIx, queue: CqIx, (parked, backs_off): (bool, bool)) {
        self.put(ix, if parked { Place::Parked(queue) } else { Place::Heap(queue) });
        if let Some(due) = self.row(ix).and_then(|row| row.fact.rare().requeue_at) {
            if backs_off {
                self.backoffs.insert((due, ix));
            } else {
                self.backoffs.remove(&(due, ix));
            }
        }
    }

    fn recall_queue(&mut self, memory: QueueMemory) {
        let failed = memory.failed.into_iter().map(|key| self.class_named(key)).collect();
        let ix = self.queue_ix(&memory.name);
        let Some(queue) = self.queues.get_mut(at(ix)) else { return };
        queue.generation = memory.generation;
        queue.outside = memory.outside;
        queue.failed_classes = failed;
    }

    /// A workload's fact as it stands, with what it holds by now where it states that it holds something.
    fn stated(&self, row: &Row) -> Workload {
        let held = row.held.as_deref().filter(|_| row.fact.reserved);
        row.fact.fact(Arc::clone(&row.gang.pod_sets), held.map(|held| self.reservation_of(held)))
    }

    fn reservation_of(&self, held: &Held) -> Reservation {
        Reservation {
            cluster_queue: self.queue(held.queue).map_or_else(|| "".into(), |queue| Arc::clone(&queue.name)),
            at: held.at,
            pod_sets: Arc::clone(&held.charge.pod_sets),
            spoke: held.spoke.clone(),
            placement: held.placement.clone(),
            admitted: held.admitted,
        }
    }
}
