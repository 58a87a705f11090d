//! Turns Kubernetes objects into the engine's facts. It is the only way in: the golden runner comes through here too.
//!
//! Objects are read leniently where Kubernetes has defaults and strictly where a decision rests on a value: a quantity
//! that cannot be read is an error that names it, never zero.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_engine::Fact;
use fairlead_engine::fact;
use fairlead_model::{ObjectKey, Taint, Toleration};
use serde_json::Value;

use crate::ports::{Kind, Object};

mod checks;
mod nodes;
mod pods;
mod queues;
mod read;
pub mod topology;
mod workloads;

pub use workloads::{reservation, workload_json as workload_of};

/// Remembers what must be resolved across objects: checks with their policies.
#[derive(Clone, Debug, Default)]
pub struct Mirror {
    checks: BTreeMap<Arc<str>, Arc<Value>>,
    policies: BTreeMap<Arc<str>, Arc<Value>>,
    multikueue: BTreeMap<Arc<str>, Arc<Value>>,
}

/// A cluster-scoped or namespaced object's key.
fn key_of(json: &Value) -> ObjectKey {
    let text =
        |field: &str| json.pointer(&format!("/metadata/{field}")).and_then(Value::as_str).unwrap_or_default();
    ObjectKey::new(text("namespace"), text("name"))
}

impl Mirror {
    /// The facts that follow from an object as it is now. Kinds that the engine does not know give none.
    pub fn upsert(&mut self, object: &Object) -> Vec<Fact> {
        kind_name(object.kind).map(|kind| self.upsert_json(kind, &object.json)).unwrap_or_default()
    }

    /// The facts that follow from an object being gone.
    pub fn gone(&mut self, kind: Kind, key: &ObjectKey) -> Vec<Fact> {
        kind_name(kind).map(|kind| self.gone_json(kind, key)).unwrap_or_default()
    }

    /// The facts that follow from an object of this kind as it is now. An object that cannot be read gives none.
    pub fn upsert_json(&mut self, kind: &str, json: &Value) -> Vec<Fact> {
        let name = key_of(json).name;
        match kind {
            "AdmissionCheck" => {
                self.checks.insert(Arc::clone(&name), Arc::new(json.clone()));
                self.check_facts(|check| check == &*name)
            }
            "PlacementPolicy" => {
                self.policies.insert(name, Arc::new(json.clone()));
                self.check_facts(|_| true)
            }
            "MultiKueueConfig" => {
                self.multikueue.insert(name, Arc::new(json.clone()));
                self.check_facts(|_| true)
            }
            other => single(other, json).into_iter().collect(),
        }
    }

    /// The facts that follow from an object of this kind being gone.
    pub fn gone_json(&mut self, kind: &str, key: &ObjectKey) -> Vec<Fact> {
        let name = Arc::clone(&key.name);
        let fact = match kind {
            "AdmissionCheck" => {
                self.checks.remove(&name);
                Fact::CheckGone(name)
            }
            "PlacementPolicy" => {
                self.policies.remove(&name);
                return self.check_facts(|_| true);
            }
            "MultiKueueConfig" => {
                self.multikueue.remove(&name);
                return self.check_facts(|_| true);
            }
            "ClusterQueue" => Fact::ClusterQueueGone(name),
            "LocalQueue" => Fact::LocalQueueGone(key.clone()),
            "Cohort" => Fact::CohortGone(name),
            "ResourceFlavor" => Fact::FlavorGone(name),
            "Topology" => Fact::TopologyGone(name),
            "Namespace" => Fact::NamespaceGone(name),
            "LimitRange" => Fact::LimitRangeGone(key.clone()),
            "RuntimeClass" => Fact::RuntimeClassGone(name),
            "Node" => Fact::NodeGone(name),
            "Pod" => Fact::PodGone(key.clone()),
            _ => return Vec::new(),
        };
        vec![fact]
    }

