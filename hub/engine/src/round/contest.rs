//! The order under fair sharing [S-3]: a tournament in each tree, held anew before each entry. Between two entries only
//! usage on one path changes, so only the winners on that path are found anew.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};

use fairlead_model::{Millis, Uid};

use super::Round;
use super::entry::Entry;
use super::overlay::Overlay;
use super::share::Share;
use crate::policy::ShareRule;
use crate::quota::plane::{Changes, Draft, Plane};
use crate::quota::{NodeIx, Tree};
use crate::world::stated::Stated;

/// What an entry is ordered by among equals of its cohort.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Merit {
    /// Higher first.
    priority: Reverse<i64>,
    /// Older first.
    time: Millis,
    /// The last tie.
    uid: Option<Uid>,
}

impl Merit {
    pub(super) fn of(round: &Round<'_>, entry: &Entry) -> Self {
        let fact = round.world.row(entry.row).map(|row| &row.fact);
        Self {
            priority: Reverse(fact.map_or(0, |fact| fact.priority)),
            time: fact.map(Stated::order_time).unwrap_or_default(),
            uid: fact.map(|fact| fact.uid.clone()),
        }
    }
}

/// What a node would come to with an entry's usage added.
#[derive(Clone, Copy, Debug, Default)]
struct Claim {
    /// It would borrow some flavor-resource that the entry requests.
    borrows: bool,
    share: Share,
}

/// The winner below a node, with the claim that it makes there.
#[derive(Clone, Copy, Debug)]
struct Contender {
    /// Its position.
    entry: usize,
    claim: Claim,
}

/// The entries of one tree.
#[derive(Debug)]
pub(crate) struct Contest {
    tree_ix: u32,
    /// None where an entry was taken.
    entries: Vec<Option<Entry>>,
    merits: Vec<Merit>,
    /// Positions of those that are left.
    left: Vec<usize>,
    /// The winner below each child of each node.
    winners: BTreeMap<(NodeIx, NodeIx), Contender>,
    /// The winner of all.
    first: Option<usize>,
    /// Queues whose winners, and those of all cohorts above them, must be found anew.
    open: BTreeSet<NodeIx>,
}

impl Contest {
    pub(super) fn new(round: &Round<'_>, tree_ix: u32, entries: Vec<Entry>) -> Self {
        Self {
            tree_ix,
            merits: entries.iter().map(|entry| Merit::of(round, entry)).collect(),
            left: (0..entries.len()).collect(),
            winners: BTreeMap::new(),
            first: None,
            open: entries.iter().map(|entry| entry.node).collect(),
            entries: entries.into_iter().map(Some).collect(),
        }
    }

    /// Takes the winner in the present state: entries that hold quota already, then at each cohort those that would not
    /// borrow, the lower share with the entry counted in, the higher priority, the older.
    pub(super) fn pop(&mut self, rule: ShareRule, state: &Overlay<'_>) -> Option<Entry> {
        let holds = |ix: &usize| self.entry(*ix).is_some_and(|entry| entry.second_pass);
        let place = if let Some(place) = self.left.iter().position(holds) {
            place
        } else {
            self.settle(rule, state);
            self.left.iter().position(|ix| Some(*ix) == self.first).unwrap_or(0)
        };
        if place >= self.left.len() {
            return None;
        }
        let entry = self.entries.get_mut(self.left.swap_remove(place))?.take()?;
        // What is done with it changes usage from its queue upwards.
        self.open.insert(entry.node);
        Some(entry)
    }

    /// Whether nobody is left.
    pub(super) fn is_over(&self) -> bool {
        self.left.is_empty()
    }

    fn entry(&self, ix: usize) -> Option<&Entry> {
        self.entries.get(ix)?.as_ref()
    }

    /// Finds the winners that must be found anew. Children stand behind their parents, so each node comes after all below
    /// it.
    fn settle(&mut self, rule: ShareRule, state: &Overlay<'_>) {
        let Some(tree) = state.tree(self.tree_ix) else { return };
        let mut claims =
            Claims { tree, below: state.plane(self.tree_ix), of: None, with: Changes::default() };
        let mut at_queue: BTreeMap<NodeIx, Vec<usize>> = BTreeMap::new();
        for ix in &self.left {
            if let Some(entry) = self.entry(*ix).filter(|entry| self.open.contains(&entry.node)) {
                at_queue.entry(entry.node).or_default().push(*ix);
            }
        }
        while let Some(node) = self.open.pop_last() {
            let mut best: Option<Contender> = None;
            for ix in at_queue.get(&node).into_iter().flatten() {
                let one = Contender { entry: *ix, claim: claims.at(node, *ix, &self.entries) };
                best = Some(self.ahead(rule, best, one));
            }
            for (_, one) in self.winners.range((node, 0)..=(node, NodeIx::MAX)) {
                best = Some(self.ahead(rule, best, *one));
            }
            let Some(parent) = tree.parent(node) else {
                self.first = best.map(|winner| winner.entry);
                continue;
            };
            self.open.insert(parent);
            match best {
                Some(Contender { entry, .. }) => {
                    let claim = claims.at(node, entry, &self.entries);
                    self.winners.insert((parent, node), Contender { entry, claim });
                }
                None => drop(self.winners.remove(&(parent, node))),
            }
        }
    }

    /// Who is handled first at their common cohort.
    fn ahead(&self, rule: ShareRule, best: Option<Contender>, one: Contender) -> Contender {
        let Some(best) = best else { return one };
        let by_claim = one.claim.borrows.cmp(&best.claim.borrows);
        let by_claim = by_claim.then_with(|| one.claim.share.compare(&best.claim.share, rule));
        let order = by_claim.then_with(|| self.merits.get(one.entry).cmp(&self.merits.get(best.entry)));
        if order == Ordering::Less { one } else { best }
    }
}

/// What nodes would come to with one entry's usage added: its rows are kept while the same entry is asked about.
struct Claims<'a> {
    tree: &'a Tree,
    below: Plane<'a>,
    of: Option<usize>,
    with: Changes,
}

impl Claims<'_> {
    fn at(&mut self, node: NodeIx, ix: usize, entries: &[Option<Entry>]) -> Claim {
        let Some(entry) = entries.get(ix).and_then(Option::as_ref) else { return Claim::default() };
        let tree = self.tree;
        let usage = &entry.assignment.usage;
        let cols = || usage.iter().filter_map(|(fr, amount)| Some((tree.column(*fr)?, *amount)));
        if self.of != Some(ix) {
            self.of = Some(ix);
            self.with.clear();
            let mut draft = Draft { below: self.below, changes: &mut self.with };
            cols().for_each(|(col, amount)| tree.add_usage(&mut draft, entry.node, col, amount));
        }
        let plane = self.below.with(&self.with);
        let borrows = cols().any(|(col, _)| tree.borrowing_with(plane, node, col, 0));
        Claim { borrows, share: Share::of(tree, plane, node) }
    }
}
