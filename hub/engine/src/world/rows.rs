//! What the world keeps per workload and per queue.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairlead_model::{Millis, PlacementId, Reason, Resources, SpokeId, Uid};

use super::holders::Holders;
use super::stated::Stated;
use crate::fact::{ClusterQueue, PodSet, PodSetAssignment, QueueingStrategy, TopologyAssignment};
use crate::memory::Scan;
use crate::names::{CqIx, FlavorIx, FrIx, ResIx, RowIx};
use crate::requests::PodRequests;

/// Place in line, less admission fair sharing, which is looked up when a head is taken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OrderKey {
    /// A workload that waits for its victims stays first.
    pub(crate) not_sticky: bool,
    /// Higher first.
    pub(crate) priority: Reverse<i64>,
    /// Older first.
    pub(crate) time: Millis,
    /// The last tie.
    pub(crate) uid: Uid,
}

/// Amounts by resource, in the order of the resources' names.
pub(crate) type Amounts = Box<[(ResIx, i64)]>;

/// The pods of a workload; one for all workloads whose pod sets and requests are equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Gang {
    pub(crate) pod_sets: Arc<[PodSet]>,
    /// Per pod set what one pod comes to, which depends on the namespace's LimitRanges too.
    pub(crate) requests: Box<[PodRequests]>,
    /// The charged part of it.
    pub(crate) charged: Box<[Amounts]>,
}

/// What makes workloads equivalent to admission: one of a class that cannot be admitted speaks for all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClassKey {
    pub(crate) priority: i64,
    pub(crate) pod_sets: Arc<[PodSet]>,
    /// Charged amounts per pod, which depend on the namespace's LimitRanges too.
    pub(crate) charged: Vec<Resources>,
    pub(crate) reclaimed: Vec<(Arc<str>, u32)>,
    pub(crate) excluded: BTreeSet<SpokeId>,
    pub(crate) gated: bool,
}

/// Where a workload stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In no queue, for this reason.
    Outside(Reason),
    /// In the heap of its queue.
    Heap(CqIx),
    /// Parked: it was tried, or must wait for its backoff.
    Parked(CqIx),
    /// It holds quota.
    Held(CqIx),
    /// It has ended.
    Finished,
}

/// What a reservation gives and what is charged for it; one for all workloads for which both are equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Charge {
    pub(crate) pod_sets: Arc<[PodSetAssignment]>,
    /// Charged amounts, one entry per flavor-resource.
    pub(crate) usage: Box<[(FrIx, i64)]>,
}

/// Topology domains that a pod set holds: its position, the flavor, pods per domain.
pub(crate) type HeldPlace = (usize, Arc<str>, TopologyAssignment);

/// Quota that a workload holds, as it is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) queue: CqIx,
    /// It was told to go, and still holds its quota.
    pub(crate) evicted: bool,
    /// Its pods are not ready.
    pub(crate) unready: bool,
    pub(crate) admitted: bool,
    pub(crate) at: Millis,
    pub(crate) charge: Arc<Charge>,
    /// The spoke it is promised to, and the promise.
    pub(crate) spoke: Option<SpokeId>,
    pub(crate) placement: Option<PlacementId>,
    pub(crate) places: Box<[HeldPlace]>,
}

/// An eviction that a workload has been through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MadeWay {
    pub(crate) preemptor: Uid,
    pub(crate) purpose: u64,
    pub(crate) state: TreeState,
}

/// What a tree's queues are like, as far as it tells one state from another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TreeState {
    /// Changes from outside.
    pub(crate) outside: u64,
    /// Who holds what.
    pub(crate) holdings: u64,
}

/// What earlier rounds found out about a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Past {
    pub(crate) scan: Option<Scan>,
    /// The state of the world in which its scan last came to an end.
    pub(crate) swept: Option<u64>,
    /// The state of the world in which it last went straight back with flavors left to look at, and how often.
    pub(crate) retried: (u64, u32),
    /// For whom it was evicted, and the state of its tree then; forgotten when something outside changes.
    pub(crate) made_way: Vec<MadeWay>,
}

impl Past {
    /// Notes that a scan came to its end in a state of the world, or that it goes straight on.
    pub(super) fn note(&mut self, version: u64, swept: bool) {
        if swept {
            self.swept = Some(version);
            return;
        }
        let before = if self.retried.0 == version { self.retried.1 } else { 0 };
        self.retried = (version, before.saturating_add(1));
    }
}

/// Nothing was found out yet.
static NO_PAST: Past = Past { scan: None, swept: None, retried: (0, 0), made_way: Vec::new() };

/// A workload. There may be millions, so what is shared or rare stands apart.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) fact: Stated,
    pub(crate) gang: Arc<Gang>,
    pub(crate) class: u32,
    pub(crate) place: Place,
    pub(crate) sticky: bool,
    /// What it holds is assumed by a plan and not yet stated by a fact.
    pub(crate) assumed: bool,
    pub(crate) held: Option<Box<Held>>,
    past: Option<Box<Past>>,
}

impl Row {
    /// A row that stands nowhere yet.
    pub(super) const fn new(fact: Stated, gang: Arc<Gang>, class: u32) -> Self {
        let place = Place::Finished;
        Self { fact, gang, class, place, sticky: false, assumed: false, held: None, past: None }
    }

    /// What earlier rounds found out.
    pub(crate) fn past(&self) -> &Past {
        self.past.as_deref().unwrap_or(&NO_PAST)
    }

