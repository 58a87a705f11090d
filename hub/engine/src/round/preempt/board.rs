//! The children of one cohort by their shares, the highest first, kept up as victims are taken.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

use crate::policy::ShareRule;
use crate::quota::NodeIx;
use crate::round::share::Share;
use crate::world::holders::Rank;

/// A queue's first candidate, as far as queues of equal shares are told apart by it [P-2]. The fields are the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Head<'w> {
    /// Those on their way out come first: they cost nothing more.
    pub(super) not_evicted: bool,
    /// Other queues before the preemptor's own.
    pub(super) own_queue: bool,
    pub(super) rank: &'w Rank,
}

/// A child with its share; the greatest is the one to take from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing<'w> {
    pub(super) node: NodeIx,
    pub(super) share: Share,
    /// The first candidate of a queue; none for a cohort.
    pub(super) head: Option<Head<'w>>,
    pub(super) rule: ShareRule,
    /// Which of several standings of the child this is.
    turn: u32,
}

impl<'w> Standing<'w> {
    pub(super) const fn new(node: NodeIx, share: Share, head: Option<Head<'w>>, rule: ShareRule) -> Self {
        Self { node, share, head, rule, turn: 0 }
    }
}

impl Ord for Standing<'_> {
    /// The higher share; of equal queues the one whose candidate comes first, of equal cohorts the first.
    fn cmp(&self, other: &Self) -> Ordering {
        let by_share = self.share.compare(&other.share, self.rule);
        by_share.then_with(|| other.head.cmp(&self.head)).then_with(|| other.node.cmp(&self.node))
    }
}

impl PartialOrd for Standing<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Standing<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Standing<'_> {}

/// The children of one cohort.
#[derive(Debug, Default)]
pub(super) struct Board<'w> {
    cohorts: BinaryHeap<Standing<'w>>,
    queues: BinaryHeap<Standing<'w>>,
    /// The latest standing of each child that has had several.
    turns: BTreeMap<NodeIx, u32>,
    /// Children to be looked at anew.
    stale: Vec<NodeIx>,
}

impl<'w> Board<'w> {
    /// A board on which nothing has been looked at.
    pub(super) fn of(children: Vec<NodeIx>) -> Self {
        Self { stale: children, ..Self::default() }
    }

    /// A child's standing no longer holds.
    pub(super) fn outdate(&mut self, child: NodeIx) {
        let turn = self.turns.entry(child).or_insert(0);
        *turn = turn.saturating_add(1);
        self.stale.push(child);
    }

    /// A child that must be looked at anew before the board can be read.
    pub(super) fn next_stale(&mut self) -> Option<NodeIx> {
        self.stale.pop()
    }

    /// Puts a child up.
    pub(super) fn put(&mut self, standing: Standing<'w>) {
        let turn = self.turns.get(&standing.node).copied().unwrap_or(0);
        let heap = if standing.head.is_some() { &mut self.queues } else { &mut self.cohorts };
        heap.push(Standing { turn, ..standing });
    }

    /// Takes a child down for good.
    pub(super) fn remove(&mut self, child: NodeIx) {
        let turn = self.turns.entry(child).or_insert(0);
        *turn = turn.saturating_add(1);
    }

    /// The child to go to: of a cohort and a queue with the same share the cohort.
    pub(super) fn highest(&mut self) -> Option<Standing<'w>> {
        let turns = &self.turns;
        let is_current =
            |standing: &Standing<'_>| turns.get(&standing.node).copied().unwrap_or(0) == standing.turn;
        let mut best = [&mut self.cohorts, &mut self.queues].map(|heap| {
            while heap.peek().is_some_and(|standing| !is_current(standing)) {
                heap.pop();
            }
            heap.peek().copied()
        });
        let [cohort, queue] = &mut best;
        match (cohort.take(), queue.take()) {
            (Some(cohort), Some(queue))
                if cohort.share.compare(&queue.share, queue.rule) == Ordering::Less =>
            {
                Some(queue)
            }
            (Some(cohort), _) => Some(cohort),
            (None, queue) => queue,
        }
    }
}
