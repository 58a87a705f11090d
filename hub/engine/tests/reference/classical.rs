//! Classical preemption [P-3].

use std::collections::BTreeSet;

use fairlead_engine::fact::{PreemptionCause, VictimPolicy};
use fairlead_model::{Amount, Uid};

use super::facts::Node;
use super::tree::{State, Victim};
use super::victims::Seeker;
use super::{Amounts, Name};

/// How a candidate came to be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    WithinQueue,
    HierarchicalReclaim,
    ReclaimWithoutBorrowing,
    ReclaimWhileBorrowing,
}

/// A candidate, and the lowest Cohort that it shares with the preemptor.
#[derive(Clone, Debug)]
struct Candidate {
    uid: Uid,
    queue: Name,
    class: Class,
    meets_at: Option<Node>,
}

/// [P-3] The first attempt that succeeds.
pub(super) fn find(seeker: &Seeker<'_>) -> Vec<Victim> {
    let candidates = in_order(seeker);
    let others = candidates.iter().any(|it| it.class != Class::WithinQueue);
    let hierarchical = candidates.iter().any(|it| it.class == Class::HierarchicalReclaim);
    let forbidden = seeker.queue.preemption.borrow.is_none();
    let attempts: &[bool] = if !others || (forbidden && !under_nominal(seeker)) {
        &[true]
    } else if forbidden && !hierarchical {
        &[false, true]
    } else {
        &[true, false]
    };
    attempts.iter().find_map(|may_borrow| attempt(seeker, &candidates, *may_borrow)).unwrap_or_default()
}

/// [P-3] Whether the ClusterQueue uses strictly less than its nominal quota of everything contested.
fn under_nominal(seeker: &Seeker<'_>) -> bool {
    let (state, leaf) = (seeker.state, seeker.leaf());
    seeker.contested.iter().all(|fr| state.usage(&leaf, fr) < state.nominal(&leaf, fr))
}

/// [P-3] Removes candidates one by one until the workload fits, then [P-4].
fn attempt(seeker: &Seeker<'_>, candidates: &[Candidate], may_borrow: bool) -> Option<Vec<Victim>> {
    let mut victims: Vec<Victim> = Vec::new();
    for candidate in candidates {
        let state = seeker.state.without(victims.iter().map(|(uid, _)| uid));
        if !still_valid(seeker, &state, candidate, may_borrow) {
            continue;
        }
        victims.push((candidate.uid.clone(), cause(candidate.class)));
        let after = seeker.state.without(victims.iter().map(|(uid, _)| uid));
        if seeker.fits(&after, may_borrow) {
            return Some(seeker.fill_back(victims, may_borrow));
        }
    }
    None
}

/// [P-3] A candidate elsewhere counts only while its ClusterQueue and every Cohort below the common one still borrow.
fn still_valid(seeker: &Seeker<'_>, state: &State<'_>, candidate: &Candidate, may_borrow: bool) -> bool {
    let Some(meets_at) = &candidate.meets_at else { return true };
    if may_borrow && candidate.class == Class::ReclaimWithoutBorrowing {
        return false;
    }
    let leaf = Node::Queue(candidate.queue.clone());
    let above = state.ancestors(&leaf).unwrap_or_default();
    let below = above.iter().take_while(|node| *node != meets_at);
    std::iter::once(&leaf).chain(below).all(|node| state.borrows_any(node, &seeker.contested))
}

fn cause(class: Class) -> PreemptionCause {
    match class {
        Class::WithinQueue => PreemptionCause::InClusterQueue,
        Class::HierarchicalReclaim | Class::ReclaimWithoutBorrowing => PreemptionCause::InCohortReclamation,
        Class::ReclaimWhileBorrowing => PreemptionCause::InCohortReclaimWhileBorrowing,
    }
}

