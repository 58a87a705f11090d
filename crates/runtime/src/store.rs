//! Reads and writes of single objects as raw JSON, with typed outcomes.
//!
//! Nothing is retried here. An answer that leaves open whether a write happened is [`Outcome::Unknown`]; the
//! caller settles it by a [`Op::Get`], which reads from the API server's quorum.

use std::time::Duration;

use fairlead_model::{ObjectKey, Uid};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request, StatusCode};
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::object::Object;
use crate::resource::{Resource, encode};

/// What becomes of the dependents of a deleted object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Propagation {
    /// They are deleted later.
    #[default]
    Background,
    /// The object stays until they are gone.
    Foreground,
}

/// What to do to an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Create it from this JSON.
    Create(Value),
    /// JSON merge patch of the object itself. A `metadata.resourceVersion` inside makes it conditional.
    Patch(Value),
    /// JSON merge patch of its status subresource. A `metadata.resourceVersion` inside makes it conditional.
    PatchStatus(Value),
    /// Replace its status subresource by the status in this object, whose `metadata.resourceVersion` makes that
    /// conditional. The API server leaves the rest of the object as it is stored.
    PutStatus(Value),
    /// Delete it if it still has this UID.
    Delete {
        /// The precondition.
        uid: Uid,
        /// What becomes of its dependents.
        propagation: Propagation,
    },
    /// Read it, consistently.
    Get,
    /// Read its metadata only, consistently: for Secrets, whose data nobody but their owner needs.
    GetMetadata,
}

impl Op {
    const fn writes(&self) -> bool {
        !matches!(self, Self::Get | Self::GetMetadata)
    }
}

/// How to carry out an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Who writes, for `managedFields`. The API server makes up a name from the user agent without it.
    pub field_manager: Option<&'static str>,
    /// The user to impersonate, for example `system:serviceaccount:team-a:fairlead-tenant`.
    pub impersonate: Option<String>,
    /// After this the outcome is unknown.
    pub timeout: Duration,
    /// Validate and admit, but store nothing.
    pub dry_run: bool,
}

impl Default for Options {
    /// As the client's own user, with 10 s to answer.
    fn default() -> Self {
        Self { field_manager: None, impersonate: None, timeout: Duration::from_secs(10), dry_run: false }
    }
}

/// One operation on one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Call<'a> {
    /// The kind.
    pub resource: &'a Resource,
    /// The object.
    pub key: &'a ObjectKey,
    /// What to do.
    pub op: &'a Op,
    /// How.
    pub options: &'a Options,
}

/// What became of an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Done; the object as it is now. After a delete without finalizers the API server answers with no more than
    /// the UID: the object then has version 0 and `null` as JSON.
    Done(Object),
    /// 409: the object has changed since, or has another UID.
    Conflict,
    /// 409 on create: the name is taken.
    AlreadyExists,
    /// 404. On create: the namespace or the kind does not exist.
    NotFound,
    /// Any other refusal: the API server will not do this.
    Refused {
        /// The HTTP status code.
        code: u16,
        /// Kubernetes' reason token, for example `Forbidden` or `Invalid`.
        reason: String,
        /// Its message.
        message: String,
    },
    /// A time-out, a broken connection, 429 or a 5xx: it may or may not have happened.
    Unknown(String),
}

/// The error body of the API server.
#[derive(Debug, Default, Deserialize)]
struct Status {
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
}

/// Carries out operations on one API server.
#[derive(Clone)]
pub struct Store {
    client: Client,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

impl Store {
    /// A store that uses this client.
    pub const fn new(client: Client) -> Self {
        Self { client }
    }

    /// Carries out one operation, once.
    pub async fn execute(&self, call: &Call<'_>) -> Outcome {
        let request = match build(call) {
            Ok(request) => request,
            Err(message) => {
                return Outcome::Refused { code: 400, reason: "BadRequest".to_owned(), message };
            }
        };
        match tokio::time::timeout(call.options.timeout, self.send(request)).await {
            Ok(Ok((code, body))) => interpret(call, code, &body),
            Ok(Err(why)) => Outcome::Unknown(why.to_string()),
            Err(_elapsed) => Outcome::Unknown(format!("no answer in {:?}", call.options.timeout)),
        }
    }

    /// Lets the API server judge something (a token, an access) and returns the review with its answer. Nothing is stored.
    ///
    /// # Errors
    ///
    /// What came instead of an answer.
    pub async fn review(&self, resource: &Resource, review: Value) -> Result<Value, String> {
        let (key, op, options) = (ObjectKey::new("", ""), Op::Create(review), Options::default());
        let request = build(&Call { resource, key: &key, op: &op, options: &options })?;
        let sent = tokio::time::timeout(options.timeout, self.send(request)).await;
        let (code, body) = sent.map_err(|why| why.to_string())?.map_err(|why| why.to_string())?;
        if code.is_success() {
            return serde_json::from_slice(&body).map_err(|why| format!("the answer is not JSON: {why}"));
        }
        let status: Status = serde_json::from_slice(&body).unwrap_or_default();
        Err(format!("{code}: {}", status.message))
    }

