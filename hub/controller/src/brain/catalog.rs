//! What the brain itself knows of queues, checks, flavors, namespaces and classes: enough to make Workloads, copies
//! and queue statuses. What decisions rest on is in the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairlead_api::labels;
use fairlead_model::{Labels, ObjectKey};
use serde_json::Value;

use super::ledger::Slot;
use crate::jobs::json;
use crate::jobs::workload::Priorities;
use crate::ports::{Kind, Object};

/// An object whose status, labels or finalizers the brain keeps up.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) object: Object,
    pub(crate) slot: Slot,
    /// Monotonic time of the last status write.
    pub(crate) written: Option<fairlead_model::Millis>,
}

/// Objects by key.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    pub(crate) local_queues: BTreeMap<ObjectKey, Kept>,
    pub(crate) cluster_queues: BTreeMap<ObjectKey, Kept>,
    pub(crate) checks: BTreeMap<ObjectKey, Kept>,
    pub(crate) cohorts: BTreeMap<ObjectKey, Kept>,
    pub(crate) flavors: BTreeMap<ObjectKey, Kept>,
    pub(crate) topologies: BTreeMap<ObjectKey, Kept>,
    policies: BTreeSet<Arc<str>>,
    configs: BTreeSet<Arc<str>>,
    namespaces: BTreeMap<Arc<str>, bool>,
    pub(crate) priorities: Priorities,
}

/// Whether an AdmissionCheck with this controller makes its queues federated.
pub fn is_dispatch_controller(name: &str) -> bool {
    matches!(name, labels::DISPATCH | labels::MULTIKUEUE)
}

impl Catalog {
    /// Takes in an object of one of these kinds.
    pub(crate) fn upsert(&mut self, object: &Object) {
        let name = Arc::clone(&object.key.name);
        match object.kind {
            Kind::LocalQueue => keep(&mut self.local_queues, object),
            Kind::ClusterQueue => keep(&mut self.cluster_queues, object),
            Kind::AdmissionCheck => keep(&mut self.checks, object),
            Kind::Cohort => keep(&mut self.cohorts, object),
            Kind::ResourceFlavor => keep(&mut self.flavors, object),
            Kind::Topology => keep(&mut self.topologies, object),
            Kind::PlacementPolicy => {
                self.policies.insert(name);
            }
            Kind::MultiKueueConfig => {
                self.configs.insert(name);
            }
            Kind::Namespace => {
                let terminating = json::at(&object.json, &["metadata", "deletionTimestamp"]).is_some();
                self.namespaces.insert(name, terminating);
            }
            Kind::WorkloadPriorityClass => {
                self.priorities.workload.insert(name, priority_of(object));
            }
            Kind::PriorityClass => {
                self.set_default_class(object);
                self.priorities.pod.insert(name, priority_of(object));
            }
            // The engine alone knows these, or the brain keeps them elsewhere.
            Kind::LimitRange
            | Kind::RuntimeClass
            | Kind::Node
            | Kind::Pod
            | Kind::Job
            | Kind::Workload
            | Kind::Cluster
            | Kind::Tombstone
            | Kind::Event => {}
        }
    }

    /// Drops one.
    pub(crate) fn remove(&mut self, kind: Kind, key: &ObjectKey) {
        match kind {
            Kind::LocalQueue => drop(self.local_queues.remove(key)),
            Kind::ClusterQueue => drop(self.cluster_queues.remove(key)),
            Kind::AdmissionCheck => drop(self.checks.remove(key)),
            Kind::Cohort => drop(self.cohorts.remove(key)),
            Kind::ResourceFlavor => drop(self.flavors.remove(key)),
            Kind::Topology => drop(self.topologies.remove(key)),
            Kind::PlacementPolicy => {
                self.policies.remove(&key.name);
            }
            Kind::MultiKueueConfig => {
                self.configs.remove(&key.name);
            }
            Kind::Namespace => drop(self.namespaces.remove(&key.name)),
            Kind::WorkloadPriorityClass => drop(self.priorities.workload.remove(&key.name)),
            Kind::PriorityClass => {
                self.priorities.pod.remove(&key.name);
                self.priorities.pod_default.take_if(|name| *name == key.name);
            }
            _ => {}
        }
    }

    /// The kept object of one of the kinds that the brain writes to.
    pub(crate) fn kept_mut(&mut self, kind: Kind, key: &ObjectKey) -> Option<&mut Kept> {
        match kind {
            Kind::LocalQueue => self.local_queues.get_mut(key),
            Kind::ClusterQueue => self.cluster_queues.get_mut(key),
            Kind::AdmissionCheck => self.checks.get_mut(key),
            Kind::Cohort => self.cohorts.get_mut(key),
            Kind::ResourceFlavor => self.flavors.get_mut(key),
            Kind::Topology => self.topologies.get_mut(key),
            _ => None,
        }
    }

