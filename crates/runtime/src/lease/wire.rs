//! The lease as JSON.

use fairlead_model::{Millis, ObjectKey};
use serde_json::{Value, json};

use super::DURATION_MS;
use super::decide::Record;
use crate::clock::micro_time;
use crate::object::Object;

pub(super) fn read(object: &Object) -> Record {
    let spec = object.json.get("spec").cloned().unwrap_or_default();
    let number = |field: &str| spec.get(field).and_then(Value::as_i64);
    Record {
        holder: spec
            .get("holderIdentity")
            .and_then(Value::as_str)
            .filter(|name| !name.is_empty())
            .map(str::to_owned),
        duration_ms: number("leaseDurationSeconds")
            .map_or(DURATION_MS, |seconds| seconds.saturating_mul(1000)),
        version: object.version,
        transitions: number("leaseTransitions").unwrap_or(0),
    }
}

pub(super) fn fresh(key: &ObjectKey, me: &str, wall: Millis) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"namespace": &*key.namespace, "name": &*key.name},
        "spec": held(me, wall, 0),
    })
}

pub(super) fn takeover(record: &Record, me: &str, wall: Millis) -> Value {
    conditional(record, &held(me, wall, record.transitions.saturating_add(1)))
}

pub(super) fn renewal(record: &Record, wall: Millis) -> Value {
    conditional(record, &json!({"renewTime": micro_time(wall)}))
}

/// As other clients release a lease: no holder, and a duration of a second.
pub(super) fn release(record: &Record, wall: Millis) -> Value {
    conditional(
        record,
        &json!({"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": micro_time(wall)}),
    )
}

fn held(me: &str, wall: Millis, transitions: i64) -> Value {
    json!({
        "holderIdentity": me, "leaseDurationSeconds": DURATION_MS / 1000, "leaseTransitions": transitions,
        "acquireTime": micro_time(wall), "renewTime": micro_time(wall),
    })
}

fn conditional(record: &Record, spec: &Value) -> Value {
    json!({"metadata": {"resourceVersion": record.version.to_string()}, "spec": spec})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_read() {
        let mut json = fresh(&ObjectKey::new("ns", "hub"), "me", Millis(1_700_000_000_123));
        json["metadata"]["uid"] = "u".into();
        json["metadata"]["resourceVersion"] = "5".into();
        let mut record = read(&Object::from_json(json.clone()).unwrap());
        let mine = Record { holder: Some("me".to_owned()), duration_ms: 10_000, version: 5, transitions: 0 };
        assert_eq!(record, mine);
        record.transitions = 4;
        let patch = takeover(&record, "other", Millis(0));
        assert_eq!(patch["metadata"]["resourceVersion"], "5");
        assert_eq!(patch["spec"]["leaseTransitions"], 5);
        json["spec"]["holderIdentity"] = release(&record, Millis(0))["spec"]["holderIdentity"].clone();
        assert_eq!(read(&Object::from_json(json).unwrap()).holder, None);
    }
}
