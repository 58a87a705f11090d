//! The objects that a pod template names: they are referenced, never copied, so they must be here already.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_model::Reason;
use fairlead_session::Refusal;
use serde_json::Value;

use super::refusal;
use crate::ports::Kind;

/// The most objects that one job may name. Each costs a look-up in Prepare.
pub(crate) const MAX_REFERENCES: usize = 64;

/// The service account of pods that name none.
const DEFAULT_SERVICE_ACCOUNT: &str = "default";

/// The kinds that a pod can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RefKind {
    /// A ConfigMap.
    ConfigMap,
    /// A Secret.
    Secret,
    /// A PersistentVolumeClaim.
    PersistentVolumeClaim,
    /// A ServiceAccount.
    ServiceAccount,
}

impl RefKind {
    /// The kind to look up.
    pub(crate) const fn kind(self) -> Kind {
        match self {
            Self::ConfigMap => Kind::ConfigMap,
            Self::Secret => Kind::Secret,
            Self::PersistentVolumeClaim => Kind::PersistentVolumeClaim,
            Self::ServiceAccount => Kind::ServiceAccount,
        }
    }

    /// The kind's name.
    pub(crate) const fn name(self) -> &'static str {
        self.kind().name()
    }
}

/// One object that is named.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reference {
    /// Its kind.
    pub(crate) kind: RefKind,
    /// Its name, in the job's own namespace.
    pub(crate) name: Arc<str>,
    /// Whether the pods can start without it.
    pub(crate) optional: bool,
}

/// All objects that a job names, each once; required where any use requires it.
#[derive(Clone, Debug, Default)]
pub(crate) struct References {
    required: BTreeMap<(RefKind, Arc<str>), bool>,
}

impl References {
    /// Reads a Job's manifest.
    pub(crate) fn of_job(manifest: &Value) -> Result<Self, Refusal> {
        match manifest.pointer("/spec/template/spec") {
            Some(spec) => Self::of_pod_spec(spec),
            None => Err(refusal(Reason::InvalidJob, "the manifest has no pod template")),
        }
    }

    /// Reads a pod's spec.
    pub(crate) fn of_pod_spec(spec: &Value) -> Result<Self, Refusal> {
        let mut found = Self::default();
        found.service_account(spec);
        for secret in list(spec, "imagePullSecrets") {
            found.add(RefKind::Secret, secret.get("name"), secret);
        }
        for volume in list(spec, "volumes") {
            found.volume(volume);
        }
        for containers in ["containers", "initContainers"] {
            for container in list(spec, containers) {
                found.container(container);
            }
        }
        if found.required.len() > MAX_REFERENCES {
            let count = found.required.len();
            let detail = format!("the job names {count} objects; {MAX_REFERENCES} is the most");
            return Err(refusal(Reason::ForbiddenByPolicy, detail));
        }
        Ok(found)
    }

    /// Every object named.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Reference> + '_ {
        self.required.iter().map(|((kind, name), required)| Reference {
            kind: *kind,
            name: Arc::clone(name),
            optional: !required,
        })
    }

    fn service_account(&mut self, spec: &Value) {
        let named = ["serviceAccountName", "serviceAccount"]
            .into_iter()
            .filter_map(|field| spec.get(field).and_then(Value::as_str))
            .find(|name| !name.is_empty());
        let name = named.unwrap_or(DEFAULT_SERVICE_ACCOUNT);
        self.required.insert((RefKind::ServiceAccount, name.into()), true);
    }

    fn volume(&mut self, volume: &Value) {
        let Some(sources) = volume.as_object() else { return };
        for (kind, source) in sources {
            match kind.as_str() {
                "configMap" => self.add(RefKind::ConfigMap, source.get("name"), source),
                "persistentVolumeClaim" => {
                    self.add(RefKind::PersistentVolumeClaim, source.get("claimName"), source);
                }
                "projected" => {
                    for part in list(source, "sources") {
                        self.named(RefKind::ConfigMap, part.get("configMap"));
                        self.named(RefKind::Secret, part.get("secret"));
                    }
                }
                // Whatever the volume's type, these are the fields by which one names a Secret.
                _ => {
                    self.add(RefKind::Secret, source.get("secretName"), source);
                    self.named(RefKind::Secret, source.get("secretRef"));
                    self.named(RefKind::Secret, source.get("nodePublishSecretRef"));
                }
            }
        }
    }

    fn container(&mut self, container: &Value) {
        for variable in list(container, "env") {
            let from = variable.get("valueFrom");
            self.named(RefKind::ConfigMap, from.and_then(|from| from.get("configMapKeyRef")));
            self.named(RefKind::Secret, from.and_then(|from| from.get("secretKeyRef")));
        }
        for source in list(container, "envFrom") {
            self.named(RefKind::ConfigMap, source.get("configMapRef"));
            self.named(RefKind::Secret, source.get("secretRef"));
        }
    }

    /// A reference of the form `{name, optional}`.
    fn named(&mut self, kind: RefKind, reference: Option<&Value>) {
        if let Some(reference) = reference {
            self.add(kind, reference.get("name"), reference);
        }
    }

    fn add(&mut self, kind: RefKind, name: Option<&Value>, reference: &Value) {
        let Some(name) = name.and_then(Value::as_str).filter(|name| !name.is_empty()) else { return };
        let optional = reference.get("optional").and_then(Value::as_bool).unwrap_or(false);
        let required = self.required.entry((kind, name.into())).or_insert(false);
        *required |= !optional;
    }
}

