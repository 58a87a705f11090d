//! Pending workloads …[Q-10], and the reference as a whole: it learns facts and plays rounds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairlead_engine::fact::{
    ClusterQueue, Eviction, EvictionCause, PodSet, QueueingStrategy, Reservation, StopPolicy, Workload,
};
use fairlead_engine::{Fact, Outcome, Policy};
use fairlead_model::{Amount, Millis, ObjectKey, Uid};

use super::assign::Positions;
use super::facts::{Facts, Node};
use super::order::queue_order;
use super::requests::needed;
use super::round::{Handled, play};
use super::tree::{Holding, State};
use super::{Admitted, Amounts, Evicted, FlavorResource, Looked, Name, PendingLists, RoundPlan, UsageByNode};

/// [F-8] Where a scan goes on, with the quota generation and the round it is of.
#[derive(Clone, Debug)]
struct Memory {
    positions: Positions,
    generation: u64,
    round: u64,
}

/// A pending workload.
#[derive(Clone, Debug, Default)]
struct Waiting {
    queue: Option<Name>,
    parked: bool,
    sticky: bool,
    memory: Option<Memory>,
}

/// What makes workloads equivalent.
type Class = (i64, Arc<[PodSet]>, Vec<(Name, u32)>, bool);

fn class(workload: &Workload) -> Class {
    let pod_sets = Arc::clone(&workload.pod_sets);
    (workload.priority, pod_sets, workload.reclaimable.clone(), workload.preemption_gated)
}

/// The reference: what it was told, and what its own rounds have made of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reference {
    policy: Policy,
    facts: Facts,
    held: BTreeMap<Uid, Holding>,
    waiting: BTreeMap<Uid, Waiting>,
    /// Classes that fit nowhere until something changes.
    failed: BTreeSet<(Name, Class)>,
    /// ClusterQueues whose trees are woken before the next round.
    woken: BTreeSet<Name>,
    /// [T-8] Changes of quota, by ClusterQueue.
    generations: BTreeMap<Name, u64>,
    round: u64,
    /// Victims and whom they were evicted for.
    ways: BTreeSet<(Uid, Uid)>,
    circling: bool,
}

impl Reference {
    /// A reference that knows nothing.
    pub(crate) fn new(policy: Policy) -> Self {
        Self { policy, ..Self::default() }
    }

    /// Takes in one fact.
    pub(crate) fn absorb(&mut self, fact: Fact) {
        if self.facts.knows(&fact) {
            return;
        }
        match &fact {
            Fact::Workload(workload) => self.absorb_workload(&Arc::clone(workload)),
            Fact::WorkloadGone(uid) => self.forget(&uid.clone()),
            Fact::ClusterQueue(_) | Fact::ClusterQueueGone(_) | Fact::Cohort(_) | Fact::CohortGone(_) => {
                self.requote(fact);
            }
            Fact::Flavor(flavor) => {
                self.wake_users(&Arc::clone(&flavor.name));
                self.facts.learn(fact);
            }
            Fact::FlavorGone(name) => {
                self.wake_users(&Arc::clone(name));
                self.facts.learn(fact);
            }
            Fact::Namespace(_) => {
                self.facts.learn(fact);
                self.woken.extend(self.facts.queues.keys().cloned());
            }
            _ => self.facts.learn(fact),
        }
        self.place_all();
    }

    /// A change of quota wakes its tree, as it was and as it is.
    fn requote(&mut self, fact: Fact) {
        let name = match &fact {
            Fact::ClusterQueue(it) => Arc::clone(&it.name),
            Fact::Cohort(it) => Arc::clone(&it.name),
            Fact::ClusterQueueGone(name) | Fact::CohortGone(name) => Arc::clone(name),
            other => unreachable!("no quota in {other:?}"),
        };
        let mut concerned = self.in_tree_of(&name);
        self.facts.learn(fact);
        concerned.extend(self.in_tree_of(&name));
        for queue in concerned {
            *self.generations.entry(queue.clone()).or_insert(0) += 1;
            self.woken.insert(queue);
        }
    }

