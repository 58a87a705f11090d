//! Preemption under fair sharing [P-6].

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Ask, WhatIf};
use crate::fact::{PreemptionCause, VictimPolicy};
use crate::names::RowIx;
use crate::policy::FairStrategy;
use crate::quota::{NodeIx, Tree};
use crate::round::entry::Target;
use crate::round::share::Share;

/// The best child found so far.
type Best = Option<(NodeIx, Share)>;

/// Candidates by queue, and which parts of the tree are done with.
struct Search<'r, 'w> {
    what_if: WhatIf<'r, 'w>,
    candidates: BTreeMap<NodeIx, VecDeque<RowIx>>,
    pruned: BTreeSet<NodeIx>,
    /// The preemptor's queue and every cohort above it.
    path: BTreeSet<NodeIx>,
    targets: Vec<Target>,
}

/// The victims; none when preemption does not help.
pub(super) fn targets(ask: &Ask<'_, '_>, strategies: &[FairStrategy]) -> Vec<Target> {
    let default = [FairStrategy::LessThanOrEqualToFinalShare, FairStrategy::LessThanInitialShare];
    let strategies = if strategies.is_empty() { &default[..] } else { strategies };
    let mut candidates = find_candidates(ask);
    if candidates.is_empty() {
        return Vec::new();
    }
    ask.sort(&mut candidates);
    let mut search = Search::new(ask, &candidates);
    // Shares are compared with the preemptor counted in.
    search.what_if.charge_preemptor(true);
    let first = strategies.first().copied().unwrap_or(FairStrategy::LessThanOrEqualToFinalShare);
    let (mut fits, retry) = search.first_pass(first);
    if !fits && strategies.len() > 1 {
        search.restart(ask, &retry);
        fits = search.second_pass();
    }
    if !fits {
        return Vec::new();
    }
    search.what_if.charge_preemptor(false);
    search.what_if.minimise(search.targets, true)
}

/// Own workloads by `withinClusterQueue`, and those of every queue of the tree that uses more than its quota.
fn find_candidates(ask: &Ask<'_, '_>) -> Vec<RowIx> {
    let mut found = ask.candidates_in(ask.queue, ask.rules.within_queue);
    if ask.rules.reclaim == VictimPolicy::Never {
        return found;
    }
    let plane = ask.plane();
    for (position, node) in (0_u32..).zip(&ask.tree.nodes) {
        let Some(queue) = node.queue.filter(|queue| *queue != ask.queue) else { continue };
        if !ask.within_quota(&plane, position) {
            found.extend(ask.candidates_in(queue, ask.rules.reclaim));
        }
    }
    found
}

impl<'r, 'w> Search<'r, 'w> {
    fn new(ask: &'r Ask<'r, 'w>, candidates: &[RowIx]) -> Self {
        let mut path = BTreeSet::new();
        let mut cursor = Some(ask.node);
        while let Some(node) = cursor {
            path.insert(node);
            cursor = ask.tree.parent(node);
        }
        let mut search = Self {
            what_if: WhatIf::new(ask),
            candidates: BTreeMap::new(),
            pruned: BTreeSet::new(),
            path,
            targets: Vec::new(),
        };
        search.restart(ask, candidates);
        search
    }

    /// Starts over with other candidates, in their order; what was removed stays removed.
    fn restart(&mut self, ask: &Ask<'_, '_>, candidates: &[RowIx]) {
        self.candidates.clear();
        self.pruned.clear();
        for row in candidates {
            if let Some(node) = ask.node_of(*row) {
                self.candidates.entry(node).or_default().push_back(*row);
            }
        }
    }

