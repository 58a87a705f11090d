//! A what-if: usage and room as they would be, on top of an unchanged world. Dropped to forget.

use std::collections::{BTreeMap, BTreeSet};

use fairlead_fit::topology::WhatIf;
use fairlead_model::{Shape, SpokeId};

use crate::names::{FrIx, RowIx, at};
use crate::quota::plane::{Changes, Draft, Plane};
use crate::quota::{NodeIx, Tree};
use crate::world::World;

/// Changes on top of a world: rows of usage that were touched, and what is left on the spokes that were.
#[derive(Clone, Debug)]
pub(crate) struct Overlay<'w> {
    pub(crate) world: &'w World,
    changes: BTreeMap<u32, Changes>,
    left: BTreeMap<SpokeId, Vec<Shape>>,
    /// Workloads whose holdings were taken out.
    gone: BTreeSet<RowIx>,
    /// Topology domains that were taken or freed.
    pub(crate) what_if: WhatIf,
}

impl<'w> Overlay<'w> {
    pub(crate) fn new(world: &'w World) -> Self {
        Self {
            world,
            changes: BTreeMap::new(),
            left: BTreeMap::new(),
            gone: BTreeSet::new(),
            what_if: WhatIf::new(),
        }
    }

    /// A tree's quota.
    pub(crate) fn tree(&self, tree: u32) -> Option<&'w Tree> {
        self.world.forest.trees.get(at(tree))
    }

    /// A tree's usage as it would be.
    pub(crate) fn plane(&self, tree_ix: u32) -> Plane<'_> {
        let now = self.tree(tree_ix).map(Tree::now).unwrap_or_default();
        match self.changes.get(&tree_ix) {
            Some(changes) => now.with(changes),
            None => now,
        }
    }

    /// Whether the same changes in another order could have come to another state.
    pub(crate) fn depends_on_order(&self) -> bool {
        self.changes.values().any(Changes::depend_on_order)
    }

    /// Charges usage to a node.
    pub(crate) fn charge<'u>(
        &mut self,
        tree_ix: u32,
        node: NodeIx,
        usage: impl IntoIterator<Item = (&'u FrIx, &'u i64)>,
    ) {
        let Some(tree) = self.tree(tree_ix) else { return };
        let mut draft = Draft { below: tree.now(), changes: self.changes.entry(tree_ix).or_default() };
        for (fr, amount) in usage {
            if let Some(col) = tree.column(*fr) {
                tree.add_usage(&mut draft, node, col, *amount);
            }
        }
    }

    /// Whether a workload's holdings were taken out.
    pub(crate) fn is_gone(&self, row: RowIx) -> bool {
        self.gone.contains(&row)
    }

    /// Takes out all that a workload holds.
    pub(crate) fn remove_held(&mut self, row: RowIx) {
        let world = self.world;
        self.gone.insert(row);
        self.free_place(row);
        let Some(held) = world.row(row).and_then(|row| row.held.as_deref()) else { return };
        let Some((tree_ix, node, tree)) = world.tree_of(held.queue) else { return };
        let mut draft = Draft { below: tree.now(), changes: self.changes.entry(tree_ix).or_default() };
        tree.remove_all(&mut draft, node, &held.charge.usage);
    }

    /// The quota that a workload holds, taken out in `changes` on top of this.
    pub(crate) fn without(&self, tree_ix: u32, row: RowIx, changes: &mut Changes) {
        let Some(held) = self.world.row(row).and_then(|row| row.held.as_deref()) else { return };
        let Some((its_tree, node, tree)) = self.world.tree_of(held.queue) else { return };
        if its_tree == tree_ix {
            tree.remove_all(&mut Draft { below: self.plane(tree_ix), changes }, node, &held.charge.usage);
        }
    }

    /// Frees the topology domains that a workload holds.
    pub(crate) fn free_place(&mut self, row: RowIx) {
        let mut room = std::mem::take(&mut self.what_if);
        self.free_place_in(&mut room, row);
        self.what_if = room;
    }

    /// Frees the topology domains that a workload holds in a what-if of its own.
    pub(crate) fn free_place_in(&self, room: &mut WhatIf, row: RowIx) {
        for held in self.world.places_held(row) {
            room.free(&self.world.placing, held);
        }
    }

    /// What would be left on a spoke.
    pub(crate) fn left(&self, spoke: &SpokeId) -> &[Shape] {
        match self.left.get(spoke) {
            Some(left) => left,
            None => self.world.clusters.get(spoke).map_or(&[], |row| &row.left),
        }
    }

    /// Sets what would be left on a spoke.
    pub(crate) fn set_left(&mut self, spoke: SpokeId, left: Vec<Shape>) {
        self.left.insert(spoke, left);
    }
}
