//! Events: what people see with `kubectl describe`.

use std::sync::Arc;

use fairlead_api::labels;
use fairlead_model::{Leadership, Millis, ObjectKey, Reason};
use serde_json::{Value, json};

use crate::jobs::view::GVK;

/// What an Event is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About<'a> {
    /// Namespace and name of the Job.
    pub(crate) job: &'a ObjectKey,
    /// Its UID.
    pub(crate) uid: &'a str,
}

/// What an Event says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said<'a> {
    /// Something is wrong that somebody may want to change.
    pub(crate) warning: bool,
    /// The token.
    pub(crate) reason: &'a str,
    /// What the hub did.
    pub(crate) action: &'a str,
    /// The sentence.
    pub(crate) note: &'a str,
}

/// Longest note that the API server takes.
const NOTE: usize = 1024;

/// An Event and its key. `number` is unique within the term, which makes the name unique for ever.
pub(crate) fn event(
    about: About<'_>,
    said: Said<'_>,
    leader: &Leadership,
    number: u64,
    wall: Millis,
) -> (ObjectKey, Value) {
    let stem: String = about.job.name.chars().take(200).collect();
    let name = format!("{stem}.{:x}.{number:x}", leader.term.0);
    let time = jiff::Timestamp::from_millisecond(wall.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let note: String = said.note.chars().take(NOTE).collect();
    let json = json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": &*about.job.namespace},
        "eventTime": format!("{time:.6}"),
        "reportingController": labels::DISPATCH,
        "reportingInstance": format!("term-{}", leader.term.0),
        "type": if said.warning { "Warning" } else { "Normal" },
        "reason": said.reason,
        "action": said.action,
        "note": note,
        "regarding": {
            "apiVersion": format!("{}/{}", GVK.0, GVK.1),
            "kind": GVK.2,
            "namespace": &*about.job.namespace,
            "name": &*about.job.name,
            "uid": about.uid,
        },
    });
    (ObjectKey::new(Arc::clone(&about.job.namespace), name), json)
}

/// Whether waiting for this reason is something that a person has to change.
pub(crate) const fn is_warning(reason: Reason) -> bool {
    !matches!(
        reason,
        Reason::WaitingForQuota
            | Reason::WaitingForCapacity
            | Reason::WaitingForAdmissionChecks
            | Reason::WaitingForPreemptedWorkloads
            | Reason::PendingEvaluation
            | Reason::Busy
            | Reason::NotChosen
            | Reason::QueueStopped
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_name_the_job_and_are_unique_over_terms() {
        let job = ObjectKey::new("team", "train");
        let said = Said { warning: true, reason: "NameTaken", action: "Prepare", note: &"x".repeat(5000) };
        let about = About { job: &job, uid: "u" };
        let leader = |term| Leadership { term: fairlead_model::Term(term), ..Leadership::default() };
        let (first, json) = event(about, said, &leader(1), 18, Millis(1_800_000_000_123));
        let (second, _) = event(about, said, &leader(2), 18, Millis(0));
        assert_ne!(first, second);
        assert_eq!(json["regarding"]["uid"], "u");
        assert_eq!(json["eventTime"], "2027-01-15T08:00:00.123000Z");
        assert_eq!(json["note"].as_str().unwrap().len(), NOTE);
    }
}
