//! Takes over plans: what they admit counts as reserved, what they evict as evicted, what they remember is kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_model::{Millis, Uid};

use crate::fact::{Eviction, EvictionCause, Reservation};
use crate::memory::{Requeue, Way};
use crate::names::{CqIx, RowIx, at};
use crate::{Admission, Plan};

use super::World;
use super::rows::{MadeWay, Place, Row, TreeState};

impl World {
    /// Takes over a plan. It must have been decided on the state that this world is in; decisions about workloads that
    /// have gone since are ignored.
    pub fn commit(&mut self, plan: &Plan) {
        self.untold.clear();
        self.note_ways(&plan.memory.ways);
        for admission in &plan.admissions {
            self.assume(plan, admission);
        }
        for eviction in &plan.evictions {
            self.mark_evicted(&eviction.uid, EvictionCause::Preempted, plan.at);
        }
        for displaced in &plan.displaced {
            self.mark_evicted(&displaced.uid, EvictionCause::NodeFailures, plan.at);
        }
        if !(plan.admissions.is_empty() && plan.evictions.is_empty() && plan.displaced.is_empty()) {
            self.version = self.version.wrapping_add(1);
        }
        for requeue in &plan.memory.requeues {
            self.requeue(requeue);
        }
        self.round = self.round.saturating_add(u64::from(plan.rounds));
    }

    fn assume(&mut self, plan: &Plan, admission: &Admission) {
        let Some(ix) = self.by_uid.get(&admission.uid).copied() else { return };
        self.unqueue(ix);
        let earlier = self.row_mut(ix).and_then(|row| row.held.as_ref().map(|held| held.at));
        self.release(ix);
        let reservation = Reservation {
            cluster_queue: Arc::clone(&admission.cluster_queue),
            at: earlier.unwrap_or(plan.at),
            pod_sets: Arc::clone(&admission.pod_sets),
            spoke: admission.spoke.clone(),
            placement: None,
            admitted: !admission.checks_pending,
        };
        self.hold(ix, &reservation);
        if let Some(row) = self.row_mut(ix) {
            row.assumed = true;
        }
        if earlier.is_none() {
            self.keep_grant(ix, admission);
            self.charge_entry(ix, admission);
        }
    }

    /// Keeps what an admission gave for those like it.
    fn keep_grant(&mut self, ix: RowIx, admission: &Admission) {
        let Some(row) = self.rows.get(ix) else { return };
        // What others have too came from those that are kept.
        if Arc::strong_count(&admission.demand) == 1 {
            self.grants.keep(&self.names, row, admission);
        }
    }

    /// Remembers for whom, and in what state of their trees, workloads are evicted. Earlier evictions count only as long
    /// as nothing from outside has changed.
    fn note_ways(&mut self, ways: &[Way]) {
        let mut states: BTreeMap<Option<u32>, TreeState> = BTreeMap::new();
        for way in ways {
            let Some(ix) = self.by_uid.get(&way.victim).copied() else { continue };
            let held = self.row(ix).and_then(|row| row.held.as_deref());
            let Some(queue) = held.map(|held| held.queue) else { continue };
            let tree = self.forest.place(queue).map(|(tree, _)| tree);
            let state = *states.entry(tree).or_insert_with(|| self.state_of(queue));
            let Some(row) = self.row_mut(ix) else { continue };
            row.remember(|past| {
                past.made_way.retain(|earlier| earlier.state.outside == state.outside);
                past.made_way.push(MadeWay { preemptor: way.preemptor.clone(), purpose: way.purpose, state });
            });
        }
    }

    fn mark_evicted(&mut self, uid: &Uid, cause: EvictionCause, at: Millis) {
        let Some(ix) = self.by_uid.get(uid).copied() else { return };
        self.mark_held(ix, |row| {
            row.fact.evict(Eviction { cause, at });
            row.assumed = true;
        });
    }

    /// Marks what a row holds as told to go, with a change of the row. Its place among those that hold quota changes with
    /// it.
    pub(super) fn mark_held(&mut self, ix: RowIx, change: impl FnOnce(&mut Row)) {
        let Some(row) = self.rows.get_mut(ix) else { return };
        let Some(mut held) = row.held.take() else { return };
        if let Some(queue) = self.queues.get_mut(at(held.queue)) {
            queue.held.remove(ix, row, &held);
            held.evicted = true;
            change(row);
            queue.held.insert(ix, row, &held);
        }
        row.held = Some(held);
    }

    fn requeue(&mut self, requeue: &Requeue) {
        let version = self.version;
        let Some(ix) = self.by_uid.get(&requeue.uid).copied() else { return };
        let Some(row) = self.row(ix) else { return };
        let (Place::Heap(queue) | Place::Parked(queue)) = row.place else { return };
        let class = row.class;
        if requeue.sticky {
            self.unstick_others(queue, ix);
        }
        self.unqueue(ix);
        if let Some(row) = self.row_mut(ix) {
            row.sticky = requeue.sticky;
            row.remember(|past| {
                past.scan.clone_from(&requeue.scan);
                past.note(version, requeue.swept);
            });
        }
        if requeue.class_failed && !requeue.immediate {
            self.put(ix, Place::Parked(queue));
            self.fail_class(queue, class);
        } else {
            self.enqueue(ix, !requeue.immediate);
        }
    }

    /// A queue has one workload that waits for its victims: the latest takes the place of those before it.
    fn unstick_others(&mut self, queue: CqIx, keep: RowIx) {
        let Some(row) = self.queue(queue) else { return };
        let waiting = [&row.heap, &row.parked]
            .into_iter()
            .flat_map(|set| set.iter().take_while(|(order, _)| !order.not_sticky));
        let others: Vec<RowIx> = waiting.map(|(_, ix)| *ix).filter(|ix| *ix != keep).collect();
        for ix in others {
            let Some(place) = self.row(ix).map(|row| row.place) else { continue };
            self.unqueue(ix);
            if let Some(row) = self.row_mut(ix) {
                row.sticky = false;
            }
            self.put(ix, place);
        }
    }
}
