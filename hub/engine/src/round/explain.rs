//! Turns what was found out into verdicts [F-12].

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_model::{Candidate, MAX_CANDIDATES, Reason, Verdict};

use super::Round;
use super::entry::{Assignment, Attempt, Entry};
use crate::names::ResIx;
use crate::plan::Outcome;
use crate::world::World;
use crate::world::rows::{Queue, Row};

/// A verdict without candidates.
pub(crate) fn plain(reason: Reason, detail: &str) -> Verdict {
    let message = if reason == Reason::NamespaceMismatch {
        format!("the ClusterQueue takes no workloads from namespace {detail}")
    } else if reason == Reason::RequestsExceedLimits {
        format!("the pod template cannot be admitted: {detail}")
    } else if reason == Reason::WaitingForPodsReady {
        format!("ClusterQueue {detail} waits for the pods of the workload that it admitted last")
    } else {
        format!("admission check {detail} stands against it")
    };
    Verdict { reason, cluster: None, message: message.into(), candidates: Vec::new() }
}

/// Why a workload is in no queue.
pub(crate) fn outside(world: &World, row: &Row, reason: Reason) -> Verdict {
    let (namespace, local) = (row.fact.namespace(), row.fact.queue());
    let target = world.locals.get(&*row.fact.local).map_or("", |local| &local.cluster_queue);
    let texts = [
        (Reason::LocalQueueNotFound, format!("LocalQueue {local} does not exist in namespace {namespace}")),
        (Reason::ClusterQueueNotFound, format!("ClusterQueue {target} of LocalQueue {local} does not exist")),
        (Reason::QueueStopped, format!("LocalQueue {local} is stopped")),
        (Reason::Deactivated, "the workload is not active".to_owned()),
        (Reason::Busy, "an earlier copy of that name has not stopped yet".to_owned()),
    ];
    let message = texts.into_iter().find(|(of, _)| *of == reason).map(|(_, text)| text);
    let message = message.unwrap_or_else(|| format!("it is held back: {reason}"));
    Verdict { reason, cluster: None, message: message.into(), candidates: Vec::new() }
}

/// How far a reason is from being overcome: the lowest of alternatives is told, the highest of what is needed
/// together. What is not listed is a refusal by a spoke and stands between a full cluster and an absent one.
const SEVERITIES: [(Reason, u8); 18] = [
    (Reason::Fits, 0),
    (Reason::NotChosen, 1),
    (Reason::WaitingForCapacity, 2),
    (Reason::NoRoom, 2),
    (Reason::Busy, 2),
    (Reason::NoAnswer, 2),
    (Reason::ClusterNotReady, 4),
    (Reason::ClusterCordoned, 4),
    (Reason::WaitingForQuota, 5),
    (Reason::NoSingleNodeFits, 6),
    (Reason::ExceedsClusterCapacity, 6),
    (Reason::TopologyPlacementFailed, 6),
    (Reason::ExceedsMaxQuota, 7),
    (Reason::NoEligibleCluster, 8),
    (Reason::FlavorMismatch, 9),
    (Reason::UntoleratedTaint, 9),
    (Reason::FlavorNotFound, 9),
    (Reason::ResourceNotCovered, 10),
];

/// The severity of a reason.
fn severity(reason: Reason) -> u8 {
    SEVERITIES.iter().find(|(of, _)| *of == reason).map_or(3, |(_, severity)| *severity)
}

/// The reason that stands for all attempts of an assignment.
fn leading(attempts: &[Attempt]) -> Option<&Attempt> {
    let mut groups: BTreeMap<(usize, ResIx), &Attempt> = BTreeMap::new();
    for attempt in attempts.iter().filter(|attempt| severity(attempt.reason) > 1) {
        let key = (attempt.pod_set, attempt.group);
        let best = groups.entry(key).or_insert(attempt);
        if severity(attempt.reason) < severity(best.reason) {
            *best = attempt;
        }
    }
    groups.into_values().max_by_key(|attempt| severity(attempt.reason))
}

/// The verdict of an admitted workload.
fn admitted(round: &Round<'_>, queue: &Queue, assignment: &Assignment) -> Verdict {
    let cluster = assignment.spoke.as_ref().and_then(|spoke| round.world.clusters.get(spoke));
    let cluster = cluster.and_then(|row| row.fact.as_ref()).map(|cluster| Arc::clone(&cluster.name));
    let candidates = candidates(&assignment.attempts);
    let chosen = assignment.attempts.iter().find(|attempt| attempt.reason == Reason::Fits);
    let others = candidates.iter().filter(|candidate| candidate.reason == Reason::NotChosen).count();
    let told = &queue.admits;
    let message = match (&cluster, chosen) {
        (Some(cluster), Some(chosen)) if others > 0 => {
            Arc::from(format!("{told} on cluster {cluster}: {}, {others} more could hold it", chosen.detail))
        }
        (Some(cluster), _) => Arc::from(format!("{told} on cluster {cluster}: only it can hold it")),
        (None, _) => Arc::clone(told),
    };
    Verdict { reason: Reason::Admitted, cluster, message, candidates }
}

