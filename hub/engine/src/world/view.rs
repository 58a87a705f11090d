//! What others may read of a world: queues, usage.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_model::{ObjectKey, ResourceName};

use super::World;
use super::rows::{OrderKey, Queue};
use crate::names::RowIx;
use crate::quota::{NodeIx, Tree};
use crate::round::share::Share;

/// Pending workloads of a ClusterQueue, in queue order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PendingQueue {
    /// Those that will be looked at.
    pub active: Vec<ObjectKey>,
    /// Those that were tried and wait for a change.
    pub parked: Vec<ObjectKey>,
}

/// What a ClusterQueue, or a Cohort, has reserved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueUsage {
    /// Flavor → resource → (total, the part of it that is borrowed). Zeros are left out.
    pub by_flavor: BTreeMap<Arc<str>, BTreeMap<ResourceName, (i64, i64)>>,
    /// Workloads that hold quota.
    pub reserving: usize,
}

impl World {
    /// Pending workloads by ClusterQueue; queues without any are left out.
    pub fn pending(&self) -> BTreeMap<Arc<str>, PendingQueue> {
        let keys = |queue: &Queue, set: &std::collections::BTreeSet<(OrderKey, RowIx)>| {
            let rows = if self.is_usage_based(queue) {
                self.by_use(set)
            } else {
                set.iter().map(|(_, ix)| *ix).collect()
            };
            rows.into_iter().filter_map(|ix| self.row(ix)).map(|row| row.fact.key()).collect()
        };
        let mut pending = BTreeMap::new();
        for (_, queue) in self.queues_by_name() {
            if queue.fact.is_some() && (!queue.heap.is_empty() || !queue.parked.is_empty()) {
                let lists =
                    PendingQueue { active: keys(queue, &queue.heap), parked: keys(queue, &queue.parked) };
                pending.insert(Arc::clone(&queue.name), lists);
            }
        }
        pending
    }

    /// Reserved quota by ClusterQueue and, for Cohorts, what reaches them from below. Call it on a settled world (after
    /// [`World::snapshot`]).
    pub fn usage(&self) -> (BTreeMap<Arc<str>, QueueUsage>, BTreeMap<Arc<str>, QueueUsage>) {
        let (mut queues, mut cohorts) = (BTreeMap::new(), BTreeMap::new());
        for tree in &self.forest.trees {
            for (ix, node) in (0_u32..).zip(&tree.nodes) {
                let queue = node.queue.and_then(|queue| self.queue(queue));
                let reserving = queue.map_or(0, |queue| queue.held.len());
                let usage = QueueUsage { by_flavor: self.usage_of(tree, ix), reserving };
                let target = if node.queue.is_some() { &mut queues } else { &mut cohorts };
                target.insert(Arc::clone(&node.name), usage);
            }
        }
        (queues, cohorts)
    }

    /// Usage of one node by flavor and resource: the total and the part of it that is borrowed.
    fn usage_of(&self, tree: &Tree, node: NodeIx) -> BTreeMap<Arc<str>, BTreeMap<ResourceName, (i64, i64)>> {
        let mut by_flavor: BTreeMap<Arc<str>, BTreeMap<ResourceName, (i64, i64)>> = BTreeMap::new();
        for (col, fr) in (0_u32..).zip(&tree.columns) {
            let total = tree.now().used(node, col);
            let over = total.saturating_sub(tree.cell(node, col).nominal.saturated()).max(0);
            let borrowed = if tree.parent(node).is_some() { over } else { 0 };
            let (flavor, resource) = self.names.pair(*fr);
            if total != 0 {
                let flavor = by_flavor.entry(self.names.flavors.name(flavor)).or_default();
                flavor.insert(self.names.resources.name(resource), (total, borrowed));
            }
        }
        by_flavor
    }

    /// Why a ClusterQueue admits nothing; none when it is active or does not exist. Call it on a settled world.
    pub fn inactive_reason(&self, queue: &str) -> Option<(fairlead_model::Reason, Arc<str>)> {
        let ix = self.queue_index.get(queue)?;
        self.queue(*ix)?.inactive.clone()
    }

    /// Weighted shares of every node that has a parent, and zero for roots: whether it is a Cohort, its name, and the
    /// share rounded up; none stands for infinite.
    pub fn weighted_shares(&self) -> Vec<(bool, Arc<str>, Option<i64>)> {
        let mut shares = Vec::new();
        for tree in &self.forest.trees {
            for (ix, node) in (0_u32..).zip(&tree.nodes) {
                let share = Share::of(tree, tree.now(), ix);
                shares.push((node.queue.is_none(), Arc::clone(&node.name), share.published()));
            }
        }
        shares
    }
}
