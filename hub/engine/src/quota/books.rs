//! A tree's usage as it is, and which nodes use more than their quota, kept up with every change.

use std::collections::BTreeSet;

use super::plane::Ledger;
use super::{Col, NodeIx, Tree};
use crate::names::{at, next};

/// Usage of every node, and who borrows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Books {
    /// Columns.
    width: usize,
    /// Usage, row by row.
    pub(super) values: Vec<i64>,
    /// Per node, in how many flavor-resources it uses more than its quota.
    over: Vec<u32>,
    /// Nodes that do in any, each behind its parent.
    borrowers: BTreeSet<(NodeIx, NodeIx)>,
}

impl Books {
    /// Nothing is used.
    pub(super) fn new(tree: &Tree) -> Self {
        let (nodes, width) = (tree.nodes.len(), tree.columns.len());
        let mut books = Self {
            width,
            values: vec![0; nodes.saturating_mul(width)],
            over: vec![0; nodes],
            borrowers: BTreeSet::new(),
        };
        for node in (0..nodes).map(next) {
            for col in (0..width).map(next) {
                // A negative quota is exceeded by nothing at all.
                if is_over(tree, (node, col), 0) {
                    books.count(tree, node, true);
                }
            }
        }
        books
    }

    /// Children of a node that use more than their quota of anything.
    pub(super) fn borrowers(&self, parent: NodeIx) -> impl Iterator<Item = NodeIx> {
        self.borrowers.range((parent, 0)..=(parent, NodeIx::MAX)).map(|(_, child)| *child)
    }

    fn count(&mut self, tree: &Tree, node: NodeIx, over: bool) {
        let Some(count) = self.over.get_mut(at(node)) else { return };
        let before = *count;
        *count = if over { before.saturating_add(1) } else { before.saturating_sub(1) };
        let after = *count;
        let Some(parent) = tree.parent(node) else { return };
        match (before, after) {
            (0, 1..) => drop(self.borrowers.insert((parent, node))),
            (1.., 0) => drop(self.borrowers.remove(&(parent, node))),
            _ => {}
        }
    }
}

fn is_over(tree: &Tree, (node, col): (NodeIx, Col), used: i64) -> bool {
    tree.limit(node, col) < used
}

impl Ledger for Books {
    fn cell(&mut self, node: NodeIx, col: Col) -> Option<&mut i64> {
        self.values.get_mut(at(node).saturating_mul(self.width).saturating_add(at(col)))
    }

    fn note(&mut self, tree: &Tree, cell: (NodeIx, Col), _: i64, (before, after): (i64, i64)) {
        let over = is_over(tree, cell, after);
        if is_over(tree, cell, before) != over {
            self.count(tree, cell.0, over);
        }
    }
}
