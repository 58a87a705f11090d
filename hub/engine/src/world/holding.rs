//! Quota that workloads hold: charged once when it is reserved or assumed, released when a fact says that it is free.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_model::SpokeId;

use super::World;
use super::rows::{Charge, Held, Place};
use crate::fact::{PodSetAssignment, Reservation};
use crate::names::{CqIx, FrIx, RowIx, at};

impl World {
    /// What a reservation gives and is charged: the usage it states, scaled down to the pods that are still needed
    /// [T-9].
    fn charge_of(&mut self, ix: RowIx, pod_sets: &Arc<[PodSetAssignment]>) -> Arc<Charge> {
        let gang = self.row(ix).filter(|row| row.fact.rare().reclaimable.is_empty()).map(|row| &row.gang);
        // Admissions of one class come one after the other.
        if let (Some(gang), Some((last_gang, last))) = (gang, &self.last_charge)
            && Arc::ptr_eq(gang, last_gang)
            && Arc::ptr_eq(pod_sets, &last.pod_sets)
        {
            return Arc::clone(last);
        }
        let gang = gang.map(Arc::clone);
        let charge = self.new_charge(ix, pod_sets);
        self.last_charge = gang.map(|gang| (gang, Arc::clone(&charge)));
        charge
    }

    fn new_charge(&mut self, ix: RowIx, pod_sets: &Arc<[PodSetAssignment]>) -> Arc<Charge> {
        let mut total: BTreeMap<FrIx, i64> = BTreeMap::new();
        for assignment in &**pod_sets {
            let counted = self.row(ix).map_or(0, |row| row.charged_count(assignment));
            for (resource, amount) in assignment.usage.iter() {
                let Some(flavor) = assignment.flavors.get(resource) else { continue };
                let flavor = self.names.flavors.intern(flavor);
                let resource = self.names.resources.intern(resource);
                let fr = self.names.fr(flavor, resource);
                let amount = scaled(amount, counted, assignment.count);
                let sum = total.entry(fr).or_insert(0);
                *sum = sum.saturating_add(amount);
            }
        }
        self.charges.share(Charge { pod_sets: Arc::clone(pod_sets), usage: total.into_iter().collect() })
    }

    /// Charges a reservation to its queue. The row must hold nothing.
    pub(super) fn hold(&mut self, ix: RowIx, reservation: &Reservation) {
        let queue = self.queue_ix(&reservation.cluster_queue);
        let charge = self.charge_of(ix, &reservation.pod_sets);
        let Some(row) = self.row(ix) else { return };
        let rare = row.fact.rare();
        let held = Held {
            queue,
            evicted: rare.evicted.is_some() && row.fact.reserved,
            unready: !row.fact.pods_ready,
            admitted: reservation.admitted,
            at: reservation.at,
            places: self.places_of(row, &charge.pod_sets).into(),
            charge: Arc::clone(&charge),
            spoke: reservation.spoke.clone(),
            placement: reservation.placement.clone(),
        };
        let waits = held.spoke.is_none() && !rare.checks.is_empty();
        if waits || !rare.unhealthy_nodes.is_empty() {
            self.unplaced.insert(ix);
        }
        self.charge_all(queue, &charge.usage, true);
        let (Some(row), Some(of)) = (self.rows.get_mut(ix), self.queues.get_mut(at(queue))) else { return };
        self.negative = self.negative.saturating_add(u32::from(held.is_negative()));
        of.held.insert(ix, row, &held);
        of.unready = of.unready.saturating_add(u32::from(held.unready));
        of.holdings = of.holdings.wrapping_add(held.print(&row.fact.uid));
        of.generation = of.generation.saturating_add(1);
        row.place = Place::Held(queue);
        row.sticky = false;
        row.forget_rounds();
        row.held = Some(Box::new(held));
        self.hold_places(ix, true);
        self.note_on_cluster(reservation.spoke.as_ref(), ix, true);
    }

    /// Takes back what a row holds. Whoever calls it wakes the tree that got quota back, unless it is held again at
    /// once.
    pub(super) fn release(&mut self, ix: RowIx) -> Option<Box<Held>> {
        self.hold_places(ix, false);
        let row = self.rows.get_mut(ix)?;
        let held = row.held.take()?;
        row.assumed = false;
        self.negative = self.negative.saturating_sub(u32::from(held.is_negative()));
        if let Some(queue) = self.queues.get_mut(at(held.queue)) {
            queue.held.remove(ix, row, &held);
            queue.unready = queue.unready.saturating_sub(u32::from(held.unready));
            queue.holdings = queue.holdings.wrapping_sub(held.print(&row.fact.uid));
            queue.generation = queue.generation.saturating_add(1);
        }
        self.unplaced.remove(&ix);
        self.charge_all(held.queue, &held.charge.usage, false);
        self.note_on_cluster(held.spoke.as_ref(), ix, false);
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
