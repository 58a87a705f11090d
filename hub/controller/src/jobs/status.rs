//! The status of a copy, mirrored onto the user's Job as the API server's rules for `managedBy` Jobs allow.

use fairlead_model::Millis;
use fairlead_session::{CopyStatus, Terminal};
use serde_json::{Map, Value, json};

use super::json;
use super::view::{condition, condition_is_true};

/// What the user's Job is to show.
#[derive(Clone, Copy, Debug)]
pub enum Shown<'a> {
    /// It waits in its queue.
    Waiting,
    /// It runs, or has ended, as this copy has.
    Copy(&'a CopyStatus),
}

/// The status patch that brings the Job up to date; none when nothing is to be written.
///
/// * A Job that has ended is never touched again.
/// * While the Job is still suspended only its end is shown, since the API server lets nobody change the start of
///   a running Job afterwards.
/// * `succeeded` and `failed` never fall, the first `startTime` is kept, `ready` is at most `active`.
/// * The end is one patch: no pods, both conditions, and a completion time that is not before the start.
pub fn mirror(job: &Value, shown: Shown<'_>, now: Millis) -> Option<Value> {
    if condition_is_true(job, "Complete") || condition_is_true(job, "Failed") {
        return None;
    }
    let suspended = json::flag(job, &["spec", "suspend"]);
    let mut wanted = Status::of(job);
    match shown {
        Shown::Waiting if suspended => wanted.wait(now),
        Shown::Copy(CopyStatus { terminal: Some(terminal), .. }) => {
            if let Shown::Copy(copy) = shown {
                wanted.end(copy, terminal, now);
            }
        }
        Shown::Copy(copy) if !suspended => wanted.run(copy, now),
        Shown::Waiting | Shown::Copy(_) => return None,
    }
    let old = json::at(job, &["status"]).cloned().unwrap_or_else(|| json!({}));
    json::merge_patch(&old, &Value::Object(wanted.fields)).map(|patch| json!({"status": patch}))
}

/// Milliseconds since the Unix epoch as the API server writes times, to the second.
pub fn rfc3339(time: Millis) -> String {
    jiff::Timestamp::from_second(time.0.div_euclid(1000)).unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_string()
}

/// A status in the making: all fields of the present one, changed as wanted.
struct Status<'a> {
    job: &'a Value,
    fields: Map<String, Value>,
}

impl<'a> Status<'a> {
    fn of(job: &'a Value) -> Self {
        Self { job, fields: json::into_object(json::at(job, &["status"]).cloned()) }
    }

    fn wait(&mut self, now: Millis) {
        for field in ["active", "ready"] {
            if self.fields.contains_key(field) {
                self.fields.insert(field.into(), 0.into());
            }
        }
        self.condition("Suspended", true, ("JobSuspended", "Job suspended"), now);
    }

    fn run(&mut self, copy: &CopyStatus, now: Millis) {
        self.counters(copy);
        self.fields.insert("active".into(), copy.active.into());
        self.fields.insert("ready".into(), copy.ready.min(copy.active).into());
        self.fields.insert("terminating".into(), copy.terminating.into());
        if let Some(start) = copy.start_time {
            self.start(start);
        }
        self.resumed(now);
    }

    fn end(&mut self, copy: &CopyStatus, terminal: &Terminal, now: Millis) {
        self.counters(copy);
        for field in ["active", "ready", "terminating"] {
            self.fields.insert(field.into(), 0.into());
        }
        self.start(copy.start_time.or(terminal.completion_time).unwrap_or(now));
        self.resumed(now);
        let said = (&*terminal.reason, &*terminal.message);
        if terminal.succeeded {
            let end = rfc3339(terminal.completion_time.unwrap_or(now));
            // Times of one format and zone compare as text.
            let start = self.fields.get("startTime").and_then(Value::as_str).unwrap_or_default();
            let end = if end.as_str() < start { start.to_owned() } else { end };
            self.fields.insert("completionTime".into(), end.into());
            self.condition("SuccessCriteriaMet", true, said, now);
            self.condition("Complete", true, said, now);
        } else {
            self.condition("FailureTarget", true, said, now);
            self.condition("Failed", true, said, now);
        }
    }

    fn counters(&mut self, copy: &CopyStatus) {
        for (field, value) in [("succeeded", copy.succeeded), ("failed", copy.failed)] {
            let old = json::integer(self.job, &["status", field]).unwrap_or(0);
            let new = old.max(value.into());
            if new > 0 {
                self.fields.insert(field.into(), new.into());
            }
        }
        if !copy.completed_indexes.is_empty() {
            self.fields.insert("completedIndexes".into(), copy.completed_indexes.as_ref().into());
        }
        let per_index =
            json::at(self.job, &["spec", "backoffLimitPerIndex"]).is_some_and(|limit| !limit.is_null());
        if per_index && !copy.failed_indexes.is_empty() {
            self.fields.insert("failedIndexes".into(), copy.failed_indexes.as_ref().into());
        }
    }

    fn start(&mut self, start: Millis) {
        let old = self.fields.get("startTime");
        if old.is_none_or(Value::is_null) {
            self.fields.insert("startTime".into(), rfc3339(start).into());
        }
    }

    /// A Job that was shown as suspended is not any more.
    fn resumed(&mut self, now: Millis) {
        if condition_is_true(self.job, "Suspended") {
            self.condition("Suspended", false, ("JobResumed", "Job resumed"), now);
        }
    }

    fn condition(&mut self, kind: &str, holds: bool, (reason, message): (&str, &str), now: Millis) {
        let status = if holds { "True" } else { "False" };
        let old = condition(self.job, kind);
        if old.and_then(|old| json::text(old, &["status"])) == Some(status) {
            return;
        }
        let mut conditions = json::list(self.job, &["status", "conditions"]).to_vec();
        if let Some(Value::Array(changed)) = self.fields.get("conditions") {
            conditions.clone_from(changed);
        }
        conditions.retain(|condition| json::text(condition, &["type"]) != Some(kind));
        conditions.push(json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastProbeTime": rfc3339(now), "lastTransitionTime": rfc3339(now),
        }));
        self.fields.insert("conditions".into(), conditions.into());
    }
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
