//! The hub's Kubernetes API as the brain's [`Store`].

use std::time::Duration;

use fairlead_runtime::lease::{COMMIT_MARGIN_MS, Tenure};
use fairlead_runtime::store::{self as wire, Options, Propagation};
use fairlead_runtime::{clock, store::Call};
use kube::Client;

use super::kinds::{field_manager, resource};
use crate::ports::{Kind, Object, Op, Outcome, Request, Store};

/// How long an admission commit may take. A new leader waits as long before it lists.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long any other operation may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Writes to the API server as long as this process leads.
#[derive(Debug)]
pub struct KubeStore {
    store: wire::Store,
    tenure: Tenure,
}

impl KubeStore {
    /// A store that writes with `client` while `tenure` lasts.
    pub const fn new(client: Client, tenure: Tenure) -> Self {
        Self { store: wire::Store::new(client), tenure }
    }
}

impl Store for KubeStore {
    async fn execute(&self, request: &Request) -> Outcome {
        let remaining_ms = self.tenure.remaining_ms(clock::now().mono);
        if !may_send(request, remaining_ms) {
            return Outcome::NotSent;
        }
        let options = Options {
            field_manager: Some(field_manager(request.kind, &request.op).as_str()),
            timeout: timeout(request, remaining_ms),
            ..Options::default()
        };
        let (resource, op) = (resource(request.kind), wire_op(&request.op));
        let call = Call { resource: &resource, key: &request.key, op: &op, options: &options };
        outcome(request.kind, self.store.execute(&call).await)
    }
}

/// Reads are always allowed; writes while there is a lease; commits while enough of it is left that they are
/// answered or void before it ends.
fn may_send(request: &Request, remaining_ms: i64) -> bool {
    match &request.op {
        Op::Get => true,
        _ if request.commit => remaining_ms > COMMIT_MARGIN_MS,
        Op::Create(_) | Op::Patch(_) | Op::PatchStatus(_) | Op::PutStatus(_) | Op::Delete(_) => {
            remaining_ms > 0
        }
    }
}

/// A write is answered or void by the end of the lease: the API server knows its time-out, too.
fn timeout(request: &Request, remaining_ms: i64) -> Duration {
    match &request.op {
        Op::Get => TIMEOUT,
        Op::Create(_) | Op::Patch(_) | Op::PatchStatus(_) | Op::PutStatus(_) | Op::Delete(_) => {
            let longest = if request.commit { COMMIT_TIMEOUT } else { TIMEOUT };
            longest.min(Duration::from_millis(u64::try_from(remaining_ms).unwrap_or(0)))
        }
    }
}

fn wire_op(op: &Op) -> wire::Op {
    match op {
        Op::Create(json) => wire::Op::Create(json.clone()),
        Op::Patch(json) => wire::Op::Patch(json.clone()),
        Op::PatchStatus(json) => wire::Op::PatchStatus(json.clone()),
        Op::PutStatus(json) => wire::Op::PutStatus(json.clone()),
        Op::Delete(uid) => wire::Op::Delete { uid: uid.clone(), propagation: Propagation::Background },
        Op::Get => wire::Op::Get,
    }
}

fn outcome(kind: Kind, outcome: wire::Outcome) -> Outcome {
    match outcome {
        wire::Outcome::Done(object) => Outcome::Done(from_wire(kind, object)),
        wire::Outcome::Conflict => Outcome::Conflict,
        wire::Outcome::AlreadyExists => Outcome::AlreadyExists,
        wire::Outcome::NotFound => Outcome::NotFound,
        wire::Outcome::Refused { reason, message, .. } => Outcome::Refused(format!("{reason}: {message}")),
        wire::Outcome::Unknown(why) => Outcome::Unknown(why),
    }
}

/// The brain's form of an object.
pub(super) fn from_wire(kind: Kind, object: fairlead_runtime::Object) -> Object {
    Object { kind, key: object.key, uid: object.uid, version: object.version, json: object.json }
}

#[cfg(test)]
mod tests {
    use fairlead_model::{ObjectKey, Uid};
    use serde_json::json;

    use super::*;
    use crate::ports::OpId;

    fn request(op: Op, commit: bool) -> Request {
        Request { id: OpId(1), kind: Kind::Workload, key: ObjectKey::new("ns", "w"), op, commit }
    }

    #[test]
    fn no_write_outlives_the_lease() {
        let commit = request(Op::PutStatus(json!({})), true);
        let write = request(Op::Patch(json!({})), false);
        let read = request(Op::Get, false);
        let timeouts = |left| [&commit, &write, &read].map(|request| timeout(request, left).as_millis());
        assert_eq!(timeouts(60_000), [2_000, 10_000, 10_000]);
        assert_eq!(timeouts(4_001), [2_000, 4_001, 10_000]);
        assert_eq!(timeouts(300), [300, 300, 10_000]);
    }

    #[test]
    fn commits_stop_before_the_lease_ends_writes_when_it_ends_reads_never() {
        let commit = request(Op::PutStatus(json!({})), true);
        let write = request(Op::Delete(Uid::new("u")), false);
        let read = request(Op::Get, false);
        let allowed = |left| [&commit, &write, &read].map(|request| may_send(request, left));
        assert_eq!(allowed(4_001), [true, true, true]);
        assert_eq!(allowed(4_000), [false, true, true]);
        assert_eq!(allowed(0), [false, false, true]);
        assert_eq!(allowed(i64::MIN), [false, false, true]);
    }
}
