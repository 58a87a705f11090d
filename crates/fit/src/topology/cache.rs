//! Counts of the classes that were placed lately, by class.

use std::cmp::Ordering;

use fairlead_model::{NodeConstraints, Resources};

use super::counter::Class;
use super::counts::Counts;
use super::tree::Tree;

/// How many leaves, over all classes, are kept: at about 30 bytes each. A few classes are kept in any tree.
const LEAVES: usize = 2 << 20;
const FEWEST: usize = 16;

/// A class on its own.
#[derive(Debug)]
struct Owned {
    empty: bool,
    slice_level: usize,
    slice_size: u32,
    inner: Vec<u32>,
    requests: Resources,
    nodes: NodeConstraints,
    leader: Option<(Resources, NodeConstraints)>,
}

impl Owned {
    fn of(class: &Class<'_>) -> Self {
        Self {
            empty: class.empty,
            slice_level: class.slice_level,
            slice_size: class.slice_size,
            inner: class.inner.to_vec(),
            requests: class.requests.clone(),
            nodes: class.nodes.clone(),
            leader: class.leader.map(|(requests, nodes)| (requests.clone(), nodes.clone())),
        }
    }

    fn class(&self) -> Class<'_> {
        Class {
            empty: self.empty,
            slice_level: self.slice_level,
            slice_size: self.slice_size,
            inner: &self.inner,
            requests: &self.requests,
            nodes: &self.nodes,
            leader: self.leader.as_ref().map(|(requests, nodes)| (requests, nodes)),
        }
    }

    fn order(&self, class: &Class<'_>) -> Ordering {
        self.class().cmp(class)
    }
}

#[derive(Debug)]
struct Entry {
    class: Owned,
    counts: Counts,
    /// When it was last used, in uses of the cache.
    used: u64,
}

/// Remembers counts. It holds nothing that the tree does not say, so a copy starts empty and all are equal.
#[derive(Debug, Default)]
pub(super) struct Cache {
    /// Sorted by class.
    entries: Vec<Entry>,
    uses: u64,
}

impl Clone for Cache {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Cache {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Cache {
    /// The counts of a class, up to date with the tree.
    pub(super) fn counts(&mut self, tree: &Tree, class: &Class<'_>) -> Option<&Counts> {
        self.uses = self.uses.saturating_add(1);
        let found = self.entries.binary_search_by(|entry| entry.class.order(class));
        let ix = match found {
            Ok(ix) => ix,
            Err(_) => self.insert(tree, class),
        };
        let entry = self.entries.get_mut(ix)?;
        entry.used = self.uses;
        if !entry.counts.catch_up(tree, class) {
            entry.counts = Counts::new(tree, class, |_| true);
        }
        Some(&entry.counts)
    }

    /// Adds a class, in place of the one that was not used for longest when there are too many.
    fn insert(&mut self, tree: &Tree, class: &Class<'_>) -> usize {
        let most = LEAVES.checked_div(tree.leaves.len()).unwrap_or(0).clamp(FEWEST, 1024);
        if self.entries.len() >= most {
            let oldest = self.entries.iter().enumerate().min_by_key(|(_, entry)| entry.used);
            if let Some(ix) = oldest.map(|(ix, _)| ix) {
                self.entries.remove(ix);
            }
        }
        let counts = Counts::new(tree, class, |_| true);
        let ix = self.entries.partition_point(|entry| entry.class.order(class).is_lt());
        self.entries.insert(ix, Entry { class: Owned::of(class), counts, used: self.uses });
        ix
    }
}
