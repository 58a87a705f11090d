//! Everything the engine knows: the facts, what plans have assumed on top of them, and the queues.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairlead_fit::topology::Topologies;
use fairlead_model::{Millis, ObjectKey, Reason, Resources, SpokeId, Uid};

use crate::fact::{AdmissionCheck, Cohort, Flavor, LimitRange, LocalQueue, Namespace, Topology};
use crate::names::{CqIx, Interned, RowIx, at};
use crate::quota::NodeIx;
use crate::quota::Tree;
use crate::quota::build::Forest;
use crate::round::grant::Grants;
use crate::{Fact, Settings};

mod absorb;
pub(crate) mod checkpoint;
pub(crate) mod clusters;
mod commit;
mod gangs;
pub(crate) mod holders;
mod holding;
mod line;
mod local_use;
mod pending;
pub(crate) mod rows;
mod settle;
mod shared;
pub(crate) mod stated;
mod table;
mod topology;
mod view;
mod workloads;

pub(crate) use clusters::ClusterRow;
pub use line::{CellView, InLine, Line, NodeView};
use rows::{Charge, ClassKey, Gang, Queue, Row};
use shared::Shared;
use table::Table;
pub use view::{PendingQueue, QueueUsage};

/// Whether a fact changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Changed {
    /// It repeated what was known.
    No,
    /// It changed something; a round may decide differently now.
    Yes,
}

impl From<bool> for Changed {
    fn from(changed: bool) -> Self {
        if changed { Self::Yes } else { Self::No }
    }
}

/// Everything the engine knows.
#[derive(Clone, Debug, Default)]
pub struct World {
    pub(crate) settings: Settings,
    /// The latest time that a fact or [`World::advance`] came with.
    pub(crate) now: Millis,
    pub(crate) names: Interned,
    pub(crate) queues: Vec<Queue>,
    queue_index: BTreeMap<Arc<str>, CqIx>,
    pub(crate) locals: BTreeMap<ObjectKey, LocalQueue>,
    pub(crate) cohorts: BTreeMap<Arc<str>, Cohort>,
    pub(crate) flavors: BTreeMap<Arc<str>, Flavor>,
    pub(crate) topologies: BTreeMap<Arc<str>, Topology>,
    pub(crate) checks: BTreeMap<Arc<str>, AdmissionCheck>,
    pub(crate) namespaces: BTreeMap<Arc<str>, Namespace>,
    limit_ranges: BTreeMap<ObjectKey, LimitRange>,
    runtime_classes: BTreeMap<Arc<str>, Resources>,
    rows: Table,
    by_uid: BTreeMap<Uid, RowIx>,
    /// Workloads by (namespace, LocalQueue).
    by_local: BTreeMap<Arc<ObjectKey>, BTreeSet<RowIx>>,
    gangs: Shared<Gang>,
    charges: Shared<Charge>,
    /// The charge that was made out last, and for what pods.
    last_charge: Option<(Arc<Gang>, Arc<Charge>)>,
    pub(crate) grants: Grants,
    classes: BTreeMap<ClassKey, u32>,
    next_class: u32,
    /// Workloads in no queue whose reason has not been told yet.
    pub(crate) untold: BTreeSet<RowIx>,
    /// What LocalQueues have used, where admission fair sharing is on.
    local_use: BTreeMap<ObjectKey, local_use::LocalUse>,
    /// Workloads that hold quota and may need a place yet.
    pub(crate) unplaced: BTreeSet<RowIx>,
    /// Workloads that hold a negative amount of something: quota shrinks when they leave.
    pub(crate) negative: u32,
    /// Ends of backoffs.
    backoffs: BTreeSet<(Millis, RowIx)>,
    pub(crate) forest: Forest,
    /// Queues, cohorts, flavors or checks changed: trees must be rebuilt.
    stale: bool,
    /// Names of queues and cohorts whose quota changed since.
    requoted: BTreeSet<Arc<str>>,
    /// Queues whose trees must be woken.
    waking: BTreeSet<CqIx>,
    pub(crate) clusters: BTreeMap<SpokeId, ClusterRow>,
    /// Nodes of the hub's own cluster, by the topologies of its flavors, and what is held there.
    pub(crate) placing: Topologies,
    /// Flavors that `placing` knows.
    placing_flavors: BTreeSet<Arc<str>>,
    /// Counts committed rounds.
    pub(crate) round: u64,
    /// Counts changes that a head could be decided differently after.
    pub(crate) version: u64,
}

/// An unchanging view of a [`World`] for one decision. It borrows, so it costs nothing and cannot go stale.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'w> {
    pub(crate) world: &'w World,
}