    /// Every kept object's kind and key.
    pub(crate) fn kept_keys(&self) -> impl Iterator<Item = (Kind, ObjectKey)> {
        let kinds = [
            (Kind::LocalQueue, &self.local_queues),
            (Kind::ClusterQueue, &self.cluster_queues),
            (Kind::AdmissionCheck, &self.checks),
            (Kind::Cohort, &self.cohorts),
            (Kind::ResourceFlavor, &self.flavors),
            (Kind::Topology, &self.topologies),
        ];
        kinds.into_iter().flat_map(|(kind, map)| map.keys().map(move |key| (kind, key.clone())))
    }

    fn set_default_class(&mut self, object: &Object) {
        let name = &object.key.name;
        if json::flag(&object.json, &["globalDefault"]) {
            self.priorities.pod_default = Some(Arc::clone(name));
        } else {
            self.priorities.pod_default.take_if(|default| default == name);
        }
    }

    /// The ClusterQueue that a LocalQueue leads to.
    pub(crate) fn cluster_queue_of(&self, local_queue: &ObjectKey) -> Option<Arc<str>> {
        let queue = self.local_queues.get(local_queue)?;
        json::text(&queue.object.json, &["spec", "clusterQueue"]).map(Arc::from)
    }

    /// Whether this ClusterQueue exists.
    pub(crate) fn has_cluster_queue(&self, name: &str) -> bool {
        self.cluster_queues.contains_key(&ObjectKey::new("", name))
    }

    /// The checks that a ClusterQueue names.
    pub(crate) fn checks_of(&self, cluster_queue: &str) -> Vec<Arc<str>> {
        let path = ["spec", "admissionChecksStrategy", "admissionChecks"];
        let queue = self.cluster_queues.get(&ObjectKey::new("", cluster_queue));
        let checks = queue.map_or(&[][..], |queue| json::list(&queue.object.json, &path));
        checks.iter().filter_map(|check| json::text(check, &["name"])).map(Arc::from).collect()
    }

    /// The dispatch check of a ClusterQueue: the one that makes it federated.
    pub(crate) fn dispatch_check(&self, cluster_queue: &str) -> Option<Arc<str>> {
        self.checks_of(cluster_queue).into_iter().find(|check| self.is_dispatch_check(check))
    }

    /// Whether this AdmissionCheck exists and is ours.
    pub(crate) fn is_dispatch_check(&self, name: &str) -> bool {
        let check = self.checks.get(&ObjectKey::new("", name));
        let controller = check.and_then(|check| json::text(&check.object.json, &["spec", "controllerName"]));
        controller.is_some_and(is_dispatch_controller)
    }

    /// Whether the parameters of a check exist; none where it has none.
    pub(crate) fn has_parameters(&self, kind: &str, name: &str) -> bool {
        match kind {
            "PlacementPolicy" => self.policies.contains(name),
            "MultiKueueConfig" => self.configs.contains(name),
            _ => false,
        }
    }

    /// The `spec` of a ResourceFlavor.
    pub(crate) fn flavor(&self, name: &str) -> Option<&Value> {
        Some(self.flavors.get(&ObjectKey::new("", name))?.object.json.get("spec").unwrap_or(&Value::Null))
    }

    /// Whether this Topology exists.
    pub(crate) fn has_topology(&self, name: &str) -> bool {
        self.topologies.contains_key(&ObjectKey::new("", name))
    }

    /// Each ResourceFlavor with its node labels.
    pub(crate) fn flavors(&self) -> impl Iterator<Item = (&Arc<str>, Labels)> {
        self.flavors.iter().map(|(key, kept)| {
            let labels = json::entries(&kept.object.json, &["spec", "nodeLabels"]);
            (&key.name, labels.map(|(key, value)| (key.into(), value.into())).collect())
        })
    }

    /// Whether the namespace is being deleted, or is gone.
    pub(crate) fn is_terminating(&self, namespace: &str) -> bool {
        self.namespaces.get(namespace).copied().unwrap_or(true)
    }
}

fn keep(map: &mut BTreeMap<ObjectKey, Kept>, object: &Object) {
    match map.get_mut(&object.key) {
        Some(kept) if kept.object.uid == object.uid => kept.object = object.clone(),
        _ => {
            let kept = Kept { object: object.clone(), slot: Slot::default(), written: None };
            map.insert(object.key.clone(), kept);
        }
    }
}

fn priority_of(object: &Object) -> i32 {
    let value = json::integer(&object.json, &["value"]).unwrap_or(0);
    i32::try_from(value).unwrap_or(if value < 0 { i32::MIN } else { i32::MAX })
}
