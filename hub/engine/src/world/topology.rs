//! Nodes of the hub's own cluster and what workloads hold there.

use std::collections::BTreeSet;
use std::sync::Arc;

use fairlead_fit::topology::{FlavorSpec, Held, Node as PlacingNode};
use fairlead_model::{ObjectKey, Resources};

use super::World;
use super::rows::{HeldPlace, Row};
use crate::Fact;
use crate::fact::{Node, PodSetAssignment, RunningPod, TopologyAssignment};
use crate::names::{CqIx, RowIx};

impl World {
    /// Takes in a node.
    pub(super) fn take_node(&mut self, node: Node) -> bool {
        let Node { name, labels, taints, allocatable, usable } = node;
        let changed = self.placing.set_node(PlacingNode { name, labels, taints, allocatable, usable });
        if changed {
            self.wake_placed();
        }
        changed && !self.placing_flavors.is_empty()
    }

    /// Drops a node.
    pub(super) fn drop_node(&mut self, name: &str) -> bool {
        let known = self.placing.remove_node(name);
        if known {
            self.wake_placed();
        }
        known && !self.placing_flavors.is_empty()
    }

    /// Takes in a pod that no topology assignment accounts for.
    pub(super) fn take_pod(&mut self, pod: RunningPod) -> bool {
        self.placing.set_pod(pod.key, pod.node, &pod.requests) && !self.placing_flavors.is_empty()
    }

    /// Drops such a pod: it frees room.
    pub(super) fn drop_pod(&mut self, key: &ObjectKey) -> bool {
        let known = self.placing.remove_pod(key);
        if known {
            self.wake_placed();
        }
        known && !self.placing_flavors.is_empty()
    }

    /// The facts about nodes and about pods that no workload accounts for.
    pub(super) fn node_facts(&self) -> Vec<Fact> {
        let node = |node: &Arc<PlacingNode>| {
            let PlacingNode { name, labels, taints, allocatable, usable } = (**node).clone();
            Fact::Node(Node { name, labels, taints, allocatable, usable })
        };
        let pod = |(key, node, requests): (&ObjectKey, &Arc<str>, Resources)| {
            Fact::Pod(RunningPod { key: key.clone(), node: Arc::clone(node), requests })
        };
        self.placing.nodes().map(node).chain(self.placing.pods().map(pod)).collect()
    }

    /// Wakes every queue with a flavor that has a topology.
    fn wake_placed(&mut self) {
        let placed = |ix: &u32| self.placing_flavors.contains(self.names.flavors.text(*ix));
        let uses = |queue: &super::Queue| queue.groups.iter().flat_map(|group| &group.flavors).any(placed);
        let concerned: Vec<CqIx> =
            self.queues_by_name().filter(|(_, queue)| uses(queue)).map(|(ix, _)| ix).collect();
        self.wake_all(concerned);
    }

    /// Tells the placer which flavors have a topology now.
    pub(super) fn settle_flavors(&mut self) {
        let mut known = BTreeSet::new();
        for flavor in self.flavors.values() {
            let topology = flavor.topology.as_ref().and_then(|name| self.topologies.get(name));
            let Some(topology) = topology else { continue };
            let spec = FlavorSpec {
                levels: topology.levels.clone(),
                labels: flavor.node_labels.clone(),
                tolerations: flavor.tolerations.clone(),
            };
            self.placing.set_flavor(Arc::clone(&flavor.name), spec);
            known.insert(Arc::clone(&flavor.name));
        }
        for gone in self.placing_flavors.difference(&known) {
            self.placing.remove_flavor(gone);
        }
        self.placing_flavors = known;
    }

    /// The topology domains that a workload holds.
    pub(crate) fn places_held(&self, ix: RowIx) -> Vec<Held<'_>> {
        let Some(row) = self.row(ix) else { return Vec::new() };
        let Some(held) = row.held.as_deref() else { return Vec::new() };
        let places = held.places.iter().filter_map(|(position, flavor, assignment)| {
            let per_pod = &row.gang.requests.get(*position)?.effective;
            Some(Held { flavor, assignment, per_pod })
        });
        places.collect()
    }

    /// What a reservation holds in topologies: pod set position, flavor, domains. Pods that are no longer needed free
    /// their nodes; which ones they were is not known, so the last domains are taken to be free first.
    pub(super) fn places_of(&self, row: &Row, pod_sets: &[PodSetAssignment]) -> Vec<HeldPlace> {
        let mut places = Vec::new();
        for assignment in pod_sets {
            let Some(topology) = &assignment.topology else { continue };
            let position = row.gang.pod_sets.iter().position(|pod_set| pod_set.name == assignment.name);
            let with_topology =
                |name: &&Arc<str>| self.flavors.get(*name).is_some_and(|flavor| flavor.topology.is_some());
            let flavor =
                assignment.flavors.values().find(with_topology).or_else(|| self.flavor_beside(pod_sets));
            if let (Some(position), Some(flavor)) = (position, flavor) {
                let kept = trimmed(topology, row.charged_count(assignment));
                places.push((position, Arc::clone(flavor), kept));
            }
        }
        places
    }

    /// The flavor with a topology that another pod set of the workload uses: a pod set without requests of its own is
    /// placed beside it.
    fn flavor_beside<'a>(&self, pod_sets: &'a [PodSetAssignment]) -> Option<&'a Arc<str>> {
        let mut flavors = pod_sets.iter().flat_map(|assignment| assignment.flavors.values());
        flavors.find(|name| self.flavors.get(*name).is_some_and(|flavor| flavor.topology.is_some()))
    }

    /// Takes or gives back what a row holds in topologies.
    pub(super) fn hold_places(&mut self, ix: RowIx, take: bool) {
        let Some((row, held)) = self.rows.get(ix).and_then(|row| Some((row, row.held.as_deref()?))) else {
            return;
        };
        for (position, flavor, assignment) in &held.places {
            let Some(pod) = row.gang.requests.get(*position) else { continue };
            if take {
                self.placing.hold(flavor, assignment, &pod.effective);
            } else {
                self.placing.release(flavor, assignment, &pod.effective);
            }
        }
    }
}

/// An assignment cut down to a number of pods.
fn trimmed(assignment: &TopologyAssignment, pods: u32) -> TopologyAssignment {
    let mut left = pods;
    let mut domains = Vec::with_capacity(assignment.domains.len());
    for (values, count) in &assignment.domains {
        let kept = (*count).min(left);
        left = left.saturating_sub(kept);
        if kept > 0 {
            domains.push((values.clone(), kept));
        }
    }
    TopologyAssignment { levels: assignment.levels.clone(), domains }
}
