//! Assumptions on top of what workloads hold: earlier decisions of a round, victims that would be gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_model::Resources;

use super::assignment::Assignment;
use super::field::{Topologies, is_by_host, with_pod};
use super::place::Placed;
use super::tree::{Tree, add};
use super::view::Rows;

/// What is assumed to be taken or given back. It holds differences only; dropping it undoes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WhatIf {
    by_flavor: BTreeMap<Arc<str>, Rows>,
}

/// Pods of one pod set in one flavor.
#[derive(Clone, Copy, Debug)]
pub struct Held<'a> {
    /// The flavor.
    pub flavor: &'a str,
    /// Where they are.
    pub assignment: &'a Assignment,
    /// What one of them requests, without `pods`.
    pub per_pod: &'a Resources,
}

impl WhatIf {
    /// Nothing assumed.
    pub fn new() -> Self {
        Self::default()
    }

    /// Pods are there too.
    pub fn take(&mut self, topologies: &Topologies, held: Held<'_>) {
        self.change(topologies, held, 1);
    }

    /// Pods that are there are gone.
    pub fn free(&mut self, topologies: &Topologies, held: Held<'_>) {
        self.change(topologies, held, -1);
    }

    fn change(&mut self, topologies: &Topologies, held: Held<'_>, sign: i64) {
        let amounts = with_pod(held.per_pod);
        for (name, tree) in topologies.trees_of(held.flavor, is_by_host(held.assignment)) {
            let leaves = tree.leaves_of(held.assignment).filter_map(|(leaf, count)| Some((leaf?, count)));
            self.add((name, tree), leaves, &amounts, sign);
        }
    }

    /// Placed pods are there too.
    pub(super) fn take_placed(
        &mut self,
        topologies: &Topologies,
        flavor: &str,
        (placed, per_pod): (&Placed, &Resources),
    ) {
        let Some(own) = topologies.tree(flavor) else { return };
        let amounts = with_pod(per_pod);
        for (name, tree) in topologies.trees_of(flavor, own.by_node) {
            if name.as_ref() == flavor {
                self.add((name, tree), placed.leaves.iter().copied(), &amounts, 1);
                continue;
            }
            let there = |(leaf, count): &(u32, u32)| Some((tree.leaf(&own.name(*leaf))?, *count));
            self.add((name, tree), placed.leaves.iter().filter_map(there), &amounts, 1);
        }
    }

    fn add(
        &mut self,
        (name, tree): (&Arc<str>, &Tree),
        leaves: impl Iterator<Item = (u32, u32)>,
        amounts: &Resources,
        sign: i64,
    ) {
        let columns = tree.columns(amounts);
        let rows = self.by_flavor.entry(Arc::clone(name)).or_default();
        for (leaf, count) in leaves {
            let row = rows.entry(leaf).or_insert_with(|| vec![0; tree.resources.len()]);
            add(row, &columns, i64::from(count).saturating_mul(sign));
            if row.iter().all(|amount| *amount == 0) {
                rows.remove(&leaf);
            }
        }
        if rows.is_empty() {
            self.by_flavor.remove(name);
        }
    }

    pub(super) fn rows(&self, flavor: &str) -> Option<&Rows> {
        self.by_flavor.get(flavor)
    }

    /// Whether all these pods can be there at once, on top of what is held and assumed [S-4]. Pod sets of one workload
    /// are looked at together, so that they cannot over-commit a node between them.
    pub fn fits(&self, topologies: &Topologies, all: &[Held<'_>]) -> bool {
        if let [one] = all
            && names_each_once(topologies, *one)
        {
            return self.has_room_for(topologies, *one, true);
        }
        let mut with_all = self.clone();
        for held in all {
            with_all.take(topologies, *held);
        }
        all.iter().all(|held| with_all.has_room_for(topologies, *held, false))
    }

    /// Whether the domains of these pods are usable, and nothing that the pods request is over-committed there; with the
    /// pods themselves `added`, or assumed already.
    fn has_room_for(&self, topologies: &Topologies, held: Held<'_>, added: bool) -> bool {
        let Some(tree) = topologies.tree(held.flavor) else { return false };
        let amounts = with_pod(held.per_pod);
        let wanted = amounts.iter().filter(|(_, amount)| *amount > 0);
        let columns = wanted.map(|(name, amount)| Some((tree.column(name)?, amount)));
        let Some(columns) = columns.collect::<Option<Vec<_>>>() else {
            return held.assignment.domains.is_empty();
        };
        let rows = self.rows(held.flavor);
        tree.leaves_of(held.assignment).all(|(leaf, count)| {
            let Some(leaf) = leaf.filter(|leaf| tree.is_usable(*leaf)) else { return false };
            let extra = rows.and_then(|rows| rows.get(&leaf)).map(Vec::as_slice);
            let free = tree.free(leaf, false, extra);
            let times = if added { i64::from(count) } else { 0 };
            columns.iter().all(|(column, amount)| free(*column) >= amount.saturating_mul(times))
        })
    }
}

/// Whether an assignment names its domains in order, none twice, as those made here do.
fn names_each_once(topologies: &Topologies, held: Held<'_>) -> bool {
    let Some(tree) = topologies.tree(held.flavor) else { return true };
    tree.leaves_of(held.assignment).is_sorted_by(|(a, _), (b, _)| a < b)
}
