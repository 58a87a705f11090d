//! The finalizer that keeps queues, flavors, topologies and checks from vanishing while they are in use.
//!
//! It is put on what is seen without it, and taken off what is being deleted once nobody uses it any more. A Workload's
//! is another matter: it stands for copies (`writes`).

use fairlead_api::labels::RESOURCE_IN_USE;
use serde_json::{Value, json};

use super::active::is_deleting;
use crate::brain::Brain;
use crate::jobs::json;
use crate::ports::{Kind, Object};

impl Brain {
    /// The change of the finalizers that an object needs, if any. It is conditional on the version, because the list is
    /// replaced as a whole.
    pub(super) fn finalizer_patch(&self, object: &Object) -> Option<Value> {
        let protected = matches!(
            object.kind,
            Kind::ClusterQueue | Kind::ResourceFlavor | Kind::Topology | Kind::AdmissionCheck
        );
        if !protected {
            return None;
        }
        let list = json::list(&object.json, &["metadata", "finalizers"]);
        let held = list.iter().any(is_ours);
        let finalizers: Vec<&Value> = match (is_deleting(object), held) {
            (true, true) if !self.is_used(object) => list.iter().filter(|one| !is_ours(one)).collect(),
            (false, false) => {
                let ours = json!(RESOURCE_IN_USE);
                let all: Vec<Value> = list.iter().cloned().chain([ours]).collect();
                return Some(patch(object, &json!(all)));
            }
            _ => return None,
        };
        Some(patch(object, &json!(finalizers)))
    }

    /// Looks again at what is being deleted: what used it may use it no more.
    pub(super) fn touch_deleting(&mut self) {
        let Self { catalog, sums, .. } = self;
        let kinds = [
            (Kind::ResourceFlavor, &catalog.flavors),
            (Kind::Topology, &catalog.topologies),
            (Kind::AdmissionCheck, &catalog.checks),
        ];
        for (kind, map) in kinds {
            for (key, _) in map.iter().filter(|(_, kept)| is_deleting(&kept.object)) {
                sums.touch(kind, key.clone());
            }
        }
    }

    fn is_used(&self, object: &Object) -> bool {
        let name = &object.key.name;
        match object.kind {
            Kind::ClusterQueue => self.sums.cluster.get(name).is_some_and(|sum| sum.reserving > 0),
            Kind::ResourceFlavor => {
                let mut queues = self.catalog.cluster_queues.keys();
                queues.any(|queue| self.quotas(&queue.name).iter().any(|(flavor, ..)| flavor == name))
            }
            Kind::AdmissionCheck => self
                .catalog
                .cluster_queues
                .keys()
                .any(|queue| self.catalog.checks_of(&queue.name).contains(name)),
            Kind::Topology => self
                .catalog
                .flavors
                .values()
                .any(|flavor| json::text(&flavor.object.json, &["spec", "topologyName"]) == Some(&**name)),
            _ => false,
        }
    }
}

fn is_ours(finalizer: &Value) -> bool {
    finalizer.as_str() == Some(RESOURCE_IN_USE)
}

fn patch(object: &Object, finalizers: &Value) -> Value {
    json!({"metadata": {
        "uid": object.uid.as_str(),
        "resourceVersion": object.version.to_string(),
        "finalizers": finalizers,
    }})
}
