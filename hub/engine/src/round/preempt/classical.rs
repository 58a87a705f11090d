//! Classical preemption [P-3].

use std::collections::BTreeSet;

use fairlead_model::Amount;

use super::{Ask, WhatIf};
use crate::fact::{PreemptionCause, VictimPolicy};
use crate::names::RowIx;
use crate::quota::{Col, NodeIx};
use crate::round::entry::Target;

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

/// A possible victim.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    row: RowIx,
    right: Right,
    /// The lowest cohort that it shares with the preemptor.
    common: Option<NodeIx>,
}

/// Possible victims, in the order in which they are tried.
#[derive(Debug, Default)]
struct Candidates {
    hierarchical: Vec<Candidate>,
    by_priority: Vec<Candidate>,
    own: Vec<Candidate>,
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
    let ordered = candidates.ordered(ask);
    attempts.iter().find_map(|may_borrow| attempt(ask, &ordered, *may_borrow)).unwrap_or_default()
}

/// Removes candidates one by one until the preemptor fits.
fn attempt(ask: &Ask<'_, '_>, candidates: &[Candidate], may_borrow: bool) -> Option<Vec<Target>> {
    let mut what_if = WhatIf::new(ask);
    let mut targets = Vec::new();
    for candidate in candidates {
        if !still_valid(ask, &what_if, candidate, may_borrow) {
            continue;
        }
        what_if.remove(candidate.row);
        targets.push(Target { row: candidate.row, cause: candidate.right.cause() });
        if what_if.fits(may_borrow) {
            return Some(what_if.minimise(targets, may_borrow));
        }
    }
    None
}

/// Whether a candidate's queue, and every cohort below the common one, still uses more than its quota.
fn still_valid(ask: &Ask<'_, '_>, what_if: &WhatIf<'_, '_>, candidate: &Candidate, may_borrow: bool) -> bool {
    if candidate.right == Right::WithinQueue {
        return true;
    }
    if may_borrow && candidate.right == Right::WithoutBorrowing {
        return false;
    }
    let mut cursor = ask.node_of(candidate.row);
    while let Some(node) = cursor.filter(|node| Some(*node) != candidate.common) {
        if ask.within_quota(&what_if.plane, node) {
            return false;
        }
        cursor = ask.tree.parent(node);
    }
    true
}

/// Whether the queue uses less than its nominal quota of everything that is contested.
fn under_nominal(ask: &Ask<'_, '_>) -> bool {
    let plane = ask.plane();
    ask.contested.iter().all(|col| {
        Amount::Finite(ask.tree.used(&plane, ask.node, *col)) < ask.tree.cell(ask.node, *col).nominal
    })
}

impl Candidates {
    /// Those on their way out first; within that by class, then by [P-2].
    fn ordered(mut self, ask: &Ask<'_, '_>) -> Vec<Candidate> {
        let mut all = Vec::new();
        for class in [&mut self.hierarchical, &mut self.by_priority, &mut self.own] {
            class.sort_by_cached_key(|candidate| ask.key(candidate.row));
        }
        for evicted in [true, false] {
            for class in [&self.hierarchical, &self.by_priority, &self.own] {
                all.extend(class.iter().filter(|candidate| ask.is_evicted(candidate.row) == evicted));
            }
        }
        all
    }
}

fn collect(ask: &Ask<'_, '_>) -> Candidates {
    let mut candidates = Candidates::default();
    let own = ask.candidates_in(ask.queue, ask.rules.within_queue);
    candidates.own =
        own.into_iter().map(|row| Candidate { row, right: Right::WithinQueue, common: None }).collect();
    if ask.rules.reclaim == VictimPolicy::Never {
        return candidates;
    }
    let plane = ask.plane();
    let (mut advantage, mut rest) = fits_quota(ask, &plane, ask.node, &ask.usage);
    let mut below = ask.node;
    let mut cursor = ask.tree.parent(ask.node);
    while let Some(cohort) = cursor {
        let mut found = Vec::new();
        in_subtree(ask, &plane, (cohort, below), advantage, &mut found);
        let class = if advantage { &mut candidates.hierarchical } else { &mut candidates.by_priority };
        class.extend(found);
        let (fits, above) = fits_quota(ask, &plane, cohort, &rest);
        advantage |= fits;
        rest = above;
        below = cohort;
        cursor = ask.tree.parent(cohort);
    }
    candidates
}

/// Whether the request fits into a node's own quota, and what of it has to come from above.
fn fits_quota(
    ask: &Ask<'_, '_>,
    plane: &[i64],
    node: NodeIx,
    request: &[(Col, i64)],
) -> (bool, Vec<(Col, i64)>) {
    let fits = request.iter().all(|(col, amount)| !ask.tree.borrowing_with(plane, node, *col, *amount));
    let rest = request.iter().map(|(col, amount)| {
        let local = ask.tree.local_available(plane, node, *col);
        (*col, Amount::Finite(*amount).minus(local).saturated().max(0))
    });
    (fits, rest.collect())
}

/// Candidates below a cohort, less the part below it that was visited before: only in cohorts and queues that use more
/// than their quota.
fn in_subtree(
    ask: &Ask<'_, '_>,
    plane: &[i64],
    (cohort, visited): (NodeIx, NodeIx),
    advantage: bool,
    found: &mut Vec<Candidate>,
) {
    let mut open: Vec<NodeIx> = vec![cohort];
    let seen: BTreeSet<NodeIx> = BTreeSet::from([visited]);
    while let Some(node) = open.pop() {
        let children = ask.tree.node(node).map_or(&[][..], |node| &node.children);
        for child in children.iter().filter(|child| !seen.contains(child)) {
            if ask.within_quota(plane, *child) {
                continue;
            }
            let Some(queue) = ask.queue_at(*child) else {
                open.push(*child);
                continue;
            };
            for row in ask.candidates_in(queue, ask.rules.reclaim) {
                found.push(Candidate { row, right: right(ask, row, advantage), common: Some(cohort) });
            }
        }
    }
}

/// By what right a workload of another queue may be preempted.
fn right(ask: &Ask<'_, '_>, row: RowIx, advantage: bool) -> Right {
    if advantage {
        return Right::Hierarchical;
    }
    let Some(borrow) = ask.rules.borrow else { return Right::WithoutBorrowing };
    let theirs = ask.round.world.row(row).map_or(i64::MAX, |row| row.fact.priority);
    let protected = theirs >= ask.row.fact.priority || borrow.max_priority.is_some_and(|most| theirs > most);
    if protected { Right::WithoutBorrowing } else { Right::WhileBorrowing }
}
