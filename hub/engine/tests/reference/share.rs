//! The dominant resource share [P-5], as an exact ratio.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use fairlead_model::Amount;

use super::facts::Node;
use super::tree::State;
use super::{FlavorResource, Name};

/// The largest `borrowed / lendable` over resources, and the weight it is divided by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    borrowed: i128,
    lendable: i128,
    weight: i128,
    /// [P-5] It uses more than its own, even where nothing was lendable and the ratio is 0.
    pub(super) borrows: bool,
}

impl Share {
    const NONE: Self = Self { borrowed: 0, lendable: 1, weight: 1, borrows: false };

    /// [P-5] Weight 0 while borrowing.
    pub(super) const fn infinite(self) -> bool {
        self.weight == 0 && self.borrowed > 0
    }

    /// [P-5] Compares two shares; infinite ones by their raw ratios.
    pub(super) fn compare(self, other: Self) -> Ordering {
        let raw = (self.borrowed * other.lendable).cmp(&(other.borrowed * self.lendable));
        match (self.infinite(), other.infinite()) {
            (true, true) => raw,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => {
                let weight = |share: Self| if share.borrowed == 0 { 1 } else { share.weight };
                let left = self.borrowed * other.lendable * weight(other);
                left.cmp(&(other.borrowed * self.lendable * weight(self)))
            }
        }
    }
}

impl State<'_> {
    /// Every flavor and resource that any node has quota for.
    fn known(&self) -> BTreeSet<FlavorResource> {
        let queues = self.facts.queues.values().flat_map(|queue| &queue.groups);
        let cohorts = self.facts.cohorts.values().flat_map(|cohort| &cohort.groups);
        let flavors = queues.chain(cohorts).flat_map(|group| &group.flavors);
        let pairs = |it: &fairlead_engine::fact::FlavorQuotas| -> Vec<FlavorResource> {
            it.quotas.iter().map(|quota| (it.flavor.clone(), quota.resource.clone())).collect()
        };
        flavors.flat_map(pairs).collect()
    }

    /// [P-5] `share` of a node.
    pub(super) fn share(&self, node: &Node) -> Share {
        let Some(parent) = self.parent(node) else { return Share::NONE };
        let mut borrowed: BTreeMap<Name, i128> = BTreeMap::new();
        let mut lendable: BTreeMap<Name, i128> = BTreeMap::new();
        for fr in self.known() {
            let over = self.usage(node, &fr).minus(self.subtree_quota(node, &fr)).max(Amount::ZERO);
            *borrowed.entry(fr.1.clone()).or_insert(0) += i128::from(over.saturated());
            *lendable.entry(fr.1.clone()).or_insert(0) +=
                i128::from(self.potential(&parent, &fr).saturated());
        }
        let weight = i128::from(match node {
            Node::Queue(name) => self.facts.queues[name].weight.0,
            Node::Cohort(name) => self.facts.cohorts.get(name).map_or(1_000_000_000, |it| it.weight.0),
        });
        let mut most = Share { weight, borrows: borrowed.values().any(|amount| *amount > 0), ..Share::NONE };
        for (resource, amount) in &borrowed {
            let of = lendable[resource];
            if of > 0 && amount * most.lendable > most.borrowed * of {
                (most.borrowed, most.lendable) = (*amount, of);
            }
        }
        most
    }
}
