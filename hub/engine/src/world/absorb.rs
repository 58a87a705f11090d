//! Takes in facts.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_model::{ObjectKey, Resources, SpokeId, Uid};

use super::rows::{ClassKey, Group, Held, Place, Row};
use super::{Changed, World};
use crate::Fact;
use crate::fact::{
    AdmissionCheck, Cluster, ClusterQueue, ClusterReport, Cohort, Flavor, LimitRange, LocalQueue, Namespace,
    StopPolicy, Topology, Workload,
};
use crate::names::{CqIx, RowIx, at, next};
use crate::requests::{PodRequests, Surroundings, pod_requests};

/// Stores a value under its key and says whether that changed anything.
fn store<K: Ord, V: PartialEq>(map: &mut BTreeMap<K, V>, key: K, value: V) -> bool {
    if map.get(&key) == Some(&value) {
        return false;
    }
    map.insert(key, value);
    true
}

impl World {
    pub(super) fn take_in(&mut self, fact: Fact) -> Changed {
        match fact {
            Fact::Workload(workload) => self.take_workload(workload),
            Fact::WorkloadGone(uid) => self.drop_workload(&uid),
            Fact::ClusterQueue(queue) => self.take_queue(queue),
            Fact::ClusterQueueGone(name) => self.drop_queue(&name),
            Fact::LocalQueue(local) => self.take_local(local),
            Fact::LocalQueueGone(key) => self.drop_local(&key),
            Fact::Namespace(namespace) => self.take_namespace(namespace),
            Fact::NamespaceGone(name) => self.namespaces.remove(&name).is_some().into(),
            Fact::Cluster(cluster) => self.take_cluster(cluster),
            Fact::ClusterGone(spoke) => self.drop_cluster(&spoke),
            Fact::Report(report) => self.take_report(report),
            Fact::Cohort(cohort) => self.take_cohort(cohort).into(),
            Fact::CohortGone(name) => {
                self.requote(&name, |world| world.cohorts.remove(&name).is_some()).into()
            }
            Fact::Flavor(flavor) => self.take_flavor(flavor).into(),
            Fact::FlavorGone(name) => self.drop_flavor(&name).into(),
            Fact::Topology(topology) => self.take_topology(topology).into(),
            Fact::TopologyGone(name) => self.drop_topology(&name).into(),
            Fact::Check(check) => self.take_check(check).into(),
            Fact::CheckGone(name) => self.drop_check(&name).into(),
            Fact::LimitRange(range) => self.take_range(range).into(),
            Fact::LimitRangeGone(key) => self.drop_range(&key).into(),
            Fact::RuntimeClass(name, overhead) => self.take_class(&name, overhead).into(),
            Fact::RuntimeClassGone(name) => self.drop_class(&name).into(),
            Fact::Node(node) => self.take_node(node).into(),
            Fact::NodeGone(name) => self.drop_node(&name).into(),
            Fact::Pod(pod) => self.take_pod(pod).into(),
            Fact::PodGone(key) => self.drop_pod(&key).into(),
        }
    }

    fn take_cohort(&mut self, cohort: Cohort) -> bool {
        let name = Arc::clone(&cohort.name);
        self.requote(&name, |world| store(&mut world.cohorts, Arc::clone(&name), cohort))
    }

    fn drop_flavor(&mut self, name: &Arc<str>) -> bool {
        let changed = self.flavors.remove(name).is_some();
        self.flavor_changed(name, changed)
    }

    fn take_topology(&mut self, topology: Topology) -> bool {
        let changed = store(&mut self.topologies, Arc::clone(&topology.name), topology);
        self.all_changed(changed)
    }

    fn drop_topology(&mut self, name: &str) -> bool {
        let changed = self.topologies.remove(name).is_some();
        self.all_changed(changed)
    }

    fn take_check(&mut self, check: AdmissionCheck) -> bool {
        let changed = store(&mut self.checks, Arc::clone(&check.name), check);
        self.all_changed(changed)
    }

