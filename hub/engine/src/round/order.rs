//! The order in which the entries of a round are handled [S-2], [S-3].

use std::collections::BTreeMap;

use super::Round;
use super::contest::{Contest, Merit};
use super::entry::Entry;
use super::overlay::Overlay;

/// What is left to handle in a round.
#[derive(Debug)]
pub(crate) enum Line {
    /// In a fixed order, the last one first.
    Fixed(Vec<Entry>),
    /// By a tournament that is held anew before each entry, tree by tree.
    Fair(BTreeMap<u32, Contest>),
}

impl Round<'_> {
    /// Lines the entries up. Trees do not affect each other.
    pub(crate) fn line_up(&self, mut entries: Vec<Entry>) -> Line {
        if self.policy.fair_sharing.is_none() {
            entries.sort_by_cached_key(|entry| {
                (!entry.second_pass, entry.assignment.borrow, Merit::of(self, entry))
            });
            entries.reverse();
            return Line::Fixed(entries);
        }
        let mut trees: BTreeMap<u32, Vec<Entry>> = BTreeMap::new();
        for entry in entries {
            trees.entry(entry.tree).or_default().push(entry);
        }
        let contests = trees.into_iter().map(|(tree, entries)| (tree, Contest::new(self, tree, entries)));
        Line::Fair(contests.collect())
    }
}

impl Line {
    /// Takes the next entry.
    pub(crate) fn pop(&mut self, round: &Round<'_>, state: &Overlay<'_>) -> Option<Entry> {
        match self {
            Self::Fixed(entries) => entries.pop(),
            Self::Fair(trees) => {
                let mut first = trees.first_entry()?;
                let entry = first.get_mut().pop(round.policy.shares, state);
                if first.get().is_over() {
                    first.remove();
                }
                entry
            }
        }
    }
}
