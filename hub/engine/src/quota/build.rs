//! Builds trees from Cohort and ClusterQueue facts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairlead_model::Amount;

use super::books::Books;
use super::{Cell, Col, Node, NodeIx, Tree};
use crate::fact::{Cohort, ResourceGroup, Weight};
use crate::names::{CqIx, FrIx, Interned, ResIx, at, next};

/// What a leaf is made from.
#[derive(Debug)]
pub(crate) struct Leaf<'a> {
    pub(crate) queue: CqIx,
    pub(crate) name: &'a Arc<str>,
    pub(crate) cohort: Option<&'a Arc<str>>,
    pub(crate) groups: &'a [ResourceGroup],
    pub(crate) weight: Weight,
    /// What it uses now.
    pub(crate) usage: &'a BTreeMap<FrIx, i64>,
}

/// The forest: trees, and where each queue stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forest {
    pub(crate) trees: Vec<Tree>,
    /// Tree and node of each queue.
    place: Vec<Option<(u32, NodeIx)>>,
}

impl Forest {
    /// Tree and node of a queue.
    pub(crate) fn place(&self, queue: CqIx) -> Option<(u32, NodeIx)> {
        self.place.get(at(queue)).copied().flatten()
    }

    fn put(&mut self, queue: CqIx, place: (u32, NodeIx)) {
        if self.place.len() <= at(queue) {
            self.place.resize(at(queue).saturating_add(1), None);
        }
        if let Some(slot) = self.place.get_mut(at(queue)) {
            *slot = Some(place);
        }
    }
}

/// Builds every tree. `leaves` come in name order.
pub(crate) fn build(
    leaves: &[Leaf<'_>],
    cohorts: &BTreeMap<Arc<str>, Cohort>,
    names: &mut Interned,
) -> Forest {
    let mut members: BTreeMap<Arc<str>, Members<'_, '_>> = BTreeMap::new();
    for cohort in cohorts.values() {
        members.entry(Arc::clone(&cohort.name)).or_default().object = Some(cohort);
        if let Some(parent) = &cohort.parent {
            members.entry(Arc::clone(parent)).or_default().cohorts.insert(Arc::clone(&cohort.name));
        }
    }
    let mut forest = Forest::default();
    for leaf in leaves {
        match leaf.cohort {
            Some(cohort) => members.entry(Arc::clone(cohort)).or_default().leaves.push(leaf),
            None => plant(&mut forest, lone(leaf), &[leaf], names, false),
        }
    }
    let mut planted = BTreeSet::new();
    for (name, entry) in &members {
        let is_root = entry.object.is_none_or(|cohort| cohort.parent.is_none());
        if is_root {
            plant_cohort(&mut forest, name, &members, names, &mut planted);
        }
    }
    plant_cycles(&mut forest, &members, names, &mut planted);
    forest
}

/// A cohort with what hangs below it.
#[derive(Debug, Default)]
struct Members<'m, 'a> {
    object: Option<&'m Cohort>,
    cohorts: BTreeSet<Arc<str>>,
    leaves: Vec<&'m Leaf<'a>>,
}

/// A node on its way into a tree.
struct Draft<'m> {
    node: Node,
    groups: &'m [ResourceGroup],
}

fn lone<'m>(leaf: &'m Leaf<'_>) -> Vec<Draft<'m>> {
    vec![draft_leaf(leaf, None)]
}

fn draft_leaf<'m>(leaf: &'m Leaf<'_>, parent: Option<NodeIx>) -> Draft<'m> {
    let node = Node {
        name: Arc::clone(leaf.name),
        parent,
        queue: Some(leaf.queue),
        children: Vec::new(),
        height: 0,
        weight: leaf.weight,
    };
    Draft { node, groups: leaf.groups }
}