    /// The facts of the checks that are asked for.
    fn check_facts(&self, wanted: impl Fn(&str) -> bool) -> Vec<Fact> {
        let checks = self.checks.iter().filter(|(name, _)| wanted(name));
        checks.map(|(_, check)| Fact::Check(checks::check(check, &self.policies, &self.multikueue))).collect()
    }
}

/// The Kubernetes name of a kind that decisions rest on.
const fn kind_name(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Namespace => Some("Namespace"),
        Kind::ClusterQueue => Some("ClusterQueue"),
        Kind::LocalQueue => Some("LocalQueue"),
        Kind::ResourceFlavor => Some("ResourceFlavor"),
        Kind::AdmissionCheck => Some("AdmissionCheck"),
        Kind::PlacementPolicy => Some("PlacementPolicy"),
        Kind::MultiKueueConfig => Some("MultiKueueConfig"),
        Kind::Cohort => Some("Cohort"),
        Kind::Topology => Some("Topology"),
        Kind::LimitRange => Some("LimitRange"),
        Kind::RuntimeClass => Some("RuntimeClass"),
        Kind::Node => Some("Node"),
        Kind::Pod => Some("Pod"),
        _ => None,
    }
}

/// The fact of an object that stands for itself.
fn single(kind: &str, json: &Value) -> Option<Fact> {
    match kind {
        "ClusterQueue" => queues::cluster_queue(json).ok().map(Fact::ClusterQueue),
        "LocalQueue" => queues::local_queue(json).ok().map(Fact::LocalQueue),
        "Cohort" => queues::cohort(json).ok().map(Fact::Cohort),
        "ResourceFlavor" => Some(Fact::Flavor(queues::flavor(json))),
        "Topology" => Some(Fact::Topology(queues::topology(json))),
        "Namespace" => Some(Fact::Namespace(queues::namespace(json))),
        "LimitRange" => pods::limit_range(json).ok().map(Fact::LimitRange),
        "RuntimeClass" => {
            let overhead = read::resources(json.pointer("/overhead/podFixed")).ok()?;
            Some(Fact::RuntimeClass(key_of(json).name, overhead))
        }
        "Node" => nodes::node(json).ok().map(Fact::Node),
        "Pod" => nodes::pod(json).ok(),
        "Workload" => workloads::workload_json(json).ok().map(|workload| Fact::Workload(Arc::new(workload))),
        _ => None,
    }
}

/// A Workload as the engine sees it: identity, queue, priority, pod sets and what its status says.
///
/// # Errors
///
/// What could not be read, for people.
pub fn workload(object: &Object) -> Result<fact::Workload, String> {
    workloads::workload_json(&object.json)
}

/// Brings a workload up to date with what is not part of its `spec`: annotations and status.
pub fn refresh(workload: &mut fact::Workload, object: &Object) {
    workloads::refresh(workload, &object.json);
}

/// Whether a node says that it is ready (none when it does not say), and its taints.
pub fn node_health(node: &Value) -> (Option<bool>, Vec<Taint>) {
    let conditions = read::list(node, "/status/conditions");
    let ready = conditions.iter().find(|condition| read::text(condition, "/type") == "Ready");
    let ready = ready.map(|condition| read::text(condition, "/status") == "True");
    (ready, read::taints(read::list(node, "/spec/taints")))
}

/// The value by which topologies know a node.
pub fn hostname(node: &Value) -> Option<Arc<str>> {
    read::labels(node.pointer("/metadata/labels")).remove("kubernetes.io/hostname")
}

/// The tolerations in a pod's or a flavor's spec.
pub fn tolerations(spec: &Value) -> Vec<Toleration> {
    read::tolerations(read::list(spec, "/tolerations"))
}

/// A spoke as the engine sees it.
pub fn cluster(object: &Object, presence: fact::Presence) -> fact::Cluster {
    nodes::cluster(object, presence)
}
