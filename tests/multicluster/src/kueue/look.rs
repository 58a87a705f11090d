//! What an object's status says.

use serde_json::Value;

/// A condition by type.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|condition| condition["type"] == kind)
}

/// Whether a condition has this status.
pub fn has(object: &Value, kind: &str, status: &str) -> bool {
    condition(object, kind).is_some_and(|condition| condition["status"] == status)
}

/// The reason of a condition; empty when there is none.
pub fn reason<'a>(object: &'a Value, kind: &str) -> &'a str {
    condition(object, kind).and_then(|condition| condition["reason"].as_str()).unwrap_or_default()
}

/// Whether a condition has this status and reason, and was set from the object's present generation (where it says
/// from which).
pub fn is_condition(object: &Value, (kind, status, wanted): (&str, &str, &str)) -> bool {
    let current = condition(object, kind).is_some_and(|condition| {
        condition["observedGeneration"].is_null()
            || condition["observedGeneration"] == object["metadata"]["generation"]
    });
    current && has(object, kind, status) && reason(object, kind) == wanted
}

/// Whether a Workload is admitted.
pub fn admitted(workload: &Value) -> bool {
    has(workload, "Admitted", "True")
}

/// Whether a Workload has quota reserved.
pub fn reserved(workload: &Value) -> bool {
    has(workload, "QuotaReserved", "True")
}

/// Whether a Workload is finished.
pub fn finished(workload: &Value) -> bool {
    has(workload, "Finished", "True")
}
