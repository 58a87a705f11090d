//! Where an object is.

use std::fmt;

use anyhow::{Context, Result};
use serde_json::Value;

/// An object's address in the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    collection: String,
    path: String,
}

impl At {
    /// By group and version (`kueue.x-k8s.io/v1beta2`, `v1`), plural, namespace (empty when it has none) and name.
    pub fn new(api_version: &str, plural: &str, namespace: &str, name: &str) -> Self {
        let root = if api_version.contains('/') { "/apis" } else { "/api" };
        let scope = if namespace.is_empty() { String::new() } else { format!("/namespaces/{namespace}") };
        let collection = format!("{root}/{api_version}{scope}/{plural}");
        Self { path: format!("{collection}/{name}"), collection }
    }

    /// A cluster-scoped kind of Kueue's: `clusterqueues`, `cohorts`.
    pub fn kueue(plural: &str, name: &str) -> Self {
        Self::new(KUEUE, plural, "", name)
    }

    /// A ClusterQueue.
    pub fn cluster_queue(name: &str) -> Self {
        Self::kueue("clusterqueues", name)
    }

    /// A LocalQueue.
    pub fn local_queue(namespace: &str, name: &str) -> Self {
        Self::new(KUEUE, "localqueues", namespace, name)
    }

    /// A Workload.
    pub fn workload(namespace: &str, name: &str) -> Self {
        Self::new(KUEUE, "workloads", namespace, name)
    }

    /// A Job.
    pub fn job(namespace: &str, name: &str) -> Self {
        Self::new("batch/v1", "jobs", namespace, name)
    }

    /// Where an object belongs by what it says of itself.
    ///
    /// # Errors
    ///
    /// When it lacks a kind, a version or a name.
    pub fn of(object: &Value) -> Result<Self> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let kind = text("/kind").context("an object without a kind")?.to_lowercase();
        let plural = match kind.strip_suffix('y') {
            Some(stem) => format!("{stem}ies"),
            None if kind.ends_with('s') => format!("{kind}es"),
            None => format!("{kind}s"),
        };
        let version = text("/apiVersion").context("an object without a version")?;
        let name = text("/metadata/name").context("an object without a name")?;
        Ok(Self::new(version, &plural, text("/metadata/namespace").unwrap_or_default(), name))
    }

    /// The path of the object.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The path of its collection, where it is created.
    pub fn collection(&self) -> &str {
        &self.collection
    }
}

/// Kueue's group and version.
pub(super) const KUEUE: &str = "kueue.x-k8s.io/v1beta2";

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_says_where_it_belongs() {
        let at = |version: &str, kind: &str, namespace: Option<&str>| {
            let metadata = match namespace {
                Some(namespace) => json!({"name": "n", "namespace": namespace}),
                None => json!({"name": "n"}),
            };
            let object = json!({"apiVersion": version, "kind": kind, "metadata": metadata});
            At::of(&object).unwrap().path().to_owned()
        };
        assert_eq!(at(KUEUE, "Topology", None), "/apis/kueue.x-k8s.io/v1beta2/topologies/n");
        assert_eq!(
            at(KUEUE, "WorkloadPriorityClass", None),
            "/apis/kueue.x-k8s.io/v1beta2/workloadpriorityclasses/n"
        );
        assert_eq!(at("batch/v1", "Job", Some("a")), "/apis/batch/v1/namespaces/a/jobs/n");
        assert_eq!(at("v1", "Pod", Some("a")), "/api/v1/namespaces/a/pods/n");
        At::of(&json!({"kind": "Job"})).unwrap_err();
    }
}
