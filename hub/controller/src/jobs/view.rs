//! What the hub reads of a Job.

use std::sync::Arc;

use fairlead_api::labels;
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
    /// Who runs it.
    pub managed_by: ManagedBy,
    /// `spec.suspend`.
    pub suspended: bool,
    /// It has a deletion timestamp.
    pub deleting: bool,
    /// It is complete or failed.
    pub finished: bool,
    /// Another controller than a CronJob owns it, so it is part of something else.
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
        Self {
            queue: queue.filter(|queue| !queue.is_empty()).map(Arc::from),
            managed_by,
            suspended: json::flag(job, &["spec", "suspend"]),
            deleting: json::at(job, &["metadata", "deletionTimestamp"]).is_some(),
            finished: condition_is_true(job, "Complete") || condition_is_true(job, "Failed"),
            owned: json::list(job, &["metadata", "ownerReferences"]).iter().any(is_foreign_controller),
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

fn is_foreign_controller(owner: &Value) -> bool {
    json::flag(owner, &["controller"]) && json::text(owner, &["kind"]) != Some("CronJob")
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
    fn jobs_of_other_managers_and_controllers_are_not_ours() {
        let cron = json!({"kind": "CronJob", "controller": true});
        assert!(job(&Value::Null, &cron).is_ours());
        assert!(job(&json!("fairlead.dev/dispatch"), &cron).is_ours());
        assert!(job(&json!("kueue.x-k8s.io/multikueue"), &cron).is_ours());
        assert!(!job(&json!("example.com/other"), &cron).is_ours());
        assert!(!job(&Value::Null, &json!({"kind": "JobSet", "controller": true})).is_ours());
        assert!(
            job(&Value::Null, &json!({"kind": "Thing"})).is_ours(),
            "an owner that is no controller is nothing"
        );
    }

    #[test]
    fn the_end_is_read_from_the_conditions() {
        let ended = json!({"status": {"conditions": [
            {"type": "Complete", "status": "False"}, {"type": "Failed", "status": "True"}]}});
        assert!(JobView::of(&ended).finished);
        assert!(!JobView::of(&json!({})).finished);
    }
}
