//! What the hub reads of a Job.

use std::sync::Arc;

use fairlead_api::{kueue, labels};
use serde_json::Value;

use super::json;

/// Group, version and kind of the jobs that this module is about.
pub const GVK: (&str, &str, &str) = ("batch", "v1", "Job");

/// Who runs a Job, by its `spec.managedBy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManagedBy {
    /// The built-in Job controller.
    BuiltIn,
    /// Fairlead, under its own name or MultiKueue's.
    Fairlead,
    /// Somebody else.
    Other,
}

/// The parts of a Job that decisions rest on.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a field of the object, and any mix of them occurs"
)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobView {
    /// The LocalQueue that its label names.
    pub queue: Option<Arc<str>>,
    /// The Workload that it names, made before it.
    pub prebuilt: Option<Arc<str>>,
    /// Who runs it.
    pub managed_by: ManagedBy,
    /// `spec.suspend`.
    pub suspended: bool,
    /// It has a deletion timestamp.
    pub deleting: bool,
    /// It is complete or failed.
    pub finished: bool,
    /// It is part of a job of another kind, which is queued as a whole.
    pub owned: bool,
}

impl JobView {
    /// Reads a Job.
    pub fn of(job: &Value) -> Self {
        let managed_by = match json::text(job, &["spec", "managedBy"]) {
            None | Some(labels::BUILTIN_JOB_CONTROLLER) => ManagedBy::BuiltIn,
            Some(labels::DISPATCH | labels::MULTIKUEUE) => ManagedBy::Fairlead,
            Some(_) => ManagedBy::Other,
        };
        let queue = json::text(job, &["metadata", "labels", labels::QUEUE_NAME]);
        let named = |place: &str| json::text(job, &["metadata", place, labels::PREBUILT_WORKLOAD]);
        let prebuilt = named("annotations").or_else(|| named("labels")).filter(|name| !name.is_empty());
        Self {
            prebuilt: prebuilt.map(Arc::from),
            queue: queue.filter(|queue| !queue.is_empty()).map(Arc::from),
            managed_by,
            suspended: json::flag(job, &["spec", "suspend"]),
            deleting: json::at(job, &["metadata", "deletionTimestamp"]).is_some(),
            finished: condition_is_true(job, "Complete") || condition_is_true(job, "Failed"),
            owned: json::list(job, &["metadata", "ownerReferences"]).iter().any(is_job),
        }
    }

    /// Whether it is queued by us.
    pub const fn is_ours(&self) -> bool {
        self.queue.is_some() && !self.owned && !matches!(self.managed_by, ManagedBy::Other)
    }
}

/// Whether the Job has this condition, and it holds.
pub fn condition_is_true(job: &Value, kind: &str) -> bool {
    condition(job, kind).and_then(|condition| json::text(condition, &["status"])) == Some("True")
}

/// The condition of this type.
pub fn condition<'a>(job: &'a Value, kind: &str) -> Option<&'a Value> {
    json::list(job, &["status", "conditions"])
        .iter()
        .find(|condition| json::text(condition, &["type"]) == Some(kind))
}

/// Whether an owner controls the Job and is itself a job that is queued.
fn is_job(owner: &Value) -> bool {
    let version = json::text(owner, &["apiVersion"]).unwrap_or_default();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let kind = json::text(owner, &["kind"]).unwrap_or_default();
    json::flag(owner, &["controller"]) && kueue::JOB_KINDS.contains(&(group, kind))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn job(managed_by: &Value, owner: &Value) -> JobView {
        JobView::of(&json!({
            "metadata": {"labels": {"kueue.x-k8s.io/queue-name": "q"}, "ownerReferences": [owner]},
            "spec": {"managedBy": managed_by, "suspend": true},
        }))
    }

    #[test]
    fn jobs_of_other_managers_and_parts_of_other_jobs_are_not_ours() {
        let cron = json!({"kind": "CronJob", "controller": true});
        assert!(job(&Value::Null, &cron).is_ours());
        assert!(job(&json!("fairlead.dev/dispatch"), &cron).is_ours());
        assert!(job(&json!("kueue.x-k8s.io/multikueue"), &cron).is_ours());
        assert!(!job(&json!("example.com/other"), &cron).is_ours());
        let set = |version: &str, controller: bool| json!({"apiVersion": version, "kind": "JobSet", "controller": controller});
        assert!(!job(&Value::Null, &set("jobset.x-k8s.io/v1alpha2", true)).is_ours());
        assert!(
            job(&Value::Null, &set("jobset.x-k8s.io/v1alpha2", false)).is_ours(),
            "it does not control the job"
        );
        assert!(job(&Value::Null, &set("example.com/v1", true)).is_ours(), "nobody queues such an owner");
    }

    #[test]
    fn the_end_is_read_from_the_conditions() {
        let ended = json!({"status": {"conditions": [
            {"type": "Complete", "status": "False"}, {"type": "Failed", "status": "True"}]}});
        assert!(JobView::of(&ended).finished);
        assert!(!JobView::of(&json!({})).finished);
    }
}
