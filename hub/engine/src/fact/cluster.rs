//! Facts about clusters, their nodes and their free capacity.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_model::{Labels, ObjectKey, PlacementId, Resources, Shape, SpokeId, Taint};

/// What the hub knows of a spoke's life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Presence {
    /// It has never connected to this leader, or its inventory is not complete yet.
    #[default]
    NotReady,
    /// Connected, inventory complete, heartbeats in time.
    Fresh,
    /// Heartbeats are missing: no new placements, nothing else.
    Suspect,
    /// Gone for longer than the grace: no new placements, its held quota stays held.
    Lost,
}

/// How a cluster's capacity counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// A workload must fit the shapes that the spoke reported.
    #[default]
    Reported,
    /// Quota alone decides, as under Kueue.
    QuotaOnly,
}

/// A spoke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Its identity.
    pub spoke: SpokeId,
    /// The name of its Cluster object; also the value of `fairlead.dev/cluster` on its nodes.
    pub name: Arc<str>,
    /// Labels of the Cluster object, for the cluster selector.
    pub labels: Labels,
    /// No new placements by an operator's wish.
    pub cordoned: bool,
    /// Whether it can be reached.
    pub presence: Presence,
    /// How its capacity counts.
    pub mode: Mode,
    /// It can grow, so "can never fit" must not be said of it.
    pub elastic: bool,
}

/// What a spoke reported last. `free` does not know yet of pods that are promised but not bound; the engine deducts
/// `demand − bound` for each placement that it knows on this spoke (design rule g).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterReport {
    /// Whose report.
    pub spoke: SpokeId,
    /// Free capacity by node class.
    pub free: Arc<[Shape]>,
    /// The same nodes when empty.
    pub empty: Arc<[Shape]>,
    /// Requests of bound pods by placement.
    pub bound: BTreeMap<PlacementId, Resources>,
}

/// A node of the hub's own cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: Arc<str>,
    /// Its labels.
    pub labels: Labels,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// `status.allocatable`, `pods` included.
    pub allocatable: Resources,
    /// Ready, and not marked unschedulable.
    pub usable: bool,
}

/// A bound, non-terminal pod that takes room outside any topology assignment: a DaemonSet's, a static one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningPod {
    /// Namespace and name.
    pub key: ObjectKey,
    /// The node it is bound to.
    pub node: Arc<str>,
    /// What it takes, without `pods`.
    pub requests: Resources,
}
