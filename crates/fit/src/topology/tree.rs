//! The domains of one flavor, what is free in its leaves, and what workloads hold there [TAS-1].

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use fairlead_model::{Labels, ResourceName, Resources, Taint, Toleration};

use super::assignment::Assignment;
use super::cache::Cache;
use super::changes::Changes;

/// The label whose levels are single nodes.
pub(super) const HOSTNAME: &str = "kubernetes.io/hostname";

/// How far ahead of a leaf the next one of an assignment is looked for before its name is looked up.
const NEAR: usize = 64;

/// A node as topologies see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: Arc<str>,
    /// Its labels.
    pub labels: Labels,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// `status.allocatable`, `pods` included.
    pub allocatable: Resources,
    /// Ready, and not marked unschedulable.
    pub usable: bool,
}

/// A flavor with a topology.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlavorSpec {
    /// Label keys of the Topology's levels, widest first.
    pub levels: Vec<Arc<str>>,
    /// The flavor's node labels, which its nodes carry.
    pub labels: Labels,
    /// The flavor's tolerations, which its pods get.
    pub tolerations: Vec<Toleration>,
}

/// A domain: a path of label values. Two racks of one name in two blocks are two domains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Domain {
    pub(super) value: Arc<str>,
    /// Ordinal at the level above; 0 at the top.
    pub(super) parent: u32,
    /// Ordinals at the level below.
    pub(super) children: Range<u32>,
}

/// A domain of the lowest level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Leaf {
    /// Its nodes by name, also those that cannot be used now.
    pub(super) nodes: Vec<Arc<Node>>,
    /// One of them can be used.
    pub(super) usable: bool,
    /// One of them has taints. Both are kept here because counting reads them for every leaf.
    pub(super) tainted: bool,
}

impl Leaf {
    pub(super) fn usable_nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.iter().filter(|node| node.usable)
    }
}

/// The domain tree of one flavor. Ordinals at a level follow the order of the domains' paths, so that comparing
/// ordinals is comparing paths, and the children of a domain lie side by side.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tree {
    pub(super) spec: FlavorSpec,
    /// The lowest level is the hostname: leaves are nodes.
    pub(super) by_node: bool,
    /// Resources that some node has, sorted; the columns of the planes.
    pub(super) resources: Vec<ResourceName>,
    /// Domains by level.
    pub(super) domains: Vec<Vec<Domain>>,
    pub(super) leaves: Vec<Leaf>,
    /// The leaf of each node.
    pub(super) places: BTreeMap<Arc<str>, u32>,
    /// Leaves by the value of the lowest level, where leaves are nodes.
    pub(super) hosts: BTreeMap<Arc<str>, u32>,
    /// Per leaf and resource: allocatable less what pods outside of topologies use.
    pub(super) capacity: Vec<i64>,
    /// Per leaf and resource: what workloads hold.
    pub(super) held: Vec<i64>,
    /// Leaves whose capacity, labels or taints changed.
    pub(super) capacity_changes: Changes,
    /// Leaves where what workloads hold changed.
    pub(super) held_changes: Changes,
    pub(super) cache: RefCell<Cache>,
}

/// An ordinal as a position.
pub(super) fn at(ordinal: u32) -> usize {
    usize::try_from(ordinal).unwrap_or(usize::MAX)
}

