//! The second pass: workloads that hold quota already and still need a place. They go before everything else and
//! consume no more quota.

use std::sync::Arc;

use fairlead_model::{Reason, ResourceName};

use super::Round;
use super::assign::{Assigner, Unit};
use super::cluster::ClusterScan;
use super::entry::{Assignment, Attempt, Choice, Entry, Mode, PodSetChoice};
use super::overlay::Overlay;
use crate::fact::{CheckPhase, PodSetAssignment};
use crate::names::RowIx;
use crate::world::rows::{Held, Row};

impl<'w> Round<'w> {
    /// Entries of the second pass: reserved workloads of federated queues whose other checks have become Ready, and
    /// workloads with pods on nodes that have failed.
    pub(crate) fn second_pass(&self, base: &Overlay<'w>) -> Vec<Entry> {
        let due = self.world.unplaced.iter().filter_map(|ix| self.held_entry(base, *ix));
        due.collect()
    }

    fn held_entry(&self, base: &Overlay<'w>, ix: RowIx) -> Option<Entry> {
        let assigner = self.assigner(base, ix)?;
        let row = assigner.row;
        let held = row.held.as_deref().filter(|held| !held.evicted)?;
        let stopped = assigner.queue.inactive.is_some();
        let refused = row
            .fact
            .rare()
            .checks
            .iter()
            .any(|state| matches!(state.phase, CheckPhase::Retry | CheckPhase::Rejected));
        if stopped || refused || self.checks_pending(assigner.queue, row) {
            return None;
        }
        let assignment = if assigner.queue.federated && held.spoke.is_none() {
            self.place_on_cluster(&assigner, held)
        } else if !row.fact.rare().unhealthy_nodes.is_empty() && !held.places.is_empty() {
            self.replace_nodes(&assigner, held)
        } else {
            return None;
        };
        Some(Entry {
            row: ix,
            queue: assigner.queue_ix,
            tree: assigner.tree_ix,
            node: assigner.node,
            assignment,
            targets: Vec::new(),
            second_pass: true,
        })
    }

    /// What a workload holds, as an assignment that fits.
    fn held_assignment(&self, row: &Row, held: &Held) -> Assignment {
        let names = &self.world.names;
        let mut assignment = Assignment::default();
        for pod_set in &*row.gang.pod_sets {
            let mut choice = PodSetChoice::default();
            let stated = held.charge.pod_sets.iter().find(|stated| stated.name == pod_set.name);
            if let Some(stated) = stated {
                choice.count = stated.count;
                choice.topology.clone_from(&stated.topology);
            }
            let fits = |flavor| Choice { flavor, mode: Mode::Fit, borrow: 0, tried: None };
            for (stated, resource, amount) in stated.into_iter().flat_map(each_usage) {
                let Some(ix) = names.resources.find(resource) else { continue };
                choice.requests.push((ix, amount));
                let flavor = stated.flavors.get(resource).and_then(|flavor| names.flavors.find(flavor));
                choice.flavors.extend(flavor.map(|flavor| (ix, fits(flavor))));
            }
            assignment.pod_sets.push(choice);
        }
        assignment
    }

    /// Chooses the cluster, with the flavors that were reserved.
    fn place_on_cluster(&self, assigner: &Assigner<'_, 'w>, held: &Held) -> Assignment {
        let mut assignment = self.held_assignment(assigner.row, held);
        let counts = || assignment.pod_sets.iter().map(|choice| choice.count).collect();
        let Some(mut clusters) = ClusterScan::new(assigner, counts) else { return assignment };
        for position in 0..assignment.pod_sets.len() {
            let flavors =
                assignment.pod_sets.get(position).map(PodSetChoice::distinct_flavors).unwrap_or_default();
            let unit = Unit { pod_sets: vec![position], ..Unit::default() };
            for flavor in flavors {
                let remaining = clusters.remaining(assigner, (&unit, 0, flavor), &mut assignment.attempts);
                let Some(remaining) = remaining else {
                    assignment.fail(position);
                    return assignment;
                };
                clusters.take(&unit, flavor, remaining);
            }
        }
        assignment.spoke = clusters.choose(assigner, &mut assignment);
        if assignment.spoke.is_none() {
            assignment.fail(0);
        }
        assignment
    }

    /// Puts the pods of failed nodes elsewhere [TAS-7].
    fn replace_nodes(&self, assigner: &Assigner<'_, 'w>, held: &Held) -> Assignment {
        let mut assignment = self.held_assignment(assigner.row, held);
        for (position, flavor, _) in &held.places {
            if let Some(choice) = assignment.pod_sets.get_mut(*position) {
                choice.placed_in = self.world.names.flavors.find(flavor);
            }
        }
        if let Err((position, why)) = self.replace_places(assigner, &mut assignment) {
            let flavor = held
                .places
                .iter()
                .find(|(at, _, _)| *at == position)
                .map(|(_, flavor, _)| Arc::clone(flavor));
            assignment.attempts.push(Attempt {
                pod_set: position,
                group: 0,
                flavor: flavor.unwrap_or_else(|| "".into()),
                cluster: "".into(),
                reason: Reason::TopologyPlacementFailed,
                shortfall: None,
                detail: why.into(),
            });
            assignment.fail(position);
        }
        assignment
    }
}

/// What a reservation charges for one pod set, resource by resource.
fn each_usage(stated: &PodSetAssignment) -> impl Iterator<Item = (&PodSetAssignment, &ResourceName, i64)> {
    stated.usage.iter().map(move |(resource, amount)| (stated, resource, amount))
}
