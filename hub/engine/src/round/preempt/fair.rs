//! Preemption under fair sharing [P-6].

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::Ask;
use super::board::{Board, Head, Standing};
use super::lane::Lane;
use super::what_if::WhatIf;
use crate::fact::PreemptionCause;
use crate::policy::FairStrategy;
use crate::quota::plane::{Changes, Plane};
use crate::quota::{NodeIx, Tree};
use crate::round::entry::Target;
use crate::round::share::Share;
use crate::world::holders::Rank;

/// What is left to take from a queue.
struct Stock<'w> {
    head: Option<Head<'w>>,
    /// What comes behind; none when only the head counts.
    rest: Option<Lane<'w>>,
}

/// A search for victims: parts of the tree are looked at when it comes to them.
struct Search<'r, 'w> {
    what_if: WhatIf<'r, 'w>,
    /// Queues that were looked at.
    stocks: BTreeMap<NodeIx, Stock<'w>>,
    /// No other queues have anything to take.
    only_those: bool,
    /// Cohorts that were looked at.
    boards: BTreeMap<NodeIx, Board<'w>>,
    /// Parts of the tree that are done with.
    pruned: BTreeSet<NodeIx>,
    /// The preemptor's queue and every cohort above it, each with the node below it on that path.
    path: BTreeMap<NodeIx, Option<NodeIx>>,
    targets: Vec<Target>,
    /// The first candidate of each queue that the first strategy refused.
    refused: BTreeMap<NodeIx, Head<'w>>,
    /// Usage with one more workload gone.
    trial: Changes,
}

/// The victims; none when preemption does not help.
pub(super) fn targets(ask: &Ask<'_, '_>, strategies: &[FairStrategy]) -> Vec<Target> {
    let default = [FairStrategy::LessThanOrEqualToFinalShare, FairStrategy::LessThanInitialShare];
    let strategies = if strategies.is_empty() { &default[..] } else { strategies };
    let mut search = Search::new(ask);
    // Shares are compared with the preemptor counted in.
    search.what_if.charge_preemptor(true);
    let first = strategies.first().copied().unwrap_or(FairStrategy::LessThanOrEqualToFinalShare);
    let mut fits = search.first_pass(first);
    if !fits && strategies.len() > 1 {
        search.restart();
        fits = search.second_pass();
    }
    if !fits {
        return Vec::new();
    }
    search.what_if.charge_preemptor(false);
    search.what_if.minimise(search.targets, true)
}

impl<'r, 'w> Search<'r, 'w> {
    fn new(ask: &'r Ask<'r, 'w>) -> Self {
        let mut path = BTreeMap::new();
        let (mut below, mut cursor) = (None, Some(ask.node));
        while let Some(node) = cursor {
            path.insert(node, below);
            (below, cursor) = (cursor, ask.tree.parent(node));
        }
        Self {
            what_if: WhatIf::new(ask),
            stocks: BTreeMap::new(),
            only_those: false,
            boards: BTreeMap::new(),
            pruned: BTreeSet::new(),
            path,
            targets: Vec::new(),
            refused: BTreeMap::new(),
            trial: Changes::default(),
        }
    }

    /// Starts over with what the first strategy refused; what was removed stays removed. One candidate a queue is
    /// enough, since the second strategy takes no more.
    fn restart(&mut self) {
        let refused = std::mem::take(&mut self.refused).into_iter();
        self.stocks = refused.map(|(node, head)| (node, Stock { head: Some(head), rest: None })).collect();
        self.only_those = true;
        self.boards.clear();
        self.pruned.clear();
    }

