//! Judges one flavor-resource and compares grades [F-4]…[F-6].

use fairlead_model::{Amount, Reason};

use super::assign::Assigner;
use super::entry::{Grade, Means};
use crate::fact::{Fungibility, FungibilityPreference, VictimPolicy, WhenCan};
use crate::names::FrIx;
use crate::quota::Col;
use crate::world::rows::Queue;

/// A queue's rules of fungibility.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search(Fungibility);

impl Search {
    pub(crate) fn of(queue: &Queue) -> Self {
        Self(queue.fact.as_ref().map(|fact| fact.fungibility).unwrap_or_default())
    }

    /// Whether the scan goes on after a flavor of this grade.
    pub(crate) fn try_next(self, grade: Grade) -> bool {
        match grade.means {
            Means::NoFit | Means::NoCandidates => true,
            Means::Preempt | Means::Reclaim if self.0.when_can_preempt == WhenCan::TryNextFlavor => true,
            Means::Preempt | Means::Reclaim | Means::Fit => {
                grade.borrow > 0 && self.0.when_can_borrow == WhenCan::TryNextFlavor
            }
        }
    }

    /// Whether grade `a` is better than grade `b` [F-5].
    pub(crate) fn is_preferred(self, a: Grade, b: Grade) -> bool {
        if a.means == Means::NoFit || b.means == Means::NoFit {
            return b.means == Means::NoFit && a.means != Means::NoFit;
        }
        if (a.means == Means::NoCandidates) != (b.means == Means::NoCandidates) {
            return b.means == Means::NoCandidates;
        }
        match self.0.preference {
            FungibilityPreference::BorrowingOverPreemption => {
                (a.means, std::cmp::Reverse(a.borrow)) > (b.means, std::cmp::Reverse(b.borrow))
            }
            FungibilityPreference::PreemptionOverBorrowing => {
                (std::cmp::Reverse(a.borrow), a.means) > (std::cmp::Reverse(b.borrow), b.means)
            }
        }
    }
}

/// How `value` of a flavor-resource can be had: the grade and, unless it fits, the reason with what is available of
/// what is requested.
pub(crate) fn quota(
    assigner: &Assigner<'_, '_>,
    (fr, col): (FrIx, Col),
    value: i64,
) -> (Grade, Option<(Reason, i64, i64)>) {
    let (tree, node) = (assigner.tree, assigner.node);
    let plane = assigner.state.plane(assigner.tree_ix);
    let cell = tree.cell(node, col);
    let wanted = Amount::Finite(value);
    if wanted > cell.potential {
        let missing = (Reason::ExceedsMaxQuota, cell.potential.saturated(), value);
        return (Grade { means: Means::NoFit, borrow: 0 }, Some(missing));
    }
    let (borrow, may_reclaim) = tree.borrow_level(plane, node, col, value);
    let available = tree.available(plane, node, col).max(Amount::ZERO);
    if wanted <= available {
        return (Grade { means: Means::Fit, borrow }, None);
    }
    let missing = Some((Reason::WaitingForQuota, available.saturated(), value));
    if wanted > cell.nominal && !may_reclaim && !may_preempt_while_borrowing(assigner) {
        return (Grade { means: Means::NoFit, borrow }, missing);
    }
    (assigner.round.simulate_preemption(assigner, (fr, col), value), missing)
}

/// Whether the queue may preempt while it borrows.
fn may_preempt_while_borrowing(assigner: &Assigner<'_, '_>) -> bool {
    let preemption = assigner.queue.fact.as_ref().map(|fact| fact.preemption).unwrap_or_default();
    let fair = assigner.round.policy.fair_sharing.is_some() && preemption.reclaim != VictimPolicy::Never;
    preemption.borrow.is_some() || fair
}
