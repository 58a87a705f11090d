//! Classical preemption [P-3].

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use fairlead_model::Amount;

use super::Ask;
use super::lane::Lane;
use super::what_if::WhatIf;
use crate::fact::{PreemptionCause, VictimPolicy};
use crate::names::CqIx;
use crate::quota::plane::Plane;
use crate::quota::{Col, NodeIx};
use crate::round::entry::Target;
use crate::world::holders::Rank;

/// By what right a workload may be preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Right {
    /// It is in the same queue.
    WithinQueue,
    /// The request fits into quota that belongs to the preemptor's part of the tree.
    Hierarchical,
    /// Quota is taken back, and the preemptor must not borrow for it.
    WithoutBorrowing,
    /// Quota is taken back even while the preemptor borrows.
    WhileBorrowing,
}

impl Right {
    const fn cause(self) -> PreemptionCause {
        match self {
            Self::WithinQueue => PreemptionCause::InClusterQueue,
            Self::Hierarchical | Self::WithoutBorrowing => PreemptionCause::InCohortReclamation,
            Self::WhileBorrowing => PreemptionCause::InCohortReclaimWhileBorrowing,
        }
    }
}

/// A queue with candidates.
#[derive(Clone, Debug)]
struct Part<'w> {
    node: NodeIx,
    /// The lowest cohort that it shares with the preemptor; none for the preemptor's own queue.
    common: Option<NodeIx>,
    /// The request fits into quota of the part of the tree below that cohort.
    advantage: bool,
    /// Its first candidate of those on their way out, and of the others.
    first: [Option<&'w Rank>; 2],
    /// The candidates behind those.
    rest: Lane<'w>,
}

/// Queues with candidates, by the order in which they are tried.
#[derive(Debug, Default)]
struct Candidates<'w> {
    hierarchical: Vec<Part<'w>>,
    by_priority: Vec<Part<'w>>,
    own: Vec<Part<'w>>,
}

/// The victims; none when preemption does not help.
pub(super) fn targets(ask: &Ask<'_, '_>) -> Vec<Target> {
    let candidates = collect(ask);
    let forbidden = ask.rules.borrow.is_none();
    let no_others = candidates.hierarchical.is_empty() && candidates.by_priority.is_empty();
    let attempts: &[bool] = if no_others || (forbidden && !under_nominal(ask)) {
        &[true]
    } else if forbidden && candidates.hierarchical.is_empty() {
        &[false, true]
    } else {
        &[true, false]
    };
    let found = attempts.iter().find_map(|may_borrow| Attempt::new(ask, *may_borrow).run(&candidates));
    found.unwrap_or_default()
}

/// Whether the queue uses less than its nominal quota of everything that is contested.
fn under_nominal(ask: &Ask<'_, '_>) -> bool {
    let row = ask.plane();
    ask.contested
        .iter()
        .all(|col| Amount::Finite(row.used(ask.node, *col)) < ask.tree.cell(ask.node, *col).nominal)
}

/// Candidates are removed one by one until the preemptor fits.
struct Attempt<'r, 'w> {
    ask: &'r Ask<'r, 'w>,
    may_borrow: bool,
    what_if: WhatIf<'r, 'w>,
    targets: Vec<Target>,
}

impl<'r, 'w> Attempt<'r, 'w> {
    fn new(ask: &'r Ask<'r, 'w>, may_borrow: bool) -> Self {
        Self { ask, may_borrow, what_if: WhatIf::new(ask), targets: Vec::new() }
    }

    /// Those on their way out first; within that by class, then by [P-2].
    fn run(mut self, candidates: &Candidates<'w>) -> Option<Vec<Target>> {
        for evicted in [true, false] {
            for class in [&candidates.hierarchical, &candidates.by_priority, &candidates.own] {
                if self.take_from(class, evicted) {
                    return Some(self.what_if.minimise(self.targets, self.may_borrow));
                }
            }
        }
        None
    }

