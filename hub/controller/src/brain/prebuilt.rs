//! Workloads that somebody made before the Job that names them [J-3]: adopted, not made.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_api::labels;
use fairlead_model::{ObjectKey, Reason, RunId, Uid};
use serde_json::{Value, json};

use super::Brain;
use super::run::Run;
use super::writes::guard;
use crate::jobs::{json, workload};
use crate::ports::{Object, Op, Version};

/// Workloads without an owner, and Jobs that wait for one.
#[derive(Debug, Default)]
pub(crate) struct Prebuilt {
    unowned: BTreeMap<ObjectKey, Unowned>,
    waiting: BTreeMap<ObjectKey, RunId>,
}

#[derive(Debug)]
struct Unowned {
    uid: Uid,
    version: Version,
    finalizers: Vec<Value>,
}

impl Brain {
    /// A Workload that no Job owns.
    pub(crate) fn unowned_seen(&mut self, object: &Object) {
        let finalizers = json::list(&object.json, &["metadata", "finalizers"]).to_vec();
        let unowned = Unowned { uid: object.uid.clone(), version: object.version, finalizers };
        self.prebuilt.unowned.insert(object.key.clone(), unowned);
        self.dirty.extend(self.prebuilt.waiting.remove(&object.key));
    }

    /// A Workload is gone, or has an owner now.
    pub(crate) fn not_unowned(&mut self, key: &ObjectKey, uid: &Uid) {
        if self.prebuilt.unowned.get(key).is_some_and(|unowned| unowned.uid == *uid) {
            self.prebuilt.unowned.remove(key);
        }
    }

    /// Makes the Workload that a Job names the Job's own, or waits for it.
    pub(crate) fn adopt_workload(&mut self, run: &mut Run, name: &Arc<str>) {
        let key = ObjectKey::new(Arc::clone(&run.key.namespace), Arc::clone(name));
        let Some(unowned) = self.prebuilt.unowned.get(&key) else {
            self.prebuilt.waiting.insert(key, run.id.clone());
            let note = format!("Workload {name} does not exist, or another job owns it");
            self.tell_once(run, Reason::InvalidJob, &note);
            return;
        };
        let mut finalizers = unowned.finalizers.clone();
        if !finalizers.iter().any(|known| known.as_str() == Some(labels::RESOURCE_IN_USE)) {
            finalizers.push(labels::RESOURCE_IN_USE.into());
        }
        let mut metadata = guard(&unowned.uid, unowned.version);
        let own = workload::ownership(&run.key.name, run.id.as_str());
        json::apply_merge_patch(&mut metadata, &own);
        metadata["finalizers"] = json!(finalizers);
        self.take_workload(run, &key, Op::Patch(json!({"metadata": metadata})), false);
    }
}

/// Whether a Workload's pod set is what the Job would run: as many pods, of the same containers, on the same nodes.
/// Fields that the API server fills in for a Job and not for a Workload do not count.
pub(crate) fn agrees(job: &Value, pod_set: &Value) -> bool {
    let pod = |template: Option<&Value>, field: &str| {
        template.and_then(|template| json::at(template, &["spec", field])).cloned().unwrap_or_default()
    };
    let (theirs, ours) = (json::at(job, &["spec", "template"]), pod_set.get("template"));
    let shape = |list: Value| -> Vec<Value> {
        let one = |container: &Value| json!([container["name"], container["image"], container["resources"]]);
        list.as_array().map(|list| list.iter().map(one).collect()).unwrap_or_default()
    };
    let same = |field: &str| pod(theirs, field) == pod(ours, field);
    workload::pod_count(job) == json::integer(pod_set, &["count"]).unwrap_or(1)
        && shape(pod(theirs, "containers")) == shape(pod(ours, "containers"))
        && shape(pod(theirs, "initContainers")) == shape(pod(ours, "initContainers"))
        && same("nodeSelector")
        && same("tolerations")
}
