//! Builds the domain tree of a flavor from nodes [TAS-1].

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairlead_model::{ResourceName, Resources};

use super::cache::Cache;
use super::changes::Changes;
use super::tree::{Domain, FlavorSpec, HOSTNAME, Leaf, Node, Tree, at, ordinal};

/// Label values from the widest level.
type Path = Vec<Arc<str>>;

/// Where a node lies in a flavor's topology; none when it does not carry all labels of the flavor and the levels.
pub(super) fn path(spec: &FlavorSpec, node: &Node) -> Option<Path> {
    if spec.labels.iter().any(|(key, value)| node.labels.get(key) != Some(value)) {
        return None;
    }
    spec.levels.iter().map(|level| node.labels.get(level).cloned()).collect()
}

/// What lies on the nodes: pods outside of topologies by node, and what workloads hold by leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load<'a> {
    pub(super) others: &'a BTreeMap<Arc<str>, Resources>,
    /// By hostname, over all flavors.
    pub(super) by_host: &'a BTreeMap<Arc<str>, Resources>,
    /// By the path of the leaf, for this flavor, where leaves are not nodes.
    pub(super) by_path: Option<&'a BTreeMap<Path, Resources>>,
}

impl Tree {
    /// The tree of these nodes under this load.
    pub(super) fn build<'n>(
        spec: FlavorSpec,
        nodes: impl Iterator<Item = &'n Arc<Node>>,
        load: Load<'_>,
    ) -> Self {
        let mut placed: Vec<(Path, &Arc<Node>)> =
            nodes.filter_map(|node| Some((path(&spec, node)?, node))).collect();
        placed.sort_by(|(a, x), (b, y)| a.cmp(b).then_with(|| x.name.cmp(&y.name)));
        let by_node = spec.levels.last().is_some_and(|level| level.as_ref() == HOSTNAME);
        let resources: BTreeSet<ResourceName> = placed
            .iter()
            .flat_map(|(_, node)| node.allocatable.iter().map(|(name, _)| Arc::clone(name)))
            .collect();
        let mut tree = Self {
            domains: vec![Vec::new(); spec.levels.len()],
            spec,
            by_node,
            resources: resources.into_iter().collect(),
            leaves: Vec::new(),
            places: BTreeMap::new(),
            hosts: BTreeMap::new(),
            capacity: Vec::new(),
            held: Vec::new(),
            capacity_changes: Changes::default(),
            held_changes: Changes::default(),
            cache: RefCell::new(Cache::default()),
        };
        let mut previous: Option<&Path> = None;
        for (path, node) in &placed {
            tree.append(previous, path, node);
            previous = Some(path);
        }
        tree.fill(load);
        tree
    }

    /// Adds a node whose path is not before the previous one.
    fn append(&mut self, previous: Option<&Path>, path: &Path, node: &Arc<Node>) {
        let common =
            previous.map_or(0, |previous| previous.iter().zip(path).take_while(|(a, b)| a == b).count());
        for (level, value) in path.iter().enumerate().skip(common) {
            let last = |domains: &[Domain]| ordinal(domains.len()).saturating_sub(1);
            let above = level.checked_sub(1).and_then(|above| self.domains.get(above));
            let parent = above.map_or(0, |domains| last(domains));
            let below = level.checked_add(1).and_then(|below| self.domains.get(below));
            let first_child = below.map_or(0, |domains| ordinal(domains.len()));
            let Some(domains) = self.domains.get_mut(level) else { return };
            let ix = ordinal(domains.len());
            let children = first_child..first_child;
            domains.push(Domain { value: Arc::clone(value), parent, children });
            let parent = level.checked_sub(1).and_then(|above| self.domains.get_mut(above)?.last_mut());
            if let Some(parent) = parent {
                parent.children.end = ix.saturating_add(1);
            }
        }
        if common < path.len() || self.leaves.is_empty() {
            self.leaves.push(Leaf::default());
        }
        let ix = ordinal(self.leaves.len()).saturating_sub(1);
        if let Some(leaf) = self.leaves.last_mut() {
            leaf.nodes.push(Arc::clone(node));
        }
        self.places.insert(Arc::clone(&node.name), ix);
        if let (true, Some(host)) = (self.by_node, path.last()) {
            self.hosts.insert(Arc::clone(host), ix);
        }
    }

    fn fill(&mut self, load: Load<'_>) {
        let cells = self.leaves.len().saturating_mul(self.resources.len());
        self.capacity = vec![0; cells];
        self.held = vec![0; cells];
        for leaf in 0..ordinal(self.leaves.len()) {
            self.set_capacity(leaf, load.others);
        }
        let by_host = load.by_host.iter().filter_map(|(host, held)| Some((*self.hosts.get(host)?, held)));
        let by_path = load.by_path.into_iter().flatten();
        let by_path = by_path.filter_map(|(path, held)| Some((self.leaf(path)?, held)));
        let held: Vec<(u32, &Resources)> = by_host.chain(by_path).collect();
        for (leaf, held) in held {
            let columns = self.columns(held);
            self.add_held(leaf, &columns, 1);
        }
        self.capacity_changes = Changes::for_leaves(self.leaves.len());
        self.held_changes = Changes::for_leaves(self.leaves.len());
    }

    /// Takes over a changed or removed node; false when the tree must be built anew.
    pub(super) fn update(
        &mut self,
        (name, node): (&str, Option<&Arc<Node>>),
        others: &BTreeMap<Arc<str>, Resources>,
    ) -> bool {
        let known = self.places.get(name).copied();
        let wanted = node.and_then(|node| path(&self.spec, node));
        let (leaf, moved) = match (known, &wanted) {
            (None, None) => return true,
            (None, Some(_)) => return false,
            (Some(leaf), None) => (leaf, false),
            (Some(leaf), Some(path)) => (leaf, !self.lies_at(leaf, path)),
        };
        let columns_known = node.is_none_or(|node| {
            wanted.is_none() || node.allocatable.iter().all(|(name, _)| self.column(name).is_some())
        });
        let Some(entry) = self.leaves.get_mut(at(leaf)) else { return false };
        if moved || !columns_known {
            return false;
        }
        entry.nodes.retain(|old| old.name.as_ref() != name);
        if let (Some(node), Some(_)) = (node, &wanted) {
            let position = entry.nodes.partition_point(|old| old.name < node.name);
            entry.nodes.insert(position, Arc::clone(node));
        } else {
            self.places.remove(name);
        }
        self.set_capacity(leaf, others);
        true
    }

    fn lies_at(&self, leaf: u32, path: &Path) -> bool {
        let mut ix = leaf;
        for (level, value) in path.iter().enumerate().rev() {
            let Some(domain) = self.domain(level, ix) else { return false };
            if domain.value != *value {
                return false;
            }
            ix = domain.parent;
        }
        true
    }
}