    fn drop_check(&mut self, name: &str) -> bool {
        let changed = self.checks.remove(name).is_some();
        self.all_changed(changed)
    }

    fn take_range(&mut self, range: LimitRange) -> bool {
        let namespace = Arc::clone(&range.key.namespace);
        let changed = store(&mut self.limit_ranges, range.key.clone(), range);
        self.recompute(changed, |workload| workload.key.namespace == namespace)
    }

    fn drop_range(&mut self, key: &ObjectKey) -> bool {
        let changed = self.limit_ranges.remove(key).is_some();
        self.recompute(changed, |workload| workload.key.namespace == key.namespace)
    }

    fn take_class(&mut self, name: &Arc<str>, overhead: Resources) -> bool {
        let changed = store(&mut self.runtime_classes, Arc::clone(name), overhead);
        self.recompute(changed, |workload| uses_class(workload, name))
    }

    fn drop_class(&mut self, name: &Arc<str>) -> bool {
        let changed = self.runtime_classes.remove(name).is_some();
        self.recompute(changed, |workload| uses_class(workload, name))
    }

    /// Runs a change of a node's quota and, if it was one, has the trees above and below rebuilt and woken.
    fn requote(&mut self, name: &Arc<str>, change: impl FnOnce(&mut Self) -> bool) -> bool {
        let changed = change(self);
        if changed {
            self.stale = true;
            self.requoted.insert(Arc::clone(name));
        }
        changed
    }

    /// Everything may have changed for every queue.
    fn all_changed(&mut self, changed: bool) -> bool {
        if changed {
            self.stale = true;
            let all: Vec<CqIx> = self.queues_by_name().map(|(ix, _)| ix).collect();
            self.wake_all(all);
        }
        changed
    }

    fn take_flavor(&mut self, flavor: Flavor) -> bool {
        let name = Arc::clone(&flavor.name);
        let changed = store(&mut self.flavors, Arc::clone(&name), flavor);
        self.flavor_changed(&name, changed)
    }

    fn flavor_changed(&mut self, name: &Arc<str>, changed: bool) -> bool {
        let ix = self.names.flavors.intern(name);
        if changed {
            self.stale = true;
            let uses = |queue: &super::Queue| queue.groups.iter().any(|group| group.flavors.contains(&ix));
            let concerned: Vec<CqIx> =
                self.queues_by_name().filter(|(_, queue)| uses(queue)).map(|(ix, _)| ix).collect();
            self.wake_all(concerned);
        }
        changed
    }

    fn take_queue(&mut self, fact: ClusterQueue) -> Changed {
        let name = Arc::clone(&fact.name);
        let ix = self.queue_ix(&name);
        let groups = self.compile(&fact);
        let Some(queue) = self.queue_mut(ix) else { return Changed::No };
        if queue.fact.as_deref() == Some(&fact) {
            return Changed::No;
        }
        let is_new = queue.fact.is_none();
        queue.groups = groups;
        queue.fact = Some(Arc::new(fact));
        self.requote(&name, |_| true);
        self.wake(ix);
        if is_new {
            self.requeue_cluster_queue(&name);
        }
        Changed::Yes
    }

    fn compile(&mut self, fact: &ClusterQueue) -> Vec<Group> {
        let mut groups = Vec::with_capacity(fact.groups.len());
        for group in &fact.groups {
            groups.push(Group {
                resources: group.resources.iter().map(|name| self.names.resources.intern(name)).collect(),
                flavors: group
                    .flavors
                    .iter()
                    .map(|flavor| self.names.flavors.intern(&flavor.flavor))
                    .collect(),
            });
        }
        groups
    }

    fn drop_queue(&mut self, name: &Arc<str>) -> Changed {
        let ix = self.queue_ix(name);
        let Some(queue) = self.queue_mut(ix) else { return Changed::No };
        if queue.fact.take().is_none() {
            return Changed::No;
        }
        queue.groups.clear();
        self.requote(name, |_| true);
        self.wake(ix);
        self.requeue_cluster_queue(name);
        Changed::Yes
    }

