//! The quota tree [T-1]…[T-8]: ClusterQueues are leaves, Cohorts inner nodes. A tree is a vector in topological order
//! (a parent stands before its children); quota and usage are planes `[node × flavor-resource]`. Usage is kept apart
//! from quota, so a what-if is a few changed rows of usage, dropped to forget.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_model::Amount;

use crate::fact::Weight;
use crate::names::{CqIx, FrIx, at};

mod books;
pub(crate) mod build;
pub(crate) mod plane;

use books::Books;
use plane::{Ledger, Plane};

/// Position of a node in its tree.
pub(crate) type NodeIx = u32;
/// Column of a flavor-resource in its tree.
pub(crate) type Col = u32;

/// A node of the quota tree.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Its name.
    pub(crate) name: Arc<str>,
    /// Its parent; none for the root.
    pub(crate) parent: Option<NodeIx>,
    /// The ClusterQueue, for leaves.
    pub(crate) queue: Option<CqIx>,
    /// Children in name order, Cohorts and ClusterQueues apart.
    pub(crate) children: Vec<NodeIx>,
    /// 0 for a ClusterQueue; for a Cohort the largest distance to a leaf.
    pub(crate) height: u32,
    /// Weight in fair sharing.
    pub(crate) weight: Weight,
}

/// Quota of one node for one flavor-resource.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cell {
    /// Guaranteed here.
    pub(crate) nominal: Amount,
    /// How much more may be borrowed.
    pub(crate) borrowing: Option<Amount>,
    /// How much may be lent.
    pub(crate) lending: Option<Amount>,
    /// Quota of the whole subtree.
    pub(crate) subtree: Amount,
    /// The part of it that the parent does not see.
    pub(crate) local: Amount,
    /// What could be had if nothing were used [T-2].
    pub(crate) potential: Amount,
}

/// One tree: a root Cohort with all below it, or a lone ClusterQueue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    /// Nodes in topological order; the root is the first.
    pub(crate) nodes: Vec<Node>,
    /// The flavor-resource of each column, in (flavor name, resource name) order.
    pub(crate) columns: Vec<FrIx>,
    index: BTreeMap<FrIx, Col>,
    cells: Vec<Cell>,
    /// Per cell, usage above which a node borrows: its subtree's quota.
    limits: Vec<i64>,
    /// Usage now.
    books: Books,
    /// The columns of each resource.
    resources: Vec<Vec<Col>>,
    /// Per node and resource, what could be lent below it [P-5].
    lendable: Vec<u128>,
    /// A parent cycle: its queues are not usable.
    pub(crate) cyclic: bool,
}

impl Tree {
    /// The column of a flavor-resource.
    pub(crate) fn column(&self, fr: FrIx) -> Option<Col> {
        self.index.get(&fr).copied()
    }

    /// A node.
    pub(crate) fn node(&self, ix: NodeIx) -> Option<&Node> {
        self.nodes.get(at(ix))
    }

    /// The parent of a node.
    pub(crate) fn parent(&self, ix: NodeIx) -> Option<NodeIx> {
        self.node(ix).and_then(|node| node.parent)
    }

    /// The root's name.
    pub(crate) fn root_name(&self) -> Arc<str> {
        self.nodes.first().map_or_else(|| Arc::from(""), |node| Arc::clone(&node.name))
    }

    fn slot(&self, node: NodeIx, col: Col) -> usize {
        at(node).saturating_mul(self.columns.len()).saturating_add(at(col))
    }

    /// Quota of a node.
    pub(crate) fn cell(&self, node: NodeIx, col: Col) -> Cell {
        self.cells.get(self.slot(node, col)).copied().unwrap_or_default()
    }

