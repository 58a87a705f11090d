//! The newest facts, by identity.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_engine::Fact;
use fairlead_engine::fact::{
    ClusterQueue, Cohort, Flavor, LocalQueue, Namespace, Quota, ResourceGroup, Workload,
};
use fairlead_model::{ObjectKey, Uid};

use super::{FlavorResource, Name};

/// Everything that is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub(super) queues: BTreeMap<Name, ClusterQueue>,
    pub(super) locals: BTreeMap<ObjectKey, LocalQueue>,
    pub(super) cohorts: BTreeMap<Name, Cohort>,
    pub(super) flavors: BTreeMap<Name, Flavor>,
    pub(super) namespaces: BTreeMap<Name, Namespace>,
    pub(super) workloads: BTreeMap<Uid, Arc<Workload>>,
}

impl Facts {
    /// Replaces what was known of one thing. Panics at a fact that the reference has no rule for, so that no test
    /// compares what it cannot compare.
    pub(super) fn learn(&mut self, fact: Fact) {
        match fact {
            Fact::ClusterQueue(it) => drop(self.queues.insert(Arc::clone(&it.name), it)),
            Fact::ClusterQueueGone(name) => drop(self.queues.remove(&name)),
            Fact::LocalQueue(it) => drop(self.locals.insert(it.key.clone(), it)),
            Fact::LocalQueueGone(key) => drop(self.locals.remove(&key)),
            Fact::Cohort(it) => drop(self.cohorts.insert(Arc::clone(&it.name), it)),
            Fact::CohortGone(name) => drop(self.cohorts.remove(&name)),
            Fact::Flavor(it) => drop(self.flavors.insert(Arc::clone(&it.name), it)),
            Fact::FlavorGone(name) => drop(self.flavors.remove(&name)),
            Fact::Namespace(it) => drop(self.namespaces.insert(Arc::clone(&it.name), it)),
            Fact::NamespaceGone(name) => drop(self.namespaces.remove(&name)),
            Fact::Workload(it) => drop(self.workloads.insert(it.uid.clone(), it)),
            Fact::WorkloadGone(uid) => drop(self.workloads.remove(&uid)),
            other => unreachable!("the reference has no rule for {other:?}"),
        }
    }

    /// Whether a fact of a lasting object repeats what is known.
    pub(super) fn knows(&self, fact: &Fact) -> bool {
        match fact {
            Fact::ClusterQueue(it) => self.queues.get(&it.name) == Some(it),
            Fact::Cohort(it) => self.cohorts.get(&it.name) == Some(it),
            Fact::Flavor(it) => self.flavors.get(&it.name) == Some(it),
            Fact::Namespace(it) => self.namespaces.get(&it.name) == Some(it),
            Fact::ClusterQueueGone(name) => !self.queues.contains_key(name),
            Fact::CohortGone(name) => !self.cohorts.contains_key(name),
            Fact::FlavorGone(name) => !self.flavors.contains_key(name),
            _ => false,
        }
    }

    /// A workload that exists.
    pub(super) fn workload(&self, uid: &Uid) -> &Workload {
        &self.workloads[uid]
    }

    /// Resource groups of a node of the quota tree; a Cohort that is only named has none.
    pub(super) fn groups(&self, node: &Node) -> &[ResourceGroup] {
        match node {
            Node::Queue(name) => self.queues.get(name).map_or(&[], |queue| &queue.groups),
            Node::Cohort(name) => self.cohorts.get(name).map_or(&[], |cohort| &cohort.groups),
        }
    }

    /// The quota that a node states for a flavor and resource.
    pub(super) fn quota(&self, node: &Node, fr: &FlavorResource) -> Option<&Quota> {
        let flavors = self.groups(node).iter().flat_map(|group| &group.flavors);
        let mut quotas = flavors.filter(|flavor| flavor.flavor == fr.0).flat_map(|flavor| &flavor.quotas);
        quotas.find(|quota| quota.resource == fr.1)
    }
}

/// A node of the quota tree. A Cohort and a ClusterQueue may have the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Node {
    /// An inner node.
    Cohort(Name),
    /// A leaf.
    Queue(Name),
}
