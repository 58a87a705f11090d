//! Usage planes: what every node of a tree uses of every flavor-resource, as it is or as it would be. A what-if copies
//! the rows that it changes and nothing else; dropping it forgets it.

use super::{Col, NodeIx, Tree};
use crate::names::{at, next};

/// Rows that differ from those below them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    /// The changed nodes in order, each with where its row begins in `values`.
    starts: Vec<(NodeIx, u32)>,
    values: Vec<i64>,
    /// An amount was negative or a sum came to the end of its range, so that the order of changes matters.
    ordered: bool,
}

impl Changes {
    /// Whether the same changes in another order could give other sums. They cannot as long as amounts are not negative
    /// and sums not saturated: what a node passes up depends on its usage alone then [T-3], [T-4].
    pub(crate) const fn depend_on_order(&self) -> bool {
        self.ordered
    }

    /// Nothing is changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Forgets everything, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.starts.clear();
        self.values.clear();
        self.ordered = false;
    }

    fn position(&self, node: NodeIx) -> Result<usize, usize> {
        match self.starts.last() {
            Some((last, _)) if *last < node => Err(self.starts.len()),
            Some(_) | None => self.starts.binary_search_by_key(&node, |(node, _)| *node),
        }
    }

    fn row(&self, node: NodeIx, width: usize) -> Option<&[i64]> {
        let (_, start) = self.starts.get(self.position(node).ok()?)?;
        self.values.get(at(*start)..at(*start).saturating_add(width))
    }

    /// The row of a node to be changed, copied from below at first.
    fn row_mut(&mut self, below: Plane<'_>, node: NodeIx) -> Option<&mut [i64]> {
        let start = match self.position(node) {
            Ok(position) => at(self.starts.get(position)?.1),
            Err(position) => {
                let start = self.values.len();
                self.values.extend_from_slice(below.row(node));
                self.starts.insert(position, (node, next(start)));
                start
            }
        };
        self.values.get_mut(start..start.saturating_add(below.width))
    }
}

/// Usage of every node of a tree, with up to three layers of changes on it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plane<'a> {
    now: &'a [i64],
    /// Columns.
    width: usize,
    /// The uppermost first.
    layers: [Option<&'a Changes>; 3],
}

impl<'a> Plane<'a> {
    /// Usage as it is.
    pub(super) const fn new(now: &'a [i64], width: usize) -> Self {
        Self { now, width, layers: [None; 3] }
    }

    /// The same with changes on top.
    pub(crate) fn with(self, changes: &'a Changes) -> Self {
        if changes.is_empty() {
            return self;
        }
        let [first, second, _] = self.layers;
        Self { layers: [Some(changes), first, second], ..self }
    }

    /// Whether it is usage as it is.
    pub(crate) fn is_unchanged(self) -> bool {
        self.layers.iter().all(Option::is_none)
    }

    /// What a node uses, by column.
    pub(crate) fn row(self, node: NodeIx) -> &'a [i64] {
        for changes in self.layers.into_iter().flatten() {
            if let Some(row) = changes.row(node, self.width) {
                return row;
            }
        }
        let start = at(node).saturating_mul(self.width);
        self.now.get(start..start.saturating_add(self.width)).unwrap_or_default()
    }

    /// What a node uses of one flavor-resource.
    pub(crate) fn used(self, node: NodeIx, col: Col) -> i64 {
        self.row(node).get(at(col)).copied().unwrap_or(0)
    }
}

/// Usage that can be changed.
pub(crate) trait Ledger {
    /// The usage of a node of one flavor-resource.
    fn cell(&mut self, node: NodeIx, col: Col) -> Option<&mut i64>;

    /// Is told of every change: the amount, and usage before and after it.
    fn note(&mut self, tree: &Tree, cell: (NodeIx, Col), amount: i64, change: (i64, i64));
}

/// A plane with changes being made on top of it.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    /// What lies below.
    pub(crate) below: Plane<'a>,
    /// The changes.
    pub(crate) changes: &'a mut Changes,
}

