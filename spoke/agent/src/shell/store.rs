//! The Kubernetes API behind the core's port.

use std::time::Duration;

use fairlead_api::labels::FieldManager;
use fairlead_runtime::store::{self, Call, Options, Propagation};
use fairlead_runtime::{CrashPoint, Resource, crash_point};

use crate::ports::{CREATE_TIMEOUT_MS, Kind, Object, Op, Outcome, Request, Store};

/// How long the API server may take for a look-up. The hub waits two seconds for the answer to a Prepare.
const LOOKUP_TIMEOUT: Duration = Duration::from_millis(1_500);

/// The resource of a kind.
pub(super) const fn resource(kind: Kind) -> Resource {
    match kind {
        Kind::Job | Kind::ForeignJob => Resource::new("batch", "v1", "jobs", true),
        Kind::Pod => Resource::new("", "v1", "pods", true),
        Kind::Node => Resource::new("", "v1", "nodes", false),
        Kind::Namespace => Resource::new("", "v1", "namespaces", false),
        Kind::SpokePolicy => Resource::new("fairlead.dev", "v1alpha1", "spokepolicies", false),
        Kind::ConfigMap => Resource::new("", "v1", "configmaps", true),
        Kind::Secret => Resource::new("", "v1", "secrets", true),
        Kind::PersistentVolumeClaim => Resource::new("", "v1", "persistentvolumeclaims", true),
        Kind::ServiceAccount => Resource::new("", "v1", "serviceaccounts", true),
    }
}

/// An object as the core knows it.
pub(super) fn from_wire(kind: Kind, object: fairlead_runtime::Object) -> Object {
    let fairlead_runtime::Object { key, uid, version, json, .. } = object;
    Object { kind, key, uid, version, json }
}

/// The spoke's API server.
#[derive(Debug)]
pub(super) struct KubeStore {
    store: store::Store,
}

impl KubeStore {
    /// On this client.
    pub(super) const fn new(store: store::Store) -> Self {
        Self { store }
    }
}

impl Store for KubeStore {
    async fn execute(&self, request: &Request) -> Outcome {
        let op = to_wire(&request.op);
        let options = Options {
            field_manager: Some(FieldManager::Agent.as_str()),
            impersonate: request.tenant.as_ref().map(crate::ports::Tenant::user),
            timeout: timeout(&request.op),
            dry_run: false,
        };
        let resource = resource(request.kind);
        let call = Call { resource: &resource, key: &request.key, op: &op, options: &options };
        if matches!(request.op, Op::Create(_)) {
            crash_point(CrashPoint::SpokeBeforeCreate);
        }
        let outcome = self.store.execute(&call).await;
        if matches!((&request.op, &outcome), (Op::Create(_), store::Outcome::Done(_))) {
            crash_point(CrashPoint::SpokeAfterCreate);
        }
        match outcome {
            store::Outcome::Done(object) => Outcome::Done(from_wire(request.kind, object)),
            store::Outcome::Conflict => Outcome::Conflict,
            store::Outcome::AlreadyExists => Outcome::AlreadyExists,
            store::Outcome::NotFound => Outcome::NotFound,
            store::Outcome::Refused { message, .. } => Outcome::Refused(message),
            store::Outcome::Unknown(why) => Outcome::Unknown(why),
        }
    }
}

fn to_wire(op: &Op) -> store::Op {
    match op {
        Op::Create(json) => store::Op::Create(json.clone()),
        Op::Patch(json) => store::Op::Patch(json.clone()),
        Op::Delete(uid) => store::Op::Delete { uid: uid.clone(), propagation: Propagation::Foreground },
        Op::Get => store::Op::Get,
        Op::GetMetadata => store::Op::GetMetadata,
    }
}

fn timeout(op: &Op) -> Duration {
    match op {
        Op::GetMetadata => LOOKUP_TIMEOUT,
        Op::Create(_) | Op::Patch(_) | Op::Delete(_) | Op::Get => {
            Duration::from_millis(CREATE_TIMEOUT_MS.unsigned_abs())
        }
    }
}
