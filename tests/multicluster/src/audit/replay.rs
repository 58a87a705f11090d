//! Replays the states that objects went through, from the bodies in an audit log.

use jiff::Timestamp;
use serde_json::Value;

use super::{AuditEvent, Verb};

/// A state that an object reached by a carried-out write.
#[derive(Debug, Clone)]
pub struct ObjectWrite<'a> {
    /// The object's resource version: counted by the cluster's store, so it orders writes of all its objects.
    pub revision: u64,
    /// When the write was answered.
    pub at: Timestamp,
    /// When the write was received.
    pub received: Timestamp,
    /// How it was written.
    pub verb: Verb,
    /// By which client program.
    pub agent: &'a str,
    /// Namespace of the object.
    pub namespace: &'a str,
    /// Name of the object.
    pub name: &'a str,
    /// UID of the object.
    pub uid: &'a str,
    /// The object after the write.
    pub object: &'a Value,
    /// True when the object is gone after it: deleted without finalizers, or its last finalizer was removed.
    pub gone: bool,
}

/// All carried-out writes of a resource (`workloads`, its subresources included), in the order of the store.
///
/// Only for resources whose bodies the audit policy keeps. A delete that answers with a `Status` instead of the object
/// has no state; it counts as gone, after every write that was answered before it.
pub fn writes_of<'a>(events: &'a [AuditEvent], resource: &str) -> Vec<ObjectWrite<'a>> {
    let mut writes: Vec<ObjectWrite<'_>> =
        events.iter().filter(|event| event.wrote(resource)).filter_map(write_of).collect();
    let mut reached = 0;
    for write in &mut writes {
        if write.revision == 0 {
            write.revision = reached;
        }
        reached = reached.max(write.revision);
    }
    writes.sort_by_key(|write| write.revision);
    writes
}

fn write_of(event: &AuditEvent) -> Option<ObjectWrite<'_>> {
    let object = event.response.as_ref()?;
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let status_only = text("/kind") == Some("Status");
    let revision = text("/metadata/resourceVersion").and_then(|version| version.parse().ok());
    if revision.is_none() && !status_only {
        return None;
    }
    let name = text("/metadata/name").filter(|_| !status_only).unwrap_or(&event.object.name);
    let uid = text("/metadata/uid").or_else(|| text("/details/uid")).unwrap_or(&event.object.uid);
    Some(ObjectWrite {
        revision: revision.unwrap_or_default(),
        at: event.answered,
        received: event.received,
        verb: event.verb,
        agent: &event.agent,
        namespace: &event.object.namespace,
        name,
        uid,
        object,
        gone: status_only || is_gone(event.verb, object),
    })
}

/// An object with a deletion timestamp goes with its last finalizer; one without finalizers when it is deleted without
/// a grace period.
fn is_gone(verb: Verb, object: &Value) -> bool {
    let finalizers =
        object.pointer("/metadata/finalizers").and_then(Value::as_array).is_some_and(|all| !all.is_empty());
    let deleting = object.pointer("/metadata/deletionTimestamp").is_some();
    let grace =
        object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_u64).unwrap_or_default();
    !finalizers && grace == 0 && (deleting || verb == Verb::Delete)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(verb: &str, response: &Value) -> AuditEvent {
        let line = json!({
            "stage": "ResponseComplete", "verb": verb, "userAgent": "fairlead-hub/0.1",
            "objectRef": {"resource": "workloads", "namespace": "a", "name": "w"},
            "responseStatus": {"code": 200}, "responseObject": response,
            "requestReceivedTimestamp": "2026-12-01T08:00:00Z", "stageTimestamp": "2026-12-01T08:00:00Z",
        });
        AuditEvent::parse(line.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn orders_by_the_store_and_sees_objects_go() {
        let state = |version: &str, finalizers: &[&str], deleted: bool| {
            let mut object = json!({"kind": "Workload", "metadata": {"name": "w", "uid": "u", "resourceVersion": version}});
            object["metadata"]["finalizers"] = json!(finalizers);
            if deleted {
                object["metadata"]["deletionTimestamp"] = json!("2026-12-01T08:00:00Z");
            }
            object
        };
        let events = [
            event("create", &state("5", &["f"], false)),
            event("patch", &state("11", &["f"], false)),
            event("patch", &state("9", &["f"], false)),
            event("delete", &state("12", &["f"], true)),
            event("patch", &state("12", &[], true)),
            event("delete", &json!({"kind": "Status", "metadata": {}, "details": {"name": "w", "uid": "u"}})),
        ];
        let writes = writes_of(&events, "workloads");
        let seen: Vec<(u64, bool)> = writes.iter().map(|write| (write.revision, write.gone)).collect();
        assert_eq!(seen, [(5, false), (9, false), (11, false), (12, false), (12, true), (12, true)]);
        assert!(writes.iter().all(|write| write.uid == "u" && write.name == "w"));
        assert!(writes_of(&events, "jobs").is_empty());
    }
}