    fn ask(&self) -> &'r Ask<'r, 'w> {
        self.what_if.ask
    }

    fn tree(&self) -> &'w Tree {
        self.ask().tree
    }

    fn share(&self, plane: &[i64], node: NodeIx) -> Share {
        Share::of(self.tree(), &self.ask().round.world.names, plane, node)
    }

    fn compare(&self, a: &Share, b: &Share) -> Ordering {
        a.compare(b, self.ask().round.policy.shares)
    }

    fn has_candidates(&self, node: NodeIx) -> bool {
        self.candidates.get(&node).is_some_and(|rows| !rows.is_empty())
    }

    fn pop(&mut self, node: NodeIx) -> Option<RowIx> {
        self.candidates.get_mut(&node)?.pop_front()
    }

    /// Takes a victim; true when the preemptor fits then.
    fn take(&mut self, row: RowIx, cause: PreemptionCause) -> bool {
        self.what_if.remove(row);
        self.targets.push(Target { row, cause });
        self.what_if.charge_preemptor(false);
        let fits = self.what_if.fits(true);
        self.what_if.charge_preemptor(true);
        fits
    }

    /// The queue to take the next victim from: down from the root along the highest share. None when nothing is left.
    fn next_queue(&mut self) -> Option<NodeIx> {
        if self.tree().parent(self.ask().node).is_none() {
            return Some(self.ask().node).filter(|node| self.has_candidates(*node));
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
            let (best_cohort, best_queue) = self.highest_children(cohort);
            match (best_cohort, best_queue) {
                (None, None) => {
                    self.pruned.insert(cohort);
                    return None;
                }
                (Some((node, share)), Some((_, queue_share)))
                    if self.compare(&share, &queue_share) != Ordering::Less =>
                {
                    cohort = node;
                }
                (Some((node, _)), None) => cohort = node,
                (_, Some((queue, _))) => return Some(queue),
            }
        }
    }

    /// The child cohort and the child queue with the highest share. Children that do not borrow and are not the
    /// preemptor's own, or have nothing to take, are pruned.
    fn highest_children(&mut self, cohort: NodeIx) -> (Best, Best) {
        let tree = self.tree();
        let children = tree.node(cohort).map_or(&[][..], |node| &node.children);
        let (mut best_cohort, mut best_queue): (Best, Best) = (None, None);
        for child in children {
            if self.pruned.contains(child) {
                continue;
            }
            let share = self.share(&self.what_if.plane, *child);
            let is_queue = tree.node(*child).is_some_and(|node| node.queue.is_some());
            let idle = !share.borrows && !self.path.contains(child);
            if idle || (is_queue && !self.has_candidates(*child)) {
                self.pruned.insert(*child);
            } else if is_queue {
                if best_queue.as_ref().is_none_or(|best| self.queue_is_better((*child, share), *best)) {
                    best_queue = Some((*child, share));
                }
            } else if best_cohort
                .as_ref()
                .is_none_or(|(_, best)| self.compare(&share, best) == Ordering::Greater)
            {
                best_cohort = Some((*child, share));
            }
        }
        (best_cohort, best_queue)
    }

    /// The higher share; of equals the one whose first candidate comes first by [P-2].
    fn queue_is_better(&self, (node, share): (NodeIx, Share), (best, best_share): (NodeIx, Share)) -> bool {
        let first = |node: NodeIx| self.candidates.get(&node).and_then(|rows| rows.front().copied());
        match self.compare(&share, &best_share) {
            Ordering::Greater => true,
            Ordering::Less => false,
            Ordering::Equal => {
                let key = |node| first(node).and_then(|row| self.ask().key(row));
                key(node) < key(best)
            }
        }
    }

    /// The children of the lowest common cohort on the preemptor's and the target's side.
    fn rivals(&self, target: NodeIx) -> (NodeIx, NodeIx) {
        let tree = self.tree();
        let mut theirs = target;
        while let Some(parent) = tree.parent(theirs).filter(|parent| !self.path.contains(parent)) {
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
        self.ask().within_quota(&self.what_if.plane, self.ask().node)
    }

    /// Takes victims queue by queue as the first strategy allows; the second result are the candidates it did not.
    fn first_pass(&mut self, strategy: FairStrategy) -> (bool, Vec<RowIx>) {
        let mut retry = Vec::new();
        while let Some(queue) = self.next_queue() {
            let own = queue == self.ask().node;
            if own || self.within_nominal() {
                let cause =
                    if own { PreemptionCause::InClusterQueue } else { PreemptionCause::InCohortReclamation };
                let Some(row) = self.pop(queue) else { continue };
                if self.take(row, cause) {
                    return (true, retry);
                }
            } else if self.take_fairly(queue, strategy, &mut retry) {
                return (true, retry);
            }
        }
        (false, retry)
    }

    /// Goes through a queue's candidates up to the first that the strategy allows; true when the preemptor fits then.
    fn take_fairly(&mut self, queue: NodeIx, strategy: FairStrategy, retry: &mut Vec<RowIx>) -> bool {
        let (mine, theirs) = self.rivals(queue);
        let my_share = self.share(&self.what_if.plane, mine);
        let their_share = self.share(&self.what_if.plane, theirs);
        if my_share.is_infinite() && !their_share.is_infinite() {
            retry.extend(self.candidates.remove(&queue).into_iter().flatten());
            return false;
        }
        while let Some(row) = self.pop(queue) {
            let allowed = match strategy {
                FairStrategy::LessThanInitialShare => self.compare(&my_share, &their_share) == Ordering::Less,
                FairStrategy::LessThanOrEqualToFinalShare => {
                    let mut after = self.what_if.plane.clone();
                    super::remove(self.ask().round.world, self.tree(), &mut after, row);
                    self.compare(&my_share, &self.share(&after, theirs)) != Ordering::Greater
                }
            };
            if allowed {
                return self.take(row, PreemptionCause::InCohortFairSharing);
            }
            retry.push(row);
        }
        false
    }

    /// Takes at most one more victim from each queue whose share is above the preemptor's.
    fn second_pass(&mut self) -> bool {
        while let Some(queue) = self.next_queue() {
            let (mine, theirs) = self.rivals(queue);
            let my_share = self.share(&self.what_if.plane, mine);
            let allowed = self.compare(&my_share, &self.share(&self.what_if.plane, theirs)) == Ordering::Less;
            let row = self.pop(queue).filter(|_| allowed);
            self.candidates.remove(&queue);
            if row.is_some_and(|row| self.take(row, PreemptionCause::InCohortFairSharing)) {
                return true;
            }
        }
        false
    }
}
