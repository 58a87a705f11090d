//! Candidates of one queue [P-1], found one at a time.

use std::cmp::Reverse;
use std::collections::btree_set;

use super::Ask;
use crate::fact::VictimPolicy;
use crate::names::CqIx;
use crate::world::holders::{Holders, Rank};

/// The candidates of a queue in the order of [P-2]: those on their way out, which cost nothing more, and the others.
/// Nothing is looked at before it is asked for.
#[derive(Clone, Debug)]
pub(super) struct Lane<'w> {
    policy: VictimPolicy,
    evicted: Source<'w>,
    others: Source<'w>,
}

#[derive(Clone, Debug)]
enum Source<'w> {
    /// In the order that the queue keeps. From the first that its priority protects, all are protected.
    Kept(btree_set::Iter<'w, Rank>),
    /// Sorted for this search.
    Sorted(std::vec::IntoIter<&'w Rank>),
}

impl<'w> Source<'w> {
    fn next(&mut self) -> Option<&'w Rank> {
        match self {
            Self::Kept(ranks) => ranks.next(),
            Self::Sorted(ranks) => ranks.next(),
        }
    }
}

impl<'w> Lane<'w> {
    /// The candidates of a queue; none when it has nothing to take under its policy.
    pub(super) fn of(ask: &Ask<'_, 'w>, queue_ix: CqIx) -> Option<Self> {
        let own = queue_ix == ask.queue;
        let policy = if own { ask.rules.within_queue } else { ask.rules.reclaim };
        let world = ask.world();
        let queue = world.queue(queue_ix).filter(|_| policy != VictimPolicy::Never)?;
        let used = |fr| queue.usage.get(fr).is_some_and(|amount| *amount > 0);
        if own && world.negative == 0 && !ask.contested_frs.iter().any(used) {
            return None;
        }
        if own && world.is_usage_based(queue) {
            let source = |evicted| Source::Sorted(by_local_use(ask, &queue.held, evicted).into_iter());
            return Some(Self { policy, evicted: source(true), others: source(false) });
        }
        let source = |evicted| Source::Kept(queue.held.by_rank(evicted));
        Some(Self {
            policy: if may_be_equal(ask, &queue.held) { policy } else { without_equals(policy) },
            evicted: source(true),
            others: source(false),
        })
    }

    /// The next candidate of those on their way out, or of the others.
    pub(super) fn next(&mut self, ask: &Ask<'_, 'w>, evicted: bool) -> Option<&'w Rank> {
        let policy = self.policy;
        let source = if evicted { &mut self.evicted } else { &mut self.others };
        loop {
            let rank = source.next()?;
            if matches!(source, Source::Kept(_)) && ask.protects(policy, rank.priority) {
                *source = Source::Sorted(Vec::new().into_iter());
                return None;
            }
            ask.round.count_candidate();
            if !ask.state.is_gone(rank.row) && ask.may_preempt(rank, policy) {
                return Some(rank);
            }
        }
    }
}

/// Whether any holder can be newer than the preemptor, which only matters at equal priority.
fn may_be_equal(ask: &Ask<'_, '_>, holders: &Holders) -> bool {
    ask.row.fact.order_time() < holders.latest()
}

/// The same policy where no workload of equal priority is newer.
const fn without_equals(policy: VictimPolicy) -> VictimPolicy {
    match policy {
        VictimPolicy::LowerOrNewerEqualPriority => VictimPolicy::LowerPriority,
        VictimPolicy::Never | VictimPolicy::LowerPriority | VictimPolicy::Any => policy,
    }
}

/// Workloads of the preemptor's own queue where LocalQueues take turns: those of the LocalQueue that used most first.
fn by_local_use<'w>(ask: &Ask<'_, 'w>, holders: &'w Holders, evicted: bool) -> Vec<&'w Rank> {
    let world = ask.world();
    let mut ranks: Vec<&Rank> = holders.by_rank(evicted).collect();
    ranks.sort_by_cached_key(|rank| {
        let used = world.row(rank.row).and_then(|row| world.use_of(row));
        (Reverse(used.unwrap_or_default()), *rank)
    });
    ranks
}