impl Ledger for Draft<'_> {
    fn cell(&mut self, node: NodeIx, col: Col) -> Option<&mut i64> {
        self.changes.row_mut(self.below, node)?.get_mut(at(col))
    }

    fn note(&mut self, _: &Tree, _: (NodeIx, Col), amount: i64, (_, after): (i64, i64)) {
        self.changes.ordered |= amount < 0 || after == i64::MAX || after == i64::MIN;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use fairlead_model::Amount;

    use super::*;
    use crate::fact::{FlavorQuotas, Quota, ResourceGroup, Weight};
    use crate::names::Interned;
    use crate::quota::build::{Leaf, build};

    const A: NodeIx = 1;
    const B: NodeIx = 2;
    const CPU: Col = 0;

    /// A cohort of two queues with 10 CPUs each, of which they keep 4 to themselves.
    fn tree() -> Tree {
        let quota = Quota {
            resource: "cpu".into(),
            nominal: Amount::Finite(10),
            borrowing: None,
            lending: Some(Amount::Finite(6)),
        };
        let flavors = vec![FlavorQuotas { flavor: "default".into(), quotas: vec![quota] }];
        let groups = [ResourceGroup { resources: vec!["cpu".into()], flavors }];
        let (cohort, usage): (Arc<str>, _) = ("all".into(), BTreeMap::new());
        let names: [Arc<str>; 2] = ["a".into(), "b".into()];
        let leaves = names.iter().zip(0..).map(|(name, queue)| Leaf {
            queue,
            name,
            cohort: Some(&cohort),
            groups: &groups,
            weight: Weight::default(),
            usage: &usage,
        });
        let leaves: Vec<Leaf<'_>> = leaves.collect();
        build(&leaves, &BTreeMap::new(), &mut Interned::default()).trees.remove(0)
    }

    fn used(plane: Plane<'_>) -> [i64; 3] {
        [0, A, B].map(|node| plane.used(node, CPU))
    }

    /// Changes of queues' usage, one after the other.
    fn changed(tree: &Tree, amounts: &[(NodeIx, i64)], back: &[(NodeIx, i64)]) -> Changes {
        let mut changes = Changes::default();
        let mut draft = Draft { below: tree.now(), changes: &mut changes };
        for (node, amount) in amounts {
            tree.add_usage(&mut draft, *node, CPU, *amount);
        }
        for (node, amount) in back {
            tree.remove_usage(&mut draft, *node, CPU, *amount);
        }
        changes
    }

    #[test]
    fn t3_a_what_if_leaves_what_is_below_alone() {
        let mut tree = tree();
        tree.charge(A, CPU, (7, true));
        let first = changed(&tree, &[(B, 5)], &[]);
        let upper = tree.now().with(&first);
        let mut second = Changes::default();
        tree.remove_usage(&mut Draft { below: upper, changes: &mut second }, A, CPU, 2);
        assert_eq!(used(tree.now()), [3, 7, 0], "what exceeds 4 comes from the cohort");
        assert_eq!(used(upper), [4, 7, 5]);
        assert_eq!(used(upper.with(&second)), [2, 5, 5]);
    }

    #[test]
    fn t4_the_order_of_changes_matters_only_where_it_is_said_to() {
        let tree = tree();
        let together = changed(&tree, &[(A, 9), (B, 8)], &[(A, 3)]);
        let apart = {
            let mut changes = changed(&tree, &[(A, 9)], &[(A, 3)]);
            tree.add_usage(&mut Draft { below: tree.now(), changes: &mut changes }, B, CPU, 8);
            changes
        };
        assert_eq!(used(tree.now().with(&together)), used(tree.now().with(&apart)));
        assert!(!together.depend_on_order() && !apart.depend_on_order());
        assert!(changed(&tree, &[(A, 9), (A, -3)], &[]).depend_on_order());
        assert!(changed(&tree, &[(A, i64::MAX), (A, 1)], &[]).depend_on_order());
    }

    #[test]
    fn p3_who_borrows_is_kept_with_every_change() {
        let mut tree = tree();
        let borrowers = |tree: &Tree| tree.borrowers(0).collect::<Vec<_>>();
        assert_eq!(borrowers(&tree), []);
        tree.charge(B, CPU, (11, true));
        tree.charge(A, CPU, (10, true));
        assert_eq!(borrowers(&tree), [B]);
        tree.charge(A, CPU, (1, true));
        assert_eq!(borrowers(&tree), [A, B]);
        tree.charge(B, CPU, (1, false));
        assert_eq!(borrowers(&tree), [A]);
    }
}
