//! The cluster step: which spokes can hold a workload in a flavor, and which of them takes it.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use fairlead_fit::{Pod, Room, room};
use fairlead_model::{Labels, Reason, Resources, Shape, Shortfall, SpokeId, Toleration};

use super::assign::{Assigner, Unit};
use super::entry::{Assignment, Attempt};
use crate::fact::{CheckKind, Cluster, ClusterQueue, DispatchPolicy, Mode, Presence};
use crate::names::{FlavorIx, ResIx};
use crate::world::rows::Row;
use crate::world::{ClusterRow, World, clusters::flavor_constraints, clusters::with_pod};

/// Label keys of nodes that name a cluster; the hub judges them itself.
const CLUSTER_LABEL: &str = "fairlead.dev/cluster";
const CLOUD_LABEL: &str = "fairlead.dev/cloud";

/// A spoke that the queue's policy allows.
#[derive(Debug)]
struct Candidate<'w> {
    cluster: &'w Cluster,
    row: &'w ClusterRow,
    preferred: bool,
}

/// The spokes that remain for a workload while its flavors are chosen one by one.
#[derive(Debug)]
pub(crate) struct ClusterScan<'w> {
    candidates: Vec<Candidate<'w>>,
    /// Which of them hold everything chosen so far.
    alive: Vec<bool>,
    /// Spokes that are out for reasons that no flavor changes.
    barred: Vec<(&'w Cluster, Reason, Arc<str>)>,
    /// Flavors chosen so far, by pod set.
    chosen: Vec<BTreeSet<FlavorIx>>,
    /// Pods, by pod set.
    counts: Vec<u32>,
}

/// What pods of one pod set demand under the flavors chosen for it.
struct Demand {
    requests: Resources,
    labels: Labels,
    tolerations: Vec<Toleration>,
    position: usize,
    count: u32,
}

/// How a gang stands against one spoke.
#[derive(Debug, PartialEq, Eq)]
struct Misfit {
    reason: Reason,
    shortfall: Option<Shortfall>,
}

/// The dispatch policies of a queue's checks; empty for a home queue.
fn policies<'w>(world: &'w World, queue: &ClusterQueue) -> Vec<&'w DispatchPolicy> {
    let dispatch = |name: &Arc<str>| match &world.checks.get(name)?.kind {
        CheckKind::Dispatch(policy) => Some(policy),
        CheckKind::Other => None,
    };
    queue.checks.iter().filter_map(|used| dispatch(&used.check)).collect()
}

/// Why a spoke is out whatever the flavor.
fn bar(row: &Row, cluster: &Cluster, known: &ClusterRow) -> Option<(Reason, Arc<str>)> {
    if let Some(exclusion) =
        row.fact.rare().excluded.iter().find(|exclusion| exclusion.spoke == cluster.spoke)
    {
        return Some((exclusion.reason, Arc::clone(&exclusion.detail)));
    }
    if cluster.cordoned {
        return Some((Reason::ClusterCordoned, "".into()));
    }
    let reported = known.report.is_some() || cluster.mode == Mode::QuotaOnly;
    (cluster.presence != Presence::Fresh || !reported).then(|| (Reason::ClusterNotReady, "".into()))
}

