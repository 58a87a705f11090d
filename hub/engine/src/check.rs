//! The plan linter: every invariant that a plan and the snapshot it was made on can show by themselves. It looks at what
//! a plan says, not at how it was found, so it is a second opinion.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use fairlead_fit::{Pod, place};
use fairlead_model::{Amount, Reason, Shape, SpokeId, Uid};

use crate::fact::{Mode, PodSetAssignment, Presence};
use crate::names::{FrIx, at};
use crate::plan::{Admission, Outcome};
use crate::quota::NodeIx;
use crate::quota::plane::{Changes, Draft};
use crate::world::clusters::{flavor_constraints, flavors_of, with_pod};
use crate::world::rows::Row;
use crate::world::{Snapshot, World};
use crate::{Plan, Preempted};

/// Which invariant a plan breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// A workload is decided about twice: admitted twice, evicted twice, or both.
    OneDecision,
    /// A decision names a workload or a queue that the snapshot does not know.
    Known,
    /// An admitted workload holds quota already, is not active, or has ended.
    Admissible,
    /// A pod set is missing, has more pods than asked for or fewer than the least it takes, or is charged without flavor.
    WholeGang,
    /// A node of the quota tree would use more than it may.
    WithinQuota,
    /// A workload is promised to a spoke that is cordoned, not fresh, excluded, or unknown.
    UsableCluster,
    /// The pods promised to a spoke do not fit its reported free shapes, less what is promised already.
    FitsCluster,
    /// Places in a topology are missing, or do not add up to the pods.
    PlacedPods,
    /// A victim holds no quota, or its preemptor is not in the plan as one that waits for it.
    EvictionHasPreemptor,
    /// A victim comes before its preemptor by priority, in the same queue.
    VictimBehindPreemptor,
    /// A head that was not admitted has no reason.
    Explained,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// One broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which.
    pub rule: Rule,
    /// The workload it concerns.
    pub uid: Uid,
    /// What exactly.
    pub detail: Arc<str>,
}

/// Checks a plan against the snapshot it was made on. An empty answer means that nothing is wrong.
pub fn check(snapshot: &Snapshot<'_>, plan: &Plan) -> Vec<Finding> {
    let mut linter = Linter { world: snapshot.world, plan, findings: Vec::new() };
    linter.one_decision();
    linter.admissions();
    linter.quota();
    linter.clusters();
    linter.evictions();
    linter.explained();
    linter.findings
}

struct Linter<'a> {
    world: &'a World,
    plan: &'a Plan,
    findings: Vec<Finding>,
}

/// What an admission was charged, and where.
struct Charged {
    uid: Uid,
    tree: u32,
    node: NodeIx,
    usage: Vec<(FrIx, i64)>,
}

