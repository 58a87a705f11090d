//! One line of an audit log.

use std::fmt;

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

/// What a request did. `get` of a list is `List`; a watch that resumes counts again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads many.
    List,
    /// Follows changes.
    Watch,
    /// Creates.
    Create,
    /// Replaces.
    Update,
    /// Changes in part, server-side apply included.
    Patch,
    /// Deletes one.
    Delete,
    /// Deletes many.
    DeleteCollection,
    /// Anything else (`connect`, `options`).
    #[serde(other)]
    Other,
}

impl Verb {
    /// True for what changes objects.
    pub fn is_write(self) -> bool {
        matches!(self, Self::Create | Self::Update | Self::Patch | Self::Delete | Self::DeleteCollection)
    }

    /// True for what reads them.
    pub fn is_read(self) -> bool {
        matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Other => "other",
        })
    }
}

/// What a request was about. Fields are empty where the request has none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectRef {
    /// `batch`; empty for the core group.
    pub api_group: String,
    /// Plural name: `jobs`.
    pub resource: String,
    /// `status`, `binding`, ….
    pub subresource: String,
    /// Namespace.
    pub namespace: String,
    /// Name. A create names it only when its client did.
    pub name: String,
    /// UID, where the request states one.
    pub uid: String,
}

/// A request that an API server answered (or, for a watch, began to answer).
#[derive(Debug, Clone)]
pub struct AuditEvent {
    /// What it did.
    pub verb: Verb,
    /// Who asked, after impersonation.
    pub user: String,
    /// Who impersonated that user, if anyone.
    pub impersonator: Option<String>,
    /// The client program: its user agent up to the first `/` or space, `fairlead-hub`.
    pub agent: String,
    /// About what.
    pub object: ObjectRef,
    /// HTTP status.
    pub code: u16,
    /// When the API server received it.
    pub received: Timestamp,
    /// When its answer was complete (for a watch's start: when it began).
    pub answered: Timestamp,
    /// A watch that starts: its end is another event.
    pub watch_start: bool,
    /// What was sent, where the policy keeps bodies.
    pub request: Option<Value>,
    /// What was answered, where the policy keeps bodies.
    pub response: Option<Value>,
}

impl AuditEvent {
    pub(super) fn parse(line: &[u8]) -> Result<Self> {
        let line: Line = serde_json::from_slice(line).context("not an audit event")?;
        let (user, impersonator) = match line.impersonated_user {
            Some(impersonated) => (impersonated.username, Some(line.user.username)),
            None => (line.user.username, None),
        };
        Ok(Self {
            verb: line.verb,
            user,
            impersonator,
            agent: line.user_agent.split(['/', ' ']).next().unwrap_or_default().to_owned(),
            object: line.object_ref,
            code: line.response_status.code,
            received: line.request_received_timestamp.parse().context("requestReceivedTimestamp")?,
            answered: line.stage_timestamp.parse().context("stageTimestamp")?,
            watch_start: line.stage == "ResponseStarted",
            request: line.request_object,
            response: line.response_object,
        })
    }

    /// True when the request was carried out: 2xx.
    pub fn succeeded(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// True for a carried-out write of this resource (`jobs`), whichever the subresource.
    pub fn wrote(&self, resource: &str) -> bool {
        self.verb.is_write() && self.succeeded() && self.object.resource == resource
    }

    /// True when it is about an object of this namespace and name.
    pub fn is_about(&self, namespace: &str, name: &str) -> bool {
        self.object.namespace == namespace && self.object.name == name
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    stage: String,
    verb: Verb,
    #[serde(default)]
    user: User,
    impersonated_user: Option<User>,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: ObjectRef,
    #[serde(default)]
    response_status: Status,
    request_received_timestamp: String,
    stage_timestamp: String,
    request_object: Option<Value>,
    response_object: Option<Value>,
}

#[derive(Deserialize, Default)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Deserialize, Default)]
struct Status {
    #[serde(default)]
    code: u16,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_who_what_and_when() {
        let line = br#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"1","stage":"ResponseComplete",
            "requestURI":"/apis/batch/v1/namespaces/a/jobs/x/status","verb":"patch","user":{"username":"agent","groups":["g"]},
            "impersonatedUser":{"username":"system:serviceaccount:a:runner"},"sourceIPs":["127.0.0.1"],
            "userAgent":"fairlead-spoke/0.1.0","objectRef":{"resource":"jobs","namespace":"a","name":"x","apiGroup":"batch",
            "apiVersion":"v1","subresource":"status"},"responseStatus":{"metadata":{},"code":409},
            "requestReceivedTimestamp":"2026-12-01T08:00:00.100000Z","stageTimestamp":"2026-12-01T08:00:00.350000Z"}"#;
        let event = AuditEvent::parse(line).unwrap();
        assert_eq!(event.verb, Verb::Patch);
        assert_eq!(event.agent, "fairlead-spoke");
        assert_eq!(event.user, "system:serviceaccount:a:runner");
        assert_eq!(event.impersonator.as_deref(), Some("agent"));
        assert_eq!((event.object.resource.as_str(), event.object.subresource.as_str()), ("jobs", "status"));
        assert!(!event.succeeded() && !event.wrote("jobs"));
        assert_eq!(event.answered.duration_since(event.received).as_millis(), 250);
    }
}