    fn take_local(&mut self, local: LocalQueue) -> Changed {
        let key = local.key.clone();
        let before = self.locals.get(&key).cloned();
        if before.as_ref() == Some(&local) {
            return Changed::No;
        }
        let moved = before.as_ref().is_none_or(|old| {
            old.cluster_queue != local.cluster_queue
                || (old.stop == StopPolicy::None) != (local.stop == StopPolicy::None)
        });
        self.locals.insert(key.clone(), local);
        if moved {
            self.requeue_local(&key);
        }
        Changed::Yes
    }

    fn drop_local(&mut self, key: &ObjectKey) -> Changed {
        if self.locals.remove(key).is_none() {
            return Changed::No;
        }
        self.requeue_local(key);
        Changed::Yes
    }

    fn take_namespace(&mut self, namespace: Namespace) -> Changed {
        let name = Arc::clone(&namespace.name);
        if !store(&mut self.namespaces, Arc::clone(&name), namespace) {
            return Changed::No;
        }
        let matching: Vec<CqIx> = self
            .queues_by_name()
            .filter(|(ix, _)| self.namespace_matches(*ix, &name))
            .map(|(ix, _)| ix)
            .collect();
        self.wake_all(matching);
        Changed::Yes
    }

    fn take_cluster(&mut self, cluster: Cluster) -> Changed {
        let row = self.clusters.entry(cluster.spoke.clone()).or_default();
        if row.fact.as_ref() == Some(&cluster) {
            return Changed::No;
        }
        row.fact = Some(cluster);
        self.wake_federated();
        Changed::Yes
    }

    fn drop_cluster(&mut self, spoke: &SpokeId) -> Changed {
        let Some(row) = self.clusters.get_mut(spoke) else { return Changed::No };
        let changed = row.fact.take().is_some();
        row.report = None;
        if row.rows.is_empty() {
            self.clusters.remove(spoke);
        }
        changed.into()
    }

    fn take_report(&mut self, report: ClusterReport) -> Changed {
        let changed = self.clusters.entry(report.spoke.clone()).or_default().report(report);
        if changed {
            self.wake_federated();
        }
        changed.into()
    }

    fn take_workload(&mut self, fact: Arc<Workload>) -> Changed {
        let known = self.by_uid.get(&fact.uid).copied();
        if known.and_then(|ix| self.row(ix)).is_some_and(|row| *row.fact == *fact && !row.assumed) {
            return Changed::No;
        }
        let requests = self.requests_of(&fact);
        self.intern_requests(&requests);
        let class = self.class_of(&fact, &requests);
        let local = ObjectKey::new(Arc::clone(&fact.key.namespace), Arc::clone(&fact.queue));
        match known {
            Some(ix) => self.update_row(ix, fact, requests, class),
            None => self.insert_row(fact, requests, class, &local),
        }
        Changed::Yes
    }

    fn insert_row(
        &mut self,
        fact: Arc<Workload>,
        requests: Arc<[PodRequests]>,
        class: u32,
        local: &ObjectKey,
    ) {
        let uid = fact.uid.clone();
        let row = Row {
            fact,
            requests,
            class,
            place: Place::Finished,
            sticky: false,
            scan: None,
            swept: None,
            retried: (0, 0),
            made_way: Vec::new(),
            held: None,
            assumed: false,
        };
        let ix = self.vacant.pop().unwrap_or_else(|| {
            self.rows.push(None);
            next(self.rows.len().saturating_sub(1))
        });
        if let Some(slot) = self.rows.get_mut(at(ix)) {
            *slot = Some(row);
        }
        self.by_uid.insert(uid, ix);
        self.by_local.entry(local.clone()).or_default().insert(ix);
        self.settle_row(ix, false);
    }

