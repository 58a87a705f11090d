//! The quota tree [T-1]…[T-7] and borrow levels [F-7], as the formulas stand in the specification.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairlead_engine::fact::PreemptionCause;
use fairlead_model::{Amount, Millis, Uid};

use super::facts::{Facts, Node};
use super::{Amounts, FlavorResource, Name};

/// Quota that a workload holds.
#[derive(Clone, Debug)]
pub(super) struct Holding {
    pub(super) queue: Name,
    pub(super) since: Millis,
    pub(super) usage: Amounts,
    /// It was told to go and has not gone yet.
    pub(super) evicted: bool,
}

/// Who holds what, and what entries of the round in progress have claimed on top. Copied for every what-if.
#[derive(Clone, Debug)]
pub(super) struct State<'f> {
    pub(super) facts: &'f Facts,
    pub(super) held: BTreeMap<Uid, Holding>,
    pub(super) claimed: Vec<(Name, Amounts)>,
}

/// A victim and the rule by which it was chosen.
pub(super) type Victim = (Uid, PreemptionCause);

impl State<'_> {
    /// The Cohort above a node.
    pub(super) fn parent(&self, node: &Node) -> Option<Node> {
        let name = match node {
            Node::Queue(name) => self.facts.queues.get(name)?.cohort.as_ref()?,
            Node::Cohort(name) => self.facts.cohorts.get(name)?.parent.as_ref()?,
        };
        Some(Node::Cohort(Arc::clone(name)))
    }

    /// The nodes right below, Cohorts first, in name order.
    pub(super) fn children(&self, node: &Node) -> Vec<Node> {
        let cohorts = self.facts.cohorts.keys().map(|name| Node::Cohort(Arc::clone(name)));
        let implied = self.facts.queues.values().filter_map(|queue| queue.cohort.clone()).map(Node::Cohort);
        let queues = self.facts.queues.keys().map(|name| Node::Queue(Arc::clone(name)));
        let all: BTreeSet<Node> = cohorts.chain(implied).chain(queues).collect();
        all.into_iter().filter(|child| self.parent(child).as_ref() == Some(node)).collect()
    }

    /// The ancestors of a node from its parent to the root; none when its Cohorts form a cycle.
    pub(super) fn ancestors(&self, node: &Node) -> Option<Vec<Node>> {
        let mut path: Vec<Node> = Vec::new();
        while let Some(parent) = self.parent(path.last().unwrap_or(node)) {
            if path.contains(&parent) {
                return None;
            }
            path.push(parent);
        }
        Some(path)
    }

    /// The root of a node's tree; the node itself when it stands alone.
    pub(super) fn root(&self, node: &Node) -> Node {
        let path = self.ancestors(node).unwrap_or_default();
        path.last().unwrap_or(node).clone()
    }

    /// Every ClusterQueue below a node, itself included.
    pub(super) fn queues_below(&self, node: &Node) -> Vec<Name> {
        match node {
            Node::Queue(name) => vec![Arc::clone(name)],
            Node::Cohort(_) => {
                self.children(node).iter().flat_map(|child| self.queues_below(child)).collect()
            }
        }
    }

    /// [T-6] A node's own nominal quota; Cohorts may have some too.
    pub(super) fn nominal(&self, node: &Node, fr: &FlavorResource) -> Amount {
        self.facts.quota(node, fr).map_or(Amount::ZERO, |quota| quota.nominal)
    }

    /// How much more than its subtree quota a node may get, where that is limited.
    pub(super) fn borrowing_limit(&self, node: &Node, fr: &FlavorResource) -> Option<Amount> {
        self.facts.quota(node, fr)?.borrowing
    }

    /// `SubtreeQuota(n)` of §3.1.
    pub(super) fn subtree_quota(&self, node: &Node, fr: &FlavorResource) -> Amount {
        let lent = |child: &Node| self.subtree_quota(child, fr).minus(self.local_quota(child, fr));
        self.children(node).iter().map(lent).fold(self.nominal(node, fr), Amount::plus)
    }

    /// `localQuota(n)` of §3.1: what the parent does not see.
    pub(super) fn local_quota(&self, node: &Node, fr: &FlavorResource) -> Amount {
        let lending = self.facts.quota(node, fr).and_then(|quota| quota.lending);
        lending.map_or(Amount::ZERO, |limit| self.subtree_quota(node, fr).minus(limit).max(Amount::ZERO))
    }

    /// [T-3] `Usage(n)` of §3.1: what is reserved and claimed in a ClusterQueue, what a Cohort sees of its children's.
    pub(super) fn usage(&self, node: &Node, fr: &FlavorResource) -> Amount {
        let Node::Queue(name) = node else {
            let seen =
                |child: &Node| self.usage(child, fr).minus(self.local_quota(child, fr)).max(Amount::ZERO);
            return self.children(node).iter().map(seen).fold(Amount::ZERO, Amount::plus);
        };
        let held = self.held.values().filter(|held| held.queue == *name).map(|held| &held.usage);
        let claimed = self.claimed.iter().filter(|(queue, _)| queue == name).map(|(_, usage)| usage);
        let amounts = held.chain(claimed).filter_map(|usage| usage.get(fr));
        amounts.fold(Amount::ZERO, |sum, amount| sum.plus(Amount::Finite(*amount)))
    }

    /// `localAvailable(n)` of §3.1.
    pub(super) fn local_available(&self, node: &Node, fr: &FlavorResource) -> Amount {
        self.local_quota(node, fr).minus(self.usage(node, fr)).max(Amount::ZERO)
    }

    /// [T-1], [T-7] `available(n)`; below zero where more was admitted than there is.
    fn available(&self, node: &Node, fr: &FlavorResource) -> Amount {
        let Some(parent) = self.parent(node) else {
            return self.subtree_quota(node, fr).minus(self.usage(node, fr));
        };
        let mut from_above = self.available(&parent, fr);
        if let Some(limit) = self.borrowing_limit(node, fr) {
            let stored = self.subtree_quota(node, fr).minus(self.local_quota(node, fr));
            let used = self.usage(node, fr).minus(self.local_quota(node, fr)).max(Amount::ZERO);
            from_above = from_above.min(stored.minus(used).plus(limit));
        }
        self.local_available(node, fr).plus(from_above)
    }

    /// `CQ.Available` of [T-1].
    pub(super) fn queue_available(&self, queue: &Name, fr: &FlavorResource) -> Amount {
        self.available(&Node::Queue(Arc::clone(queue)), fr).max(Amount::ZERO)
    }

    /// [T-2] `potential(n)`: what there would be if nothing were used.
    pub(super) fn potential(&self, node: &Node, fr: &FlavorResource) -> Amount {
        let Some(parent) = self.parent(node) else { return self.subtree_quota(node, fr) };
        let all = self.local_quota(node, fr).plus(self.potential(&parent, fr));
        let limit = self.borrowing_limit(node, fr).map(|limit| self.subtree_quota(node, fr).plus(limit));
        limit.map_or(all, |limit| all.min(limit))
    }

    /// [T-5] Whether a node would use more than its subtree quota with `extra` on top.
    pub(super) fn borrowing_with(&self, node: &Node, fr: &FlavorResource, extra: Amount) -> bool {
        self.subtree_quota(node, fr) < self.usage(node, fr).plus(extra)
    }

    /// [T-5] Whether a node uses more than its subtree quota of any of these.
    pub(super) fn borrows_any(&self, node: &Node, frs: &BTreeSet<FlavorResource>) -> bool {
        frs.iter().any(|fr| self.borrowing_with(node, fr, Amount::ZERO))
    }

    /// `height(node)` of [F-7].
    fn height(&self, node: &Node) -> u32 {
        match node {
            Node::Queue(_) => 0,
            Node::Cohort(_) => {
                self.children(node).iter().map(|child| self.height(child) + 1).max().unwrap_or(0)
            }
        }
    }

    /// [F-7] `level(cq, v)`: how far up quota for `amount` comes from, and whether that is below the root.
    pub(super) fn borrow_level(&self, queue: &Name, fr: &FlavorResource, amount: i64) -> (u32, bool) {
        let leaf = Node::Queue(Arc::clone(queue));
        let above = self.ancestors(&leaf).unwrap_or_default();
        if !self.borrowing_with(&leaf, fr, Amount::Finite(amount)) || above.is_empty() {
            return (0, !above.is_empty());
        }
        let mut rest = Amount::Finite(amount).minus(self.local_available(&leaf, fr));
        for node in &above {
            if !self.borrowing_with(node, fr, rest) {
                return (self.height(node), self.parent(node).is_some());
            }
            rest = rest.minus(self.local_available(node, fr));
        }
        (above.last().map_or(0, |root| self.height(root)), false)
    }

    /// Whether a ClusterQueue could take these amounts now.
    pub(super) fn fits(&self, queue: &Name, usage: &Amounts) -> bool {
        usage.iter().all(|(fr, amount)| Amount::Finite(*amount) <= self.queue_available(queue, fr))
    }

    /// The same state without some holders.
    pub(super) fn without<'u>(&self, gone: impl IntoIterator<Item = &'u Uid>) -> Self {
        let mut state = self.clone();
        for uid in gone {
            state.held.remove(uid);
        }
        state
    }

    /// The same state with `usage` claimed in a ClusterQueue.
    pub(super) fn with(&self, queue: &Name, usage: &Amounts) -> Self {
        let mut state = self.clone();
        state.claimed.push((Arc::clone(queue), usage.clone()));
        state
    }
}