impl<'w> ClusterScan<'w> {
    /// The spokes for a workload; none for a home queue, and while other checks have to come first.
    pub(crate) fn new(assigner: &Assigner<'_, 'w>, counts: impl FnOnce() -> Vec<u32>) -> Option<Self> {
        let world = assigner.round.world;
        if !assigner.queue.federated || assigner.round.checks_pending(assigner.queue, assigner.row) {
            return None;
        }
        let policies = policies(world, assigner.queue.fact.as_ref()?);
        let allowed = |cluster: &Cluster| {
            policies.iter().all(|policy| {
                let named = policy.names.as_ref().is_none_or(|names| names.contains(&cluster.name));
                named && policy.required.matches(&cluster.labels)
            })
        };
        let counts = counts();
        let chosen = vec![BTreeSet::new(); counts.len()];
        let mut scan = Self { candidates: Vec::new(), alive: Vec::new(), barred: Vec::new(), chosen, counts };
        for row in world.clusters.values() {
            let Some(cluster) = row.fact.as_ref().filter(|cluster| allowed(cluster)) else { continue };
            if let Some((reason, detail)) = bar(assigner.row, cluster, row) {
                scan.barred.push((cluster, reason, detail));
                continue;
            }
            let prefers = |policy: &&&DispatchPolicy| {
                policy.preferred.as_ref().is_some_and(|selector| selector.matches(&cluster.labels))
            };
            let preferred = policies.iter().any(|policy| prefers(&policy));
            scan.candidates.push(Candidate { cluster, row, preferred });
        }
        scan.candidates.sort_by(|a, b| a.cluster.name.cmp(&b.cluster.name));
        scan.barred.sort_by(|a, b| a.0.name.cmp(&b.0.name));
        scan.alive = vec![true; scan.candidates.len()];
        Some(scan)
    }

