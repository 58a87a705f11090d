//! Queues as a platform team writes them.

use anyhow::Result;
use serde_json::{Value, json};

use crate::fleet::{Fleet, apply_all};

/// Name of the AdmissionCheck that federates a ClusterQueue, and of its PlacementPolicy.
pub const DISPATCH_CHECK: &str = "any-cluster";

/// The AdmissionCheck with the dispatch controller and a PlacementPolicy that requires the given labels of a cluster.
pub fn dispatch_check(name: &str, required: &[(&str, &str)]) -> Vec<Value> {
    let labels: serde_json::Map<String, Value> =
        required.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    vec![
        json!({
            "apiVersion": "fairlead.dev/v1alpha1", "kind": "PlacementPolicy",
            "metadata": {"name": name},
            "spec": {"clusterSelector": {"required": {"matchLabels": labels}}},
        }),
        json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck",
            "metadata": {"name": name},
            "spec": {
                "controllerName": "fairlead.dev/dispatch",
                "parameters": {"apiGroup": "fairlead.dev", "kind": "PlacementPolicy", "name": name},
            },
        }),
    ]
}

/// A ClusterQueue with one flavor of its own, and a LocalQueue `main` in one namespace.
#[derive(Clone, Debug)]
pub struct Queue {
    name: String,
    namespace: String,
    check: Option<String>,
    quotas: Vec<(String, String)>,
    flavor: Value,
}

impl Queue {
    /// A federated queue for a namespace, named after it, with 1000 CPUs, 1000Gi and 1000 GPUs.
    pub fn new(namespace: &str) -> Self {
        let quota = |resource: &str, quantity: &str| (resource.to_owned(), quantity.to_owned());
        Self {
            name: namespace.to_owned(),
            namespace: namespace.to_owned(),
            check: Some(DISPATCH_CHECK.to_owned()),
            quotas: vec![quota("cpu", "1000"), quota("memory", "1000Gi"), quota("nvidia.com/gpu", "1000")],
            flavor: json!({}),
        }
    }

    /// Names the ClusterQueue and its flavor; the namespace stays.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Uses another dispatch check.
    #[must_use]
    pub fn check(mut self, name: &str) -> Self {
        self.check = Some(name.to_owned());
        self
    }

    /// Runs on the hub's own cluster: no dispatch check.
    #[must_use]
    pub fn home(mut self) -> Self {
        self.check = None;
        self
    }

    /// Sets the nominal quota of a resource.
    #[must_use]
    pub fn quota(mut self, resource: &str, quantity: &str) -> Self {
        self.quotas.retain(|(name, _)| name != resource);
        self.quotas.push((resource.to_owned(), quantity.to_owned()));
        self
    }

    /// Sets the spec of its flavor: node labels, taints, tolerations.
    #[must_use]
    pub fn flavor(mut self, spec: Value) -> Self {
        self.flavor = spec;
        self
    }

    /// The objects, in an order in which they can be applied.
    pub fn objects(&self) -> Vec<Value> {
        let resources: Vec<Value> = self
            .quotas
            .iter()
            .map(|(name, quantity)| json!({"name": name, "nominalQuota": quantity}))
            .collect();
        let covered: Vec<&String> = self.quotas.iter().map(|(name, _)| name).collect();
        let mut cluster_queue = json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue",
            "metadata": {"name": self.name},
            "spec": {
                "namespaceSelector": {},
                "resourceGroups": [{
                    "coveredResources": covered,
                    "flavors": [{"name": self.name, "resources": resources}],
                }],
            },
        });
        if let Some(check) = &self.check {
            cluster_queue["spec"]["admissionChecksStrategy"] = json!({"admissionChecks": [{"name": check}]});
        }
        vec![
            json!({
                "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor",
                "metadata": {"name": self.name}, "spec": self.flavor,
            }),
            cluster_queue,
            self.local_queue("main"),
        ]
    }

    /// A LocalQueue of this queue.
    pub fn local_queue(&self, name: &str) -> Value {
        json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"clusterQueue": self.name},
        })
    }

    /// Applies it on the hub, and waits until Jobs can be submitted to it: until the hub has labelled the LocalQueue
    /// of a federated queue, and says that the ClusterQueue is active.
    pub async fn apply(&self, fleet: &Fleet) -> Result<()> {
        let hub = fleet.hub_cluster()?;
        apply_all(hub, &self.objects()).await?;
        let cluster_queue = format!("clusterqueue/{}", self.name);
        hub.kubectl(&["wait", "--for=condition=Active", "--timeout=30s", &cluster_queue]).await?;
        if self.check.is_some() {
            let label = r"--for=jsonpath={.metadata.labels.fairlead\.dev/dispatch}=true";
            hub.kubectl(&["wait", label, "--timeout=30s", "-n", &self.namespace, "localqueue/main"]).await?;
        }
        Ok(())
    }
}
