//! Namespaces for users: on the hub, and on every spoke with what its administrator allows there.

use std::sync::PoisonError;

use anyhow::Result;
use futures::future::try_join_all;
use serde_json::{Value, json};

use super::{Fleet, SYSTEM, Spoke};
use crate::rig::Cluster;

/// A namespace and what a spoke's SpokePolicy allows in it.
#[derive(Debug, Clone)]
pub struct Tenant {
    /// The namespace, on the hub and on the spokes.
    pub namespace: String,
    /// Secrets that pods may use there.
    pub secrets: Vec<String>,
}

impl Tenant {
    /// A namespace in which no Secret may be used.
    pub fn new(namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), secrets: Vec::new() }
    }

    /// Allows a Secret.
    #[must_use]
    pub fn secret(mut self, name: &str) -> Self {
        self.secrets.push(name.to_owned());
        self
    }

    fn policy(&self) -> Value {
        json!({
            "name": self.namespace,
            "serviceAccount": "fairlead-tenant",
            "kinds": ["batch/v1/Job"],
            "secrets": self.secrets,
            "serviceAccounts": ["default"],
        })
    }

    fn objects(&self) -> Vec<Value> {
        let namespace = &self.namespace;
        let subject = |name: &str, namespace: &str| json!([{"kind": "ServiceAccount", "name": name, "namespace": namespace}]);
        let binding = |role: &str, kind: &str, subjects: Value| {
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                "metadata": {"name": role, "namespace": namespace},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
                "subjects": subjects,
            })
        };
        let mut objects = vec![
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "fairlead-tenant", "namespace": namespace}}),
            binding("fairlead-tenant", "ClusterRole", subject("fairlead-tenant", namespace)),
            binding("fairlead-agent-impersonator", "ClusterRole", subject("fairlead-agent", SYSTEM)),
        ];
        if !self.secrets.is_empty() {
            objects.push(json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
                "metadata": {"name": "fairlead-tenant-references", "namespace": namespace},
                "rules": [{"apiGroups": [""], "resources": ["secrets"], "resourceNames": self.secrets, "verbs": ["get"]}],
            }));
            objects.push(binding(
                "fairlead-tenant-references",
                "Role",
                subject("fairlead-tenant", namespace),
            ));
        }
        objects
    }
}

impl Fleet {
    /// Creates the namespace on the hub and on every spoke, and allows it there.
    pub async fn tenant(&self, tenant: &Tenant) -> Result<()> {
        let spokes: Vec<&str> = self.spokes().map(Spoke::name).collect();
        self.tenant_on(tenant, &spokes).await
    }

    /// Creates the namespace on the hub and on these spokes, and allows it there.
    pub async fn tenant_on(&self, tenant: &Tenant, spokes: &[&str]) -> Result<()> {
        create_namespace(self.hub_cluster()?, &tenant.namespace).await?;
        try_join_all(spokes.iter().map(|name| self.allow(name, tenant))).await?;
        Ok(())
    }

    async fn allow(&self, spoke: &str, tenant: &Tenant) -> Result<()> {
        let cluster = self.spoke_cluster(spoke)?;
        create_namespace(cluster, &tenant.namespace).await?;
        let policy = self.spoke(spoke)?.allow(tenant);
        let mut objects = tenant.objects();
        objects.push(policy);
        apply_all(cluster, &objects).await
    }
}

impl Spoke {
    /// Adds a tenant to what the spoke's administrator allows, and returns the whole SpokePolicy.
    fn allow(&self, tenant: &Tenant) -> Value {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        tenants.retain(|known| known.namespace != tenant.namespace);
        tenants.push(tenant.clone());
        let namespaces: Vec<Value> = tenants.iter().map(Tenant::policy).collect();
        json!({
            "apiVersion": "fairlead.dev/v1alpha1", "kind": "SpokePolicy",
            "metadata": {"name": "fairlead"},
            "spec": {"namespaces": namespaces},
        })
    }
}

/// Creates a namespace.
pub async fn create_namespace(cluster: &Cluster, name: &str) -> Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    apply_all(cluster, &[namespace]).await
}

/// Applies objects with kubectl, server-side.
pub async fn apply_all(cluster: &Cluster, objects: &[Value]) -> Result<()> {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    cluster.apply(&list.to_string()).await?;
    Ok(())
}
