//! All topologies of a cluster: flavors, nodes, and everything that takes room on them [TAS-1].

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_model::{ObjectKey, Resources};

use super::assignment::Assignment;
use super::build::Load;
use super::place::Placed;
use super::request::Request;
use super::tree::{FlavorSpec, HOSTNAME, Node, Tree};

/// Label values of a leaf, from the widest level.
type Path = Vec<Arc<str>>;

#[derive(Clone, Debug, PartialEq)]
struct Flavor {
    tree: Tree,
    /// The tree must be built anew before it is read.
    stale: bool,
}

/// The topologies of all flavors over the nodes of one cluster.
///
/// Changes are cheap and take effect at once, but for nodes that appear and flavors, which [`Self::settle`] takes in.
/// What workloads hold is remembered by name, so it outlives nodes, Topologies and flavors until it is released.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topologies {
    flavors: BTreeMap<Arc<str>, Flavor>,
    nodes: BTreeMap<Arc<str>, Arc<Node>>,
    pods: BTreeMap<ObjectKey, (Arc<str>, Resources)>,
    /// What those pods use, by node.
    others: BTreeMap<Arc<str>, Resources>,
    /// What workloads hold by hostname, whatever their flavor (gate TASHandleOverlappingFlavors).
    by_host: BTreeMap<Arc<str>, Resources>,
    /// What workloads hold by flavor and path, where leaves are not nodes.
    by_path: BTreeMap<Arc<str>, BTreeMap<Path, Resources>>,
}

/// What one pod takes: its requests and a place in the node's pod count.
pub(super) fn with_pod(per_pod: &Resources) -> Resources {
    let mut all = per_pod.clone();
    all.set("pods", per_pod.get("pods").saturating_add(1));
    all
}

/// Adds to an entry, and drops the entry when nothing is left of it.
fn account<K: Ord + Clone>(map: &mut BTreeMap<K, Resources>, key: &K, amounts: &Resources) {
    let Some(sum) = map.get_mut(key) else {
        map.insert(key.clone(), amounts.clone());
        return;
    };
    sum.add(amounts);
    if sum.iter().all(|(_, amount)| amount == 0) {
        map.remove(key);
    }
}

impl Topologies {
    /// No flavors, no nodes.
    pub fn new() -> Self {
        Self::default()
    }

    /// A flavor with a topology is as given.
    pub fn set_flavor(&mut self, name: Arc<str>, spec: FlavorSpec) {
        if self.flavors.get(&name).is_some_and(|flavor| flavor.tree.spec == spec) {
            return;
        }
        let load = Load { others: &self.others, by_host: &self.by_host, by_path: None };
        let tree = Tree::build(spec, std::iter::empty(), load);
        self.flavors.insert(name, Flavor { tree, stale: true });
    }

    /// A flavor is gone, or has no topology any more.
    pub fn remove_flavor(&mut self, name: &str) {
        self.flavors.remove(name);
    }

    /// A node is as given.
    ///
    /// Says whether anything is different now.
    pub fn set_node(&mut self, node: Node) -> bool {
        if self.nodes.get(&node.name).is_some_and(|known| **known == node) {
            return false;
        }
        let node = Arc::new(node);
        self.nodes.insert(Arc::clone(&node.name), Arc::clone(&node));
        self.node_changed(&node.name, Some(&node));
        true
    }

    /// A node is gone. Says whether it was known.
    pub fn remove_node(&mut self, name: &str) -> bool {
        let known = self.nodes.remove(name).is_some();
        if known {
            self.node_changed(name, None);
        }
        known
    }

    fn node_changed(&mut self, name: &str, node: Option<&Arc<Node>>) {
        for flavor in self.flavors.values_mut().filter(|flavor| !flavor.stale) {
            flavor.stale = !flavor.tree.update((name, node), &self.others);
        }
    }

