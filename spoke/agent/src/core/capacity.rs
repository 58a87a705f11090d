//! Nodes and pods as capacity: what is free, what would be free on empty nodes, what each job's pods have taken.
//!
//! Every change costs what changed: a pod that is bound moves one node from one group of equal nodes to another.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_model::{NodeClass, Resources, Shape, Uid};
use serde_json::Value;

use super::nodes;
use super::pods::Pod;

/// The resource that counts pods.
pub(crate) const PODS: &str = "pods";

/// Nodes of one class with one vector, and how many there are.
pub(crate) type Groups = BTreeMap<(Arc<NodeClass>, Resources), u32>;

/// A node as it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    class: Arc<NodeClass>,
    allocatable: Resources,
    /// The kubelet reports, so what it said of its pods holds.
    ready: bool,
    /// Ready, and open to new pods.
    usable: bool,
}

/// What a pod takes, and of whom.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Taken {
    node: Arc<str>,
    job: Option<Uid>,
    requests: Resources,
    /// Ended pods free their node; they still count as bound, since no other pod comes in their place.
    ended: bool,
}

/// Capacity of this cluster.
#[derive(Debug, Default)]
pub(crate) struct Capacity {
    nodes: BTreeMap<Arc<str>, Node>,
    /// Requests of bound pods that have not ended, by node, whether or not the node is known yet.
    used: BTreeMap<Arc<str>, Resources>,
    pods: BTreeMap<Uid, Taken>,
    bound: BTreeMap<Uid, Resources>,
    free: Groups,
    empty: Groups,
    classes: BTreeMap<NodeClass, Arc<NodeClass>>,
    usable: u32,
    unready: u32,
    /// Grows with every change of what a report would say.
    changes: u64,
}

impl Capacity {
    /// A node was added or has changed. Says whether its readiness changed.
    pub(crate) fn node(&mut self, name: &Arc<str>, json: &Value) -> bool {
        let read = nodes::read(json);
        let class =
            Arc::clone(self.classes.entry(read.class).or_insert_with_key(|class| Arc::new(class.clone())));
        let next = Node { class, allocatable: read.allocatable, ready: read.ready, usable: read.usable };
        let before = self.nodes.get(name);
        if before == Some(&next) {
            return false;
        }
        let flipped = before.is_none_or(|before| before.ready != next.ready);
        self.take_out(name);
        self.nodes.insert(Arc::clone(name), next);
        self.put_in(name);
        flipped
    }

    /// A node has gone.
    pub(crate) fn node_gone(&mut self, name: &str) {
        self.take_out(name);
        self.nodes.remove(name);
    }

    /// A pod was added or has changed.
    pub(crate) fn pod(&mut self, uid: &Uid, pod: &Pod) {
        let next = pod.node.as_ref().map(|node| Taken {
            node: Arc::clone(node),
            job: pod.job.clone(),
            requests: pod.requests.clone(),
            ended: pod.finished,
        });
        if self.pods.get(uid) != next.as_ref() {
            self.swap(uid, next);
        }
    }

    /// A pod has gone.
    pub(crate) fn pod_gone(&mut self, uid: &Uid) {
        self.swap(uid, None);
    }

    /// Requests of a job's bound pods, by the job's UID.
    pub(crate) fn bound(&self, job: &Uid) -> Option<&Resources> {
        self.bound.get(job)
    }

    /// Free capacity by groups of equal nodes.
    pub(crate) const fn free(&self) -> &Groups {
        &self.free
    }

    /// The same nodes when empty.
    pub(crate) const fn empty(&self) -> &Groups {
        &self.empty
    }

    /// Nodes that are ready and open to new pods.
    pub(crate) const fn usable(&self) -> u32 {
        self.usable
    }

    /// Grows with every change of what a report would say.
    pub(crate) const fn changes(&self) -> u64 {
        self.changes
    }

