//! A what-if: usage and room as they would be, on top of an unchanged world. Dropped to forget.

use std::collections::{BTreeMap, BTreeSet};

use fairlead_fit::topology::WhatIf;
use fairlead_model::{Shape, SpokeId};

use crate::names::{FrIx, RowIx, at};
use crate::quota::{NodeIx, Plane, Tree};
use crate::world::World;

/// Changes on top of a world: usage planes of the trees that were touched, and what is left on the spokes that were.
#[derive(Clone, Debug)]
pub(crate) struct Overlay<'w> {
    pub(crate) world: &'w World,
    planes: BTreeMap<u32, Plane>,
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
            planes: BTreeMap::new(),
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
    pub(crate) fn plane(&self, tree: u32) -> &[i64] {
        match self.planes.get(&tree) {
            Some(plane) => plane,
            None => self.tree(tree).map_or(&[], |tree| &tree.usage),
        }
    }

    fn plane_mut(&mut self, tree: u32) -> &mut Plane {
        let world = self.world;
        let fresh = || world.forest.trees.get(at(tree)).map(|tree| tree.usage.clone()).unwrap_or_default();
        self.planes.entry(tree).or_insert_with(fresh)
    }

    /// Charges usage to a node.
    pub(crate) fn charge<'u>(
        &mut self,
        tree_ix: u32,
        node: NodeIx,
        usage: impl IntoIterator<Item = (&'u FrIx, &'u i64)>,
    ) {
        let Some(tree) = self.tree(tree_ix) else { return };
        let plane = self.plane_mut(tree_ix);
        for (fr, amount) in usage {
            if let Some(col) = tree.column(*fr) {
                tree.add_usage(plane, node, col, *amount);
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
        let plane = self.plane_mut(tree_ix);
        for (fr, amount) in &held.usage {
            if let Some(col) = tree.column(*fr) {
                tree.remove_usage(plane, node, col, *amount);
            }
        }
    }

    /// Frees the topology domains that a workload holds.
    pub(crate) fn free_place(&mut self, row: RowIx) {
        for held in self.world.places_held(row) {
            self.what_if.free(&self.world.placing, held);
        }
    }

    /// Takes them again.
    pub(crate) fn retake_place(&mut self, row: RowIx) {
        for held in self.world.places_held(row) {
            self.what_if.take(&self.world.placing, held);
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
