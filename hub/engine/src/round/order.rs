//! The order in which the entries of a round are handled [S-2], [S-3].

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use fairlead_model::{Millis, Uid};

use super::Round;
use super::entry::Entry;
use super::overlay::Overlay;
use super::share::Share;
use crate::quota::plane::{Changes, Draft};
use crate::quota::{Col, NodeIx, Tree};
use crate::world::rows::order_time;

/// What is left to handle in a round.
#[derive(Debug)]
pub(crate) enum Line {
    /// In a fixed order, the last one first.
    Fixed(Vec<Entry>),
    /// By a tournament that is held anew before each entry, tree by tree.
    Fair(BTreeMap<u32, Vec<Entry>>),
}

/// What an entry is ordered by among equals of its cohort.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Merit {
    /// Higher first.
    priority: Reverse<i64>,
    /// Older first.
    time: Millis,
    /// The last tie.
    uid: Option<Uid>,
}

/// What a node would come to with an entry's usage added.
#[derive(Clone, Copy, Debug, Default)]
struct Claim {
    /// It would borrow some flavor-resource that the entry requests.
    borrows: bool,
    share: Share,
}

/// An entry on its way up a tournament.
#[derive(Clone, Copy, Debug)]
struct Contender {
    /// Position in the tree's list.
    position: usize,
    /// Of the child of the cohort at hand through which it comes.
    claim: Claim,
}

impl Round<'_> {
    /// Lines the entries up. Trees do not affect each other.
    pub(crate) fn line_up(&self, mut entries: Vec<Entry>) -> Line {
        if self.policy.fair_sharing.is_none() {
            entries
                .sort_by_cached_key(|entry| (!entry.second_pass, entry.assignment.borrow, self.merit(entry)));
            entries.reverse();
            return Line::Fixed(entries);
        }
        let mut trees: BTreeMap<u32, Vec<Entry>> = BTreeMap::new();
        for entry in entries {
            trees.entry(entry.tree).or_default().push(entry);
        }
        Line::Fair(trees)
    }

    fn merit(&self, entry: &Entry) -> Merit {
        let fact = self.world.row(entry.row).map(|row| &row.fact);
        Merit {
            priority: Reverse(fact.map_or(0, |fact| fact.priority)),
            time: fact.map(|fact| order_time(fact)).unwrap_or_default(),
            uid: fact.map(|fact| fact.uid.clone()),
        }
    }

    /// The winner of a tree's tournament in the present state: entries that hold quota already, then at each cohort
    /// those that would not borrow, the lower share with the entry counted in, the higher priority, the older.
    fn winner(&self, tree_ix: u32, entries: &[Entry], state: &Overlay<'_>) -> Option<usize> {
        if let Some(second) = entries.iter().position(|entry| entry.second_pass) {
            return Some(second);
        }
        let tree = state.tree(tree_ix)?;
        let paths: Vec<BTreeMap<NodeIx, Claim>> =
            entries.iter().map(|entry| Self::claims(tree, tree_ix, entry, state)).collect();
        let claim = |position: usize, node: NodeIx| -> Claim {
            paths.get(position).and_then(|path| path.get(&node)).copied().unwrap_or_default()
        };
        let mut at_node: BTreeMap<NodeIx, Contender> = BTreeMap::new();
        for (position, entry) in entries.iter().enumerate() {
            let one = Contender { position, claim: claim(position, entry.node) };
            let current = at_node.entry(entry.node).or_insert(one);
            if self.is_ahead(&one, current, entries) {
                *current = one;
            }
        }
        // Children stand behind their parents, so one pass from the back settles each node after all below it. A
        // contender comes to a cohort with the claim of the child through which it comes.
        for node in (1..tree.nodes.len()).rev().map(crate::names::next) {
            let (Some(one), Some(parent)) = (at_node.get(&node).copied(), tree.parent(node)) else {
                continue;
            };
            let one = Contender { claim: claim(one.position, node), ..one };
            let beaten = at_node.get(&parent).is_some_and(|current| !self.is_ahead(&one, current, entries));
            if !beaten {
                at_node.insert(parent, one);
            }
        }
        at_node.get(&0).map(|winner| winner.position)
    }

    /// Whether `a` is handled before `b` at their common cohort.
    fn is_ahead(&self, a: &Contender, b: &Contender, entries: &[Entry]) -> bool {
        let merit = |contender: &Contender| entries.get(contender.position).map(|entry| self.merit(entry));
        let by_claim = a
            .claim
            .borrows
            .cmp(&b.claim.borrows)
            .then_with(|| a.claim.share.compare(&b.claim.share, self.policy.shares));
        by_claim.then_with(|| merit(a).cmp(&merit(b))) == Ordering::Less
    }

    /// What each node from the entry's queue up to the root would come to with the entry's usage added.
    fn claims(tree: &Tree, tree_ix: u32, entry: &Entry, state: &Overlay<'_>) -> BTreeMap<NodeIx, Claim> {
        let (below, mut changes) = (state.plane(tree_ix), Changes::default());
        let usage = &entry.assignment.usage;
        let cols: Vec<(Col, i64)> =
            usage.iter().filter_map(|(fr, amount)| Some((tree.column(*fr)?, *amount))).collect();
        for (col, amount) in &cols {
            tree.add_usage(&mut Draft { below, changes: &mut changes }, entry.node, *col, *amount);
        }
        let plane = below.with(&changes);
        let mut claims = BTreeMap::new();
        let mut cursor = Some(entry.node);
        while let Some(node) = cursor {
            let borrows = cols.iter().any(|(col, _)| tree.borrowing_with(plane, node, *col, 0));
            claims.insert(node, Claim { borrows, share: Share::of(tree, plane, node) });
            cursor = tree.parent(node);
        }
        claims
    }
}

impl Line {
    /// Takes the next entry.
    pub(crate) fn pop(&mut self, round: &Round<'_>, state: &Overlay<'_>) -> Option<Entry> {
        match self {
            Self::Fixed(entries) => entries.pop(),
            Self::Fair(trees) => {
                let mut first = trees.first_entry()?;
                let winner = round.winner_of(*first.key(), first.get(), state);
                let entry = first.get_mut().swap_remove(winner);
                if first.get().is_empty() {
                    first.remove();
                }
                Some(entry)
            }
        }
    }
}

impl Round<'_> {
    /// The position of the winner; the first entry if a tree has vanished.
    fn winner_of(&self, tree: u32, entries: &[Entry], state: &Overlay<'_>) -> usize {
        self.winner(tree, entries, state).unwrap_or(0).min(entries.len().saturating_sub(1))
    }
}