/// A position as an ordinal.
pub(super) fn ordinal(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

/// Adds amounts by column to a row, `times` over.
pub(super) fn add(row: &mut [i64], columns: &[(usize, i64)], times: i64) {
    for (column, amount) in columns {
        if let Some(cell) = row.get_mut(*column) {
            *cell = cell.saturating_add(amount.saturating_mul(times));
        }
    }
}

impl Tree {
    /// Ordinal of the lowest level.
    pub(super) fn lowest(&self) -> usize {
        self.domains.len().saturating_sub(1)
    }

    /// Ordinals of the top level.
    pub(super) fn top(&self) -> Range<u32> {
        0..self.domains.first().map_or(0, |domains| ordinal(domains.len()))
    }

    pub(super) fn domain(&self, level: usize, ix: u32) -> Option<&Domain> {
        self.domains.get(level)?.get(at(ix))
    }

    pub(super) fn children(&self, level: usize, ix: u32) -> Range<u32> {
        self.domain(level, ix).map_or(0..0, |domain| domain.children.clone())
    }

    /// The domain of an upper level that a leaf lies in.
    pub(super) fn ancestor(&self, leaf: u32, level: usize) -> u32 {
        let levels = (level.saturating_add(1)..=self.lowest()).rev();
        levels.fold(leaf, |ix, at_level| self.domain(at_level, ix).map_or(0, |domain| domain.parent))
    }

    /// Label keys as an assignment names them.
    pub(super) fn named_levels(&self) -> Vec<Arc<str>> {
        let from = if self.by_node { self.lowest() } else { 0 };
        self.spec.levels.iter().skip(from).cloned().collect()
    }

    /// Label values of a leaf as an assignment names it.
    pub(super) fn name(&self, leaf: u32) -> Vec<Arc<str>> {
        let from = if self.by_node { self.lowest() } else { 0 };
        let mut values = Vec::with_capacity(self.domains.len().saturating_sub(from));
        let mut ix = leaf;
        for level in (from..self.domains.len()).rev() {
            let Some(domain) = self.domain(level, ix) else { break };
            values.push(Arc::clone(&domain.value));
            ix = domain.parent;
        }
        values.reverse();
        values
    }

    /// The leaf that an assignment names.
    pub(super) fn leaf(&self, values: &[Arc<str>]) -> Option<u32> {
        if self.by_node {
            return self.hosts.get(values.last()?).copied();
        }
        if values.len() != self.domains.len() {
            return None;
        }
        let mut found = (self.top(), 0);
        for (level, value) in values.iter().enumerate() {
            let range = found.0;
            let domains = self.domains.get(level)?.get(at(range.start)..at(range.end))?;
            let offset = domains.binary_search_by(|domain| domain.value.cmp(value)).ok()?;
            let ix = range.start.checked_add(ordinal(offset))?;
            found = (self.children(level, ix), ix);
        }
        Some(found.1)
    }

    /// The leaves that an assignment names, with their pods; those that are not here are none. Domains are stored in the
    /// order of leaves, and those that were named here share their text, so most are found close after the one before.
    pub(super) fn leaves_of<'a>(
        &'a self,
        assignment: &'a Assignment,
    ) -> impl Iterator<Item = (Option<u32>, u32)> + 'a {
        let hosts = if self.by_node { self.domains.last() } else { None };
        let hosts = hosts.map_or(&[][..], Vec::as_slice);
        let mut next = 0_usize;
        assignment.domains.iter().map(move |(values, count)| {
            let near = hosts.get(next..).unwrap_or_default().iter().take(NEAR);
            let same = |domain: &Domain| values.last().is_some_and(|value| Arc::ptr_eq(value, &domain.value));
            let leaf = match near.clone().position(same) {
                Some(offset) => Some(ordinal(next.saturating_add(offset))),
                None => self.leaf(values),
            };
            next = leaf.map_or(next, |leaf| at(leaf).saturating_add(1));
            (leaf, *count)
        })
    }

    /// Whether a leaf has a node that can be used.
    pub(super) fn is_usable(&self, leaf: u32) -> bool {
        self.leaves.get(at(leaf)).is_some_and(|leaf| leaf.usable)
    }

    /// Full assignment of leaves with their pods; the leaves are in order.
    pub(super) fn assignment(&self, leaves: &[(u32, u32)]) -> Assignment {
        let domains = leaves.iter().map(|(leaf, count)| (self.name(*leaf), *count)).collect();
        Assignment { levels: self.named_levels(), domains }
    }

    /// The column of a resource.
    pub(super) fn column(&self, name: &str) -> Option<usize> {
        self.resources.binary_search_by(|resource| resource.as_ref().cmp(name)).ok()
    }

    /// Amounts by column; resources that no node has are left out.
    pub(super) fn columns(&self, resources: &Resources) -> Vec<(usize, i64)> {
        resources.iter().filter_map(|(name, amount)| Some((self.column(name)?, amount))).collect()
    }

    /// The cells of a leaf in a plane.
    pub(super) fn cells(&self, leaf: u32) -> Range<usize> {
        let start = at(leaf).saturating_mul(self.resources.len());
        start..start.saturating_add(self.resources.len())
    }

    /// What is free in a leaf by column; as if nothing were held when `empty`, less what is taken `extra`.
    pub(super) fn free<'a>(
        &'a self,
        leaf: u32,
        empty: bool,
        extra: Option<&'a [i64]>,
    ) -> impl Fn(usize) -> i64 + 'a {
        let row = |plane: &'a [i64]| plane.get(self.cells(leaf)).unwrap_or_default();
        let capacity = row(&self.capacity);
        let held = if empty { &[] } else { row(&self.held) };
        let extra = extra.unwrap_or_default();
        let cell = |row: &[i64], column: usize| row.get(column).copied().unwrap_or(0);
        move |column| {
            let free = cell(capacity, column).saturating_sub(cell(held, column));
            free.saturating_sub(cell(extra, column))
        }
    }

    /// Adds what workloads hold in a leaf, `times` over; less when it is negative. Resources that no node has count
    /// nowhere.
    pub(super) fn add_held(&mut self, leaf: u32, columns: &[(usize, i64)], times: i64) {
        let cells = self.cells(leaf);
        let Some(row) = self.held.get_mut(cells) else { return };
        add(row, columns, times);
        self.held_changes.push(leaf);
    }

    /// Sets what a leaf's usable nodes have, less what other pods use on them.
    pub(super) fn set_capacity(&mut self, leaf: u32, others: &BTreeMap<Arc<str>, Resources>) {
        let mut sum = Resources::new();
        let Some(entry) = self.leaves.get_mut(at(leaf)) else { return };
        entry.usable = entry.nodes.iter().any(|node| node.usable);
        entry.tainted = entry.nodes.iter().any(|node| !node.taints.is_empty());
        for node in entry.usable_nodes() {
            sum.add(&node.allocatable);
            if let Some(others) = others.get(&node.name) {
                sum.subtract(others);
            }
        }
        let columns = self.columns(&sum);
        let cells = self.cells(leaf);
        let Some(row) = self.capacity.get_mut(cells) else { return };
        row.fill(0);
        add(row, &columns, 1);
        self.capacity_changes.push(leaf);
    }
}
