//! What the engine decided.

use std::sync::Arc;

use fairlead_model::{Millis, ObjectKey, PodDemand, SpokeId, Uid, Verdict};

use crate::fact::{PodSetAssignment, PreemptionCause};
use crate::memory::Memory;

/// What became of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// Quota (and a cluster, where one is needed) is reserved for it.
    Admitted,
    /// Victims are being evicted for it, or it fits once another's victims are gone.
    PendingPreemption,
    /// It fits nowhere now.
    NoFit,
    /// It would need preemption and found no victims.
    PreemptionNoCandidates,
    /// It would need preemption and a preemption gate is closed.
    PreemptionGated,
    /// It was nominated and lost to an earlier entry of the round.
    Skipped,
    /// Its namespace is not one that the ClusterQueue takes.
    NamespaceMismatch,
    /// Its requests break its own limits or a LimitRange, or a check stands against it.
    Rejected,
    /// Its queue waits for the pods of what it admitted last.
    Blocked,
    /// It is in no queue: its LocalQueue or ClusterQueue is missing, stopped or not usable.
    Outside,
}

/// One workload that was looked at, with why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The workload.
    pub uid: Uid,
    /// Its namespace and name.
    pub key: ObjectKey,
    /// Its ClusterQueue; empty when it has none.
    pub cluster_queue: Arc<str>,
    /// Name of the tree's root: the root cohort or, without cohort, the ClusterQueue.
    pub root: Arc<str>,
    /// The round it was looked at, from 0.
    pub round: u32,
    /// Whether it took part in the round's order (it passed the checks of ).
    pub entered: bool,
    /// What became of it.
    pub outcome: Outcome,
    /// Why.
    pub verdict: Verdict,
}

/// A workload that gets quota, and a cluster where its queue needs one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The workload.
    pub uid: Uid,
    /// Its namespace and name.
    pub key: ObjectKey,
    /// The ClusterQueue whose quota it gets.
    pub cluster_queue: Arc<str>,
    /// Per pod set: counts, flavors, charged usage, topology.
    pub pod_sets: Arc<[PodSetAssignment]>,
    /// Per pod set, in the same order: the effective request of one pod (Kubernetes' own, before transformations)
    /// and the admitted count, for the spoke's check of room.
    pub demand: Arc<[PodDemand]>,
    /// The chosen spoke; none for a home queue, or while other checks are pending.
    pub spoke: Option<SpokeId>,
    /// Whether other admission checks are still pending: only quota is reserved.
    pub checks_pending: bool,
    /// The round, from 0.
    pub round: u32,
    /// Why there.
    pub verdict: Verdict,
}

/// A workload that has to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preempted {
    /// The victim.
    pub uid: Uid,
    /// Its namespace and name.
    pub key: ObjectKey,
    /// Its ClusterQueue.
    pub cluster_queue: Arc<str>,
    /// By which rule.
    pub cause: PreemptionCause,
    /// For whom.
    pub by: Uid,
    /// The preemptor's namespace and name.
    pub by_key: ObjectKey,
    /// The round, from 0.
    pub round: u32,
}

/// A workload that has to go because nodes of its have failed and there is no room for their pods elsewhere [TAS-7].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Displaced {
    /// The workload.
    pub uid: Uid,
    /// Its namespace and name.
    pub key: ObjectKey,
    /// Its ClusterQueue.
    pub cluster_queue: Arc<str>,
    /// The nodes.
    pub nodes: Vec<Arc<str>>,
    /// The round, from 0.
    pub round: u32,
}

/// What a decision cost, counted and not timed. It tells whether cost follows what is needed; it decides nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// What-ifs: how often it was asked whether a workload would fit with others gone.
    pub what_ifs: u32,
    /// Workloads that were looked at as possible victims, each as often as it was.
    pub candidates: u32,
}

impl Spent {
    /// Adds what another part cost.
    pub(crate) fn add(&mut self, other: Self) {
        self.what_ifs = self.what_ifs.saturating_add(other.what_ifs);
        self.candidates = self.candidates.saturating_add(other.candidates);
    }
}

/// What the engine decided. [`World::commit`](crate::World::commit) takes it over; nothing else changes a world
/// but facts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// When it was decided.
    pub at: Millis,
    /// Workloads that get quota, in the order they were handled.
    pub admissions: Vec<Admission>,
    /// Workloads that have to go.
    pub evictions: Vec<Preempted>,
    /// Workloads that have to go because their nodes have failed.
    pub displaced: Vec<Displaced>,
    /// Every workload that was looked at, in the order it was handled; also those that are in no queue and whose
    /// reason has not been told yet.
    pub heads: Vec<Head>,
    /// Rounds that were run.
    pub rounds: u32,
    /// True when another round on unchanged facts would decide nothing.
    pub quiet: bool,
    /// What it cost to find out.
    pub spent: Spent,
    /// What the next round must know: requeues, scan positions, stickiness, classes.
    pub memory: Memory,
}

impl Plan {
    /// Appends the next round of the same call.
    pub(crate) fn append(&mut self, next: Self) {
        let round = self.rounds;
        let number = |earlier: u32| earlier.saturating_add(round);
        self.admissions
            .extend(next.admissions.into_iter().map(|it| Admission { round: number(it.round), ..it }));
        self.evictions
            .extend(next.evictions.into_iter().map(|it| Preempted { round: number(it.round), ..it }));
        self.displaced
            .extend(next.displaced.into_iter().map(|it| Displaced { round: number(it.round), ..it }));
        self.heads.extend(next.heads.into_iter().map(|it| Head { round: number(it.round), ..it }));
        self.memory.requeues.extend(next.memory.requeues);
        self.memory.ways.extend(next.memory.ways);
        self.rounds = self.rounds.saturating_add(next.rounds);
        self.spent.add(next.spent);
        self.quiet = next.quiet;
    }
}
