//! The queues of pending workloads, [Q-5]…[Q-12]: heap, parked, and what moves between them.

use std::collections::BTreeSet;
use std::sync::Arc;

use fairlead_model::Millis;

use super::rows::{Place, Row, TreeState};
use super::{Changed, World};
use crate::fact::QueueingStrategy;
use crate::names::{CqIx, RowIx};

impl World {
    /// Whether a workload must still wait for its backoff or its queue's restart.
    fn backing_off(row: &Row, now: Millis) -> bool {
        row.fact.requeue_blocked || row.fact.rare().requeue_at.is_some_and(|due| due > now)
    }

    /// Puts a pending workload where it belongs. `parked` asks to leave it parked if it need not be looked at again.
    pub(super) fn enqueue(&mut self, ix: RowIx, parked: bool) {
        self.enqueue_unless(ix, |world, queue, row| parked || world.class_has_failed(queue, row.class));
    }

    fn enqueue_unless(&mut self, ix: RowIx, parked: impl Fn(&Self, CqIx, &Row) -> bool) {
        let Some(row) = self.row(ix) else { return };
        let place = match self.destination(row) {
            Err(reason) => Place::Outside(reason),
            Ok(queue) if Self::backing_off(row, self.now) || parked(self, queue, row) => Place::Parked(queue),
            Ok(queue) => Place::Heap(queue),
        };
        self.put(ix, place);
    }

    /// Whether the workload's class is known not to be admissible until something changes.
    fn class_has_failed(&self, queue: CqIx, class: u32) -> bool {
        self.queue(queue).is_some_and(|queue| queue.failed_classes.contains(&class))
    }

    /// Puts a row that is nowhere into a place.
    pub(super) fn put(&mut self, ix: RowIx, place: Place) {
        let now = self.now;
        let Some(row) = self.row_mut(ix) else { return };
        row.place = place;
        let order = row.order();
        let due = row.fact.rare().requeue_at.filter(|due| *due > now);
        match place {
            Place::Heap(queue) => {
                if let Some(queue) = self.queue_mut(queue) {
                    queue.heap.insert((order, ix));
                }
            }
            Place::Parked(queue) => {
                if let Some(queue) = self.queue_mut(queue) {
                    queue.parked.insert((order, ix));
                }
                self.backoffs.extend(due.map(|due| (due, ix)));
            }
            Place::Outside(_) => {
                self.untold.insert(ix);
            }
            Place::Held(_) | Place::Finished => {}
        }
    }

    /// Takes a row out of the heap or the parked ones.
    pub(super) fn unqueue(&mut self, ix: RowIx) {
        let Some(row) = self.row(ix) else { return };
        let (order, place, due) = (row.order(), row.place, row.fact.rare().requeue_at);
        self.untold.remove(&ix);
        if let Some(due) = due {
            self.backoffs.remove(&(due, ix));
        }
        if let Place::Heap(queue) | Place::Parked(queue) = place
            && let Some(queue) = self.queue_mut(queue)
        {
            queue.heap.remove(&(order.clone(), ix));
            queue.parked.remove(&(order, ix));
        }
    }

    /// Asks for the tree of a queue to be woken before the next round: something from outside has changed.
    pub(super) fn wake(&mut self, queue: CqIx) {
        self.waking.insert(queue);
        self.count_outside(queue);
    }

    /// Counts a change from outside.
    pub(super) fn count_outside(&mut self, queue: CqIx) {
        if let Some(queue) = self.queue_mut(queue) {
            queue.outside = queue.outside.wrapping_add(1);
        }
    }

    /// The state of the tree of a queue.
    pub(crate) fn state_of(&self, queue: CqIx) -> TreeState {
        let Some((_, _, tree)) = self.tree_of(queue) else { return TreeState::default() };
        let queues = tree.nodes.iter().filter_map(|node| self.queue(node.queue?));
        queues.fold(TreeState::default(), |state, queue| TreeState {
            outside: state.outside.wrapping_add(queue.outside),
            holdings: state.holdings.wrapping_add(queue.holdings),
        })
    }

    /// Wakes queues for a reason from outside.
    pub(super) fn wake_all(&mut self, queues: Vec<CqIx>) {
        for queue in queues {
            self.wake(queue);
        }
    }

    /// Wakes every queue with a dispatch check: clusters have changed.
    pub(super) fn wake_federated(&mut self) {
        let federated: Vec<CqIx> =
            self.queues_by_name().filter(|(_, queue)| queue.federated).map(|(ix, _)| ix).collect();
        self.wake_all(federated);
    }

    /// Moves parked workloads back into the heaps of the trees that were woken.
    pub(super) fn flush(&mut self) {
        let mut all: BTreeSet<CqIx> = BTreeSet::new();
        for queue in std::mem::take(&mut self.waking) {
            match self.tree_of(queue) {
                Some((_, _, tree)) => all.extend(tree.nodes.iter().filter_map(|node| node.queue)),
                None => {
                    all.insert(queue);
                }
            }
        }
        for queue in all {
            self.flush_queue(queue);
        }
    }