impl World {
    /// A world that knows nothing yet.
    pub fn new(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Takes in one fact. `now` is the wall clock: backoffs and admission fair sharing depend on it.
    pub fn absorb(&mut self, fact: Fact, now: Millis) -> Changed {
        self.now = self.now.max(now);
        self.changed_by(|world| world.take_in(fact))
    }

    /// Lets time pass: workloads whose backoff has ended return to their queues.
    pub fn advance(&mut self, now: Millis) -> Changed {
        self.now = self.now.max(now);
        self.changed_by(Self::end_backoffs)
    }

    /// Runs a change and counts it if it was one.
    fn changed_by(&mut self, change: impl FnOnce(&mut Self) -> Changed) -> Changed {
        let changed = change(self);
        if changed == Changed::Yes {
            self.version = self.version.wrapping_add(1);
        }
        changed
    }

    /// A view for one decision. Settles what earlier facts left to be computed, hence `&mut`.
    pub fn snapshot(&mut self) -> Snapshot<'_> {
        self.settle();
        Snapshot { world: self }
    }

    /// When the next backoff ends, by the wall clock: [`World::advance`] and a round are due then even if no fact
    /// arrives.
    pub fn next_wake(&self) -> Option<Millis> {
        self.backoffs.first().map(|(due, _)| *due)
    }

    /// A workload's row.
    pub(crate) fn row(&self, ix: RowIx) -> Option<&Row> {
        self.rows.get(ix)
    }

    /// The row of a workload's uid.
    pub(crate) fn row_of(&self, uid: &Uid) -> Option<&Row> {
        self.by_uid.get(uid).and_then(|ix| self.row(*ix))
    }

    /// Whether a workload holds quota and may need a place yet.
    pub(crate) fn unplaced_row(&self, uid: &Uid) -> bool {
        self.by_uid.get(uid).is_some_and(|ix| self.unplaced.contains(ix))
    }

    /// The ordinal of a ClusterQueue's name.
    pub(crate) fn queue_ordinal(&self, name: &str) -> Option<CqIx> {
        self.queue_index.get(name).copied()
    }

    /// The queue of a name.
    pub(crate) fn queue_named(&self, name: &str) -> Option<&Queue> {
        self.queue_ordinal(name).and_then(|ix| self.queue(ix))
    }

    fn row_mut(&mut self, ix: RowIx) -> Option<&mut Row> {
        self.rows.get_mut(ix)
    }

    /// A queue.
    pub(crate) fn queue(&self, ix: CqIx) -> Option<&Queue> {
        self.queues.get(at(ix))
    }

    fn queue_mut(&mut self, ix: CqIx) -> Option<&mut Queue> {
        self.queues.get_mut(at(ix))
    }

    /// The ordinal of a ClusterQueue's name, new if need be.
    fn queue_ix(&mut self, name: &Arc<str>) -> CqIx {
        if let Some(ix) = self.queue_index.get(name) {
            return *ix;
        }
        let ix = crate::names::next(self.queues.len());
        self.queues.push(Queue::named(Arc::clone(name)));
        self.queue_index.insert(Arc::clone(name), ix);
        ix
    }

    /// The queues that exist, in name order.
    pub(crate) fn queues_by_name(&self) -> impl Iterator<Item = (CqIx, &Queue)> {
        self.queue_index.values().filter_map(|ix| self.queue(*ix).map(|queue| (*ix, queue)))
    }

    /// The tree and node of a queue.
    pub(crate) fn tree_of(&self, queue: CqIx) -> Option<(u32, NodeIx, &Tree)> {
        let (tree, node) = self.forest.place(queue)?;
        Some((tree, node, self.forest.trees.get(at(tree))?))
    }

    /// Where a pending workload should be queued, or why it is in no queue.
    fn destination(&self, row: &Row) -> Result<CqIx, Reason> {
        let fact = &row.fact;
        if !fact.active {
            return Err(Reason::Deactivated);
        }
        if let Some(reason) = fact.hold {
            return Err(reason);
        }
        let local = self.locals.get(&*fact.local).ok_or(Reason::LocalQueueNotFound)?;
        if local.stop != crate::fact::StopPolicy::None {
            return Err(Reason::QueueStopped);
        }
        let queue =
            self.queue_index.get(&local.cluster_queue).copied().ok_or(Reason::ClusterQueueNotFound)?;
        let exists = self.queue(queue).is_some_and(|queue| queue.fact.is_some());
        if exists { Ok(queue) } else { Err(Reason::ClusterQueueNotFound) }
    }
}