fn plant_cohort(
    forest: &mut Forest,
    root: &Arc<str>,
    members: &BTreeMap<Arc<str>, Members<'_, '_>>,
    names: &mut Interned,
    planted: &mut BTreeSet<Arc<str>>,
) {
    let mut drafts: Vec<Draft<'_>> = Vec::new();
    let mut leaves: Vec<&Leaf<'_>> = Vec::new();
    let mut open: Vec<(Arc<str>, Option<NodeIx>)> = vec![(Arc::clone(root), None)];
    while let Some((name, parent)) = open.pop() {
        let Some(entry) = members.get(&name) else { continue };
        let ix = next(drafts.len());
        let weight = entry.object.map_or_else(Weight::default, |cohort| cohort.weight);
        let groups = entry.object.map_or(&[][..], |cohort| cohort.groups.as_slice());
        let node =
            Node { name: Arc::clone(&name), parent, queue: None, children: Vec::new(), height: 0, weight };
        drafts.push(Draft { node, groups });
        for leaf in &entry.leaves {
            drafts.push(draft_leaf(leaf, Some(ix)));
            leaves.push(leaf);
        }
        open.extend(entry.cohorts.iter().rev().map(|child| (Arc::clone(child), Some(ix))));
        planted.insert(name);
    }
    plant(forest, drafts, &leaves, names, false);
}

/// Cohorts that no root reaches form parent cycles: their queues get a tree of their own, marked unusable.
fn plant_cycles(
    forest: &mut Forest,
    members: &BTreeMap<Arc<str>, Members<'_, '_>>,
    names: &mut Interned,
    planted: &mut BTreeSet<Arc<str>>,
) {
    for (name, entry) in members {
        if planted.contains(name) {
            continue;
        }
        for leaf in &entry.leaves {
            plant(forest, lone(leaf), &[leaf], names, true);
        }
    }
}