    /// All nodes, by name.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.values()
    }

    /// The pods of [`Self::set_pod`] with the node of each and its requests, without the pod itself.
    pub fn pods(&self) -> impl Iterator<Item = (&ObjectKey, &Arc<str>, Resources)> {
        let own = |requests: &Resources| {
            let mut own = requests.clone();
            own.set("pods", requests.get("pods").saturating_sub(1));
            own
        };
        self.pods.iter().map(move |(key, (node, requests))| (key, node, own(requests)))
    }

    /// A bound pod that has not ended and that no topology assignment accounts for; `requests` without `pods`.
    ///
    /// Says whether anything is different now.
    pub fn set_pod(&mut self, key: ObjectKey, node: Arc<str>, requests: &Resources) -> bool {
        let requests = with_pod(requests);
        if self.pods.get(&key).is_some_and(|(on, taken)| (on, taken) == (&node, &requests)) {
            return false;
        }
        self.remove_pod(&key);
        account(&mut self.others, &node, &requests);
        self.others_changed(&node);
        self.pods.insert(key, (node, requests));
        true
    }

    /// Such a pod has ended or is gone. Says whether it was known.
    pub fn remove_pod(&mut self, key: &ObjectKey) -> bool {
        let Some((node, requests)) = self.pods.remove(key) else { return false };
        account(&mut self.others, &node, &requests.times(-1));
        self.others_changed(&node);
        true
    }

    fn others_changed(&mut self, node: &str) {
        for flavor in self.flavors.values_mut().filter(|flavor| !flavor.stale) {
            if let Some(leaf) = flavor.tree.places.get(node).copied() {
                flavor.tree.set_capacity(leaf, &self.others);
            }
        }
    }

    /// A workload's pod set holds this assignment of a flavor.
    pub fn hold(&mut self, flavor: &str, assignment: &Assignment, per_pod: &Resources) {
        self.change_held(flavor, (assignment, per_pod), 1);
    }

    /// It holds it no longer. What was held must be released with the same values.
    pub fn release(&mut self, flavor: &str, assignment: &Assignment, per_pod: &Resources) {
        self.change_held(flavor, (assignment, per_pod), -1);
    }

    fn change_held(&mut self, flavor: &str, (assignment, per_pod): (&Assignment, &Resources), sign: i64) {
        let amounts = with_pod(per_pod);
        let by_host = is_by_host(assignment);
        // Most domains of a gang have the same number of pods.
        let mut of = (0, Resources::new());
        for (values, count) in &assignment.domains {
            if of.0 != *count {
                of = (*count, amounts.times(i64::from(*count).saturating_mul(sign)));
            }
            if !by_host {
                account(self.by_path.entry(flavor.into()).or_default(), values, &of.1);
            } else if let Some(host) = values.last() {
                account(&mut self.by_host, host, &of.1);
            }
        }
        for (name, entry) in &mut self.flavors {
            if entry.stale || !(by_host && entry.tree.by_node || name.as_ref() == flavor) {
                continue;
            }
            let columns = entry.tree.columns(&amounts);
            let leaves: Vec<(Option<u32>, u32)> = entry.tree.leaves_of(assignment).collect();
            for (leaf, count) in leaves {
                if let Some(leaf) = leaf {
                    entry.tree.add_held(leaf, &columns, i64::from(count).saturating_mul(sign));
                }
            }
        }
    }

    /// Takes in flavors that changed and nodes that appeared or moved.
    pub fn settle(&mut self) {
        for (name, flavor) in &mut self.flavors {
            if !flavor.stale {
                continue;
            }
            let load = Load { others: &self.others, by_host: &self.by_host, by_path: self.by_path.get(name) };
            let spec = std::mem::take(&mut flavor.tree.spec);
            flavor.tree = Tree::build(spec, self.nodes.values(), load);
            flavor.stale = false;
        }
    }

    /// Whether a flavor has a topology with every level that a request names [F-3d].
    pub fn has_levels(&self, flavor: &str, request: &Request<'_>) -> bool {
        self.tree(flavor).is_some_and(|tree| request.levels_exist(&tree.spec.levels))
    }

    /// Label keys of a flavor's topology, widest first; none when it has no topology.
    pub fn levels(&self, flavor: &str) -> Option<&[Arc<str>]> {
        self.tree(flavor).map(|tree| tree.spec.levels.as_slice())
    }

    /// The assignment that a placement in this flavor stands for, in the order in which it is stored.
    pub fn assignment(&self, flavor: &str, placed: &Placed) -> Assignment {
        self.tree(flavor).map(|tree| tree.assignment(&placed.leaves)).unwrap_or_default()
    }

    pub(super) fn tree(&self, flavor: &str) -> Option<&Tree> {
        self.flavors.get(flavor).map(|flavor| &flavor.tree)
    }

    /// Trees that an assignment of this flavor takes room in: its own, and where it names hosts, all that have them.
    pub(super) fn trees_of(&self, flavor: &str, by_host: bool) -> impl Iterator<Item = (&Arc<str>, &Tree)> {
        let trees = self.flavors.iter().map(|(name, flavor)| (name, &flavor.tree));
        trees.filter(move |(name, tree)| name.as_ref() == flavor || by_host && tree.by_node)
    }
}

/// Whether an assignment names hosts.
pub(super) fn is_by_host(assignment: &Assignment) -> bool {
    assignment.levels.last().is_some_and(|level| level.as_ref() == HOSTNAME)
}
