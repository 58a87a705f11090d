//! How many pods and slices of one kind fit in each domain, kept and brought up to date instead of counted anew for each
//! placement.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::counter::{Barred, Bars, Class, Count, Counter, Key, bars};
use super::tree::{Domain, Tree, at, ordinal};

/// Counts by level and ordinal.
pub(super) trait Store {
    fn get(&self, level: usize, ix: u32) -> Count;
    /// Counts of domains that lie side by side.
    fn run(&self, level: usize, range: Range<u32>) -> impl Iterator<Item = Count>;
    /// Replaces a count; within a level this comes in ascending order.
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
            let count = counter.combine(level, store.run(below, tree.children(level, ix)));
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

    fn run(&self, level: usize, range: Range<u32>) -> impl Iterator<Item = Count> {
        self.slice(level, range).iter().copied()
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
            let children = |range: Range<u32>| {
                below.get(at(range.start)..at(range.end)).unwrap_or_default().iter().copied()
            };
            let combine = |domain: &Domain| counter.combine(level, children(domain.children.clone()));
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

    /// Counts of domains that lie side by side.
    pub(super) fn slice(&self, level: usize, range: Range<u32>) -> &[Count] {
        let counts = self.levels.get(level);
        counts.and_then(|counts| counts.get(at(range.start)..at(range.end))).unwrap_or_default()
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