    fn in_tree_of(&self, name: &Name) -> BTreeSet<Name> {
        let state = self.state();
        let mut found = BTreeSet::new();
        for node in [Node::Queue(Arc::clone(name)), Node::Cohort(Arc::clone(name))] {
            if state.ancestors(&node).is_some() {
                found.extend(state.queues_below(&state.root(&node)));
            }
        }
        found
    }

    fn wake_users(&mut self, flavor: &Name) {
        let has_it = |queue: &ClusterQueue| {
            queue.groups.iter().flat_map(|group| &group.flavors).any(|it| it.flavor == *flavor)
        };
        let users = self.facts.queues.values().filter(|queue| has_it(queue));
        self.woken.extend(users.map(|queue| Arc::clone(&queue.name)));
    }

    fn absorb_workload(&mut self, workload: &Arc<Workload>) {
        let uid = workload.uid.clone();
        let held = self.release(&uid);
        self.woken.extend(held.clone());
        let known = self.facts.workloads.get(&uid).cloned();
        self.facts.learn(Fact::Workload(Arc::clone(workload)));
        let waiting = self.waiting.remove(&uid);
        if workload.finished {
            return;
        }
        if let Some(reservation) = &workload.reservation {
            let evicted = workload.evicted.is_some();
            self.hold(uid, holding(workload, reservation, evicted));
            return;
        }
        let mut waiting = waiting.unwrap_or_default();
        let same = known.as_ref().is_some_and(|known| class(known) == class(workload));
        if held.is_some() || !same {
            waiting = Waiting { sticky: waiting.sticky, ..Waiting::default() };
        }
        self.waiting.insert(uid, waiting);
    }

    /// A workload that is gone wakes its tree.
    fn forget(&mut self, uid: &Uid) {
        let held = self.release(uid);
        let waiting = self.waiting.remove(uid).and_then(|waiting| waiting.queue);
        self.woken.extend(held.into_iter().chain(waiting));
        self.facts.learn(Fact::WorkloadGone(uid.clone()));
    }

    /// The ClusterQueue that a pending workload belongs to.
    fn destination(&self, workload: &Workload) -> Option<Name> {
        let key = ObjectKey::new(Arc::clone(&workload.key.namespace), Arc::clone(&workload.queue));
        let local = self.facts.locals.get(&key).filter(|local| local.stop == StopPolicy::None)?;
        let known = self.facts.queues.contains_key(&local.cluster_queue);
        let queueable = workload.active && workload.hold.is_none() && known;
        queueable.then(|| Arc::clone(&local.cluster_queue))
    }

    /// Workloads that came to a queue are in its heap, unless their class is known to fit nowhere.
    fn place_all(&mut self) {
        for uid in self.waiting.keys().cloned().collect::<Vec<_>>() {
            let workload = Arc::clone(&self.facts.workloads[&uid]);
            let queue = self.destination(&workload);
            if self.waiting[&uid].queue != queue {
                let failed = queue.iter().any(|queue| self.has_failed(queue, &workload));
                if let Some(waiting) = self.waiting.get_mut(&uid) {
                    (waiting.queue, waiting.parked) = (queue, failed);
                }
            }
        }
    }

    fn has_failed(&self, queue: &Name, workload: &Workload) -> bool {
        self.failed.contains(&(Arc::clone(queue), class(workload)))
    }

