//! Counts of one class as they are under assumptions: the tree's own, with those domains replaced that differ.

use std::collections::{BTreeMap, btree_set};
use std::iter::Peekable;
use std::ops::Range;

use super::counter::{Count, Key};
use super::counts::{Counts, Store, ripple};
use super::tree::{Tree, at};

/// Taken on top of what is held, per leaf and column; negative where something is given back.
pub(super) type Rows = BTreeMap<u32, Vec<i64>>;

/// Counts under assumptions.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) tree: &'a Tree,
    counts: &'a Counts,
    /// Domains whose counts differ, by level, in order.
    patch: Vec<Vec<(u32, Count)>>,
}

impl Store for View<'_> {
    fn get(&self, level: usize, ix: u32) -> Count {
        self.patched(level, ix).unwrap_or_else(|| self.counts.get(level, ix))
    }

    fn run(&self, level: usize, range: Range<u32>) -> impl Iterator<Item = Count> {
        let patch = self.patch(level);
        let from = patch.partition_point(|(ix, _)| *ix < range.start);
        let mut patch = patch.get(from..).unwrap_or_default().iter().peekable();
        let kept = self.counts.slice(level, range.clone());
        range.zip(kept).map(move |(ix, count)| {
            let patched = patch.next_if(|(differs, _)| *differs == ix);
            patched.map_or(*count, |(_, count)| *count)
        })
    }

    fn put(&mut self, level: usize, ix: u32, count: Count) {
        if let Some(patch) = self.patch.get_mut(level) {
            patch.push((ix, count));
        }
    }
}

/// What is compared first: few slices, or many.
type Precedes = fn(&Key, &Key) -> bool;

fn few_first(a: &Key, b: &Key) -> bool {
    a < b
}

fn many_first(a: &Key, b: &Key) -> bool {
    (b.0, a.1, a.2) < (a.0, b.1, b.2)
}

impl<'a> View<'a> {
    /// The counts with these rows taken.
    pub(super) fn new(tree: &'a Tree, counts: &'a Counts, rows: Option<&Rows>) -> Self {
        let mut view = Self { tree, counts, patch: Vec::new() };
        let Some(rows) = rows.filter(|rows| !rows.is_empty()) else { return view };
        view.patch = vec![Vec::new(); tree.domains.len()];
        let counter = &counts.counter;
        let recount = |(leaf, row): (&u32, &Vec<i64>)| {
            let bars = counts.bars.get(at(*leaf)).copied()?;
            Some((*leaf, counter.leaf(tree, *leaf, bars, Some(row))))
        };
        let leaves = rows.iter().filter_map(recount);
        ripple(tree, counter, &mut view, leaves);
        view
    }

    /// What fits in a domain above the leaves, from what fits in its children.
    pub(super) fn combine(&self, level: usize, children: impl Iterator<Item = Count>) -> Count {
        self.counts.counter.combine(level, children)
    }

    fn patch(&self, level: usize) -> &[(u32, Count)] {
        self.patch.get(level).map_or(&[], Vec::as_slice)
    }

    fn patched(&self, level: usize, ix: u32) -> Option<Count> {
        let patch = self.patch(level);
        let position = patch.binary_search_by_key(&ix, |(ix, _)| *ix).ok()?;
        patch.get(position).map(|(_, count)| *count)
    }

    /// Keys of patched domains of a level.
    fn patched_keys(&self, level: usize, led: bool) -> Vec<Key> {
        self.patch(level).iter().filter_map(|(ix, count)| count.key(*ix, led)).collect()
    }

    /// Slices that fit at a level in all.
    pub(super) fn total(&self, level: usize) -> u64 {
        let mut total = self.counts.total(level);
        for (ix, count) in self.patch(level) {
            let old = self.counts.get(level, *ix);
            total = total.saturating_sub(u64::from(old.slices)).saturating_add(u64::from(count.slices));
        }
        total
    }

    /// Domains that take at least `least` slices (beside a leader), fewest slices first, then fewest pods, then by path.
    pub(super) fn few_first(&self, level: usize, least: u32, led: bool) -> impl Iterator<Item = Key> {
        let order = self.counts.order(level, led).into_iter();
        let kept = order.flat_map(move |order| order.range((least, 0, 0)..)).copied();
        let mut patched = self.patched_keys(level, led);
        patched.retain(|key| key.0 >= least);
        patched.sort_unstable();
        Merge {
            kept: kept.filter(move |key| self.patched(level, key.2).is_none()).peekable(),
            patched: patched.into_iter().peekable(),
            precedes: few_first,
        }
    }

    /// Domains that take a slice, most slices first, then fewest pods, then by path.
    pub(super) fn many_first(&self, level: usize, led: bool) -> impl Iterator<Item = Key> {
        let kept = self.counts.order(level, led).map(Buckets::of).into_iter().flatten();
        let mut patched = self.patched_keys(level, led);
        patched.sort_unstable_by_key(|key| (std::cmp::Reverse(key.0), key.1, key.2));
        Merge {
            kept: kept.filter(move |key| self.patched(level, key.2).is_none()).peekable(),
            patched: patched.into_iter().peekable(),
            precedes: many_first,
        }
    }
}

/// An order read from most slices to fewest, but forwards among equal slices.
struct Buckets<'a> {
    order: &'a std::collections::BTreeSet<Key>,
    bucket: btree_set::Range<'a, Key>,
    /// Slices of the bucket that is being read.
    slices: u32,
}

impl<'a> Buckets<'a> {
    fn of(order: &'a std::collections::BTreeSet<Key>) -> Self {
        Self { order, bucket: order.range((u32::MAX, u32::MAX, u32::MAX)..), slices: u32::MAX }
    }
}

impl Iterator for Buckets<'_> {
    type Item = Key;

    fn next(&mut self) -> Option<Key> {
        if let Some(key) = self.bucket.next() {
            return Some(*key);
        }
        let (slices, _, _) = self.order.range(..(self.slices, 0, 0)).next_back()?;
        self.slices = *slices;
        self.bucket = self.order.range((*slices, 0, 0)..=(*slices, u32::MAX, u32::MAX));
        self.bucket.next().copied()
    }
}

/// Two ordered sequences as one.
struct Merge<K: Iterator<Item = Key>> {
    kept: Peekable<K>,
    patched: Peekable<std::vec::IntoIter<Key>>,
    precedes: Precedes,
}

impl<K: Iterator<Item = Key>> Iterator for Merge<K> {
    type Item = Key;

    fn next(&mut self) -> Option<Key> {
        match (self.kept.peek(), self.patched.peek()) {
            (Some(kept), Some(patched)) if (self.precedes)(patched, kept) => self.patched.next(),
            (None, _) => self.patched.next(),
            (Some(_), _) => self.kept.next(),
        }
    }
}
