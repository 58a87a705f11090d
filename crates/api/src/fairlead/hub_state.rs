//! HubState: who leads the hub.

use fairlead_model as model;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// The one HubState, named `fairlead`, numbers the leaders of the hub. A leader raises the term here, by
/// compare-and-set and with a new nonce, before it does anything else. Spokes refuse lower terms, and two nonces of
/// one term.
///
/// The numbers are in `spec` so that backup tools, which leave statuses out, keep them.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "fairlead.dev",
    version = "v1alpha1",
    kind = "HubState",
    status = "HubStateStatus",
    schema = "disabled",
    doc = "Who leads the hub.",
    derive = "Default",
    derive = "PartialEq",
    shortname = "flhub",
    category = "fairlead",
    printcolumn = r#"{"name": "Incarnation", "type": "integer", "jsonPath": ".spec.incarnation"}"#,
    printcolumn = r#"{"name": "Term", "type": "integer", "jsonPath": ".spec.term"}"#,
    printcolumn = r#"{"name": "Leader", "type": "string", "jsonPath": ".status.holder"}"#,
    printcolumn = r#"{"name": "Since", "type": "date", "jsonPath": ".status.acquiredAt"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.incarnation >= oldSelf.incarnation",
        "message": "incarnation never falls"
    },
    {
        "rule": "self.incarnation > oldSelf.incarnation || self.term >= oldSelf.term",
        "message": "term may fall only when incarnation rises"
    },
    {
        "rule": "self.incarnation > oldSelf.incarnation || self.term > oldSelf.term \
                 || self.nonce == oldSelf.nonce",
        "message": "a new nonce needs a higher term"
    }
]))]
pub struct HubStateSpec {
    /// Which life of the hub's store this is. After a rollback it becomes one more than the highest that any
    /// spoke reported.
    #[schemars(schema_with = "schema::counter")]
    pub incarnation: u64,

    /// The term of the current leader.
    #[schemars(schema_with = "schema::counter")]
    pub term: u64,

    /// A random text drawn by the current leader when it took over.
    #[schemars(length(min = 1, max = 64))]
    pub nonce: String,
}

impl From<&HubStateSpec> for model::Leadership {
    fn from(spec: &HubStateSpec) -> Self {
        Self {
            incarnation: model::Incarnation(spec.incarnation),
            term: model::Term(spec.term),
            nonce: model::Nonce(spec.nonce.as_str().into()),
        }
    }
}

impl From<&model::Leadership> for HubStateSpec {
    fn from(leader: &model::Leadership) -> Self {
        Self { incarnation: leader.incarnation.0, term: leader.term.0, nonce: leader.nonce.0.to_string() }
    }
}

/// What is worth knowing of the current leader. Nothing rests on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubStateStatus {
    /// The pod that leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub holder: Option<String>,

    /// When it took over, on its own clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acquired_at: Option<Time>,

    /// `Active` says whether the leader decides, or only observes after a rollback.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}