impl Linter<'_> {
    fn report(&mut self, rule: Rule, uid: &Uid, detail: impl Into<Arc<str>>) {
        self.findings.push(Finding { rule, uid: uid.clone(), detail: detail.into() });
    }

    /// In one round no workload is decided about twice; over several, one that was evicted may come back.
    fn one_decision(&mut self) {
        let mut seen = BTreeSet::new();
        let admitted = self.plan.admissions.iter().map(|it| (it.round, &it.uid));
        let evicted = self.plan.evictions.iter().map(|it| (it.round, &it.uid));
        let all: Vec<(u32, Uid)> = admitted.chain(evicted).map(|(round, uid)| (round, uid.clone())).collect();
        for (round, uid) in all {
            if !seen.insert((round, uid.clone())) {
                self.report(Rule::OneDecision, &uid, format!("decided about twice in round {round}"));
            }
        }
    }

    fn admissions(&mut self) {
        for admission in &self.plan.admissions {
            let Some(row) = self.world.row_of(&admission.uid) else {
                self.report(Rule::Known, &admission.uid, "admitted, but unknown");
                continue;
            };
            let first_pass = row.held.is_none();
            if !row.fact.active || row.fact.finished {
                self.report(Rule::Admissible, &admission.uid, "admitted, but not active or ended");
            }
            if !first_pass && !self.world.unplaced_row(&admission.uid) && admission.round == 0 {
                self.report(Rule::Admissible, &admission.uid, "admitted, but it holds quota already");
            }
            for detail in gang_faults(row, admission) {
                self.report(Rule::WholeGang, &admission.uid, detail);
            }
            for assignment in &*admission.pod_sets {
                if let Some(detail) = self.place_fault(admission, assignment) {
                    self.report(Rule::PlacedPods, &admission.uid, detail);
                }
            }
        }
    }

    /// What is wrong with a pod set's place: one with a flavor that has a topology must have one for each of its pods.
    fn place_fault(&self, admission: &Admission, assignment: &PodSetAssignment) -> Option<String> {
        let federated = self.world.queue_named(&admission.cluster_queue).is_some_and(|queue| queue.federated);
        let flavors = assignment.flavors.values().filter_map(|name| self.world.flavors.get(name));
        let placed = !federated && flavors.into_iter().any(|flavor| flavor.topology.is_some());
        let pods: Option<u32> = assignment
            .topology
            .as_ref()
            .map(|topology| topology.domains.iter().fold(0, |sum: u32, (_, pods)| sum.saturating_add(*pods)));
        match pods {
            // Pods beyond whole slices get no domain, as under Kueue (quirk 11 is refused at the door instead).
            Some(pods) if pods > assignment.count => Some(format!("{}: {pods} places", assignment.name)),
            None if placed && assignment.count > 0 => Some(format!("{}: no place", assignment.name)),
            Some(_) | None => None,
        }
    }

    /// Charges the plan on top of the usage: no node may end up with more than it may have, unless it had more
    /// before. Victims count as gone, as the plan's entries were judged.
    fn quota(&mut self) {
        let mut changes: BTreeMap<u32, Changes> = BTreeMap::new();
        for eviction in &self.plan.evictions {
            let Some(held) = self.world.row_of(&eviction.uid).and_then(|row| row.held.as_deref()) else {
                continue;
            };
            self.charge(&mut changes, held.queue, &held.charge.usage, false);
        }
        let mut charged: Vec<Charged> = Vec::new();
        for admission in &self.plan.admissions {
            if self.world.row_of(&admission.uid).is_some_and(|row| row.held.is_some()) {
                continue;
            }
            let Some(queue) = self.world.queue_ordinal(&admission.cluster_queue) else {
                self.report(Rule::Known, &admission.uid, "admitted into an unknown queue");
                continue;
            };
            let usage = self.usage_of(admission);
            self.charge(&mut changes, queue, &usage, true);
            if let Some((tree, node, _)) = self.world.tree_of(queue) {
                charged.push(Charged { uid: admission.uid.clone(), tree, node, usage });
            }
        }
        for Charged { uid, tree: tree_ix, node, usage } in charged {
            let Some(tree) = self.world.forest.trees.get(at(tree_ix)) else { continue };
            let Some(changes) = changes.get(&tree_ix) else { continue };
            let plane = tree.now().with(changes);
            let over = usage.iter().filter(|(_, amount)| *amount > 0).find_map(|(fr, _)| {
                let col = tree.column(*fr)?;
                // Nothing may be missing at the queue once everything is charged.
                (tree.available(plane, node, col) < Amount::ZERO).then_some(*fr)
            });
            if let Some(fr) = over {
                let (flavor, resource) = self.world.names.pair(fr);
                let names = &self.world.names;
                let what = format!("{} of {}", names.resources.text(resource), names.flavors.text(flavor));
                self.report(Rule::WithinQuota, &uid, format!("too much {what}"));
            }
        }
    }

    fn charge(&self, changes: &mut BTreeMap<u32, Changes>, queue: u32, usage: &[(FrIx, i64)], add: bool) {
        let Some((tree_ix, node, tree)) = self.world.tree_of(queue) else { return };
        let mut draft = Draft { below: tree.now(), changes: changes.entry(tree_ix).or_default() };
        for (fr, amount) in usage {
            let Some(col) = tree.column(*fr) else { continue };
            if add {
                tree.add_usage(&mut draft, node, col, *amount);
            } else {
                tree.remove_usage(&mut draft, node, col, *amount);
            }
        }
    }

    fn usage_of(&self, admission: &Admission) -> Vec<(FrIx, i64)> {
        let names = &self.world.names;
        let mut usage: BTreeMap<FrIx, i64> = BTreeMap::new();
        for assignment in &*admission.pod_sets {
            for (resource, amount) in assignment.usage.iter() {
                let flavor = assignment.flavors.get(resource).and_then(|flavor| names.flavors.find(flavor));
                let pair = flavor.zip(names.resources.find(resource));
                let Some(fr) = pair.and_then(|(flavor, resource)| names.find_fr(flavor, resource)) else {
                    continue;
                };
                let sum = usage.entry(fr).or_insert(0);
                *sum = sum.saturating_add(amount);
            }
        }
        usage.into_iter().collect()
    }

    /// Each promise lands on a usable spoke and, all together, in its reported shapes.
    fn clusters(&mut self) {
        let mut left: BTreeMap<SpokeId, Vec<Shape>> = BTreeMap::new();
        for admission in &self.plan.admissions {
            let federated =
                self.world.queue_named(&admission.cluster_queue).is_some_and(|queue| queue.federated);
            let Some(spoke) = &admission.spoke else {
                if federated && !admission.checks_pending {
                    self.report(Rule::UsableCluster, &admission.uid, "no cluster in a federated queue");
                }
                continue;
            };
            let known = self.world.clusters.get(spoke).and_then(|row| Some((row, row.fact.as_ref()?)));
            let Some(((row, cluster), workload)) = known.zip(self.world.row_of(&admission.uid)) else {
                self.report(Rule::UsableCluster, &admission.uid, "promised to an unknown cluster");
                continue;
            };
            let excluded = workload.fact.rare().excluded.iter().any(|exclusion| exclusion.spoke == *spoke);
            if cluster.cordoned || cluster.presence != Presence::Fresh || excluded {
                self.report(
                    Rule::UsableCluster,
                    &admission.uid,
                    format!("{} takes nothing now", cluster.name),
                );
            }
            let shapes = left.entry(spoke.clone()).or_insert_with(|| row.left.clone());
            if cluster.mode == Mode::Reported && !fits(self.world, shapes, workload, admission) {
                self.report(Rule::FitsCluster, &admission.uid, format!("no room on {}", cluster.name));
            }
        }
    }

    fn evictions(&mut self) {
        for eviction in &self.plan.evictions {
            let Some(victim) = self.world.row_of(&eviction.uid) else {
                self.report(Rule::Known, &eviction.uid, "evicted, but unknown");
                continue;
            };
            let admitted_before =
                self.plan.admissions.iter().any(|it| it.uid == eviction.uid && it.round < eviction.round);
            if victim.held.is_none() && !admitted_before {
                self.report(Rule::EvictionHasPreemptor, &eviction.uid, "evicted, but it holds nothing");
            }
            let waits = self.plan.heads.iter().any(|head| {
                head.uid == eviction.by
                    && head.round == eviction.round
                    && head.outcome == Outcome::PendingPreemption
            });
            if !waits {
                self.report(Rule::EvictionHasPreemptor, &eviction.uid, "evicted for nobody that waits");
            }
            if self.is_ahead(victim, eviction) {
                self.report(Rule::VictimBehindPreemptor, &eviction.uid, "evicted by a lower priority");
            }
        }
    }

    /// Whether a victim of the preemptor's own queue has the higher priority.
    fn is_ahead(&self, victim: &Row, eviction: &Preempted) -> bool {
        let Some(preemptor) = self.world.row_of(&eviction.by) else { return false };
        let same_queue = preemptor.queue() == victim.queue();
        same_queue && victim.fact.priority > preemptor.fact.priority
    }

    fn explained(&mut self) {
        for head in &self.plan.heads {
            let unexplained = head.verdict.message.is_empty();
            let contradicts =
                (head.outcome == Outcome::Admitted) != (head.verdict.reason == Reason::Admitted);
            if unexplained || contradicts {
                self.report(
                    Rule::Explained,
                    &head.uid,
                    format!("{:?} without a reason that says so", head.outcome),
                );
            }
        }
    }
}

