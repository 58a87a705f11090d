//! What both kinds of preemption share: who may be a victim [P-1], in which order [P-2], and the fill-back [P-4].

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;

use fairlead_engine::Policy;
use fairlead_engine::fact::{ClusterQueue, VictimPolicy, Workload};
use fairlead_model::{Amount, Uid};

use super::facts::Node;
use super::order::queue_time;
use super::tree::{State, Victim};
use super::{Amounts, FlavorResource, classical, fair};

/// A workload that looks for victims.
pub(super) struct Seeker<'a> {
    pub(super) policy: &'a Policy,
    pub(super) state: &'a State<'a>,
    pub(super) workload: &'a Workload,
    pub(super) queue: &'a ClusterQueue,
    /// The flavors and resources that need preemption.
    pub(super) contested: BTreeSet<FlavorResource>,
    /// Everything that it asks for.
    pub(super) usage: Amounts,
}

/// The victims that make room, or none if no set of them does.
pub(super) fn find(seeker: &Seeker<'_>) -> Vec<Victim> {
    match &seeker.policy.fair_sharing {
        Some(strategies) => fair::find(seeker, strategies),
        None => classical::find(seeker),
    }
}

impl Seeker<'_> {
    /// The leaf of its ClusterQueue.
    pub(super) fn leaf(&self) -> Node {
        Node::Queue(self.queue.name.clone())
    }

    /// [P-1] Whether a holder uses something that is contested, and a policy gives it up.
    pub(super) fn may_take(&self, victim: &Uid, policy: VictimPolicy) -> bool {
        let other = self.state.facts.workload(victim);
        let uses = self.contested.iter().any(|fr| self.state.held[victim].usage.contains_key(fr));
        let lower = other.priority < self.workload.priority;
        let newer = other.priority == self.workload.priority && queue_time(self.workload) < queue_time(other);
        uses && match policy {
            VictimPolicy::Never => false,
            VictimPolicy::LowerPriority => lower,
            VictimPolicy::LowerOrNewerEqualPriority => lower || newer,
            VictimPolicy::Any => true,
        }
    }

    /// Holders in a ClusterQueue that a policy gives up.
    pub(super) fn takeable(&self, queue: &str, policy: VictimPolicy) -> Vec<Uid> {
        let there = self.state.held.iter().filter(|(_, held)| *held.queue == *queue).map(|(uid, _)| uid);
        there.filter(|uid| self.may_take(uid, policy)).cloned().collect()
    }

    /// [P-2] Which of two candidates goes first.
    pub(super) fn candidate_order(&self, a: &Uid, b: &Uid) -> Ordering {
        let key = |uid: &Uid| {
            let held = &self.state.held[uid];
            let own = held.queue == self.queue.name;
            (!held.evicted, own, self.state.facts.workload(uid).priority, Reverse(held.since), uid.clone())
        };
        key(a).cmp(&key(b))
    }

    /// [P-3] Whether the workload fits in a state, without borrowing if asked so.
    pub(super) fn fits(&self, state: &State<'_>, may_borrow: bool) -> bool {
        let borrows = |fr, amount: i64| state.borrowing_with(&self.leaf(), fr, Amount::Finite(amount));
        let allowed = may_borrow || !self.usage.iter().any(|(fr, amount)| borrows(fr, *amount));
        allowed && state.fits(&self.queue.name, &self.usage)
    }

    /// [P-4] From the last victim but one back to the first: those without which it fits too are spared.
    pub(super) fn fill_back(&self, mut victims: Vec<Victim>, may_borrow: bool) -> Vec<Victim> {
        for ix in (0..victims.len().saturating_sub(1)).rev() {
            let mut fewer = victims.clone();
            fewer.remove(ix);
            if self.fits(&self.state.without(fewer.iter().map(|(uid, _)| uid)), may_borrow) {
                victims = fewer;
            }
        }
        victims
    }
}