    /// Which spokes would remain if the unit took this flavor too; none, and an attempt per spoke, if no one would.
    pub(crate) fn remaining(
        &self,
        assigner: &Assigner<'_, 'w>,
        (unit, group, flavor): (&Unit, ResIx, FlavorIx),
        attempts: &mut Vec<Attempt>,
    ) -> Option<Vec<bool>> {
        let demands = self.demands(assigner, unit, flavor);
        let pods: Vec<(Pod<'_>, u32)> = demands.iter().map(|demand| demand.pod(assigner)).collect();
        let flavor_name = assigner.round.world.names.flavors.text(flavor);
        let mut remaining = Vec::with_capacity(self.candidates.len());
        for (candidate, alive) in self.candidates.iter().zip(&self.alive) {
            let misfit = if *alive { misfit(assigner, candidate, &pods) } else { None };
            remaining.push(*alive && misfit.is_none());
            if let Some(misfit) = misfit {
                attempts.push(Attempt {
                    cluster: Arc::clone(&candidate.cluster.name),
                    shortfall: misfit.shortfall,
                    ..Assigner::attempt(unit, group, flavor_name, misfit.reason)
                });
            }
        }
        if remaining.contains(&true) {
            return Some(remaining);
        }
        for (cluster, reason, detail) in &self.barred {
            attempts.push(Attempt {
                cluster: Arc::clone(&cluster.name),
                detail: Arc::clone(detail),
                ..Assigner::attempt(unit, group, flavor_name, *reason)
            });
        }
        if self.candidates.is_empty() && self.barred.is_empty() {
            attempts.push(Assigner::attempt(unit, group, flavor_name, Reason::NoEligibleCluster));
        }
        None
    }

    /// Fixes a flavor for a unit.
    pub(crate) fn take(&mut self, unit: &Unit, flavor: FlavorIx, remaining: Vec<bool>) {
        self.alive = remaining;
        for position in &unit.pod_sets {
            if let Some(chosen) = self.chosen.get_mut(*position) {
                chosen.insert(flavor);
            }
        }
    }

    /// Demands of every pod set that has a flavor by now, with `flavor` added for the unit's.
    fn demands(&self, assigner: &Assigner<'_, 'w>, unit: &Unit, flavor: FlavorIx) -> Vec<Demand> {
        let world = assigner.round.world;
        let mut demands = Vec::new();
        for (position, chosen) in self.chosen.iter().enumerate() {
            let mut flavors: BTreeSet<FlavorIx> = chosen.clone();
            if unit.pod_sets.contains(&position) {
                flavors.insert(flavor);
            }
            let Some(pod) = assigner.row.gang.requests.get(position).filter(|_| !flavors.is_empty()) else {
                continue;
            };
            let names: Vec<Arc<str>> = flavors.iter().map(|ix| world.names.flavors.name(*ix)).collect();
            let (labels, tolerations) = flavor_constraints(world, &names);
            let count = self.counts.get(position).copied().unwrap_or(0);
            demands.push(Demand { requests: with_pod(&pod.effective), labels, tolerations, position, count });
        }
        demands
    }

    /// Picks among the spokes that hold everything: preferred ones first, then the lowest share of the scarcest
    /// requested resource in use, then the name.
    pub(crate) fn choose(&self, assigner: &Assigner<'_, 'w>, assignment: &mut Assignment) -> Option<SpokeId> {
        let mut total = Resources::new();
        for (pod, choice) in assigner.row.gang.requests.iter().zip(&assignment.pod_sets) {
            total.add(&with_pod(&pod.effective).times(i64::from(choice.count)));
        }
        let mut fitting: Vec<(&Candidate<'w>, Share)> = Vec::new();
        for (candidate, alive) in self.candidates.iter().zip(&self.alive) {
            if *alive {
                let left = assigner.state.left(&candidate.cluster.spoke);
                fitting.push((candidate, Share::scarcest(candidate.row, left, &total)));
            }
        }
        fitting.sort_by(|(a, a_share), (b, b_share)| {
            let by_share = || a_share.cmp(b_share).then_with(|| a.cluster.name.cmp(&b.cluster.name));
            b.preferred.cmp(&a.preferred).then_with(by_share)
        });
        for (rank, (candidate, share)) in fitting.iter().enumerate() {
            let reason = if rank == 0 { Reason::Fits } else { Reason::NotChosen };
            assignment.attempts.push(Attempt {
                pod_set: 0,
                group: 0,
                flavor: "".into(),
                cluster: Arc::clone(&candidate.cluster.name),
                reason,
                shortfall: None,
                detail: share.describe(candidate.preferred),
            });
        }
        fitting.first().map(|(candidate, _)| candidate.cluster.spoke.clone())
    }
}

impl Demand {
    fn pod<'a>(&'a self, assigner: &Assigner<'_, 'a>) -> (Pod<'a>, u32) {
        static ANY: fairlead_model::NodeConstraints = fairlead_model::NodeConstraints::ANY;
        let pod_set = assigner.row.gang.pod_sets.get(self.position);
        let nodes = pod_set.map_or(&ANY, |pod_set| &pod_set.template.nodes);
        let pod =
            Pod { requests: &self.requests, nodes, labels: &self.labels, tolerations: &self.tolerations };
        (pod, self.count)
    }
}

/// Why a spoke does not hold these pods now; none when it does.
fn misfit(assigner: &Assigner<'_, '_>, candidate: &Candidate<'_>, pods: &[(Pod<'_>, u32)]) -> Option<Misfit> {
    let cluster = candidate.cluster;
    if cluster.mode == Mode::QuotaOnly {
        let elsewhere = pods.iter().any(|(pod, _)| !names_cluster(pod, cluster));
        return elsewhere.then_some(Misfit { reason: Reason::FlavorMismatch, shortfall: None });
    }
    let left = assigner.state.left(&cluster.spoke);
    let now = room(left, pods);
    if now == Room::Fits {
        return None;
    }
    let empty = candidate.row.report.as_ref().map_or(&[][..], |report| &report.empty);
    let never = match room(empty, pods) {
        Room::Fits => None,
        Room::NoNode(None) => Some(Misfit { reason: Reason::FlavorMismatch, shortfall: None }),
        Room::NoNode(Some(closest)) => {
            Some(Misfit { reason: Reason::NoSingleNodeFits, shortfall: node_shortfall(&closest, pods) })
        }
        Room::Short(placed) => Some(Misfit {
            reason: Reason::ExceedsClusterCapacity,
            shortfall: total_shortfall(empty, pods, placed),
        }),
    };
    let placed = if let Room::Short(placed) = now { placed } else { 0 };
    let waiting =
        || Misfit { reason: Reason::WaitingForCapacity, shortfall: total_shortfall(left, pods, placed) };
    Some(never.filter(|_| !cluster.elastic).unwrap_or_else(waiting))
}