    /// Whether the kubelet of every node reports.
    pub(crate) const fn all_ready(&self) -> bool {
        self.unready == 0
    }

    /// Replaces what a pod takes.
    fn swap(&mut self, uid: &Uid, next: Option<Taken>) {
        if let Some(before) = self.pods.remove(uid) {
            self.count(&before, Sign::Minus);
        }
        if let Some(next) = next {
            self.count(&next, Sign::Plus);
            self.pods.insert(uid.clone(), next);
        }
    }

    fn count(&mut self, taken: &Taken, sign: Sign) {
        self.changes = self.changes.saturating_add(1);
        if let Some(job) = &taken.job {
            apply(&mut self.bound, job, &taken.requests, sign);
        }
        if taken.ended {
            return;
        }
        self.take_out(&taken.node);
        apply(&mut self.used, &taken.node, &taken.requests, sign);
        self.put_in(&taken.node);
    }

    /// Removes a node from the groups, before something about it changes.
    fn take_out(&mut self, name: &str) {
        let Some(node) = self.nodes.get(name) else { return };
        self.changes = self.changes.saturating_add(1);
        self.unready = self.unready.saturating_sub(u32::from(!node.ready));
        if node.usable {
            let free = less(&node.allocatable, self.used.get(name));
            leave(&mut self.free, &node.class, free);
            leave(&mut self.empty, &node.class, node.allocatable.clone());
            self.usable = self.usable.saturating_sub(1);
        }
    }

    /// Adds a node to the groups, after something about it changed.
    fn put_in(&mut self, name: &str) {
        let Some(node) = self.nodes.get(name) else { return };
        self.changes = self.changes.saturating_add(1);
        self.unready = self.unready.saturating_add(u32::from(!node.ready));
        if node.usable {
            let free = less(&node.allocatable, self.used.get(name));
            enter(&mut self.free, &node.class, free, 1);
            enter(&mut self.empty, &node.class, node.allocatable.clone(), 1);
            self.usable = self.usable.saturating_add(1);
        }
    }
}

/// Whether an amount is added or taken away.
#[derive(Clone, Copy)]
enum Sign {
    Plus,
    Minus,
}

/// Adds to or subtracts from an entry, and drops it when nothing is left of it.
fn apply<K: Ord + Clone>(sums: &mut BTreeMap<K, Resources>, key: &K, amount: &Resources, sign: Sign) {
    let sum = sums.entry(key.clone()).or_default();
    match sign {
        Sign::Plus => sum.add(amount),
        Sign::Minus => sum.subtract(amount),
    }
    if sum.iter().all(|(_, amount)| amount == 0) {
        sums.remove(key);
    }
}

fn less(allocatable: &Resources, used: Option<&Resources>) -> Resources {
    let Some(used) = used else { return allocatable.clone() };
    // Only what the node has: a pod's request for something else is not capacity, not even negative.
    allocatable
        .iter()
        .map(|(name, amount)| (Arc::clone(name), amount.saturating_sub(used.get(name))))
        .collect()
}

/// Adds nodes to a group.
pub(crate) fn enter(groups: &mut Groups, class: &Arc<NodeClass>, vector: Resources, nodes: u32) {
    let count = groups.entry((Arc::clone(class), vector)).or_insert(0);
    *count = count.saturating_add(nodes);
}

fn leave(groups: &mut Groups, class: &Arc<NodeClass>, vector: Resources) {
    let key = (Arc::clone(class), vector);
    if let Some(count) = groups.get_mut(&key) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            groups.remove(&key);
        }
    }
}

/// The groups as shapes, in sorted order.
pub(crate) fn shapes(groups: &Groups) -> Vec<Shape> {
    groups
        .iter()
        .map(|((class, free), count)| Shape { class: Arc::clone(class), free: free.clone(), count: *count })
        .collect()
}

#[cfg(test)]
#[path = "capacity_tests.rs"]
mod tests;
