//! Nodes that are not there: kwok plays their kubelets.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result};
use k8s_openapi::{
    api::core::v1::{Node, NodeSpec as Spec, NodeStatus, Taint},
    apimachinery::pkg::api::resource::Quantity,
};
use kube::{
    Api,
    api::{ListParams, ObjectMeta, PostParams},
};

use super::Cluster;
use crate::wait;

/// How long a node may take to become Ready. Well under a second is usual.
const NODE_BOUND: Duration = Duration::from_secs(60);

/// A node to add. All its capacity is allocatable.
#[derive(Debug, Clone)]
pub struct NodeSpec {
    /// Its name.
    pub name: String,
    /// CPUs, as a Kubernetes quantity: `8`, `3500m`.
    pub cpu: String,
    /// Memory, as a Kubernetes quantity: `32Gi`.
    pub memory: String,
    /// GPUs (`nvidia.com/gpu`).
    pub gpus: u32,
    /// Pods it can take.
    pub pods: u32,
    /// Labels beside `kubernetes.io/hostname`.
    pub labels: BTreeMap<String, String>,
    /// Taints: key, value, effect.
    pub taints: Vec<(String, String, String)>,
}

impl NodeSpec {
    /// A node without GPUs, labels or taints that takes 110 pods.
    pub fn new(name: &str, cpu: &str, memory: &str) -> Self {
        Self {
            name: name.to_owned(),
            cpu: cpu.to_owned(),
            memory: memory.to_owned(),
            gpus: 0,
            pods: 110,
            labels: BTreeMap::new(),
            taints: Vec::new(),
        }
    }

    /// Sets the number of GPUs.
    #[must_use]
    pub fn gpus(mut self, gpus: u32) -> Self {
        self.gpus = gpus;
        self
    }

    /// Sets how many pods it takes.
    #[must_use]
    pub fn pods(mut self, pods: u32) -> Self {
        self.pods = pods;
        self
    }

    /// Adds a label.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Adds a taint.
    #[must_use]
    pub fn taint(mut self, key: &str, value: &str, effect: &str) -> Self {
        self.taints.push((key.to_owned(), value.to_owned(), effect.to_owned()));
        self
    }

    fn object(&self) -> Node {
        let mut labels = self.labels.clone();
        labels.insert("kubernetes.io/hostname".to_owned(), self.name.clone());
        labels.insert("kubernetes.io/os".to_owned(), "linux".to_owned());
        labels.insert("kubernetes.io/arch".to_owned(), "amd64".to_owned());
        let annotations = BTreeMap::from([("kwok.x-k8s.io/node".to_owned(), "fake".to_owned())]);
        let metadata = ObjectMeta {
            name: Some(self.name.clone()),
            labels: Some(labels),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        };
        let resources = self.resources();
        let status = NodeStatus {
            capacity: Some(resources.clone()),
            allocatable: Some(resources),
            ..NodeStatus::default()
        };
        let spec = Spec { taints: Some(self.taints()), ..Spec::default() };
        Node { metadata, spec: Some(spec), status: Some(status) }
    }

    fn resources(&self) -> BTreeMap<String, Quantity> {
        let mut resources = BTreeMap::from([
            ("cpu".to_owned(), Quantity(self.cpu.clone())),
            ("memory".to_owned(), Quantity(self.memory.clone())),
            ("pods".to_owned(), Quantity(self.pods.to_string())),
        ]);
        if self.gpus > 0 {
            resources.insert("nvidia.com/gpu".to_owned(), Quantity(self.gpus.to_string()));
        }
        resources
    }

    fn taints(&self) -> Vec<Taint> {
        let taint = |(key, value, effect): &(String, String, String)| Taint {
            key: key.clone(),
            value: Some(value.clone()),
            effect: effect.clone(),
            ..Taint::default()
        };
        self.taints.iter().map(taint).collect()
    }
}

impl Cluster {
    /// Adds a node. It becomes Ready within a second; [`Cluster::nodes_ready`] waits for that.
    pub async fn add_node(&self, node: &NodeSpec) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.client());
        nodes
            .create(&PostParams::default(), &node.object())
            .await
            .with_context(|| format!("add node {} to {}", node.name, self.name()))?;
        Ok(())
    }

    /// Waits until every node is Ready and without the taints that new nodes carry.
    pub async fn nodes_ready(&self) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.client());
        let what = format!("nodes of {} are ready", self.name());
        wait::until_true(&what, NODE_BOUND, async || {
            let list = nodes.list(&ListParams::default()).await?;
            Ok(list.items.iter().all(is_ready))
        })
        .await
    }
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let ready = conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    ready && !taints.iter().any(|taint| taint.key.starts_with("node.kubernetes.io/"))
}
