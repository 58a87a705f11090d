//! What is known of spokes, and what is really left of their reported capacity.

use std::collections::BTreeSet;
use std::sync::Arc;

use fairlead_fit::{Pod, place};
use fairlead_model::{Labels, Resources, Shape, Toleration};

use super::World;
use super::rows::{Held, Row};
use crate::fact::{Cluster, ClusterReport, PodSetAssignment};
use crate::names::RowIx;

/// A spoke.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterRow {
    /// None while only a report, or a promise, names it.
    pub(crate) fact: Option<Cluster>,
    pub(crate) report: Option<ClusterReport>,
    /// Reported free shapes less what promised pods will take there [design rule g].
    pub(crate) left: Vec<Shape>,
    /// `left` must be computed anew.
    stale: bool,
    /// Workloads promised to it.
    pub(crate) rows: BTreeSet<RowIx>,
}

impl ClusterRow {
    /// Adds or removes a promised workload.
    pub(super) fn note(&mut self, ix: RowIx, holds: bool) {
        if holds {
            self.rows.insert(ix);
        } else {
            self.rows.remove(&ix);
        }
        self.stale = true;
    }

    /// Takes in a report; equal ones change nothing.
    pub(super) fn report(&mut self, report: ClusterReport) -> bool {
        if self.report.as_ref() == Some(&report) {
            return false;
        }
        self.report = Some(report);
        self.stale = true;
        true
    }
}

/// Node labels and tolerations that an assignment's flavors give its pods.
pub(crate) fn flavor_constraints(world: &World, flavors: &[Arc<str>]) -> (Labels, Vec<Toleration>) {
    let mut labels = Labels::new();
    let mut tolerations = Vec::new();
    for flavor in flavors.iter().filter_map(|name| world.flavors.get(name)) {
        labels.extend(flavor.node_labels.iter().map(|(key, value)| (Arc::clone(key), Arc::clone(value))));
        tolerations.extend(flavor.tolerations.iter().cloned());
    }
    (labels, tolerations)
}

/// A pod's request with the pod itself counted.
pub(crate) fn with_pod(effective: &Resources) -> Resources {
    let mut requests = effective.clone();
    requests.set("pods", 1);
    requests
}

impl World {
    /// Recomputes what is left on the spokes whose report or promises have changed.
    pub(super) fn settle_clusters(&mut self) {
        let stale: Vec<_> =
            self.clusters.iter().filter(|(_, row)| row.stale).map(|(spoke, _)| spoke.clone()).collect();
        for spoke in stale {
            let left = self.clusters.get(&spoke).map(|row| self.left_on(row)).unwrap_or_default();
            if let Some(row) = self.clusters.get_mut(&spoke) {
                row.left = left;
                row.stale = false;
            }
        }
    }

    /// Reported free shapes less, per promise, its demand beyond what the report shows as bound.
    fn left_on(&self, cluster: &ClusterRow) -> Vec<Shape> {
        let Some(report) = &cluster.report else { return Vec::new() };
        let mut left: Vec<Shape> = report.free.to_vec();
        for row in cluster.rows.iter().filter_map(|ix| self.row(*ix)) {
            let Some(held) = row.held.as_deref() else { continue };
            let bound = held.placement.as_ref().and_then(|id| report.bound.get(id));
            self.deduct(&mut left, row, held, bound);
        }
        left
    }

    /// Puts the pods of a promise that are not bound yet where they may land. What the report shows as bound is taken
    /// off the pod sets in their order.
    fn deduct(&self, left: &mut Vec<Shape>, row: &Row, held: &Held, bound: Option<&Resources>) {
        let reported = bound.is_some();
        let mut bound = bound.cloned().unwrap_or_default();
        let counts_pods = bound.contains("pods");
        for assignment in &*held.charge.pod_sets {
            let position = row.gang.pod_sets.iter().position(|pod_set| pod_set.name == assignment.name);
            let Some((pod_set, requests)) = position
                .and_then(|position| row.gang.pod_sets.get(position).zip(row.gang.requests.get(position)))
            else {
                continue;
            };
            let one = with_pod(&requests.effective);
            let measure = if counts_pods { &one } else { &requests.effective };
            let seen = if reported { bound.times_fits(measure) } else { 0 };
            let seen = u32::try_from(seen).unwrap_or(u32::MAX).min(assignment.count);
            bound.subtract(&measure.times(i64::from(seen)));
            let missing = row.charged_count(assignment).saturating_sub(seen);
            let (labels, tolerations) = flavor_constraints(self, &flavors_of(assignment));
            let pod = Pod {
                requests: &one,
                nodes: &pod_set.template.nodes,
                labels: &labels,
                tolerations: &tolerations,
            };
            place(left, &pod, missing);
        }
    }
}

/// The flavors of an assignment, each once, in name order.
pub(crate) fn flavors_of(assignment: &PodSetAssignment) -> Vec<Arc<str>> {
    let distinct: BTreeSet<&Arc<str>> = assignment.flavors.values().collect();
    distinct.into_iter().map(Arc::clone).collect()
}