    fn state(&self) -> State<'_> {
        State { facts: &self.facts, held: self.held.clone(), claimed: Vec::new() }
    }

    /// Moves the parked workloads of woken trees back into their heaps.
    fn flush(&mut self) {
        let woken = std::mem::take(&mut self.woken);
        let trees: BTreeSet<Name> =
            woken.iter().flat_map(|name| self.in_tree_of(name)).chain(woken.clone()).collect();
        self.failed.retain(|(queue, _)| !trees.contains(queue));
        for (uid, waiting) in &mut self.waiting {
            let Some(queue) = waiting.queue.as_ref().filter(|queue| trees.contains(*queue)) else { continue };
            let namespace = &self.facts.workloads[uid].key.namespace;
            if takes_from(&self.facts, &self.facts.queues[queue], namespace) {
                waiting.parked = false;
            }
        }
    }

    /// The first of every active ClusterQueue's heap.
    fn heads(&self) -> Vec<(Name, Uid)> {
        let active = self.facts.queues.values().filter(|queue| self.is_active(queue));
        active
            .filter_map(|queue| {
                Some((Arc::clone(&queue.name), self.line(&queue.name, false).first()?.clone()))
            })
            .collect()
    }

    /// The heap or the parked ones of a ClusterQueue, in order.
    fn line(&self, queue: &Name, parked: bool) -> Vec<Uid> {
        let here =
            self.waiting.iter().filter(|(_, it)| it.queue.as_ref() == Some(queue) && it.parked == parked);
        let mut line: Vec<_> =
            here.map(|(uid, it)| queue_order(self.facts.workload(uid), it.sticky)).collect();
        line.sort();
        line.into_iter().map(|(_, _, _, uid)| uid).collect()
    }

    /// Stopped, circular and incomplete ClusterQueues admit nothing.
    fn is_active(&self, queue: &ClusterQueue) -> bool {
        let flavors = queue.groups.iter().flat_map(|group| &group.flavors);
        let complete = flavors.into_iter().all(|it| self.facts.flavors.contains_key(&it.flavor));
        let circular = self.state().ancestors(&Node::Queue(Arc::clone(&queue.name))).is_none();
        queue.stop == StopPolicy::None && !queue.terminating && complete && !circular
    }

    /// [S-1] Plays one round and takes it over.
    pub(crate) fn play(&mut self, now: Millis) -> RoundPlan {
        self.flush();
        let mut plan = RoundPlan::default();
        let mut heads = Vec::new();
        for (queue, uid) in self.heads() {
            let namespace = &self.facts.workload(&uid).key.namespace;
            if takes_from(&self.facts, &self.facts.queues[&queue], namespace) {
                let positions = self.positions(&queue, &uid);
                heads.push((queue, uid, positions));
            } else {
                plan.heads.insert(Looked { uid: uid.clone(), outcome: Outcome::NamespaceMismatch });
                self.requeue(&uid, Outcome::NamespaceMismatch, None);
            }
        }
        let handled = play(&self.policy, &self.state(), &heads);
        for it in &handled {
            self.note(it, &mut plan);
            self.note_ways(it);
        }
        for it in &handled {
            self.take_over(it, now);
        }
        self.round += 1;
        plan
    }

    /// [F-8] Remembered positions, unless quota changed and they are older than the last round.
    fn positions(&self, queue: &Name, uid: &Uid) -> Option<Positions> {
        let memory = self.waiting[uid].memory.as_ref()?;
        let current = self.generations.get(queue).copied().unwrap_or(0);
        (memory.generation == current || memory.round + 1 >= self.round).then(|| memory.positions.clone())
    }

    /// Whether an entry would take a victim that has made way for it before. Kueue's rules may go round in a circle
    /// there; Fairlead settles (design.md §6), so from then on the two need not agree.
    pub(crate) const fn is_circling(&self) -> bool {
        self.circling
    }

    fn note_ways(&mut self, Handled { entry, outcome }: &Handled) {
        for (uid, _) in entry.victims.iter().filter(|(uid, _)| !self.held[uid].evicted) {
            let way = (uid.clone(), entry.uid.clone());
            self.circling |= self.ways.contains(&way);
            if *outcome == Outcome::PendingPreemption {
                self.ways.insert(way);
            }
        }
    }

    fn note(&self, Handled { entry, outcome }: &Handled, plan: &mut RoundPlan) {
        plan.heads.insert(Looked { uid: entry.uid.clone(), outcome: *outcome });
        if *outcome != Outcome::NoFit {
            let (Node::Queue(root) | Node::Cohort(root)) = self.state().root(&entry.leaf());
            plan.order.entry(root).or_default().push(entry.uid.clone());
        }
        if *outcome == Outcome::Admitted {
            let workload = self.facts.workload(&entry.uid);
            let pod_sets =
                workload.pod_sets.iter().zip(&entry.assignment.pod_sets).map(|(pod_set, choice)| {
                    let given = choice.flavors.iter().map(|(resource, it)| {
                        (Arc::clone(resource), (Arc::clone(&it.flavor), choice.requests[resource]))
                    });
                    (Arc::clone(&pod_set.name), choice.count, given.collect())
                });
            let (uid, queue) = (entry.uid.clone(), Arc::clone(&entry.queue));
            plan.admitted.insert(Admitted { uid, queue, pod_sets: pod_sets.collect() });
        }
        if *outcome == Outcome::PendingPreemption {
            for (uid, cause) in entry.victims.iter().filter(|(uid, _)| !self.held[uid].evicted) {
                plan.evicted.insert(Evicted { uid: uid.clone(), cause: *cause, by: entry.uid.clone() });
            }
        }
    }

    /// [S-5], [P-7] The admitted hold quota, victims are marked, the rest is queued again.
    fn take_over(&mut self, Handled { entry, outcome }: &Handled, now: Millis) {
        if *outcome == Outcome::Admitted {
            self.waiting.remove(&entry.uid);
            let (queue, usage) = (Arc::clone(&entry.queue), entry.assignment.usage.clone());
            self.hold(entry.uid.clone(), Holding { queue, since: now, usage, evicted: false });
            return;
        }
        if *outcome == Outcome::PendingPreemption {
            for (uid, _) in &entry.victims {
                self.mark_evicted(uid, now);
            }
        }
        self.requeue(&entry.uid, *outcome, Some(entry.assignment.positions()));
    }

    /// [T-8] What is given back counts as a change of quota, as the corpus shows.
    fn release(&mut self, uid: &Uid) -> Option<Name> {
        let queue = self.held.remove(uid)?.queue;
        *self.generations.entry(Arc::clone(&queue)).or_insert(0) += 1;
        Some(queue)
    }

    /// [T-8] A reservation counts as a change too, as the corpus shows.
    fn hold(&mut self, uid: Uid, holding: Holding) {
        *self.generations.entry(Arc::clone(&holding.queue)).or_insert(0) += 1;
        self.held.insert(uid, holding);
    }

    fn mark_evicted(&mut self, uid: &Uid, now: Millis) {
        let Some(held) = self.held.get_mut(uid).filter(|held| !held.evicted) else { return };
        held.evicted = true;
        let mut workload = (*self.facts.workloads[uid]).clone();
        workload.evicted = Some(Eviction { cause: EvictionCause::Preempted, at: now });
        self.facts.learn(Fact::Workload(workload.into()));
    }

    /// …[Q-9] Where a head goes that was not admitted.
    fn requeue(&mut self, uid: &Uid, outcome: Outcome, positions: Option<Positions>) {
        let Some(queue) = self.waiting[uid].queue.clone() else { return };
        let strict = self.facts.queues[&queue].strategy == QueueingStrategy::StrictFifo;
        let waits = outcome == Outcome::PendingPreemption;
        let positions = positions.filter(|_| !waits);
        let untried = positions.iter().flatten().any(|it| it.values().any(Option::is_some));
        let again = (strict && outcome != Outcome::NamespaceMismatch)
            || matches!(outcome, Outcome::PendingPreemption | Outcome::Skipped)
            || untried;
        let generation = self.generations.get(&queue).copied().unwrap_or(0);
        let round = self.round;
        let sticky = (waits || self.waiting[uid].sticky) && !strict;
        // A ClusterQueue has one preemptor.
        for other in self.waiting.values_mut().filter(|other| sticky && other.queue.as_ref() == Some(&queue))
        {
            other.sticky = false;
        }
        if let Some(waiting) = self.waiting.get_mut(uid) {
            waiting.parked = !again;
            waiting.sticky = sticky;
            waiting.memory = positions.map(|positions| Memory { positions, generation, round });
        }
        let hopeless = matches!(outcome, Outcome::NoFit | Outcome::PreemptionNoCandidates);
        if hopeless && !again {
            let failed = class(self.facts.workload(uid));
            for (uid, waiting) in &mut self.waiting {
                let same =
                    waiting.queue.as_ref() == Some(&queue) && class(&self.facts.workloads[uid]) == failed;
                waiting.parked |= same;
            }
            self.failed.insert((queue, failed));
        }
    }

    /// Pending workloads by ClusterQueue; those without any are left out. Wakes what is to be woken first.
    pub(crate) fn pending(&mut self) -> BTreeMap<Name, PendingLists> {
        self.flush();
        let keys = |uids: Vec<Uid>| uids.iter().map(|uid| self.facts.workload(uid).key.clone()).collect();
        let lists = |queue: &Name| (keys(self.line(queue, false)), keys(self.line(queue, true)));
        let all = self.facts.queues.keys().map(|queue: &Name| (Arc::clone(queue), lists(queue)));
        all.filter(|(_, (heap, parked)): &(Name, PendingLists)| !heap.is_empty() || !parked.is_empty())
            .collect()
    }

    /// [T-3] Usage of every ClusterQueue and every Cohort, zeros left out.
    pub(crate) fn usage(&self) -> (UsageByNode, UsageByNode) {
        let state = self.state();
        let (mut queues, mut cohorts) = (UsageByNode::new(), UsageByNode::new());
        for queue in self.facts.queues.keys().map(|name| Node::Queue(Arc::clone(name))) {
            for node in std::iter::once(queue.clone()).chain(state.ancestors(&queue).unwrap_or_default()) {
                let charged: BTreeSet<_> =
                    self.held.values().flat_map(|held| held.usage.keys().cloned()).collect();
                let used = charged.into_iter().map(|fr| (fr.clone(), state.usage(&node, &fr).saturated()));
                let used: Amounts = used.filter(|(_, amount)| *amount != 0).collect();
                match node {
                    Node::Queue(name) => queues.insert(name, used),
                    Node::Cohort(name) => cohorts.insert(name, used),
                };
            }
        }
        queues.retain(|_, used| !used.is_empty());
        cohorts.retain(|_, used| !used.is_empty());
        (queues, cohorts)
    }
}

