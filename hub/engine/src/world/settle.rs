//! Computes what facts left open: trees, which queues are active, what is left on spokes, who is woken.

use std::collections::BTreeSet;
use std::sync::Arc;

use fairlead_model::Reason;

use super::World;
use super::rows::Queue;
use crate::fact::{CheckKind, ClusterQueue, StopPolicy};
use crate::names::{CqIx, at};
use crate::quota::build::{Leaf, build};

impl World {
    /// Brings everything derived up to date.
    pub(super) fn settle(&mut self) {
        if self.stale {
            self.rebuild();
        }
        self.flush();
        self.placing.settle();
        self.settle_clusters();
    }

    fn rebuild(&mut self) {
        self.stale = false;
        let requoted = std::mem::take(&mut self.requoted);
        let mut touched = self.touched(&requoted);
        let leaves: Vec<Leaf<'_>> = self
            .queue_index
            .values()
            .filter_map(|ix| {
                let queue = self.queues.get(at(*ix))?;
                let fact = queue.fact.as_deref()?;
                Some(Leaf {
                    queue: *ix,
                    name: &queue.name,
                    cohort: fact.cohort.as_ref(),
                    groups: &fact.groups,
                    weight: fact.weight,
                    usage: &queue.usage,
                })
            })
            .collect();
        self.forest = build(&leaves, &self.cohorts, &mut self.names);
        touched.extend(self.touched(&requoted));
        for ix in touched {
            self.wake(ix);
            if let Some(queue) = self.queue_mut(ix) {
                queue.generation = queue.generation.saturating_add(1);
            }
        }
        self.settle_flavors();
        self.activate();
    }

    /// Queues in trees that contain one of these names.
    fn touched(&self, names: &BTreeSet<Arc<str>>) -> BTreeSet<CqIx> {
        let concerned =
            self.forest.trees.iter().filter(|tree| tree.nodes.iter().any(|node| names.contains(&node.name)));
        concerned.flat_map(|tree| tree.nodes.iter().filter_map(|node| node.queue)).collect()
    }

    /// Works out which queues admit.
    fn activate(&mut self) {
        let all: Vec<CqIx> = self.queue_index.values().copied().collect();
        for ix in all {
            let Some(queue) = self.queue(ix) else { continue };
            let Some(fact) = queue.fact.clone() else { continue };
            let inactive = self.inactive(ix, &fact);
            let federated = self.is_federated(&fact);
            let topology_only = self.is_topology_only(queue);
            if let Some(queue) = self.queue_mut(ix) {
                queue.inactive = inactive;
                queue.federated = federated;
                queue.topology_only = topology_only;
            }
        }
    }

    fn is_federated(&self, fact: &ClusterQueue) -> bool {
        let kind = |name: &Arc<str>| self.checks.get(name).map(|check| &check.kind);
        fact.checks.iter().any(|used| matches!(kind(&used.check), Some(CheckKind::Dispatch(_))))
    }

    fn is_topology_only(&self, queue: &Queue) -> bool {
        let mut flavors = queue.groups.iter().flat_map(|group| &group.flavors).peekable();
        let placed = |ix: &u32| {
            self.flavors.get(self.names.flavors.text(*ix)).is_some_and(|flavor| flavor.topology.is_some())
        };
        flavors.peek().is_some() && flavors.all(placed)
    }

    /// Why a queue admits nothing, the first reason that applies.
    fn inactive(&self, ix: CqIx, fact: &ClusterQueue) -> Option<(Reason, Arc<str>)> {
        let because = |detail: String| Some((Reason::ClusterQueueInactive, Arc::from(detail)));
        if fact.terminating {
            return because("it is being deleted".to_owned());
        }
        if fact.stop != StopPolicy::None {
            return Some((Reason::QueueStopped, Arc::from("it is stopped")));
        }
        if self.tree_of(ix).is_none_or(|(_, _, tree)| tree.cyclic) {
            return because("its cohorts form a cycle".to_owned());
        }
        let flavors = fact.groups.iter().flat_map(|group| &group.flavors);
        for flavor in flavors {
            let Some(found) = self.flavors.get(&flavor.flavor) else {
                return because(format!("flavor {} does not exist", flavor.flavor));
            };
            if let Some(topology) =
                found.topology.as_ref().filter(|name| !self.topologies.contains_key(*name))
            {
                return because(format!("topology {topology} does not exist"));
            }
        }
        for used in &fact.checks {
            match self.checks.get(&used.check) {
                None => return because(format!("admission check {} does not exist", used.check)),
                Some(check) if !check.usable => {
                    return because(format!("admission check {} is not usable", used.check));
                }
                Some(_) => {}
            }
        }
        None
    }
}