fn plant(
    forest: &mut Forest,
    drafts: Vec<Draft<'_>>,
    leaves: &[&Leaf<'_>],
    names: &mut Interned,
    cyclic: bool,
) {
    let ix = next(forest.trees.len());
    let mut tree = Tree { cyclic, ..Tree::default() };
    let quotas = drafts.iter().flat_map(|draft| draft.groups.iter()).flat_map(|group| group.flavors.iter());
    let mut columns: BTreeSet<(Arc<str>, Arc<str>)> = BTreeSet::new();
    for flavor in quotas {
        for quota in &flavor.quotas {
            columns.insert((Arc::clone(&flavor.flavor), Arc::clone(&quota.resource)));
        }
    }
    for fr in leaves.iter().flat_map(|leaf| leaf.usage.keys()) {
        let (flavor, resource) = names.pair(*fr);
        columns.insert((names.flavors.name(flavor), names.resources.name(resource)));
    }
    for (flavor, resource) in &columns {
        let pair = (names.flavors.intern(flavor), names.resources.intern(resource));
        let fr = names.fr(pair.0, pair.1);
        tree.index.insert(fr, next(tree.columns.len()));
        tree.columns.push(fr);
    }
    fill_quota(&mut tree, &drafts, names);
    tree.nodes = drafts.into_iter().map(|draft| draft.node).collect();
    link(&mut tree);
    derive(&mut tree);
    tree.limits = tree.cells.iter().map(|cell| cell.subtree.saturated()).collect();
    sum_lendable(&mut tree, names);
    for (position, node) in tree.nodes.iter().enumerate() {
        if let Some(queue) = node.queue {
            forest.put(queue, (ix, next(position)));
        }
    }
    fill_usage(&mut tree, leaves, forest);
    forest.trees.push(tree);
}

fn fill_quota(tree: &mut Tree, drafts: &[Draft<'_>], names: &Interned) {
    tree.cells = vec![Cell::default(); drafts.len().saturating_mul(tree.columns.len())];
    for (position, draft) in drafts.iter().enumerate() {
        for flavor in draft.groups.iter().flat_map(|group| group.flavors.iter()) {
            for quota in &flavor.quotas {
                let fr = names
                    .flavors
                    .find(&flavor.flavor)
                    .zip(names.resources.find(&quota.resource))
                    .and_then(|(flavor, resource)| names.find_fr(flavor, resource));
                let Some(col) = fr.and_then(|fr| tree.column(fr)) else { continue };
                let slot = tree.slot(next(position), col);
                if let Some(cell) = tree.cells.get_mut(slot) {
                    cell.nominal = quota.nominal;
                    cell.borrowing = quota.borrowing;
                    cell.lending = quota.lending;
                }
            }
        }
    }
}

/// Children and heights, from the leaves up.
fn link(tree: &mut Tree) {
    for position in (1..tree.nodes.len()).rev() {
        let Some(node) = tree.nodes.get(position) else { continue };
        let (parent, height) = (node.parent, node.height);
        let Some(parent) = parent.and_then(|ix| tree.nodes.get_mut(at(ix))) else { continue };
        parent.children.push(next(position));
        parent.height = parent.height.max(height.saturating_add(1));
    }
    let names: Vec<Arc<str>> = tree.nodes.iter().map(|node| Arc::clone(&node.name)).collect();
    for node in &mut tree.nodes {
        node.children.sort_by(|a, b| names.get(at(*a)).cmp(&names.get(at(*b))));
    }
}

/// Subtree quotas from the leaves up, potentials from the root down.
fn derive(tree: &mut Tree) {
    let width = tree.columns.len();
    for position in (0..tree.nodes.len()).rev() {
        for column in 0..width {
            let (node, col): (NodeIx, Col) = (next(position), next(column));
            let slot = tree.slot(node, col);
            let Some(cell) = tree.cells.get_mut(slot) else { continue };
            // Children came first and have already added what they lend.
            cell.subtree = cell.subtree.plus(cell.nominal);
            cell.local =
                cell.lending.map_or(Amount::ZERO, |limit| cell.subtree.minus(limit).max(Amount::ZERO));
            let lent = cell.subtree.minus(cell.local);
            let Some(parent) = tree.parent(node) else { continue };
            let above = tree.slot(parent, col);
            if let Some(cell) = tree.cells.get_mut(above) {
                cell.subtree = cell.subtree.plus(lent);
            }
        }
    }
    for position in 0..tree.nodes.len() {
        for column in 0..width {
            let (node, col): (NodeIx, Col) = (next(position), next(column));
            let cell = tree.cell(node, col);
            let potential = match tree.parent(node) {
                None => cell.subtree,
                Some(parent) => {
                    let all = cell.local.plus(tree.cell(parent, col).potential);
                    cell.borrowing.map_or(all, |limit| all.min(cell.subtree.plus(limit)))
                }
            };
            let slot = tree.slot(node, col);
            if let Some(cell) = tree.cells.get_mut(slot) {
                cell.potential = potential;
            }
        }
    }
}

/// Sums what could be lent below each node by resource, over all flavors.
fn sum_lendable(tree: &mut Tree, names: &Interned) {
    let mut by_resource: BTreeMap<ResIx, Vec<Col>> = BTreeMap::new();
    for (col, fr) in (0..).zip(&tree.columns) {
        by_resource.entry(names.pair(*fr).1).or_default().push(col);
    }
    tree.resources = by_resource.into_values().collect();
    let mut sums = Vec::with_capacity(tree.nodes.len().saturating_mul(tree.resources.len()));
    for node in (0..tree.nodes.len()).map(next) {
        for cols in &tree.resources {
            let potential = |col: &Col| tree.cell(node, *col).potential.saturated().max(0).unsigned_abs();
            sums.push(cols.iter().map(potential).map(u128::from).fold(0, u128::saturating_add));
        }
    }
    tree.lendable = sums;
}

fn fill_usage(tree: &mut Tree, leaves: &[&Leaf<'_>], forest: &Forest) {
    let mut books = Books::new(tree);
    for leaf in leaves {
        let Some((_, node)) = forest.place(leaf.queue) else { continue };
        for (fr, amount) in leaf.usage {
            if let Some(col) = tree.column(*fr) {
                tree.add_usage(&mut books, node, col, *amount);
            }
        }
    }
    tree.books = books;
}
