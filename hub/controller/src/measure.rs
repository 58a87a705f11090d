//! What is measured of the hub, as plain values: happenings as they happen, levels when somebody asks.
//!
//! The brain says what happened with [`Effect::Measure`](crate::brain::Effect::Measure) and answers [`Gauges`] when asked;
//! which library counts, under which names, is nobody's business here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fairlead_engine::{Line, NodeView};
use fairlead_model::{Labels, ObjectKey};

/// Whose a workload is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The ClusterQueue that holds its quota, or that it waits for.
    pub cluster_queue: Arc<str>,
    /// Its LocalQueue.
    pub local_queue: ObjectKey,
    /// Its priority class; empty without one.
    pub priority_class: Arc<str>,
}

/// Something that happened. Times are in milliseconds and as exact as the conditions that they are read from: to a
/// second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measurement {
    /// The engine was asked, in one turn.
    Attempt {
        /// Whether anything was admitted.
        admitted: bool,
        /// Workloads by ClusterQueue that would have to preempt and lost to an earlier one of the round.
        skipped: BTreeMap<Arc<str>, u32>,
    },
    /// A Workload was made for a job.
    Created {
        /// The job's kind.
        job_kind: Arc<str>,
        /// Since the job was created.
        took_ms: i64,
    },
    /// Quota was reserved.
    QuotaReserved {
        /// Whose.
        of: Subject,
        /// Since it was created or queued again.
        waited_ms: i64,
    },
    /// A workload was admitted.
    Admitted {
        /// Whose.
        of: Subject,
        /// The spoke; none at home.
        cluster: Option<Arc<str>>,
        /// Since it was created or queued again.
        waited_ms: i64,
        /// Since its quota was reserved.
        checks_ms: i64,
    },
    /// All pods are ready.
    PodsReady {
        /// Whose.
        of: Subject,
        /// Since it was created or queued again.
        waited_ms: i64,
        /// Since it was admitted.
        started_ms: i64,
    },
    /// A workload was evicted.
    Evicted {
        /// Whose.
        of: Subject,
        /// The reason of its condition.
        reason: Arc<str>,
        /// What led to it; may be empty.
        cause: Arc<str>,
        /// Whether this is the first time for this reason and cause.
        first: bool,
        /// Since its pods were ready, if they were.
        ready_ms: Option<i64>,
    },
    /// An evicted workload gave its quota back.
    Released {
        /// The ClusterQueue.
        cluster_queue: Arc<str>,
        /// Why it was evicted.
        reason: Arc<str>,
        /// Since it was evicted.
        took_ms: i64,
    },
    /// A workload has to make room.
    Preempted {
        /// The ClusterQueue of the workload that gets the room.
        by: Arc<str>,
        /// By which rule.
        reason: Arc<str>,
    },
    /// A workload finished.
    Finished {
        /// Whose.
        of: Subject,
        /// Since it was admitted; none when it never was.
        ran_ms: Option<i64>,
    },
    /// A spoke answered `Prepare`, or did not.
    Prepared {
        /// The ClusterQueue.
        cluster_queue: Arc<str>,
        /// The spoke's name.
        cluster: Arc<str>,
        /// `Accepted`, or the token of the refusal.
        result: &'static str,
        /// Since it was chosen.
        took_ms: i64,
    },
    /// A commit is durable.
    Committed {
        /// The spoke's name.
        cluster: Arc<str>,
        /// Since the spoke was chosen.
        took_ms: i64,
    },
}

/// Who counts. Called on the brain's task: it must be quick and must not wait.
pub trait Measures: Send + Sync + std::fmt::Debug {
    /// Takes in what happened; `step` is how long the brain took for the step that brought it.
    fn record(&self, happened: &Measurement, step: Duration);
}

/// Levels at the moment of asking.
#[derive(Clone, Debug, Default)]
pub struct Gauges {
    /// ClusterQueues.
    pub cluster_queues: Vec<ClusterQueueGauges>,
    /// LocalQueues.
    pub local_queues: Vec<LocalQueueGauges>,
    /// Cohorts, and ClusterQueues in their trees.
    pub nodes: Vec<NodeView>,
    /// Spokes.
    pub clusters: Vec<ClusterGauges>,
    /// Placements that are not closed, by state.
    pub placements: BTreeMap<&'static str, u64>,
}

/// Where the workloads of a queue stand.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// They hold quota.
    pub reserving: u64,
    /// They are admitted.
    pub admitted: u64,
    /// They have finished and are still there.
    pub finished: u64,
    /// They will be looked at.
    pub active: u64,
    /// They were tried and wait for a change, or are in no line.
    pub inadmissible: u64,
    /// They wait, by (reason of the condition, token of the verdict).
    pub unadmitted: BTreeMap<(Arc<str>, Arc<str>), u64>,
    /// Reserved by (flavor, resource), in the resource's smallest unit.
    pub reserved: BTreeMap<(Arc<str>, Arc<str>), i64>,
    /// Used by admitted workloads.
    pub used: BTreeMap<(Arc<str>, Arc<str>), i64>,
}

/// A ClusterQueue.
#[derive(Clone, Debug, Default)]
pub struct ClusterQueueGauges {
    /// Its name.
    pub name: Arc<str>,
    /// `pending`, `active` or `terminating`.
    pub status: QueueStatus,
    /// Its workloads.
    pub counts: Counts,
    /// The line before it.
    pub line: Line,
}

/// Whether a ClusterQueue works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueStatus {
    /// Something that it needs is missing, or it is stopped.
    #[default]
    Pending,
    /// It admits workloads.
    Active,
    /// It is being deleted.
    Terminating,
}

/// A LocalQueue.
#[derive(Clone, Debug)]
pub struct LocalQueueGauges {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Its labels, for the selector of metrics.
    pub labels: Labels,
    /// The ClusterQueue it leads to.
    pub cluster_queue: Arc<str>,
    /// Whether it takes workloads.
    pub active: bool,
    /// Its workloads.
    pub counts: Counts,
}

/// A spoke.
#[derive(Clone, Debug)]
pub struct ClusterGauges {
    /// Its name.
    pub name: Arc<str>,
    /// Whether a session is up.
    pub connected: bool,
    /// `Fresh`, `Suspect` or `NotReady`.
    pub presence: &'static str,
    /// Wall clock of the last heartbeat, in milliseconds.
    pub last_heartbeat_ms: Option<i64>,
    /// When its certificate ends, in seconds since 1970.
    pub certificate_expires: Option<i64>,
    /// By how much its clock is ahead, in milliseconds.
    pub clock_offset_ms: i64,
    /// Promises to it that are open.
    pub open_placements: u64,
}

/// A workload in line, as people see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingWorkload {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Its job: the owner references of the Workload, as they are.
    pub owner_references: serde_json::Value,
    /// When it was created, as its metadata says.
    pub created: Arc<str>,
    /// Its priority, without a boost.
    pub priority: i32,
    /// Its LocalQueue.
    pub local_queue: Arc<str>,
    /// How many are before it in its ClusterQueue.
    pub position_in_cluster_queue: u32,
    /// How many are before it in its LocalQueue.
    pub position_in_local_queue: u32,
}
