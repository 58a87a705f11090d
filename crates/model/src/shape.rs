//! Free capacity as a spoke reports it, and demand as a job states it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::Resources;

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaintEffect {
    /// Pods are not bound there.
    NoSchedule,
    /// Pods are bound there only if nothing else fits. Fit ignores it.
    PreferNoSchedule,
    /// Pods are not bound there, and running ones are evicted.
    NoExecute,
}

/// A node taint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Taint {
    /// The key.
    pub key: Arc<str>,
    /// The value; may be empty.
    pub value: Arc<str>,
    /// The effect.
    pub effect: TaintEffect,
}

/// What makes nodes interchangeable to a pod: labels (less the hostname) and taints.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeClass {
    /// Labels, including `fairlead.dev/cluster` and `fairlead.dev/cloud`, without `kubernetes.io/hostname`.
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// Taints in sorted order.
    pub taints: Vec<Taint>,
}

/// `count` nodes of one class that each have `free` left.
///
/// Free = allocatable less the requests of bound pods that have not ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    /// What the nodes have in common.
    pub class: Arc<NodeClass>,
    /// What each of them has left; `pods` is one of the resources.
    pub free: Resources,
    /// How many such nodes there are.
    pub count: u32,
}

/// Identical pods that a job wants to run side by side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodDemand {
    /// Requests of one pod (the Kubernetes effective request), without `pods`.
    pub requests: Resources,
    /// How many pods.
    pub count: u32,
}
