//! What this spoke's administrator lets the hub do. What is not listed is refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_api::fairlead::{AllowedNamespace, SpokePolicySpec};
use fairlead_api::labels;
use fairlead_model::Reason;
use fairlead_session::{Intent, Refusal};
use serde::Deserialize as _;
use serde_json::Value;

use super::references::{RefKind, References};
use super::refusal;
use crate::ports::Tenant;

/// The rules of the one SpokePolicy. Without one, nothing is allowed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policy {
    namespaces: BTreeMap<String, AllowedNamespace>,
}

impl Policy {
    /// Reads the SpokePolicy's JSON. One that cannot be read allows nothing.
    pub(crate) fn read(json: &Value) -> Self {
        let spec = json.get("spec").cloned().unwrap_or_default();
        match SpokePolicySpec::deserialize(spec) {
            Ok(spec) => Self {
                namespaces: spec
                    .namespaces
                    .into_iter()
                    .map(|allowed| (allowed.name.clone(), allowed))
                    .collect(),
            },
            Err(error) => {
                tracing::error!(%error, "the SpokePolicy cannot be read; nothing is allowed");
                Self::default()
            }
        }
    }

    /// As whom the intent is carried out, if the policy allows it.
    pub(crate) fn allow(&self, intent: &Intent, references: &References) -> Result<Tenant, Refusal> {
        let forbidden = |what: String| refusal(Reason::ForbiddenByPolicy, what);
        let Some(allowed) = self.namespaces.get(&*intent.namespace) else {
            return Err(forbidden(format!("the SpokePolicy does not list namespace {}", intent.namespace)));
        };
        if !allowed.kinds.iter().any(|kind| **kind == *intent.kind) {
            let (kind, namespace) = (&intent.kind, &intent.namespace);
            return Err(forbidden(format!("the SpokePolicy does not allow {kind} in namespace {namespace}")));
        }
        for reference in references.iter() {
            let listed = match reference.kind {
                RefKind::Secret => &allowed.secrets,
                RefKind::ServiceAccount => &allowed.service_accounts,
                RefKind::ConfigMap | RefKind::PersistentVolumeClaim => continue,
            };
            if !listed.iter().any(|name| **name == *reference.name) {
                let (kind, name, namespace) = (reference.kind.name(), &reference.name, &intent.namespace);
                return Err(forbidden(format!(
                    "the SpokePolicy does not list {kind} {name} for namespace {namespace}"
                )));
            }
        }
        Ok(Tenant {
            namespace: Arc::clone(&intent.namespace),
            service_account: allowed.service_account.as_str().into(),
        })
    }

    /// As whom copies in a namespace are tended: as the policy says, or, when it no longer lists the namespace, as
    /// the service account that is usual. Cleaning up is no matter of permission to run.
    pub(crate) fn tenant(&self, namespace: &Arc<str>) -> Tenant {
        let listed = self.namespaces.get(&**namespace).map(|allowed| allowed.service_account.as_str());
        Tenant {
            namespace: Arc::clone(namespace),
            service_account: listed.unwrap_or(labels::TENANT_SERVICE_ACCOUNT).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy() -> Policy {
        Policy::read(&json!({"spec": {"namespaces": [{
            "name": "team-a", "serviceAccount": "tenant", "kinds": ["batch/v1/Job"],
            "secrets": ["pull"], "serviceAccounts": ["default"],
        }]}}))
    }

    fn intent(namespace: &str, kind: &str) -> Intent {
        Intent {
            kind: kind.into(),
            namespace: namespace.into(),
            name: "job".into(),
            manifest: Arc::from(&b"{}"[..]),
            demand: Vec::new(),
        }
    }

    fn references(pod: &Value) -> References {
        References::of_pod_spec(pod).unwrap()
    }

    #[test]
    fn what_is_listed_runs_as_the_named_service_account() {
        let tenant = policy().allow(&intent("team-a", "batch/v1/Job"), &references(&json!({}))).unwrap();
        assert_eq!(tenant.user(), "system:serviceaccount:team-a:tenant");
    }

    #[test]
    fn everything_else_is_refused_and_named() {
        let cases = [
            ("team-b", "batch/v1/Job", json!({}), "namespace team-b"),
            ("team-a", "batch/v2/Job", json!({}), "batch/v2/Job"),
            ("team-a", "batch/v1/Job", json!({"imagePullSecrets": [{"name": "root"}]}), "Secret root"),
            ("team-a", "batch/v1/Job", json!({"serviceAccountName": "admin"}), "ServiceAccount admin"),
        ];
        for (namespace, kind, pod, named) in cases {
            let refused = policy().allow(&intent(namespace, kind), &references(&pod)).unwrap_err();
            assert_eq!(refused.reason, Reason::ForbiddenByPolicy);
            assert!(refused.detail.contains(named), "{}", refused.detail);
        }
    }

    #[test]
    fn no_policy_and_an_unreadable_one_allow_nothing() {
        for policy in [Policy::default(), Policy::read(&json!({"spec": {"namespaces": 7}}))] {
            assert!(policy.allow(&intent("team-a", "batch/v1/Job"), &references(&json!({}))).is_err());
        }
    }

    #[test]
    fn an_optional_secret_needs_permission_too() {
        let pod = json!({"volumes": [{"name": "v", "secret": {"secretName": "root", "optional": true}}]});
        assert!(policy().allow(&intent("team-a", "batch/v1/Job"), &references(&pod)).is_err());
    }
}
