//! Quota that workloads hold: charged once when it is reserved or assumed, released when a fact says that it is free.

use std::collections::BTreeMap;

use fairlead_model::SpokeId;

use super::World;
use super::rows::{Held, Place, Row};
use crate::fact::Reservation;
use crate::names::{CqIx, FrIx, RowIx, at};

impl World {
    /// What a reservation is charged: the usage it states, scaled down to the pods that are still needed [T-9].
    pub(super) fn charged(&mut self, row: &Row, reservation: &Reservation) -> Vec<(FrIx, i64)> {
        let mut total: BTreeMap<FrIx, i64> = BTreeMap::new();
        for assignment in &reservation.pod_sets {
            let (counted, stated) = (row.charged_count(assignment), assignment.count);
            for (resource, amount) in assignment.usage.iter() {
                let Some(flavor) = assignment.flavors.get(resource) else { continue };
                let flavor = self.names.flavors.intern(flavor);
                let resource = self.names.resources.intern(resource);
                let fr = self.names.fr(flavor, resource);
                let amount = scaled(amount, counted, stated);
                let sum = total.entry(fr).or_insert(0);
                *sum = sum.saturating_add(amount);
            }
        }
        total.into_iter().collect()
    }

    /// Charges a reservation to its queue. The row must hold nothing.
    pub(super) fn hold(&mut self, ix: RowIx, reservation: Reservation) {
        let Some(row) = self.row(ix).cloned() else { return };
        let queue = self.queue_ix(&reservation.cluster_queue);
        let usage = self.charged(&row, &reservation);
        let evicted = row.fact.evicted.is_some() && row.fact.reservation.is_some();
        let places = self.places_of(&row, &reservation.pod_sets);
        let unready = !row.fact.pods_ready;
        let held = Held { queue, at: reservation.at, usage, reservation, places, evicted, unready };
        self.hold_places(&row, &held, true);
        let waits = held.reservation.spoke.is_none() && !row.fact.checks.is_empty();
        if waits || !row.fact.unhealthy_nodes.is_empty() {
            self.unplaced.insert(ix);
        }
        self.charge_all(queue, &held.usage, true);
        let spoke = held.reservation.spoke.clone();
        self.negative = self.negative.saturating_add(u32::from(held.is_negative()));
        if let Some(queue) = self.queue_mut(queue) {
            queue.held.insert(ix, &row, &held);
            queue.unready = queue.unready.saturating_add(u32::from(unready));
            queue.holdings = queue.holdings.wrapping_add(held.print(&row.fact.uid));
            queue.generation = queue.generation.saturating_add(1);
        }
        if let Some(row) = self.row_mut(ix) {
            row.place = Place::Held(queue);
            row.sticky = false;
            row.scan = None;
            row.held = Some(Box::new(held));
        }
        self.note_on_cluster(spoke.as_ref(), ix, true);
    }

    /// Takes back what a row holds. Whoever calls it wakes the tree that got quota back, unless it is held again at
    /// once.
    pub(super) fn release(&mut self, ix: RowIx) -> Option<Box<Held>> {
        let row = self.row_mut(ix)?;
        let held = row.held.take()?;
        let print = held.print(&row.fact.uid);
        row.assumed = false;
        if !held.places.is_empty() {
            let row = row.clone();
            self.hold_places(&row, &held, false);
        }
        self.negative = self.negative.saturating_sub(u32::from(held.is_negative()));
        if let (Some(row), Some(queue)) =
            (self.rows.get(at(ix)).and_then(Option::as_ref), self.queues.get_mut(at(held.queue)))
        {
            queue.held.remove(ix, row, &held);
            queue.unready = queue.unready.saturating_sub(u32::from(held.unready));
            queue.holdings = queue.holdings.wrapping_sub(print);
            queue.generation = queue.generation.saturating_add(1);
        }
        self.unplaced.remove(&ix);
        self.charge_all(held.queue, &held.usage, false);
        self.note_on_cluster(held.reservation.spoke.as_ref(), ix, false);
        Some(held)
    }

    fn charge_all(&mut self, queue: CqIx, usage: &[(FrIx, i64)], add: bool) {
        let stands = self.forest.place(queue);
        for (fr, amount) in usage {
            if let Some(queue) = self.queue_mut(queue) {
                queue.charge(*fr, if add { *amount } else { amount.saturating_neg() });
            }
            let Some((tree, node)) = stands else { continue };
            let Some(tree) = self.forest.trees.get_mut(at(tree)) else { continue };
            let Some(col) = tree.column(*fr) else {
                // A flavor-resource that the tree has no quota for: it gets a column when the tree is rebuilt.
                self.stale = true;
                continue;
            };
            tree.charge(node, col, (*amount, add));
        }
    }

    /// Keeps the list of what each spoke holds.
    fn note_on_cluster(&mut self, spoke: Option<&SpokeId>, ix: RowIx, holds: bool) {
        let Some(cluster) = spoke.and_then(|spoke| self.clusters.get_mut(spoke)) else { return };
        cluster.note(ix, holds);
    }
}

/// `amount` for `stated` pods, scaled to `counted` of them.
fn scaled(amount: i64, counted: u32, stated: u32) -> i64 {
    if stated == 0 || counted == stated {
        return amount;
    }
    let exact = i128::from(amount).saturating_mul(i128::from(counted)) / i128::from(stated);
    i64::try_from(exact).unwrap_or(i64::MAX)
}