    /// Usage as it is.
    pub(crate) fn now(&self) -> Plane<'_> {
        Plane::new(&self.books.values, self.columns.len())
    }

    /// Charges usage to a node, or takes it back.
    pub(crate) fn charge(&mut self, node: NodeIx, col: Col, (amount, add): (i64, bool)) {
        let mut books = std::mem::take(&mut self.books);
        if add {
            self.add_usage(&mut books, node, col, amount);
        } else {
            self.remove_usage(&mut books, node, col, amount);
        }
        self.books = books;
    }

    /// Children of a node that use more than their quota of anything as it is, in their order.
    pub(crate) fn borrowers(&self, parent: NodeIx) -> impl Iterator<Item = NodeIx> {
        self.books.borrowers(parent)
    }

    /// The columns of each resource, and what of it could be lent below a node.
    pub(crate) fn lendable(&self, node: NodeIx) -> impl Iterator<Item = (&[Col], u128)> {
        let start = at(node).saturating_mul(self.resources.len());
        let lendable = self.lendable.get(start..).unwrap_or_default();
        self.resources.iter().map(Vec::as_slice).zip(lendable.iter().copied())
    }

    /// What of its own, unseen quota a node still has when it uses some.
    fn local_left(&self, node: NodeIx, col: Col, used: i64) -> Amount {
        self.cell(node, col).local.minus(Amount::Finite(used)).max(Amount::ZERO)
    }

    /// What of its own, unseen quota a node still has.
    pub(crate) fn local_available(&self, plane: Plane<'_>, node: NodeIx, col: Col) -> Amount {
        self.local_left(node, col, plane.used(node, col))
    }

    /// [T-1] What a node can still get; negative at an over-used root. Walks from the root down, without recursion, so
    /// that chains of any depth are safe.
    pub(crate) fn available(&self, plane: Plane<'_>, node: NodeIx, col: Col) -> Amount {
        let mut path = Path::default();
        let mut cursor = Some(node);
        while let Some(ix) = cursor {
            path.push(ix);
            cursor = self.parent(ix);
        }
        let mut from_parent = None;
        while let Some(ix) = path.pop() {
            from_parent = Some(self.available_step(plane, ix, col, from_parent));
        }
        from_parent.unwrap_or(Amount::ZERO)
    }

    fn available_step(&self, plane: Plane<'_>, node: NodeIx, col: Col, parent: Option<Amount>) -> Amount {
        let cell = self.cell(node, col);
        let used = Amount::Finite(plane.used(node, col));
        let Some(mut offered) = parent else { return cell.subtree.minus(used) };
        if let Some(limit) = cell.borrowing {
            let stored = cell.subtree.minus(cell.local);
            let used_above = used.minus(cell.local).max(Amount::ZERO);
            offered = offered.min(stored.minus(used_above).plus(limit));
        }
        cell.local.minus(used).max(Amount::ZERO).plus(offered)
    }

    /// [T-3] Charges usage to a node and what exceeds its local quota to those above.
    pub(crate) fn add_usage(&self, ledger: &mut impl Ledger, node: NodeIx, col: Col, amount: i64) {
        let mut cursor = Some((node, amount));
        while let Some((ix, amount)) = cursor {
            let Some(used) = ledger.cell(ix, col) else { return };
            let before = *used;
            *used = before.saturating_add(amount);
            let after = *used;
            ledger.note(self, (ix, col), amount, (before, after));
            let above = amount.saturating_sub(self.local_left(ix, col, before).saturated());
            cursor = self.parent(ix).filter(|_| above > 0).map(|parent| (parent, above));
        }
    }

    /// [T-4] Takes usage back from a node and from those above.
    pub(crate) fn remove_usage(&self, ledger: &mut impl Ledger, node: NodeIx, col: Col, amount: i64) {
        let mut cursor = Some((node, amount));
        while let Some((ix, amount)) = cursor {
            let Some(used) = ledger.cell(ix, col) else { return };
            let before = *used;
            *used = before.saturating_sub(amount);
            let after = *used;
            ledger.note(self, (ix, col), amount, (before, after));
            let stored = Amount::Finite(before).minus(self.cell(ix, col).local);
            let above = amount.min(stored.saturated());
            cursor = self.parent(ix).filter(|_| above > 0).map(|parent| (parent, above));
        }
    }

    /// Takes back all of some usage; flavor-resources without a column are left out.
    pub(crate) fn remove_all(&self, ledger: &mut impl Ledger, node: NodeIx, usage: &[(FrIx, i64)]) {
        for (fr, amount) in usage {
            if let Some(col) = self.column(*fr) {
                self.remove_usage(ledger, node, col, *amount);
            }
        }
    }

    /// [T-5] Whether the node would borrow with `extra` more usage.
    pub(crate) fn borrowing_with(&self, plane: Plane<'_>, node: NodeIx, col: Col, extra: i64) -> bool {
        let used = plane.used(node, col).saturating_add(extra);
        self.limit(node, col) < used
    }

    /// Usage above which a node borrows; the largest amount where there is no limit.
    fn limit(&self, node: NodeIx, col: Col) -> i64 {
        self.limits.get(self.slot(node, col)).copied().unwrap_or(0)
    }

    /// Usage above which a node borrows, by column.
    pub(crate) fn limits(&self, node: NodeIx) -> &[i64] {
        let start = self.slot(node, 0);
        self.limits.get(start..start.saturating_add(self.columns.len())).unwrap_or_default()
    }

    /// [F-7] How far up the tree `amount` more usage of a queue has to come from, and whether quota above that point
    /// could be reclaimed.
    pub(crate) fn borrow_level(&self, plane: Plane<'_>, queue: NodeIx, col: Col, amount: i64) -> (u32, bool) {
        let has_parent = |ix| self.parent(ix).is_some();
        if !self.borrowing_with(plane, queue, col, amount) || !has_parent(queue) {
            return (0, has_parent(queue));
        }
        let mut rest = Amount::Finite(amount).minus(self.local_available(plane, queue, col)).saturated();
        let mut cursor = self.parent(queue);
        let mut height = 0;
        while let Some(ix) = cursor {
            height = self.node(ix).map_or(0, |node| node.height);
            if !self.borrowing_with(plane, ix, col, rest) {
                return (height, has_parent(ix));
            }
            rest = Amount::Finite(rest).minus(self.local_available(plane, ix, col)).saturated();
            cursor = self.parent(ix);
        }
        (height, false)
    }
}

/// Nodes on a way up, without memory of its own unless it is long.
#[derive(Debug, Default)]
struct Path {
    first: [NodeIx; 8],
    len: usize,
    rest: Vec<NodeIx>,
}

impl Path {
    fn push(&mut self, node: NodeIx) {
        match self.first.get_mut(self.len) {
            Some(slot) => *slot = node,
            None => self.rest.push(node),
        }
        self.len = self.len.saturating_add(1);
    }

    fn pop(&mut self) -> Option<NodeIx> {
        self.len = self.len.checked_sub(1)?;
        self.first.get(self.len).copied().or_else(|| self.rest.pop())
    }
}
