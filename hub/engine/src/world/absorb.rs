//! Takes in facts: those about queues, quota and clusters here, those about workloads in [`super::workloads`].

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_model::{ObjectKey, Resources, SpokeId};

use super::gangs::uses_class;
use super::rows::Group;
use super::{Changed, World};
use crate::Fact;
use crate::fact::{
    AdmissionCheck, Cluster, ClusterQueue, ClusterReport, Cohort, Flavor, LimitRange, LocalQueue, Namespace,
    StopPolicy, Topology,
};
use crate::names::CqIx;

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
            Fact::Workload(workload) => self.take_workload(&workload),
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
        self.recompute(changed, |row| *row.fact.namespace() == namespace)
    }

    fn drop_range(&mut self, key: &ObjectKey) -> bool {
        let changed = self.limit_ranges.remove(key).is_some();
        self.recompute(changed, |row| *row.fact.namespace() == key.namespace)
    }

    fn take_class(&mut self, name: &Arc<str>, overhead: Resources) -> bool {
        let changed = store(&mut self.runtime_classes, Arc::clone(name), overhead);
        self.recompute(changed, |row| uses_class(row, name))
    }

    fn drop_class(&mut self, name: &Arc<str>) -> bool {
        let changed = self.runtime_classes.remove(name).is_some();
        self.recompute(changed, |row| uses_class(row, name))
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
}
