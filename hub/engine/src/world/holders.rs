//! The workloads that hold quota of one queue, in the order in which they are preempted [P-2]: kept, so that a search
//! for victims looks at those that it takes and not at those that exist.

use std::cmp::Reverse;
use std::collections::{BTreeSet, btree_set};

use fairlead_model::{Millis, Uid};

use super::rows::{Held, Row};
use crate::names::{FrIx, RowIx};

/// A workload's place among those of its queue. The fields are the order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    /// Lower first.
    pub(crate) priority: i64,
    /// Later reservations first.
    pub(crate) reserved: Reverse<Millis>,
    /// The last tie.
    pub(crate) uid: Uid,
    /// The workload.
    pub(crate) row: RowIx,
    /// It is promised to a spoke.
    pub(crate) on_spoke: bool,
    /// The flavor-resources that it holds some of.
    pub(crate) holds: Marks,
}

impl Rank {
    fn of(ix: RowIx, row: &Row, held: &Held) -> Self {
        let holds = held.charge.usage.iter().filter(|(_, amount)| *amount > 0);
        Self {
            priority: row.fact.priority,
            reserved: Reverse(held.at),
            uid: row.fact.uid.clone(),
            row: ix,
            on_spoke: held.spoke.is_some(),
            holds: holds.map(|(fr, _)| *fr).collect(),
        }
    }
}

/// A set of flavor-resources in one word: those whose ordinals are equal modulo 64 share a mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Marks(u64);

impl Marks {
    /// Whether two sets may have something in common; if not, they have nothing.
    pub(crate) const fn may_meet(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether a mark stands for one flavor-resource only, when there are so many of them.
    pub(crate) const fn are_exact(count: usize) -> bool {
        count <= 64
    }
}

impl FromIterator<FrIx> for Marks {
    fn from_iter<T: IntoIterator<Item = FrIx>>(frs: T) -> Self {
        Self(frs.into_iter().fold(0, |marks, fr| marks | 1_u64.rotate_left(fr)))
    }
}

/// The workloads that hold quota of one queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holders {
    /// Those that were told to go.
    evicted: BTreeSet<Rank>,
    others: BTreeSet<Rank>,
    /// No holder's queue-order timestamp is later.
    latest: Millis,
}

impl Holders {
    /// Adds a workload with what it holds.
    pub(super) fn insert(&mut self, ix: RowIx, row: &Row, held: &Held) {
        let time = row.fact.order_time();
        self.latest = if self.len() == 0 { time } else { self.latest.max(time) };
        self.of_mut(held.evicted).insert(Rank::of(ix, row, held));
    }

    /// Removes a workload; it must be as it was when it was added.
    pub(super) fn remove(&mut self, ix: RowIx, row: &Row, held: &Held) {
        self.of_mut(held.evicted).remove(&Rank::of(ix, row, held));
    }

    /// How many.
    pub(crate) fn len(&self) -> usize {
        self.evicted.len().saturating_add(self.others.len())
    }

    /// Those that were told to go, or the others, in order.
    pub(crate) fn by_rank(&self, evicted: bool) -> btree_set::Iter<'_, Rank> {
        if evicted { self.evicted.iter() } else { self.others.iter() }
    }

    /// A queue-order timestamp that no holder's is later than.
    pub(crate) const fn latest(&self) -> Millis {
        self.latest
    }

    fn of_mut(&mut self, evicted: bool) -> &mut BTreeSet<Rank> {
        if evicted { &mut self.evicted } else { &mut self.others }
    }
}