impl Reference {
    /// [T-1], [T-6] Nodes that use more than their own and what they may borrow.
    pub(crate) fn over_limits(&self) -> Vec<String> {
        let state = self.state();
        let mut nodes = BTreeSet::new();
        for leaf in self.facts.queues.keys().map(|name| Node::Queue(Arc::clone(name))) {
            nodes.extend(state.ancestors(&leaf).unwrap_or_default());
            nodes.insert(leaf);
        }
        let charged: BTreeSet<_> = self.held.values().flat_map(|held| held.usage.keys().cloned()).collect();
        let pairs = nodes.iter().flat_map(|node| charged.iter().map(move |fr| (node, fr)));
        let over = |(node, fr): &(&Node, &FlavorResource)| {
            let own = state.subtree_quota(node, fr);
            let limit = match (state.parent(node), state.borrowing_limit(node, fr)) {
                (None, _) => own,
                (Some(_), Some(limit)) => own.plus(limit),
                (Some(_), None) => Amount::Unlimited,
            };
            state.usage(node, fr) > limit
        };
        pairs
            .filter(over)
            .map(|(node, fr)| format!("{node:?} {fr:?} uses {}", state.usage(node, fr)))
            .collect()
    }
}

/// Whether a ClusterQueue takes workloads from a namespace.
fn takes_from(facts: &Facts, queue: &ClusterQueue, namespace: &str) -> bool {
    let labels = facts.namespaces.get(namespace).map(|it| it.labels.clone()).unwrap_or_default();
    queue.namespaces.as_ref().is_some_and(|selector| selector.matches(&labels))
}

/// [T-9] What a reservation is charged: never for more pods than are still needed.
fn holding(workload: &Workload, reservation: &Reservation, evicted: bool) -> Holding {
    let mut usage = Amounts::new();
    for assignment in &*reservation.pod_sets {
        let pod_set = workload.pod_sets.iter().find(|it| it.name == assignment.name);
        let needed = pod_set.map_or(assignment.count, |it| needed(workload, it)).min(assignment.count);
        for (resource, amount) in assignment.usage.iter() {
            let Some(flavor) = assignment.flavors.get(resource) else { continue };
            let charged = amount * i64::from(needed) / i64::from(assignment.count.max(1));
            *usage.entry((Arc::clone(flavor), Arc::clone(resource))).or_insert(0) += charged;
        }
    }
    Holding { queue: Arc::clone(&reservation.cluster_queue), since: reservation.at, usage, evicted }
}