/// The elements of a list field; none when it is absent.
fn list<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(spec: &Value) -> Vec<String> {
        let references = References::of_pod_spec(spec).unwrap();
        let text =
            |r: Reference| format!("{}/{}{}", r.kind.name(), r.name, if r.optional { "?" } else { "" });
        references.iter().map(text).collect()
    }

    #[test]
    fn every_way_to_name_an_object_is_seen() {
        let spec = json!({
            "serviceAccountName": "runner",
            "imagePullSecrets": [{"name": "pull"}],
            "volumes": [
                {"name": "a", "configMap": {"name": "cm-volume"}},
                {"name": "b", "secret": {"secretName": "secret-volume", "optional": true}},
                {"name": "c", "persistentVolumeClaim": {"claimName": "data"}},
                {"name": "d", "projected": {"sources": [
                    {"configMap": {"name": "cm-projected", "optional": true}},
                    {"secret": {"name": "secret-projected"}},
                ]}},
                {"name": "e", "csi": {"nodePublishSecretRef": {"name": "secret-csi"}}},
                {"name": "f", "azureFile": {"secretName": "secret-azure"}},
                {"name": "g", "emptyDir": {}},
            ],
            "initContainers": [{"env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "secret-env"}}}]}],
            "containers": [{
                "env": [
                    {"name": "Y", "valueFrom": {"configMapKeyRef": {"name": "cm-env", "optional": true}}},
                    {"name": "Z", "value": "plain"},
                ],
                "envFrom": [{"configMapRef": {"name": "cm-from"}}, {"secretRef": {"name": "secret-from"}}],
            }],
        });
        assert_eq!(
            found(&spec),
            [
                "ConfigMap/cm-env?",
                "ConfigMap/cm-from",
                "ConfigMap/cm-projected?",
                "ConfigMap/cm-volume",
                "Secret/pull",
                "Secret/secret-azure",
                "Secret/secret-csi",
                "Secret/secret-env",
                "Secret/secret-from",
                "Secret/secret-projected",
                "Secret/secret-volume?",
                "PersistentVolumeClaim/data",
                "ServiceAccount/runner",
            ]
        );
    }

    #[test]
    fn one_required_use_makes_it_required_and_the_default_account_counts() {
        let spec = json!({"containers": [{"envFrom": [
            {"configMapRef": {"name": "a", "optional": true}}, {"configMapRef": {"name": "a"}},
        ]}]});
        assert_eq!(found(&spec), ["ConfigMap/a", "ServiceAccount/default"]);
    }

    #[test]
    fn too_many_are_refused() {
        let names: Vec<Value> =
            (0..=MAX_REFERENCES).map(|i| json!({"secretRef": {"name": format!("s{i}")}})).collect();
        let refused = References::of_pod_spec(&json!({"containers": [{"envFrom": names}]})).unwrap_err();
        assert_eq!(refused.reason, Reason::ForbiddenByPolicy);
        assert!(References::of_job(&json!({"spec": {}})).is_err());
    }
}