/// The verdict of an entry.
pub(crate) fn entry(
    round: &Round<'_>,
    (row, queue): (&Row, &Queue),
    entry: &Entry,
    outcome: Outcome,
) -> Verdict {
    if outcome == Outcome::Admitted {
        return admitted(round, queue, &entry.assignment);
    }
    let attempts = &entry.assignment.attempts;
    let lead = leading(attempts);
    let reason = match outcome {
        Outcome::PendingPreemption => Reason::WaitingForPreemptedWorkloads,
        Outcome::PreemptionGated => Reason::PreemptionGated,
        Outcome::Skipped => Reason::LostToEarlier,
        Outcome::PreemptionNoCandidates => {
            lead.map_or(Reason::NoPreemptionCandidates, |attempt| attempt.reason)
        }
        Outcome::Admitted
        | Outcome::NoFit
        | Outcome::NamespaceMismatch
        | Outcome::Rejected
        | Outcome::Blocked
        | Outcome::Outside => lead.map_or(Reason::WaitingForQuota, |attempt| attempt.reason),
    };
    let message = sentence(row, reason, entry, lead);
    Verdict { reason, cluster: None, message: message.into(), candidates: candidates(attempts) }
}

/// One sentence for people.
fn sentence(row: &Row, reason: Reason, entry: &Entry, lead: Option<&Attempt>) -> String {
    if reason == Reason::WaitingForPreemptedWorkloads {
        return match entry.targets.len() {
            0 => "waits until preempted workloads have stopped".to_owned(),
            1 => "waits until 1 preempted workload has stopped".to_owned(),
            more => format!("waits until {more} preempted workloads have stopped"),
        };
    }
    if reason == Reason::PreemptionGated {
        return "would need preemption, and a preemption gate is closed".to_owned();
    }
    if reason == Reason::LostToEarlier {
        return "an entry that was handled earlier in the round took what it needed".to_owned();
    }
    let Some(attempt) = lead else { return reason.token().to_owned() };
    let pod_set = row.gang.pod_sets.get(attempt.pod_set).map_or("", |pod_set| &pod_set.name);
    let flavor =
        if attempt.flavor.is_empty() { String::new() } else { format!(" in flavor {}", attempt.flavor) };
    let cluster =
        if attempt.cluster.is_empty() { String::new() } else { format!(" on cluster {}", attempt.cluster) };
    format!("pod set {pod_set}{flavor}{cluster}: {}", phrase(attempt))
}

/// What the rules are called that attempts fail by.
const PHRASES: [(Reason, &str); 13] = [
    (Reason::ExceedsMaxQuota, "the request is larger than the queue could ever get"),
    (Reason::WaitingForQuota, "the quota is in use"),
    (Reason::ResourceNotCovered, "the ClusterQueue has no quota for it"),
    (Reason::FlavorNotFound, "the flavor does not exist"),
    (Reason::UntoleratedTaint, "a taint of the flavor is not tolerated"),
    (Reason::FlavorMismatch, "node selector, affinity or topology do not match"),
    (Reason::NoSingleNodeFits, "no node is large enough for one pod, even when empty"),
    (Reason::ExceedsClusterCapacity, "the cluster could not hold all pods even when empty"),
    (Reason::WaitingForCapacity, "too little is free now"),
    (Reason::TopologyPlacementFailed, "the topology request cannot be met"),
    (Reason::NoEligibleCluster, "no cluster is registered that policy and flavors allow"),
    (Reason::ClusterNotReady, "the cluster is not connected, or has not reported its capacity"),
    (Reason::ClusterCordoned, "the cluster is cordoned"),
];

/// What an attempt failed by, with what was measured.
fn phrase(attempt: &Attempt) -> String {
    let what = PHRASES
        .iter()
        .find(|(of, _)| *of == attempt.reason)
        .map_or_else(|| attempt.reason.token(), |(_, text)| *text);
    let measured = attempt.shortfall.as_ref().map_or_else(String::new, |short| {
        let (resource, missing) = (&short.resource, short.missing());
        format!(": {missing} more {resource} needed ({} asked, {} there)", short.requested, short.available)
    });
    let detail = if attempt.detail.is_empty() { String::new() } else { format!(" ({})", attempt.detail) };
    format!("{what}{measured}{detail}")
}

/// The attempts as candidates, the closest to success first.
fn candidates(attempts: &[Attempt]) -> Vec<Candidate> {
    let mut sorted: Vec<&Attempt> = attempts.iter().collect();
    sorted.sort_by(|a, b| {
        let key = |attempt: &Attempt| {
            (severity(attempt.reason), Arc::clone(&attempt.cluster), Arc::clone(&attempt.flavor))
        };
        key(a).cmp(&key(b))
    });
    sorted.dedup_by(|a, b| a.cluster == b.cluster && a.flavor == b.flavor && a.reason == b.reason);
    sorted
        .into_iter()
        .take(MAX_CANDIDATES)
        .map(|attempt| Candidate {
            cluster: Arc::clone(&attempt.cluster),
            flavor: Arc::clone(&attempt.flavor),
            reason: attempt.reason,
            shortfall: attempt.shortfall.clone(),
            detail: Arc::clone(&attempt.detail),
        })
        .collect()
}