/// What is wrong with the pods of an admission.
fn gang_faults(row: &Row, admission: &Admission) -> Vec<String> {
    let mut faults = Vec::new();
    if row.gang.pod_sets.len() != admission.pod_sets.len() {
        faults.push("not every pod set is admitted".to_owned());
    }
    for (pod_set, assignment) in row.gang.pod_sets.iter().zip(&*admission.pod_sets) {
        let needed = row.needed(pod_set);
        let least = pod_set.min_count.map_or(needed, |least| least.min(needed));
        if pod_set.name != assignment.name || assignment.count > needed || assignment.count < least {
            faults.push(format!("{}: {} of {needed} pods", assignment.name, assignment.count));
        }
        if assignment.usage.iter().any(|(resource, _)| !assignment.flavors.contains_key(resource)) {
            faults.push(format!("{}: charged without a flavor", assignment.name));
        }
    }
    faults
}

/// Puts the pods of an admission into shapes; false when they do not all fit.
fn fits(world: &World, shapes: &mut Vec<Shape>, row: &Row, admission: &Admission) -> bool {
    let mut pods = Vec::new();
    for ((pod_set, requests), assignment) in
        row.gang.pod_sets.iter().zip(&*row.gang.requests).zip(&*admission.pod_sets)
    {
        let (labels, tolerations) = flavor_constraints(world, &flavors_of(assignment));
        pods.push((pod_set, with_pod(&requests.effective), labels, tolerations, assignment.count));
    }
    let as_pods: Vec<(Pod<'_>, u32)> = pods
        .iter()
        .map(|(pod_set, requests, labels, tolerations, count)| {
            (Pod { requests, nodes: &pod_set.template.nodes, labels, tolerations }, *count)
        })
        .collect();
    let fits = fairlead_fit::room(shapes, &as_pods) == fairlead_fit::Room::Fits;
    for (pod, count) in &as_pods {
        place(shapes, pod, *count);
    }
    fits
}
