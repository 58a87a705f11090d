//! A Job that changes after its Workload was made: its queue, its priority, its pods.

use std::hash::{DefaultHasher, Hash, Hasher};

use fairlead_model::Reason;
use serde_json::{Map, Value, json};

use super::Brain;
use super::events::Said;
use super::run::{Run, Workload, admitted_part};
use super::writes::guard;
use crate::jobs::{home, json, workload};
use crate::ports::Op;

/// What a changed Job asks of its Workload.
enum Change {
    /// Nothing.
    None,
    /// These fields of its spec.
    Spec(Map<String, Value>),
    /// Another Workload: what was admitted is not what would run.
    Anew,
}

impl Brain {
    /// Brings a run's Workload up to its Job; true when that is under way.
    pub(crate) fn sync_spec(&mut self, run: &mut Run) -> bool {
        match self.change_of(run) {
            Ok(Change::None) => false,
            Ok(Change::Spec(spec)) => {
                let Some(workload) = &run.workload else {
                    return false;
                };
                let key = workload.key.clone();
                let patch = json!({"metadata": guard(&workload.uid, workload.version), "spec": spec});
                self.take_workload(run, &key, Op::Patch(patch), false);
                true
            }
            Ok(Change::Anew) => self.begin_anew(run),
            Err(error) => {
                self.tell_once(run, Reason::InvalidJob, &error.to_string());
                false
            }
        }
    }

    fn change_of(&self, run: &mut Run) -> Result<Change, workload::Unusable> {
        let (Some(job), Some(stored)) = (&run.job, &run.workload) else {
            return Ok(Change::None);
        };
        if run.is_finished() || job.view.finished || !job.view.is_ours() {
            return Ok(Change::None);
        }
        let free = !(run.holds_quota() || run.held.is_some() || run.promised.is_some());
        let mut spec = Map::new();
        let queue = job.view.queue.as_ref().filter(|queue| ***queue != *stored.queue());
        if let Some(queue) = queue.filter(|_| free) {
            spec.insert("queueName".into(), (**queue).into());
        }
        let old = stored.json.get("spec").unwrap_or(&Value::Null);
        if let Some(priority) = workload::priority_patch(&job.json, old, &self.catalog.priorities)? {
            // With quota reserved the class is frozen, its value is not.
            let reference = |spec: &Value| spec.get("priorityClassRef").cloned();
            if free || reference(&priority) == reference(old) {
                spec.extend(json::into_object(Some(priority)));
            }
        }
        if job.view.prebuilt.is_some() {
            return Ok(if spec.is_empty() { Change::None } else { Change::Spec(spec) });
        }
        let mark = mark_of(&job.json, stored);
        if run.compared != Some(mark) {
            match pods_changed(run, free)? {
                Some(_) if !free => return Ok(Change::Anew),
                Some(sets) => {
                    spec.insert("podSets".into(), json!([sets]));
                }
                None => run.compared = Some(mark),
            }
        }
        Ok(if spec.is_empty() { Change::None } else { Change::Spec(spec) })
    }

    /// Deletes the Workload: the Job is stopped and gets its own template back, and then a new one is made.
    fn begin_anew(&mut self, run: &mut Run) -> bool {
        let Some(stored) = run.workload.as_ref().filter(|stored| stored.deleted_at.is_none()) else {
            return false;
        };
        let (key, uid) = (stored.key.clone(), stored.uid.clone());
        self.take_workload(run, &key, Op::Delete(uid), false);
        let note = "The job was changed after its admission: it is stopped and queued again";
        self.tell(run, Said { warning: false, reason: "JobChanged", action: "Stop", note });
        true
    }
}

/// Tells whether a Job or its Workload have changed since they were compared. Statuses do not count.
fn mark_of(job: &Value, stored: &Workload) -> u64 {
    let mut hasher = DefaultHasher::new();
    let generation = |json| json::integer(json, &["metadata", "generation"]);
    (generation(job), generation(&stored.json), stored.uid.as_str()).hash(&mut hasher);
    for entry in json::entries(job, &["metadata", "annotations"]) {
        entry.hash(&mut hasher);
    }
    hasher.finish()
}

/// The pod set that the Job asks for, where it is another than the Workload's.
fn pods_changed(run: &Run, free: bool) -> Result<Option<Value>, workload::Unusable> {
    let (Some(job), Some(stored)) = (&run.job, &run.workload) else {
        return Ok(None);
    };
    let Some(old) = json::list(&stored.json, &["spec", "podSets"]).first() else {
        return Ok(None);
    };
    if home::is_started(&job.json, old) {
        // Its template cannot have been changed, but for what a start put there; how many pods it has can.
        let admitted = stored.admitted_count();
        let expected = admitted_part(run, Some(admitted)).unwrap_or(admitted);
        let same = free || workload::pod_count(&job.json) == expected;
        return Ok((!same).then(|| old.clone()));
    }
    let new = workload::pod_set(&job.json)?;
    let fields = ["count", "minCount", "template", "topologyRequest"];
    let same = fields.into_iter().all(|field| old.get(field) == new.get(field));
    Ok((!same).then_some(new))
}