    fn flush_queue(&mut self, ix: CqIx) {
        let Some(queue) = self.queue_mut(ix) else { return };
        queue.failed_classes.clear();
        let parked = std::mem::take(&mut queue.parked);
        if parked.is_empty() {
            return;
        }
        let stays = |row: RowIx| {
            self.row(row).is_none_or(|row| {
                Self::backing_off(row, self.now) || !self.namespace_matches(ix, row.fact.namespace())
            })
        };
        let (stay, mut go): (BTreeSet<_>, BTreeSet<_>) = parked.into_iter().partition(|(_, row)| stays(*row));
        for (_, row_ix) in &go {
            let Some(row) = self.rows.get_mut(*row_ix) else { continue };
            row.place = Place::Heap(ix);
            if let Some(due) = row.fact.rare().requeue_at {
                self.backoffs.remove(&(due, *row_ix));
            }
        }
        if let Some(queue) = self.queue_mut(ix) {
            queue.parked = stay;
            join(&mut queue.heap, &mut go);
        }
    }

    /// Whether a queue takes workloads from a namespace.
    pub(crate) fn namespace_matches(&self, queue: CqIx, namespace: &str) -> bool {
        let selector = self.queue(queue).and_then(|queue| queue.fact.as_ref()?.namespaces.as_ref());
        let labels = self.namespaces.get(namespace).map(|namespace| &namespace.labels);
        selector.is_some_and(|selector| match labels {
            Some(labels) => selector.matches(labels),
            None => selector.requirements.is_empty(),
        })
    }

    /// Returns workloads whose backoff has ended to their heaps.
    pub(super) fn end_backoffs(&mut self) -> Changed {
        let mut changed = false;
        while let Some((due, ix)) = self.backoffs.first().copied().filter(|(due, _)| *due <= self.now) {
            self.backoffs.remove(&(due, ix));
            if matches!(self.row(ix).map(|row| row.place), Some(Place::Parked(_))) {
                self.unqueue(ix);
                self.enqueue(ix, false);
                changed = true;
            }
        }
        changed.into()
    }

    /// Parks every workload of a class that was found not to be admissible.
    pub(super) fn fail_class(&mut self, queue: CqIx, class: u32) {
        let Some(row) = self.queue(queue) else { return };
        if row.fact.as_ref().is_none_or(|fact| fact.strategy == QueueingStrategy::StrictFifo) {
            return;
        }
        let same = |ix: RowIx| self.row(ix).is_some_and(|row| row.class == class);
        let members: Vec<RowIx> = row.heap.iter().map(|(_, ix)| *ix).filter(|ix| same(*ix)).collect();
        let few = members.len().saturating_mul(4) < row.heap.len();
        if let Some(row) = self.queue_mut(queue) {
            row.failed_classes.insert(class);
        }
        if few {
            for ix in members {
                self.unqueue(ix);
                self.put(ix, Place::Parked(queue));
            }
        } else {
            self.park_class(queue, class);
        }
    }

    /// Parks the workloads of a class that makes up much of a heap, all at once.
    fn park_class(&mut self, queue: CqIx, class: u32) {
        let Some(row) = self.queue_mut(queue) else { return };
        let heap = std::mem::take(&mut row.heap);
        let same = |ix: RowIx| self.row(ix).is_some_and(|row| row.class == class);
        let (mut members, others): (BTreeSet<_>, BTreeSet<_>) =
            heap.into_iter().partition(|(_, ix)| same(*ix));
        for (_, ix) in &members {
            if let Some(row) = self.rows.get_mut(*ix) {
                row.place = Place::Parked(queue);
            }
        }
        if let Some(row) = self.queue_mut(queue) {
            row.heap = others;
            join(&mut row.parked, &mut members);
        }
    }

    /// Queues every workload of a LocalQueue anew: it appeared, vanished, was stopped or restarted. They are looked at
    /// whatever is known of their classes.
    pub(super) fn requeue_local(&mut self, key: &fairlead_model::ObjectKey) {
        let rows: Vec<RowIx> = self.by_local.get(key).into_iter().flatten().copied().collect();
        for ix in rows {
            if let Some(Place::Outside(_) | Place::Heap(_) | Place::Parked(_)) =
                self.row(ix).map(|row| row.place)
            {
                self.unqueue(ix);
                self.enqueue_unless(ix, |_, _, _| false);
            }
        }
    }

    /// Queues every workload that leads to a ClusterQueue anew: it appeared or vanished.
    pub(super) fn requeue_cluster_queue(&mut self, name: &Arc<str>) {
        let leads = |local: &&crate::fact::LocalQueue| local.cluster_queue == *name;
        let keys: Vec<_> = self.locals.values().filter(leads).map(|local| local.key.clone()).collect();
        for key in keys {
            self.requeue_local(&key);
        }
    }
}

/// Moves everything from one set to another: one by one where little goes to much, for merging goes through both.
fn join<T: Ord>(to: &mut BTreeSet<T>, from: &mut BTreeSet<T>) {
    if from.len().saturating_mul(8) < to.len() {
        to.extend(std::mem::take(from));
    } else {
        to.append(from);
    }
}