    /// Changes what is remembered of earlier rounds.
    pub(super) fn remember(&mut self, change: impl FnOnce(&mut Past)) {
        let mut past = self.past.take().unwrap_or_default();
        change(&mut past);
        self.past = (*past != NO_PAST).then_some(past);
    }

    /// Forgets where its scan stopped.
    pub(super) fn forget_scan(&mut self) {
        if let Some(past) = &mut self.past {
            past.scan = None;
        }
    }

    /// Forgets everything but for whom it was evicted: it holds quota now.
    pub(super) fn forget_rounds(&mut self) {
        if self.past.is_some() {
            self.remember(|past| {
                *past = Past { made_way: std::mem::take(&mut past.made_way), ..Past::default() }
            });
        }
    }

    /// The queue that it is pending in or holds quota of.
    pub(crate) const fn queue(&self) -> Option<CqIx> {
        match self.place {
            Place::Heap(queue) | Place::Parked(queue) | Place::Held(queue) => Some(queue),
            Place::Outside(_) | Place::Finished => None,
        }
    }

    /// Its place in line.
    pub(crate) fn order(&self) -> OrderKey {
        OrderKey {
            not_sticky: !self.sticky,
            priority: Reverse(self.fact.priority),
            time: self.fact.order_time(),
            uid: self.fact.uid.clone(),
        }
    }

    /// Pods of a pod set that are still needed [T-9].
    pub(crate) fn needed(&self, pod_set: &PodSet) -> u32 {
        let reclaimed = self.fact.rare().reclaimable.iter().find(|(name, _)| *name == pod_set.name);
        pod_set.count.saturating_sub(reclaimed.map_or(0, |(_, count)| *count))
    }

    /// Pods that an assignment is charged for: the admitted ones, but never more than are still needed [T-9].
    pub(crate) fn charged_count(&self, assignment: &PodSetAssignment) -> u32 {
        let pod_set = self.gang.pod_sets.iter().find(|pod_set| pod_set.name == assignment.name);
        pod_set.map_or(assignment.count, |pod_set| assignment.count.min(self.needed(pod_set)))
    }
}

/// A resource group with its names as ordinals.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    pub(crate) resources: Vec<ResIx>,
    pub(crate) flavors: Vec<FlavorIx>,
}

/// A ClusterQueue.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub(crate) name: Arc<str>,
    /// The sentence that tells of an admission.
    pub(crate) admits: Arc<str>,
    /// None while only its name is known.
    pub(crate) fact: Option<Arc<ClusterQueue>>,
    pub(crate) groups: Vec<Group>,
    /// Why it admits nothing, with detail.
    pub(crate) inactive: Option<(Reason, Arc<str>)>,
    /// It has a dispatch check.
    pub(crate) federated: bool,
    /// All of its flavors have a topology.
    pub(crate) topology_only: bool,
    pub(crate) heap: BTreeSet<(OrderKey, RowIx)>,
    pub(crate) parked: BTreeSet<(OrderKey, RowIx)>,
    /// Classes that cannot be admitted until something changes.
    pub(crate) failed_classes: BTreeSet<u32>,
    pub(crate) held: Holders,
    /// How many of those have pods that are not ready.
    pub(crate) unready: u32,
    pub(crate) usage: BTreeMap<FrIx, i64>,
    /// Counts changes of the quota of its tree [T-8].
    pub(crate) generation: u64,
    /// Counts changes from outside that could make preemption useful again: quota that was set anew, workloads that
    /// ended. What plans themselves bring about does not count.
    pub(crate) outside: u64,
    /// The sum of the prints of all that is held here.
    pub(crate) holdings: u64,
}

/// A number that stands for some text and amounts: FNV-1a, the same on every machine.
pub(crate) fn print(text: &str, amounts: impl Iterator<Item = (FrIx, i64)>) -> u64 {
    let amounts = amounts.flat_map(|(fr, amount)| fr.to_le_bytes().into_iter().chain(amount.to_le_bytes()));
    let bytes = text.bytes().chain(amounts);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

impl Held {
    /// Whether it holds a negative amount of something.
    pub(crate) fn is_negative(&self) -> bool {
        self.charge.usage.iter().any(|(_, amount)| *amount < 0)
    }

    /// A number that stands for who holds what here.
    pub(crate) fn print(&self, uid: &Uid) -> u64 {
        print(uid.as_str(), self.charge.usage.iter().copied())
    }
}

impl Queue {
    pub(crate) fn named(name: Arc<str>) -> Self {
        Self {
            admits: Arc::from(format!("admitted by ClusterQueue {name}")),
            name,
            fact: None,
            groups: Vec::new(),
            inactive: None,
            federated: false,
            topology_only: false,
            heap: BTreeSet::new(),
            parked: BTreeSet::new(),
            failed_classes: BTreeSet::new(),
            held: Holders::default(),
            unready: 0,
            usage: BTreeMap::new(),
            generation: 0,
            outside: 0,
            holdings: 0,
        }
    }

    /// Whether a head that does not fit blocks those behind it.
    pub(crate) fn is_strict(&self) -> bool {
        self.fact.as_ref().is_some_and(|fact| fact.strategy == QueueingStrategy::StrictFifo)
    }

    /// The group that covers a resource.
    pub(crate) fn group_of(&self, resource: ResIx) -> Option<&Group> {
        self.groups.iter().find(|group| group.resources.contains(&resource))
    }

    /// Adds to what it uses.
    pub(crate) fn charge(&mut self, fr: FrIx, amount: i64) {
        let used = self.usage.entry(fr).or_insert(0);
        *used = used.saturating_add(amount);
        if *used == 0 {
            self.usage.remove(&fr);
        }
    }
}
