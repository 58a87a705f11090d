//! How many pods and slices of one kind fit in one domain [TAS-3].

use fairlead_model::{NodeConstraints, Resources};

use super::request::Cut;
use super::tree::{Leaf, Tree, at};
use crate::{meets, tolerated};

/// What fits in one domain. The `led` half holds what fits beside the leader of a group where that can be put there;
/// without a leader both halves are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) pods: u32,
    /// Outermost slices; 0 below their level.
    pub(super) slices: u32,
    pub(super) led_pods: u32,
    pub(super) led_slices: u32,
    /// The leader fits here, or there is none.
    pub(super) leads: bool,
}

/// Slices, pods and ordinal of a domain: its place in the order of domains of a level.
pub(super) type Key = (u32, u32, u32);

/// Pods of one kind, with their leader and slices: what counts depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Class<'a> {
    pub(super) empty: bool,
    pub(super) slice_level: usize,
    pub(super) slice_size: u32,
    pub(super) inner: &'a [u32],
    pub(super) requests: &'a Resources,
    pub(super) nodes: &'a NodeConstraints,
    pub(super) leader: Option<(&'a Resources, &'a NodeConstraints)>,
}

/// Why a leaf takes no pods at all, whatever is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Barred {
    No,
    /// None of its nodes can be used.
    Gone,
    Taint,
    Selector,
    Affinity,
}

/// Requests of a pod by column; none when it asks for something that no node has.
type Needs = Option<Vec<(usize, i64)>>;

/// Counts pods of one class.
#[derive(Debug)]
pub(super) struct Counter {
    pod: Needs,
    leader: Option<Needs>,
    cut: Cut,
    empty: bool,
}

fn needs(tree: &Tree, requests: &Resources) -> Needs {
    let pods = requests.get("pods").saturating_add(1);
    let own = requests.iter().filter(|(name, amount)| *amount > 0 && name.as_ref() != "pods");
    let own = own.map(|(name, amount)| Some((tree.column(name)?, amount)));
    own.chain([tree.column("pods").map(|column| (column, pods))]).collect()
}

/// How often the needs fit into what is free.
fn times(needs: &Needs, free: impl Fn(usize) -> i64) -> u32 {
    let Some(needs) = needs else { return 0 };
    let fits =
        needs.iter().map(|(column, amount)| free(*column).max(0).checked_div(*amount).unwrap_or(0)).min();
    fits.map_or(0, |fits| u32::try_from(fits).unwrap_or(u32::MAX))
}

/// The largest multiple of `size` that is not above `value`.
fn whole(value: u32, size: u32) -> u32 {
    if size <= 1 { value } else { value.saturating_sub(value.checked_rem(size).unwrap_or(0)) }
}

impl Counter {
    pub(super) fn new(tree: &Tree, class: &Class<'_>) -> Self {
        Self {
            pod: needs(tree, class.requests),
            leader: class.leader.map(|(requests, _)| needs(tree, requests)),
            cut: Cut { level: class.slice_level, size: class.slice_size, inner: class.inner.to_vec() },
            empty: class.empty,
        }
    }

    /// What fits in a leaf when `extra` is taken there on top of what is held.
    pub(super) fn leaf(&self, tree: &Tree, leaf: u32, bars: Bars, extra: Option<&[i64]>) -> Count {
        let free = tree.free(leaf, self.empty, extra);
        let open = bars.worker == Barred::No;
        let pods = if open { times(&self.pod, &free) } else { 0 };
        let mut count = Count { pods, led_pods: pods, leads: true, ..Count::default() };
        if let Some(leader) = &self.leader {
            count.leads = bars.leader && times(leader, &free) > 0;
            let taken = |column: usize| {
                let leader = leader.iter().flatten().find(|(need, _)| *need == column);
                free(column).saturating_sub(leader.map_or(0, |(_, amount)| *amount))
            };
            count.led_pods = if open && count.leads { times(&self.pod, taken) } else { 0 };
        }
        if self.cut.level == tree.lowest() {
            self.slice(&mut count);
        }
        count
    }

    fn slice(&self, count: &mut Count) {
        count.slices = count.pods.checked_div(self.cut.size).unwrap_or(0);
        count.led_slices = count.led_pods.checked_div(self.cut.size).unwrap_or(0);
    }

    /// What fits in a domain above the leaves, from what fits in its children. The leader costs what it costs in the
    /// child where it costs least.
    pub(super) fn combine(&self, level: usize, children: impl Iterator<Item = Count>) -> Count {
        let unit = self.cut.inner.get(level.saturating_add(1)).copied().unwrap_or(1);
        let (mut pods, mut slices) = (0_u32, 0_u32);
        let mut cost: Option<(u32, u32)> = None;
        for child in children {
            let fits = whole(child.pods, unit);
            pods = pods.saturating_add(fits);
            slices = slices.saturating_add(child.slices);
            if child.leads {
                let lost = fits.saturating_sub(whole(child.led_pods, unit));
                let lost_slices = child.slices.saturating_sub(child.led_slices);
                cost = Some(cost.map_or((lost, lost_slices), |(a, b)| (a.min(lost), b.min(lost_slices))));
            }
        }
        let (led_pods, led_slices) = cost.map_or((0, 0), |(lost, lost_slices)| {
            (pods.saturating_sub(lost), slices.saturating_sub(lost_slices))
        });
        let mut count = Count { pods, slices, led_pods, led_slices, leads: cost.is_some() };
        if level == self.cut.level {
            self.slice(&mut count);
        }
        count
    }
}

/// What keeps workers and the leader of a class away from a leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bars {
    pub(super) worker: Barred,
    /// The leader may be put there.
    pub(super) leader: bool,
}

/// What keeps pods with these demands away from a leaf [TAS-1]: taints, selector and affinity count only where leaves
/// are nodes.
fn barred(tree: &Tree, leaf: &Leaf, nodes: &NodeConstraints) -> Barred {
    if !leaf.usable {
        return Barred::Gone;
    }
    let picky = !nodes.selector.is_empty() || nodes.affinity.is_some();
    if !tree.by_node || !(picky || leaf.tainted) {
        return Barred::No;
    }
    let Some(node) = leaf.usable_nodes().next() else { return Barred::Gone };
    if tolerated(&node.taints, &nodes.tolerations, &tree.spec.tolerations).is_err() {
        return Barred::Taint;
    }
    let selected = nodes.selector.iter().all(|(key, value)| node.labels.get(key) == Some(value));
    match (selected, meets(nodes, &node.labels, Some(&node.name))) {
        (false, _) => Barred::Selector,
        (true, false) => Barred::Affinity,
        (true, true) => Barred::No,
    }
}

pub(super) fn bars(tree: &Tree, leaf: u32, class: &Class<'_>) -> Bars {
    let Some(leaf) = tree.leaves.get(at(leaf)) else { return Bars { worker: Barred::Gone, leader: false } };
    let leader = class.leader.is_none_or(|(_, nodes)| barred(tree, leaf, nodes) == Barred::No);
    Bars { worker: barred(tree, leaf, class.nodes), leader }
}

impl Count {
    /// Its place in the order of a level, if it takes a slice, or the leader and perhaps slices beside it.
    pub(super) fn key(&self, ix: u32, led: bool) -> Option<Key> {
        if led {
            return self.leads.then_some((self.led_slices, self.led_pods, ix));
        }
        (self.slices > 0).then_some((self.slices, self.pods, ix))
    }
}
