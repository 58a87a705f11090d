//! Which pod goes to which domain of its pod set's assignment [TAS-6].

use std::collections::BTreeSet;
use std::sync::Arc;

use super::assignment::Assignment;

/// A pod of a pod set, as far as its place depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gated {
    /// Its place among the pods, from 0; none when it has no index or an unusable one.
    pub rank: Option<u32>,
    /// Position of the domain that it was given already.
    pub domain: Option<usize>,
}

/// The rank of a pod: its index, less where indexes start, after the pods of the sub-groups before its own (given with
/// their size).
pub fn rank(index: u32, offset: u32, sub_group: Option<(u32, u32)>) -> Option<u32> {
    let before = sub_group.map_or(Some(0), |(ix, size)| ix.checked_mul(size))?;
    before.checked_add(index.checked_sub(offset)?)
}

impl Assignment {
    /// Gives domains to pods that have none: position of the pod, position of the domain.
    ///
    /// When every pod has a rank of its own below the number of assigned pods, the n-th gets the n-th slot in the order of
    /// the domains, so that neighbours lie together. Else (also where a pod stands elsewhere already, because a node was
    /// replaced) slots are filled as they are free. Nothing is given on
    /// unhealthy nodes, and nothing beyond what is assigned: such pods stay gated.
    pub fn ungate(&self, pods: &[Gated], unhealthy: &[Arc<str>]) -> Vec<(usize, usize)> {
        let ranked = self.slots_by_rank(pods);
        let slots = ranked.unwrap_or_else(|| self.free_slots(pods));
        let healthy = |domain: &usize| {
            let host = self.domains.get(*domain).and_then(|(values, _)| values.last());
            host.is_some_and(|host| !unhealthy.contains(host))
        };
        slots.into_iter().filter(|(_, domain)| healthy(domain)).collect()
    }

    /// Slots by rank; none if ranks are missing, double or out of range.
    fn slots_by_rank(&self, pods: &[Gated]) -> Option<Vec<(usize, usize)>> {
        let mut seen = BTreeSet::new();
        let mut slots = Vec::new();
        for (position, pod) in pods.iter().enumerate() {
            let rank = pod.rank.filter(|rank| seen.insert(*rank))?;
            let domain = self.slot(rank)?;
            match pod.domain {
                None => slots.push((position, domain)),
                Some(stands) if stands == domain => {}
                Some(_) => return None,
            }
        }
        Some(slots)
    }

    /// The domain of the n-th pod.
    fn slot(&self, rank: u32) -> Option<usize> {
        let mut end = 0_u32;
        self.domains.iter().position(|(_, count)| {
            end = end.saturating_add(*count);
            rank < end
        })
    }

    /// Pods without a domain, in order, into what is free.
    fn free_slots(&self, pods: &[Gated]) -> Vec<(usize, usize)> {
        let taken = |domain: usize| pods.iter().filter(|pod| pod.domain == Some(domain)).count();
        let free = self.domains.iter().enumerate().flat_map(|(domain, (_, count))| {
            let count = usize::try_from(*count).unwrap_or(usize::MAX);
            std::iter::repeat_n(domain, count.saturating_sub(taken(domain)))
        });
        let gated = pods.iter().enumerate().filter(|(_, pod)| pod.domain.is_none());
        gated.map(|(position, _)| position).zip(free).collect()
    }
}
