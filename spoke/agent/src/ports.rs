//! The ports through which the core touches its cluster. The Kubernetes API implements [`Store`]; tests and the
//! simulation implement it in memory, so the very same core runs there.

use std::sync::Arc;

use fairlead_model::{ObjectKey, Uid};
use serde_json::Value;

/// The kinds of objects that the agent reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `batch/v1` Job. Watched where it carries our placement label; the only kind that is written.
    Job,
    /// `batch/v1` Job without our label. Watched, its metadata only: its name is taken.
    ForeignJob,
    /// `v1` Pod. Watched.
    Pod,
    /// `v1` Node. Watched.
    Node,
    /// `v1` Namespace. Watched.
    Namespace,
    /// `fairlead.dev/v1alpha1` SpokePolicy. Watched.
    SpokePolicy,
    /// `v1` ConfigMap. Looked up by name only.
    ConfigMap,
    /// `v1` Secret. Looked up by name only, and only its metadata.
    Secret,
    /// `v1` PersistentVolumeClaim. Looked up by name only.
    PersistentVolumeClaim,
    /// `v1` ServiceAccount. Looked up by name only.
    ServiceAccount,
}

impl Kind {
    /// The kinds that are watched. The inventory is complete when each of them has been listed.
    pub const WATCHED: [Self; 6] =
        [Self::Job, Self::ForeignJob, Self::Pod, Self::Node, Self::Namespace, Self::SpokePolicy];

    /// The kind's name as people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Job | Self::ForeignJob => "Job",
            Self::Pod => "Pod",
            Self::Node => "Node",
            Self::Namespace => "Namespace",
            Self::SpokePolicy => "SpokePolicy",
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
            Self::PersistentVolumeClaim => "PersistentVolumeClaim",
            Self::ServiceAccount => "ServiceAccount",
        }
    }
}

/// A resource version. The API server promises that versions of one kind compare as numbers.
pub type Version = u64;

/// An object as read: identity, version and the whole JSON.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its kind.
    pub kind: Kind,
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: Uid,
    /// `metadata.resourceVersion`.
    pub version: Version,
    /// The object; for [`Op::GetMetadata`] its metadata only.
    pub json: Arc<Value>,
}

/// Names one operation, so that its outcome finds its way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u64);

/// What to do to an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Create it from this JSON. The API server gives up on it after [`CREATE_TIMEOUT_MS`].
    Create(Value),
    /// JSON merge patch. A `metadata.resourceVersion` inside makes it conditional.
    Patch(Value),
    /// Delete it in the foreground, with this UID as precondition.
    Delete(Uid),
    /// Read it from the API server's quorum, not from a cache.
    Get,
    /// Read its metadata only, from the API server's quorum.
    GetMetadata,
}

/// How long a create may take on the API server, in milliseconds. What has not happened by then never will, so a
/// read after that time is proof.
pub const CREATE_TIMEOUT_MS: i64 = 10_000;

/// The service account of a tenant's namespace, whose rights bound what the hub can do there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tenant {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The service account's name.
    pub service_account: Arc<str>,
}

impl Tenant {
    /// The user name by which the API server knows the service account; it adds the groups itself.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.service_account)
    }
}

/// One operation on one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Comes back with the outcome.
    pub id: OpId,
    /// The kind.
    pub kind: Kind,
    /// The object.
    pub key: ObjectKey,
    /// The operation.
    pub op: Op,
    /// As whom. None means the agent itself, which may only read: in a tenant's namespace every write and every
    /// look-up is the tenant's.
    pub tenant: Option<Tenant>,
}

/// What became of an operation.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Done; the object as it is now. For a Delete, as it was last.
    Done(Object),
    /// 409: the object has changed since (or the UID precondition failed).
    Conflict,
    /// 409 on create: the name is taken.
    AlreadyExists,
    /// 404.
    NotFound,
    /// Any other refusal: the API server will not do this. Its message.
    Refused(String),
    /// A time-out or a 5xx: it may or may not have happened. Settled by a consistent read.
    Unknown(String),
}

/// The Kubernetes API of the spoke.
pub trait Store: Send + Sync + 'static {
    /// Carries out one operation. Never retries a write by itself.
    fn execute(&self, request: &Request) -> impl Future<Output = Outcome> + Send;
}