    fn ask(&self) -> &'r Ask<'r, 'w> {
        self.what_if.ask
    }

    fn tree(&self) -> &'w Tree {
        self.ask().tree
    }

    fn share(&self, plane: Plane<'_>, node: NodeIx) -> Share {
        Share::of(self.tree(), plane, node)
    }

    fn compare(&self, a: &Share, b: &Share) -> Ordering {
        a.compare(b, self.ask().round.policy.shares)
    }

    /// The candidates of a queue: its own by `withinClusterQueue`, those of others if they used more than their quota
    /// before anything was taken.
    fn open(&self, node: NodeIx) -> Stock<'w> {
        let ask = self.ask();
        let own = node == ask.node;
        let lane = ask.queue_at(node).filter(|_| own || !ask.within_quota(ask.plane(), node));
        let mut stock = Stock { head: None, rest: lane.and_then(|queue| Lane::of(ask, queue)) };
        stock.advance(ask, own);
        stock
    }

    /// The first candidate that is left in a queue.
    fn head(&mut self, node: NodeIx) -> Option<Head<'w>> {
        if let Some(stock) = self.stocks.get(&node) {
            return stock.head;
        }
        if self.only_those {
            return None;
        }
        let stock = self.open(node);
        let head = stock.head;
        self.stocks.insert(node, stock);
        head
    }

    fn pop(&mut self, node: NodeIx) -> Option<Head<'w>> {
        let head = self.head(node)?;
        let own = node == self.ask().node;
        let ask = self.ask();
        self.stocks.get_mut(&node)?.advance(ask, own);
        self.outdate(node);
        Some(head)
    }

    /// Leaves the rest of a queue.
    fn give_up(&mut self, node: NodeIx) {
        self.stocks.insert(node, Stock { head: None, rest: None });
        self.outdate(node);
    }

    /// Notes that a node's standing among its siblings has changed.
    fn outdate(&mut self, node: NodeIx) {
        let parent = self.tree().parent(node);
        if let Some(board) = parent.and_then(|parent| self.boards.get_mut(&parent)) {
            board.outdate(node);
        }
    }

    fn outdate_path(&mut self, from: NodeIx) {
        let mut cursor = Some(from);
        while let Some(node) = cursor {
            self.outdate(node);
            cursor = self.tree().parent(node);
        }
    }

    /// Takes a victim; true when the preemptor fits then.
    fn take(&mut self, node: NodeIx, rank: &Rank, cause: PreemptionCause) -> bool {
        self.what_if.remove(rank.row);
        self.targets.push(Target { row: rank.row, cause });
        self.what_if.charge_preemptor(false);
        let fits = self.what_if.fits(true);
        self.what_if.charge_preemptor(true);
        self.outdate_path(node);
        self.outdate_path(self.ask().node);
        fits
    }

    /// The queue to take the next victim from: down from the root along the highest share. None when nothing is left.
    fn next_queue(&mut self) -> Option<NodeIx> {
        let own = self.ask().node;
        if self.tree().parent(own).is_none() {
            return self.head(own).map(|_| own);
        }
        while !self.pruned.contains(&0) {
            if let Some(node) = self.descend() {
                return Some(node);
            }
        }
        None
    }

    /// One walk down; none when it ended in a cohort without anything to take, which is pruned then.
    fn descend(&mut self) -> Option<NodeIx> {
        let mut cohort: NodeIx = 0;
        loop {
            match self.highest_child(cohort) {
                None => {
                    self.prune(cohort);
                    return None;
                }
                Some(child) if child.head.is_some() => return Some(child.node),
                Some(child) => cohort = child.node,
            }
        }
    }

    fn prune(&mut self, node: NodeIx) {
        self.pruned.insert(node);
        let parent = self.tree().parent(node);
        if let Some(board) = parent.and_then(|parent| self.boards.get_mut(&parent)) {
            board.remove(node);
        }
    }

    /// The child with the highest share. Children that do not borrow and are not the preemptor's own, or have nothing to
    /// take, are pruned.
    fn highest_child(&mut self, cohort: NodeIx) -> Option<Standing<'w>> {
        if !self.boards.contains_key(&cohort) {
            let board = self.board(cohort);
            self.boards.insert(cohort, board);
        }
        let mut board = std::mem::take(self.boards.get_mut(&cohort)?);
        while let Some(child) = board.next_stale() {
            if self.pruned.contains(&child) {
                continue;
            }
            match self.standing(child) {
                Some(standing) => board.put(standing),
                None => drop(self.pruned.insert(child)),
            }
        }
        let highest = board.highest();
        *self.boards.get_mut(&cohort)? = board;
        highest
    }

    /// The children of a cohort that can matter: those that borrow, and the one that leads to the preemptor.
    fn board(&self, cohort: NodeIx) -> Board<'w> {
        let mut children = self.ask().may_borrow(cohort);
        let own = self.path.get(&cohort).copied().flatten();
        children.extend(own.filter(|own| !children.contains(own)));
        Board::of(children)
    }

    /// Where a child stands among its siblings; none if it does not count.
    fn standing(&mut self, child: NodeIx) -> Option<Standing<'w>> {
        let share = self.share(self.what_if.plane(), child);
        if !share.borrows && !self.path.contains_key(&child) {
            return None;
        }
        let is_queue = self.ask().queue_at(child).is_some();
        let head = if is_queue { Some(self.head(child)?) } else { None };
        Some(Standing::new(child, share, head, self.ask().round.policy.shares))
    }

    /// The children of the lowest common cohort on the preemptor's and the target's side.
    fn rivals(&self, target: NodeIx) -> (NodeIx, NodeIx) {
        let tree = self.tree();
        let mut theirs = target;
        while let Some(parent) = tree.parent(theirs).filter(|parent| !self.path.contains_key(parent)) {
            theirs = parent;
        }
        let common = tree.parent(theirs);
        let mut mine = self.ask().node;
        while let Some(parent) = tree.parent(mine).filter(|parent| Some(*parent) != common) {
            mine = parent;
        }
        (mine, theirs)
    }

    /// Whether the preemptor's queue, with the preemptor counted in, stays within its own quota.
    fn within_nominal(&self) -> bool {
        self.ask().within_quota(self.what_if.plane(), self.ask().node)
    }

    /// Takes victims queue by queue as the strategy allows.
    fn first_pass(&mut self, strategy: FairStrategy) -> bool {
        while let Some(queue) = self.next_queue() {
            let own = queue == self.ask().node;
            let fits = if own || self.within_nominal() {
                let cause =
                    if own { PreemptionCause::InClusterQueue } else { PreemptionCause::InCohortReclamation };
                self.pop(queue).is_some_and(|head| self.take(queue, head.rank, cause))
            } else {
                self.take_fairly(queue, strategy)
            };
            if fits {
                return true;
            }
        }
        false
    }

    /// Goes through a queue's candidates up to the first that the strategy allows; true when the preemptor fits then.
    fn take_fairly(&mut self, queue: NodeIx, strategy: FairStrategy) -> bool {
        let (mine, theirs) = self.rivals(queue);
        let my_share = self.share(self.what_if.plane(), mine);
        let their_share = self.share(self.what_if.plane(), theirs);
        let hopeless = (my_share.is_infinite() && !their_share.is_infinite())
            || (strategy == FairStrategy::LessThanInitialShare
                && self.compare(&my_share, &their_share) != Ordering::Less);
        if hopeless {
            // Whichever candidate it is: the first stands for all.
            if let Some(head) = self.head(queue) {
                self.refused.entry(queue).or_insert(head);
            }
            self.give_up(queue);
            return false;
        }
        while let Some(head) = self.pop(queue) {
            if strategy == FairStrategy::LessThanInitialShare
                || self.stays_above(theirs, head.rank, &my_share)
            {
                return self.take(queue, head.rank, PreemptionCause::InCohortFairSharing);
            }
            self.refused.entry(queue).or_insert(head);
        }
        false
    }

    /// Whether a node's share is not below another even after a workload is gone.
    fn stays_above(&mut self, node: NodeIx, rank: &Rank, share: &Share) -> bool {
        let mut trial = std::mem::take(&mut self.trial);
        let after = self.share(self.what_if.without(rank.row, &mut trial), node);
        self.trial = trial;
        self.compare(share, &after) != Ordering::Greater
    }

    /// Takes at most one more victim from each queue whose share is above the preemptor's.
    fn second_pass(&mut self) -> bool {
        while let Some(queue) = self.next_queue() {
            let (mine, theirs) = self.rivals(queue);
            let plane = self.what_if.plane();
            let allowed =
                self.compare(&self.share(plane, mine), &self.share(plane, theirs)) == Ordering::Less;
            let head = self.pop(queue).filter(|_| allowed);
            self.give_up(queue);
            if head.is_some_and(|head| self.take(queue, head.rank, PreemptionCause::InCohortFairSharing)) {
                return true;
            }
        }
        false
    }
}

impl<'w> Stock<'w> {
    /// Goes on to the next candidate.
    fn advance(&mut self, ask: &Ask<'_, 'w>, own_queue: bool) {
        let rest = &mut self.rest;
        let mut next = |evicted: bool| {
            let rank = rest.as_mut()?.next(ask, evicted)?;
            Some(Head { not_evicted: !evicted, own_queue, rank })
        };
        self.head = next(true).or_else(|| next(false));
    }
}