    async fn send(&self, request: Request<Body>) -> Result<(StatusCode, Vec<u8>), kube::Error> {
        let response = self.client.send(request).await?;
        let code = response.status();
        Ok((code, response.into_body().collect_bytes().await?.into()))
    }
}

fn build(call: &Call<'_>) -> Result<Request<Body>, String> {
    let path = match call.op {
        Op::Create(_) if call.resource.namespaced() && call.key.namespace.is_empty() => {
            return Err("a namespaced object needs a namespace".to_owned());
        }
        Op::Create(_) => call.resource.collection(&call.key.namespace),
        Op::Patch(_)
        | Op::PatchStatus(_)
        | Op::PutStatus(_)
        | Op::Delete { .. }
        | Op::Get
        | Op::GetMetadata => call.resource.object(&call.key.namespace, &call.key.name),
    };
    let mut uri = path.map_err(|why| why.to_string())?;
    if matches!(call.op, Op::PatchStatus(_) | Op::PutStatus(_)) {
        uri.push_str("/status");
    }
    if let Some(query) = query(call) {
        uri.push('?');
        uri.push_str(&query);
    }
    let (method, content, body) = match call.op {
        Op::Create(json) => (Method::POST, "application/json", serde_json::to_vec(json)),
        Op::PutStatus(json) => (Method::PUT, "application/json", serde_json::to_vec(json)),
        Op::Patch(json) | Op::PatchStatus(json) => {
            (Method::PATCH, "application/merge-patch+json", serde_json::to_vec(json))
        }
        Op::Delete { uid, propagation } => {
            (Method::DELETE, "application/json", serde_json::to_vec(&delete_options(uid, *propagation)))
        }
        Op::Get | Op::GetMetadata => (Method::GET, "application/json", Ok(Vec::new())),
    };
    let body = body.map_err(|why| why.to_string())?;
    let mut request = Request::builder()
        .method(method)
        .uri(uri)
        .header(ACCEPT, accept(call.op))
        .header(CONTENT_TYPE, content);
    if let Some(user) = &call.options.impersonate {
        request = request.header("Impersonate-User", user);
    }
    request.body(Body::from(body)).map_err(|why| why.to_string())
}

const fn accept(op: &Op) -> &'static str {
    match op {
        Op::GetMetadata => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        _ => "application/json",
    }
}

fn query(call: &Call<'_>) -> Option<String> {
    if !call.op.writes() {
        return None;
    }
    let mut parts = Vec::with_capacity(3);
    let manager = call.options.field_manager.filter(|_| !matches!(call.op, Op::Delete { .. }));
    parts.extend(manager.map(|name| format!("fieldManager={}", encode(name))));
    if call.options.dry_run {
        parts.push("dryRun=All".to_owned());
    }
    // The API server gives up when we do: a write whose answer was lost cannot land later.
    parts.push(format!("timeout={}ms", call.options.timeout.as_millis()));
    Some(parts.join("&"))
}

fn delete_options(uid: &Uid, propagation: Propagation) -> Value {
    let policy = match propagation {
        Propagation::Background => "Background",
        Propagation::Foreground => "Foreground",
    };
    json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy,
           "preconditions": {"uid": uid.as_str()}})
}

fn interpret(call: &Call<'_>, code: StatusCode, body: &[u8]) -> Outcome {
    if code.is_success() {
        return done(call, body);
    }
    let status: Status = serde_json::from_slice(body).unwrap_or_default();
    match (code, status.reason.as_str()) {
        (StatusCode::CONFLICT, "AlreadyExists") => Outcome::AlreadyExists,
        (StatusCode::CONFLICT, _) => Outcome::Conflict,
        (StatusCode::NOT_FOUND, _) => Outcome::NotFound,
        (StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT, _) => {
            Outcome::Unknown(format!("{code}: {}", status.message))
        }
        _ if code.is_client_error() => {
            Outcome::Refused { code: code.as_u16(), reason: status.reason, message: status.message }
        }
        _ => Outcome::Unknown(format!("{code}: {}", status.message)),
    }
}

fn done(call: &Call<'_>, body: &[u8]) -> Outcome {
    let json: Value = match serde_json::from_slice(body) {
        Ok(json) => json,
        Err(why) => return Outcome::Unknown(format!("the answer is not JSON: {why}")),
    };
    if let (Op::Delete { uid, .. }, Some("Status")) = (call.op, json.get("kind").and_then(Value::as_str)) {
        let gone = Object {
            key: call.key.clone(),
            uid: uid.clone(),
            version: 0,
            deleting: None,
            json: std::sync::Arc::new(Value::Null),
        };
        return Outcome::Done(gone);
    }
    match Object::from_json(json) {
        Ok(object) => Outcome::Done(object),
        // A dry run's object has no resourceVersion yet; nothing was stored, so there is no version to report.
        Err(_unstored) if call.options.dry_run => Outcome::Done(Object {
            key: call.key.clone(),
            uid: Uid::new(""),
            version: 0,
            deleting: None,
            json: std::sync::Arc::new(Value::Null),
        }),
        Err(why) => Outcome::Unknown(why.to_string()),
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