/// [P-3] Evicted ones before the rest; within each hierarchical, then by priority, then of the own ClusterQueue; each
/// by [P-2].
fn in_order(seeker: &Seeker<'_>) -> Vec<Candidate> {
    let mut all = elsewhere(seeker);
    let own = seeker.takeable(&seeker.queue.name, seeker.queue.preemption.within_queue);
    all.extend(own.into_iter().map(|uid| Candidate {
        uid,
        queue: seeker.queue.name.clone(),
        class: Class::WithinQueue,
        meets_at: None,
    }));
    let kind = |class: Class| match class {
        Class::HierarchicalReclaim => 0,
        Class::ReclaimWithoutBorrowing | Class::ReclaimWhileBorrowing => 1,
        Class::WithinQueue => 2,
    };
    all.sort_by(|a, b| {
        let rank = |it: &Candidate| (!seeker.state.held[&it.uid].evicted, kind(it.class));
        rank(a).cmp(&rank(b)).then_with(|| seeker.candidate_order(&a.uid, &b.uid))
    });
    all
}

/// [P-3] Candidates of other ClusterQueues, ancestor by ancestor, with the advantage that the preemptor has there.
fn elsewhere(seeker: &Seeker<'_>) -> Vec<Candidate> {
    let mut found = Vec::new();
    if seeker.queue.preemption.reclaim == VictimPolicy::Never {
        return found;
    }
    let leaf = seeker.leaf();
    let (mut advantage, mut rest) = fits_in(seeker.state, &leaf, &seeker.usage);
    let mut visited = leaf.clone();
    for ancestor in seeker.state.ancestors(&leaf).unwrap_or_default() {
        let mut queues = BTreeSet::new();
        borrowers(seeker, &ancestor, &visited, &mut queues);
        for queue in queues {
            for uid in seeker.takeable(&queue, seeker.queue.preemption.reclaim) {
                let class = classify(seeker, &uid, advantage);
                found.push(Candidate { uid, queue: queue.clone(), class, meets_at: Some(ancestor.clone()) });
            }
        }
        let fits;
        (fits, rest) = fits_in(seeker.state, &ancestor, &rest);
        advantage |= fits;
        visited = ancestor;
    }
    found
}

/// [P-3] Whether amounts fit a node's own subtree quota, and what of them has to come from above.
fn fits_in(state: &State<'_>, node: &Node, amounts: &Amounts) -> (bool, Amounts) {
    let fits = amounts.iter().all(|(fr, amount)| !state.borrowing_with(node, fr, Amount::Finite(*amount)));
    let rest = |fr, amount: i64| amount.saturating_sub(state.local_available(node, fr).saturated()).max(0);
    (fits, amounts.iter().map(|(fr, amount)| (fr.clone(), rest(fr, *amount))).collect())
}

/// [P-3] The ClusterQueues below a Cohort that borrow, through Cohorts that borrow, outside the part visited before.
fn borrowers(seeker: &Seeker<'_>, cohort: &Node, visited: &Node, found: &mut BTreeSet<Name>) {
    for child in seeker.state.children(cohort) {
        if child == *visited || !seeker.state.borrows_any(&child, &seeker.contested) {
            continue;
        }
        match &child {
            Node::Queue(name) => drop(found.insert(name.clone())),
            Node::Cohort(_) => borrowers(seeker, &child, visited, found),
        }
    }
}

/// [P-3] The class of a candidate elsewhere.
fn classify(seeker: &Seeker<'_>, uid: &Uid, advantage: bool) -> Class {
    let priority = seeker.state.facts.workload(uid).priority;
    let Some(borrow) = seeker.queue.preemption.borrow.filter(|_| !advantage) else {
        return if advantage { Class::HierarchicalReclaim } else { Class::ReclaimWithoutBorrowing };
    };
    let too_high = borrow.max_priority.is_some_and(|threshold| priority > threshold);
    if priority >= seeker.workload.priority || too_high {
        Class::ReclaimWithoutBorrowing
    } else {
        Class::ReclaimWhileBorrowing
    }
}
