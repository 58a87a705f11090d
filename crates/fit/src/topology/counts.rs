//! How many pods and slices of one kind fit in each domain [TAS-3], kept and brought up to date instead of counted
//! anew for each placement.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use fairlead_model::{NodeConstraints, Resources};

use super::request::Cut;
use super::tree::{Leaf, Tree, at, ordinal};
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
        let free = |column: usize| {
            let free = tree.free(leaf, column, self.empty);
            let extra = extra.and_then(|extra| extra.get(column)).copied().unwrap_or(0);
            free.saturating_sub(extra)
        };
        let open = bars.worker == Barred::No;
        let pods = if open { times(&self.pod, free) } else { 0 };
        let mut count = Count { pods, led_pods: pods, leads: true, ..Count::default() };
        if let Some(leader) = &self.leader {
            count.leads = bars.leader && times(leader, free) > 0;
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
    let Some(node) = leaf.usable().next() else { return Barred::Gone };
    if !tree.by_node {
        return Barred::No;
    }
    if tolerated(&node.taints, &nodes.tolerations, &tree.spec.tolerations).is_err() {
        return Barred::Taint;
    }
    let selected = nodes.selector.iter().all(|(key, value)| node.labels.get(key) == Some(value));
    match (selected, meets(nodes, &node.labels)) {
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

/// Counts by level and ordinal.
pub(super) trait Store {
    fn get(&self, level: usize, ix: u32) -> Count;
    fn put(&mut self, level: usize, ix: u32, count: Count);
}

/// Puts changed leaves, in order, into a store, and what follows from them above.
pub(super) fn ripple(
    tree: &Tree,
    counter: &Counter,
    store: &mut impl Store,
    leaves: impl Iterator<Item = (u32, Count)>,
) {
    let mut changed = Vec::new();
    for (leaf, count) in leaves {
        if store.get(tree.lowest(), leaf) != count {
            store.put(tree.lowest(), leaf, count);
            changed.push(leaf);
        }
    }
    for level in (0..tree.lowest()).rev() {
        let below = level.saturating_add(1);
        let parent = |ix: u32| tree.domain(below, ix).map_or(0, |domain| domain.parent);
        let mut parents: Vec<u32> = changed.iter().map(|ix| parent(*ix)).collect();
        parents.dedup();
        changed.clear();
        for ix in parents {
            let children = tree.children(level, ix).map(|child| store.get(below, child));
            let count = counter.combine(level, children);
            if store.get(level, ix) != count {
                store.put(level, ix, count);
                changed.push(ix);
            }
        }
    }
}

/// The counts of one class in a whole tree.
#[derive(Debug)]
pub(super) struct Counts {
    pub(super) counter: Arc<Counter>,
    pub(super) bars: Vec<Bars>,
    levels: Vec<Vec<Count>>,
    /// Slices by level.
    totals: Vec<u64>,
    /// By level, the domains that take a slice, in order; made when first asked for.
    orders: Vec<OnceCell<BTreeSet<Key>>>,
    /// The same by what fits beside a leader, of the domains that can host it.
    led_orders: Vec<OnceCell<BTreeSet<Key>>>,
    seen: (u64, u64),
}

impl Store for Counts {
    fn get(&self, level: usize, ix: u32) -> Count {
        self.levels.get(level).and_then(|counts| counts.get(at(ix))).copied().unwrap_or_default()
    }

    fn put(&mut self, level: usize, ix: u32, count: Count) {
        let old = self.get(level, ix);
        let Some(cell) = self.levels.get_mut(level).and_then(|counts| counts.get_mut(at(ix))) else { return };
        *cell = count;
        if let Some(total) = self.totals.get_mut(level) {
            *total = total.saturating_sub(u64::from(old.slices)).saturating_add(u64::from(count.slices));
        }
        for (orders, led) in [(&mut self.orders, false), (&mut self.led_orders, true)] {
            let Some(order) = orders.get_mut(level).and_then(OnceCell::get_mut) else { continue };
            if let Some(key) = old.key(ix, led) {
                order.remove(&key);
            }
            order.extend(count.key(ix, led));
        }
    }
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

impl Counts {
    /// Counts a class in all leaves that `open` lets take part.
    pub(super) fn new(tree: &Tree, class: &Class<'_>, open: impl Fn(u32) -> bool) -> Self {
        let counter = Arc::new(Counter::new(tree, class));
        let all = |leaf| {
            if open(leaf) { bars(tree, leaf, class) } else { Bars { worker: Barred::Gone, leader: false } }
        };
        let bars: Vec<Bars> = (0..ordinal(tree.leaves.len())).map(all).collect();
        let leaves = (0_u32..).zip(&bars).map(|(leaf, bars)| counter.leaf(tree, leaf, *bars, None));
        let mut below: Vec<Count> = leaves.collect();
        let mut levels = Vec::with_capacity(tree.domains.len());
        for (level, domains) in tree.domains.iter().enumerate().rev().skip(1) {
            let children = |range: std::ops::Range<u32>| {
                below.get(at(range.start)..at(range.end)).unwrap_or_default().iter().copied()
            };
            let combine =
                |domain: &super::tree::Domain| counter.combine(level, children(domain.children.clone()));
            let counts = domains.iter().map(combine).collect();
            levels.push(std::mem::replace(&mut below, counts));
        }
        levels.push(below);
        levels.reverse();
        let sum = |counts: &Vec<Count>| counts.iter().map(|count| u64::from(count.slices)).sum();
        Self {
            counter,
            bars,
            totals: levels.iter().map(sum).collect(),
            orders: vec![OnceCell::new(); levels.len()],
            led_orders: vec![OnceCell::new(); levels.len()],
            levels,
            seen: (tree.capacity_changes.seen(), tree.held_changes.seen()),
        }
    }

    /// Takes in what changed in the tree since; false when that is no longer known.
    pub(super) fn catch_up(&mut self, tree: &Tree, class: &Class<'_>) -> bool {
        let now = (tree.capacity_changes.seen(), tree.held_changes.seen());
        let Some(capacity) = tree.capacity_changes.since(self.seen.0) else { return false };
        let held = if class.empty { Some([].as_slice()) } else { tree.held_changes.since(self.seen.1) };
        let Some(held) = held else { return false };
        for leaf in capacity {
            if let Some(entry) = self.bars.get_mut(at(*leaf)) {
                *entry = bars(tree, *leaf, class);
            }
        }
        let dirty: BTreeSet<u32> = capacity.iter().chain(held).copied().collect();
        let recount = |leaf: u32| {
            let bars = self.bars.get(at(leaf)).copied()?;
            Some((leaf, self.counter.leaf(tree, leaf, bars, None)))
        };
        let leaves: Vec<(u32, Count)> = dirty.into_iter().filter_map(recount).collect();
        let counter = Arc::clone(&self.counter);
        ripple(tree, &counter, self, leaves.into_iter());
        self.seen = now;
        true
    }

    /// Slices that fit at a level in all.
    pub(super) fn total(&self, level: usize) -> u64 {
        self.totals.get(level).copied().unwrap_or(0)
    }

    /// The domains of a level that take a slice, fewest slices first, then fewest pods, then by path.
    pub(super) fn order(&self, level: usize, led: bool) -> Option<&BTreeSet<Key>> {
        let orders = if led { &self.led_orders } else { &self.orders };
        let keys = || {
            let counts = self.levels.get(level).into_iter().flatten();
            (0_u32..).zip(counts).filter_map(|(ix, count)| count.key(ix, led)).collect()
        };
        Some(orders.get(level)?.get_or_init(keys))
    }
}