/// Whether the cluster's own labels meet what pods and flavors say about clusters.
fn names_cluster(pod: &Pod<'_>, cluster: &Cluster) -> bool {
    let mut labels = cluster.labels.clone();
    labels.insert(CLUSTER_LABEL.into(), Arc::clone(&cluster.name));
    let ours = |key: &str| key == CLUSTER_LABEL || key == CLOUD_LABEL;
    let wanted = pod.labels.iter().chain(&pod.nodes.selector).filter(|(key, _)| ours(key));
    wanted.into_iter().all(|(key, value)| labels.get(key) == Some(value))
}

/// What the closest node lacks for the first pod that no node holds.
fn node_shortfall(node: &Resources, pods: &[(Pod<'_>, u32)]) -> Option<Shortfall> {
    let requests = pods.iter().flat_map(|(pod, _)| pod.requests.iter());
    requests
        .map(|(name, requested)| Shortfall {
            resource: Arc::clone(name),
            requested,
            available: node.get(name),
        })
        .find(|shortfall| shortfall.missing() > 0)
}

/// What is missing in sum; counted in pods when every sum would do but the nodes are too fragmented.
fn total_shortfall(shapes: &[Shape], pods: &[(Pod<'_>, u32)], placed: u64) -> Option<Shortfall> {
    let mut requested = Resources::new();
    for (pod, count) in pods {
        requested.add(&pod.requests.times(i64::from(*count)));
    }
    let mut available = Resources::new();
    for shape in shapes.iter().filter(|shape| pods.iter().any(|(pod, _)| pod.allows(&shape.class))) {
        available.add(&shape.free.times(i64::from(shape.count)));
    }
    let short = requested.iter().map(|(name, requested)| Shortfall {
        resource: Arc::clone(name),
        requested,
        available: available.get(name),
    });
    let in_pods = Shortfall {
        resource: "pods".into(),
        requested: requested.get("pods"),
        available: i64::try_from(placed).unwrap_or(i64::MAX),
    };
    let worst = short.into_iter().filter(|shortfall| shortfall.missing() > 0).max_by_key(Shortfall::missing);
    worst.or_else(|| Some(in_pods).filter(|shortfall| shortfall.missing() > 0))
}

/// The share of a resource that is in use: an exact ratio.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Share {
    used: i64,
    total: i64,
    resource: Arc<str>,
}

impl Share {
    /// The highest share among the requested resources that the spoke has at all.
    fn scarcest(cluster: &ClusterRow, left: &[Shape], requested: &Resources) -> Self {
        let sum = |shapes: &[Shape], name: &str| {
            shapes.iter().fold(0_i64, |sum, shape| {
                sum.saturating_add(shape.free.get(name).saturating_mul(i64::from(shape.count)))
            })
        };
        let empty = cluster.report.as_ref().map_or(&[][..], |report| &report.empty);
        let mut worst = Self { used: 0, total: 1, resource: "".into() };
        for (name, _) in requested.iter().filter(|(_, amount)| *amount > 0) {
            let total = sum(empty, name);
            if total <= 0 {
                continue;
            }
            let used = total.saturating_sub(sum(left, name)).max(0);
            let share = Self { used, total, resource: Arc::clone(name) };
            if worst.resource.is_empty() || share.cmp(&worst) == Ordering::Greater {
                worst = share;
            }
        }
        worst
    }

    /// Compares by cross-multiplication.
    fn cmp(&self, other: &Self) -> Ordering {
        let product = |a: i64, b: i64| i128::from(a).saturating_mul(i128::from(b));
        product(self.used, other.total).cmp(&product(other.used, self.total))
    }

    fn describe(&self, preferred: bool) -> Arc<str> {
        let preference = if preferred { "preferred, " } else { "" };
        if self.resource.is_empty() {
            return Arc::from(format!("{preference}quota alone decides there"));
        }
        let (used, total, resource) = (self.used, self.total, &self.resource);
        Arc::from(format!("{preference}{used} of {total} {resource} in use"))
    }
}