    /// Takes candidates of several queues in one order; true when the preemptor fits.
    fn take_from(&mut self, parts: &[Part<'w>], evicted: bool) -> bool {
        let first = |(ix, part): (usize, &Part<'w>)| Some(Reverse((part.first(evicted)?, ix)));
        let mut heap: BinaryHeap<Reverse<(&Rank, usize)>> =
            parts.iter().enumerate().filter_map(first).collect();
        let mut begun: BTreeMap<usize, Lane<'w>> = BTreeMap::new();
        while let Some(Reverse((rank, ix))) = heap.pop() {
            let Some(part) = parts.get(ix) else { continue };
            let taken = self.right_to(part, rank);
            if let Some(right) = taken {
                self.what_if.remove(rank.row);
                self.targets.push(Target { row: rank.row, cause: right.cause() });
                if self.what_if.fits(self.may_borrow) {
                    return true;
                }
            }
            // Usage only falls, unless a workload holds a negative amount, and what protects one workload protects those
            // of higher priority: who is refused once speaks for all behind.
            if taken.is_some() || self.ask.world().negative > 0 {
                let rest = begun.entry(ix).or_insert_with(|| part.rest.clone());
                heap.extend(rest.next(self.ask, evicted).map(|rank| Reverse((rank, ix))));
            }
        }
        false
    }

    /// By what right a candidate may be taken now, if any: its queue and every cohort below the common one must still
    /// use more than their quota.
    fn right_to(&self, part: &Part<'_>, rank: &Rank) -> Option<Right> {
        let right = right(self.ask, part, rank.priority);
        if right == Right::WithinQueue {
            return Some(right);
        }
        if self.may_borrow && right == Right::WithoutBorrowing {
            return None;
        }
        let plane = self.what_if.plane();
        let mut cursor = Some(part.node);
        while let Some(node) = cursor.filter(|node| Some(*node) != part.common) {
            if self.ask.within_quota(plane, node) {
                return None;
            }
            cursor = self.ask.tree.parent(node);
        }
        Some(right)
    }
}

impl<'w> Part<'w> {
    /// None for a queue without candidates.
    fn of(ask: &Ask<'_, 'w>, queue: CqIx, node: NodeIx) -> Option<Self> {
        let mut rest = Lane::of(ask, queue)?;
        let first = [rest.next(ask, true), rest.next(ask, false)];
        let found = first.iter().any(Option::is_some);
        found.then_some(Self { node, common: None, advantage: false, first, rest })
    }

    const fn first(&self, evicted: bool) -> Option<&'w Rank> {
        let [on_their_way, others] = self.first;
        if evicted { on_their_way } else { others }
    }
}

fn collect<'w>(ask: &Ask<'_, 'w>) -> Candidates<'w> {
    let mut candidates = Candidates::default();
    candidates.own.extend(Part::of(ask, ask.queue, ask.node));
    if ask.rules.reclaim == VictimPolicy::Never {
        return candidates;
    }
    let plane = ask.plane();
    let mut request = ask.usage.clone();
    let mut advantage = fits_quota(ask, plane, ask.node, &mut request);
    let mut below = ask.node;
    let mut cursor = ask.tree.parent(ask.node);
    while let Some(cohort) = cursor {
        let class = if advantage { &mut candidates.hierarchical } else { &mut candidates.by_priority };
        in_subtree(ask, (cohort, below), advantage, class);
        advantage |= fits_quota(ask, plane, cohort, &mut request);
        below = cohort;
        cursor = ask.tree.parent(cohort);
    }
    candidates
}

/// Whether a request fits into a node's own quota; what of it has to come from above is left of it.
fn fits_quota(ask: &Ask<'_, '_>, plane: Plane<'_>, node: NodeIx, request: &mut [(Col, i64)]) -> bool {
    let fits = request.iter().all(|(col, amount)| !ask.tree.borrowing_with(plane, node, *col, *amount));
    for (col, amount) in request {
        let local = ask.tree.local_available(plane, node, *col);
        *amount = Amount::Finite(*amount).minus(local).saturated().max(0);
    }
    fits
}

/// Queues with candidates below a cohort, less the part below it that was visited before: only in cohorts and queues
/// that use more than their quota.
fn in_subtree<'w>(
    ask: &Ask<'_, 'w>,
    (cohort, visited): (NodeIx, NodeIx),
    advantage: bool,
    found: &mut Vec<Part<'w>>,
) {
    let mut open: Vec<NodeIx> = vec![cohort];
    while let Some(node) = open.pop() {
        for child in ask.may_borrow(node) {
            if child == visited || ask.within_quota(ask.plane(), child) {
                continue;
            }
            match ask.queue_at(child) {
                None => open.push(child),
                Some(queue) => found.extend(Part::of(ask, queue, child).map(|part| Part {
                    common: Some(cohort),
                    advantage,
                    ..part
                })),
            }
        }
    }
}

/// By what right a workload of another queue may be preempted.
fn right(ask: &Ask<'_, '_>, part: &Part<'_>, priority: i64) -> Right {
    if part.common.is_none() {
        return Right::WithinQueue;
    }
    if part.advantage {
        return Right::Hierarchical;
    }
    let Some(borrow) = ask.rules.borrow else { return Right::WithoutBorrowing };
    let protected =
        priority >= ask.row.fact.priority || borrow.max_priority.is_some_and(|most| priority > most);
    if protected { Right::WithoutBorrowing } else { Right::WhileBorrowing }
}