    fn update_row(&mut self, ix: RowIx, fact: Arc<Workload>, requests: Arc<[PodRequests]>, class: u32) {
        let Some(row) = self.row(ix) else { return };
        let old = Arc::clone(&row.fact);
        let place = row.place;
        let stays_parked = matches!(place, Place::Parked(_)) && same_attempt(&old, &fact);
        let reclaims = old.reclaimable != fact.reclaimable;
        let wakes = old.active && !fact.active;
        self.unqueue(ix);
        let held = self.release(ix);
        let local =
            |fact: &Workload| ObjectKey::new(Arc::clone(&fact.key.namespace), Arc::clone(&fact.queue));
        if local(&old) != local(&fact) {
            if let Some(rows) = self.by_local.get_mut(&local(&old)) {
                rows.remove(&ix);
            }
            self.by_local.entry(local(&fact)).or_default().insert(ix);
        }
        if let Some(row) = self.row_mut(ix) {
            if row.class != class {
                row.scan = None;
            }
            row.fact = fact;
            row.requests = requests;
            row.class = class;
        }
        self.settle_row(ix, stays_parked);
        if let (Place::Heap(queue) | Place::Parked(queue), true) = (place, wakes) {
            self.wake(queue);
        }
        if let Some(held) = held {
            self.wake_if_less(ix, &held);
            if reclaims {
                self.wake(held.queue);
            }
        }
    }

    /// Whether a workload's LocalQueue exists and is not stopped.
    fn has_open_local(&self, ix: RowIx) -> bool {
        let Some(row) = self.row(ix) else { return false };
        let key = ObjectKey::new(Arc::clone(&row.fact.key.namespace), Arc::clone(&row.fact.queue));
        self.locals.get(&key).is_some_and(|local| local.stop == StopPolicy::None)
    }

    /// Wakes the tree of a queue if a workload holds less there, or less room on its spoke, than it did.
    fn wake_if_less(&mut self, ix: RowIx, before: &Held) {
        let now = self.row(ix).and_then(|row| row.held.as_deref());
        let as_much = now.is_some_and(|now| now.queue == before.queue && now.usage == before.usage);
        let as_placed = now.is_some_and(|now| now.reservation.spoke == before.reservation.spoke);
        if !as_much && (self.settings.wake_on_drain || self.has_open_local(ix)) {
            self.waking.insert(before.queue);
        }
        if !as_much && !before.evicted {
            self.count_outside(before.queue);
        }
        if !as_placed && before.reservation.spoke.is_some() {
            self.wake_federated();
        }
    }

    /// Puts a row whose fact is new where it belongs.
    fn settle_row(&mut self, ix: RowIx, parked: bool) {
        let Some(row) = self.row(ix) else { return };
        let fact = Arc::clone(&row.fact);
        if fact.finished {
            self.put(ix, Place::Finished);
        } else if let Some(reservation) = &fact.reservation {
            self.hold(ix, reservation.clone());
        } else {
            self.enqueue(ix, parked);
        }
        self.settle_entry(ix);
    }

    fn drop_workload(&mut self, uid: &Uid) -> Changed {
        let Some(ix) = self.by_uid.remove(uid) else { return Changed::No };
        self.unqueue(ix);
        if let Some(held) = self.release(ix) {
            self.wake_if_less(ix, &held);
        }
        if let Some(row) = self.rows.get_mut(at(ix)).and_then(Option::take) {
            let local = ObjectKey::new(Arc::clone(&row.fact.key.namespace), Arc::clone(&row.fact.queue));
            if let Some(rows) = self.by_local.get_mut(&local) {
                rows.remove(&ix);
            }
            if let Place::Heap(queue) | Place::Parked(queue) = row.place {
                self.wake(queue);
            }
        }
        self.vacant.push(ix);
        self.sweep_classes();
        Changed::Yes
    }

