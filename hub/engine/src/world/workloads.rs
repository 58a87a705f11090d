//! Takes in facts about workloads.

use std::collections::BTreeSet;
use std::sync::Arc;

use fairlead_model::{ObjectKey, Uid};

use super::rows::{Held, Place, Row};
use super::stated::Stated;
use super::{Changed, World};
use crate::fact::{Reservation, StopPolicy, Workload};
use crate::names::RowIx;

impl World {
    pub(super) fn take_workload(&mut self, fact: &Workload) -> Changed {
        let known = self.by_uid.get(&fact.uid).copied();
        let queue = fact.reservation.as_ref().and_then(|stated| self.queue_ordinal(&stated.cluster_queue));
        if known.and_then(|ix| self.row(ix)).is_some_and(|row| row.repeats(fact, queue)) {
            return Changed::No;
        }
        let gang = self.gang_of(&fact.key.namespace, &fact.pod_sets);
        let stated = Stated::of(fact, self.local_of(&fact.key.namespace, &fact.queue));
        let class = self.class_of(&stated, &gang);
        let row = Row::new(stated, gang, class);
        match known {
            Some(ix) => self.update_row(ix, row, fact.reservation.as_ref()),
            None => self.insert_row(row, fact.reservation.as_ref()),
        }
        Changed::Yes
    }

    /// The shared key of a LocalQueue.
    fn local_of(&mut self, namespace: &Arc<str>, name: &Arc<str>) -> Arc<ObjectKey> {
        let key = ObjectKey { namespace: Arc::clone(namespace), name: Arc::clone(name) };
        if let Some((known, _)) = self.by_local.get_key_value(&key) {
            return Arc::clone(known);
        }
        let key = Arc::new(key);
        self.by_local.insert(Arc::clone(&key), BTreeSet::new());
        key
    }

    fn insert_row(&mut self, row: Row, reservation: Option<&Reservation>) {
        let (uid, local) = (row.fact.uid.clone(), Arc::clone(&row.fact.local));
        let ix = self.rows.insert(row);
        self.by_uid.insert(uid, ix);
        self.by_local.entry(local).or_default().insert(ix);
        self.settle_row(ix, reservation, false);
    }

    fn update_row(&mut self, ix: RowIx, new: Row, reservation: Option<&Reservation>) {
        let Some(row) = self.row(ix) else { return };
        let (place, before) = (row.place, Arc::clone(&row.fact.local));
        let same_attempt = row.fact.same_attempt(&new.fact) && row.gang.pod_sets == new.gang.pod_sets;
        let stays_parked = matches!(place, Place::Parked(_)) && same_attempt;
        let reclaims = row.fact.rare().reclaimable != new.fact.rare().reclaimable;
        let wakes = row.fact.active && !new.fact.active;
        self.unqueue(ix);
        let held = self.release(ix);
        if before != new.fact.local {
            self.forget_local(&before, ix);
            self.by_local.entry(Arc::clone(&new.fact.local)).or_default().insert(ix);
        }
        if let Some(row) = self.row_mut(ix) {
            if row.class != new.class {
                row.forget_scan();
            }
            row.fact = new.fact;
            row.gang = new.gang;
            row.class = new.class;
        }
        self.settle_row(ix, reservation, stays_parked);
        if let (Place::Heap(queue) | Place::Parked(queue), true) = (place, wakes) {
            self.wake(queue);
        }
        if let Some(held) = held {
            self.wake_if_less(ix, &held);
            if reclaims {
                self.wake(held.queue);
            }
        }
    }

    /// Takes a row off the list of its LocalQueue.
    fn forget_local(&mut self, local: &ObjectKey, ix: RowIx) {
        let Some(rows) = self.by_local.get_mut(local) else { return };
        rows.remove(&ix);
        if rows.is_empty() {
            self.by_local.remove(local);
        }
    }

    /// Whether a workload's LocalQueue exists and is not stopped.
    fn has_open_local(&self, ix: RowIx) -> bool {
        let local = self.row(ix).and_then(|row| self.locals.get(&*row.fact.local));
        local.is_some_and(|local| local.stop == StopPolicy::None)
    }

    /// Wakes the tree of a queue if a workload holds less there, or less room on its spoke, than it did.
    fn wake_if_less(&mut self, ix: RowIx, before: &Held) {
        let now = self.row(ix).and_then(|row| row.held.as_deref());
        let as_much =
            now.is_some_and(|now| now.queue == before.queue && now.charge.usage == before.charge.usage);
        let as_placed = now.is_some_and(|now| now.spoke == before.spoke);
        if !as_much && (self.settings.wake_on_drain || self.has_open_local(ix)) {
            self.waking.insert(before.queue);
        }
        if !as_much && !before.evicted {
            self.count_outside(before.queue);
        }
        if !as_placed && before.spoke.is_some() {
            self.wake_federated();
        }
    }

    /// Puts a row whose fact is new where it belongs.
    fn settle_row(&mut self, ix: RowIx, reservation: Option<&Reservation>, parked: bool) {
        let Some(row) = self.row(ix) else { return };
        if row.fact.finished {
            self.put(ix, Place::Finished);
        } else if let Some(reservation) = reservation {
            self.hold(ix, reservation);
        } else {
            self.enqueue(ix, parked);
        }
        self.settle_entry(ix);
    }

    pub(super) fn drop_workload(&mut self, uid: &Uid) -> Changed {
        let Some(ix) = self.by_uid.remove(uid) else { return Changed::No };
        self.unqueue(ix);
        if let Some(held) = self.release(ix) {
            self.wake_if_less(ix, &held);
        }
        if let Some(row) = self.rows.remove(ix) {
            self.forget_local(&row.fact.local, ix);
            if let Place::Heap(queue) | Place::Parked(queue) = row.place {
                self.wake(queue);
            }
        }
        self.sweep_classes();
        Changed::Yes
    }
}
