//! What others may read of the line before a ClusterQueue, and of the trees: for people and for measurements.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairlead_model::{Amount, ObjectKey, ResourceName, Uid};

use super::World;
use super::rows::Row;
use crate::quota::{NodeIx, Tree};
use crate::round::share::Share;

/// A pending workload in its place in line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InLine {
    /// The workload.
    pub uid: Uid,
    /// Its namespace and name.
    pub key: ObjectKey,
    /// Its LocalQueue, in the same namespace.
    pub local_queue: Arc<str>,
}

/// How long the line before a ClusterQueue is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Workloads that will be looked at.
    pub active: usize,
    /// The same by LocalQueue.
    pub active_by_local_queue: BTreeMap<ObjectKey, usize>,
    /// Workloads that were tried and wait for a change.
    pub parked: usize,
    /// Classes of equivalent workloads among the active ones.
    pub active_classes: usize,
    /// Classes among the parked ones.
    pub parked_classes: usize,
    /// What all of them ask for, in each resource's smallest unit.
    pub requested: BTreeMap<ResourceName, i64>,
}

/// Quota and usage of one flavor and resource at one node of a quota tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellView {
    /// The flavor.
    pub flavor: Arc<str>,
    /// The resource.
    pub resource: ResourceName,
    /// Guaranteed here.
    pub nominal: Amount,
    /// How much more may be borrowed; none for no limit.
    pub borrowing: Option<Amount>,
    /// How much may be lent; none for no limit.
    pub lending: Option<Amount>,
    /// Quota of the node and all below it.
    pub subtree: Amount,
    /// What is reserved.
    pub reserved: i64,
}

/// A ClusterQueue or Cohort in its tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeView {
    /// Its name.
    pub name: Arc<str>,
    /// Whether it is a ClusterQueue.
    pub is_queue: bool,
    /// Its parent Cohort.
    pub parent: Option<Arc<str>>,
    /// The root of its tree.
    pub root: Arc<str>,
    /// Its weighted share, rounded up; none stands for infinite.
    pub share: Option<i64>,
    /// Where it has quota or usage.
    pub cells: Vec<CellView>,
}

impl World {
    /// Every pending workload of a ClusterQueue in queue order, tried or not; none when there is no such queue.
    ///
    /// Costs as much as the line is long.
    pub fn line(&self, queue: &str) -> Option<Vec<InLine>> {
        let queue = self.queue_named(queue)?;
        queue.fact.as_ref()?;
        let all: BTreeSet<_> = queue.heap.iter().chain(&queue.parked).cloned().collect();
        let order = if self.is_usage_based(queue) {
            self.by_use(&all)
        } else {
            all.into_iter().map(|(_, ix)| ix).collect()
        };
        let in_line = |row: &Row| InLine {
            uid: row.fact.uid.clone(),
            key: row.fact.key(),
            local_queue: Arc::clone(row.fact.queue()),
        };
        Some(order.into_iter().filter_map(|ix| self.row(ix)).map(in_line).collect())
    }

    /// The lengths of the lines of all ClusterQueues.
    pub fn lines(&self) -> BTreeMap<Arc<str>, Line> {
        let queues = self.queues_by_name().filter(|(_, queue)| queue.fact.is_some());
        queues
            .map(|(_, queue)| {
                let rows = |set: &BTreeSet<(_, _)>| -> Vec<&Row> {
                    set.iter().filter_map(|(_, ix)| self.row(*ix)).collect()
                };
                let (active, parked) = (rows(&queue.heap), rows(&queue.parked));
                let classes = |rows: &[&Row]| rows.iter().map(|row| row.class).collect::<BTreeSet<_>>().len();
                let line = Line {
                    active: active.len(),
                    active_by_local_queue: by_local_queue(&active),
                    parked: parked.len(),
                    active_classes: classes(&active),
                    parked_classes: classes(&parked),
                    requested: requested(active.iter().chain(&parked).copied()),
                };
                (Arc::clone(&queue.name), line)
            })
            .collect()
    }

    /// Every ClusterQueue and Cohort with quota and usage. Call it on a settled world (after [`World::snapshot`]).
    pub fn nodes(&self) -> Vec<NodeView> {
        let mut views = Vec::new();
        for tree in &self.forest.trees {
            for (ix, node) in (0_u32..).zip(&tree.nodes) {
                views.push(NodeView {
                    name: Arc::clone(&node.name),
                    is_queue: node.queue.is_some(),
                    parent: tree.parent(ix).and_then(|ix| tree.node(ix)).map(|node| Arc::clone(&node.name)),
                    root: tree.root_name(),
                    share: Share::of(tree, tree.now(), ix).published(),
                    cells: self.cells_of(tree, ix),
                });
            }
        }
        views
    }

    fn cells_of(&self, tree: &Tree, node: NodeIx) -> Vec<CellView> {
        let mut cells = Vec::new();
        for (col, fr) in (0_u32..).zip(&tree.columns) {
            let (cell, reserved) = (tree.cell(node, col), tree.now().used(node, col));
            let (flavor, resource) = self.names.pair(*fr);
            let queue = tree.node(node).and_then(|node| self.queue(node.queue?));
            let declared = queue.is_some_and(|queue| {
                queue.group_of(resource).is_some_and(|group| group.flavors.contains(&flavor))
            });
            if !declared && cell.subtree == Amount::ZERO && reserved == 0 {
                continue;
            }
            cells.push(CellView {
                flavor: self.names.flavors.name(flavor),
                resource: self.names.resources.name(resource),
                nominal: cell.nominal,
                borrowing: cell.borrowing,
                lending: cell.lending,
                subtree: cell.subtree,
                reserved,
            });
        }
        cells
    }
}

fn by_local_queue(rows: &[&Row]) -> BTreeMap<ObjectKey, usize> {
    let mut counts = BTreeMap::new();
    for row in rows {
        let local = (*row.fact.local).clone();
        let count: &mut usize = counts.entry(local).or_default();
        *count = count.saturating_add(1);
    }
    counts
}

/// What these workloads ask for together.
fn requested<'r>(rows: impl Iterator<Item = &'r Row>) -> BTreeMap<ResourceName, i64> {
    let mut sums: BTreeMap<ResourceName, i64> = BTreeMap::new();
    for row in rows {
        for (pod_set, requests) in row.gang.pod_sets.iter().zip(&row.gang.requests) {
            let count = i64::from(row.needed(pod_set));
            for (resource, amount) in requests.charged.iter() {
                let sum = sums.entry(Arc::clone(resource)).or_insert(0);
                *sum = sum.saturating_add(amount.saturating_mul(count));
            }
        }
    }
    sums
}