    /// Per pod set, what one pod comes to.
    fn requests_of(&self, fact: &Workload) -> Arc<[PodRequests]> {
        let from = ObjectKey::new(Arc::clone(&fact.key.namespace), "");
        let ranges: Vec<_> = self
            .limit_ranges
            .range(from..)
            .take_while(|(key, _)| key.namespace == fact.key.namespace)
            .map(|(_, range)| range)
            .collect();
        let compute = |pod_set: &crate::fact::PodSet| {
            let class = pod_set.template.runtime_class.as_ref();
            let overhead = class.and_then(|class| self.runtime_classes.get(class));
            let around = Surroundings { limit_ranges: &ranges, overhead };
            pod_requests(&pod_set.template, around, &self.settings.requests)
        };
        fact.pod_sets.iter().map(compute).collect()
    }

    /// Gives every requested resource an ordinal, so that rounds need not look names up.
    fn intern_requests(&mut self, requests: &[PodRequests]) {
        for (name, _) in requests.iter().flat_map(|pod| pod.charged.iter()) {
            self.names.resources.intern(name);
        }
        self.names.resources.intern(&Arc::from("pods"));
    }

    fn class_of(&mut self, fact: &Workload, requests: &[PodRequests]) -> u32 {
        let charged = requests
            .iter()
            .map(|pod| pod.charged.iter().map(|(name, amount)| (Arc::clone(name), amount)).collect())
            .collect();
        let key = ClassKey {
            priority: fact.priority,
            pod_sets: Arc::clone(&fact.pod_sets),
            charged,
            reclaimed: fact.reclaimable.clone(),
            excluded: fact.excluded.iter().map(|exclusion| exclusion.spoke.clone()).collect(),
            gated: fact.preemption_gated,
        };
        let fresh = self.next_class;
        let class = *self.classes.entry(key).or_insert(fresh);
        if class == fresh {
            self.next_class = fresh.wrapping_add(1);
        }
        class
    }

    /// Forgets classes that no workload has any more, once they are many.
    fn sweep_classes(&mut self) {
        if self.classes.len() > self.by_uid.len().saturating_mul(2).saturating_add(1024) {
            let used: std::collections::BTreeSet<u32> =
                self.rows.iter().flatten().map(|row| row.class).collect();
            self.classes.retain(|_, class| used.contains(class));
        }
    }

    /// Recomputes the requests of pending workloads that a change concerns.
    fn recompute(&mut self, changed: bool, concerns: impl Fn(&Workload) -> bool) -> bool {
        if !changed {
            return false;
        }
        let pending = |row: &&Row| !matches!(row.place, Place::Held(_) | Place::Finished);
        let facts: Vec<Arc<Workload>> =
            self.rows.iter().flatten().filter(pending).map(|row| Arc::clone(&row.fact)).collect();
        for fact in facts.into_iter().filter(|fact| concerns(fact)) {
            let Some(ix) = self.by_uid.get(&fact.uid).copied() else { continue };
            let requests = self.requests_of(&fact);
            if self.row(ix).is_some_and(|row| row.requests == requests) {
                continue;
            }
            self.intern_requests(&requests);
            let class = self.class_of(&fact, &requests);
            self.unqueue(ix);
            if let Some(row) = self.row_mut(ix) {
                row.requests = requests;
                row.class = class;
                row.scan = None;
            }
            self.enqueue(ix, false);
        }
        true
    }
}

fn uses_class(workload: &Workload, class: &Arc<str>) -> bool {
    workload.pod_sets.iter().any(|pod_set| pod_set.template.runtime_class.as_ref() == Some(class))
}

/// Whether a parked workload need not be looked at again after this update.
fn same_attempt(old: &Workload, new: &Workload) -> bool {
    old.pod_sets == new.pod_sets
        && old.queue == new.queue
        && old.priority == new.priority
        && old.active == new.active
        && old.hold == new.hold
        && old.reclaimable == new.reclaimable
        && old.evicted == new.evicted
        && old.requeue_blocked == new.requeue_blocked
        && old.preemption_gated == new.preemption_gated
        && old.excluded == new.excluded
        && old.checks == new.checks
        && old.reservation == new.reservation
}
