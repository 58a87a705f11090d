//! Workloads.

use std::sync::Arc;

use fairlead_api::labels as names;
use fairlead_engine::fact::{
    CheckPhase, CheckState, Eviction, EvictionCause, PodSet, PodSetAssignment, Reservation, Slice,
    TopologyLevel, TopologyRequest, Workload,
};
use fairlead_model::{Millis, Reason, SpokeId, Uid};
use serde_json::Value;

use super::pods::shared_template;
use super::read::{Unreadable, amount, count, list, maybe_text, text, time};
use super::{key_of, topology};

/// A Workload as the engine sees it.
///
/// # Errors
///
/// What could not be read, for people.
pub fn workload_json(json: &Value) -> Result<Workload, Unreadable> {
    let pod_sets: Vec<PodSet> = list(json, "/spec/podSets").iter().map(pod_set).collect::<Result<_, _>>()?;
    let mut workload = Workload {
        uid: Uid::from(text(json, "/metadata/uid")),
        key: key_of(json),
        queue: text(json, "/spec/queueName").into(),
        priority: 0,
        created: time(json, "/metadata/creationTimestamp").unwrap_or_default(),
        active: json.pointer("/spec/active").and_then(Value::as_bool).unwrap_or(true),
        finished: false,
        hold: None,
        reservation: reservation(json, &pod_sets)?,
        evicted: None,
        requeue_blocked: false,
        requeue_at: None,
        checks: Vec::new(),
        reclaimable: Vec::new(),
        preemption_gated: false,
        unhealthy_nodes: Vec::new(),
        excluded: Vec::new(),
        pods_ready: false,
        pod_sets: pod_sets.into(),
    };
    refresh(&mut workload, json);
    Ok(workload)
}

/// Reads again what is not part of the `spec`, but for the reservation.
pub(super) fn refresh(workload: &mut Workload, json: &Value) {
    let condition = |name: &str, status: &str| {
        let mut all = list(json, "/status/conditions").iter();
        all.find(|it| text(it, "/type") == name && text(it, "/status") == status)
    };
    workload.priority = priority(json);
    workload.finished = condition("Finished", "True").is_some();
    workload.hold = hold(json);
    workload.evicted = condition("Evicted", "True").map(eviction);
    workload.requeue_blocked = condition("Requeued", "False").is_some();
    workload.requeue_at = time(json, "/status/requeueState/requeueAt");
    workload.checks = list(json, "/status/admissionChecks").iter().map(check_state).collect();
    workload.reclaimable = list(json, "/status/reclaimablePods")
        .iter()
        .map(|pods| (Arc::from(text(pods, "/name")), count(pods.get("count")).unwrap_or(0)))
        .collect();
    workload.preemption_gated = preemption_gated(json);
    workload.unhealthy_nodes =
        list(json, "/status/unhealthyNodes").iter().map(|node| text(node, "/name").into()).collect();
    workload.pods_ready = condition("PodsReady", "True").is_some();
}

/// `spec.priority` plus the boost annotation.
fn priority(json: &Value) -> i64 {
    let stated = json.pointer("/spec/priority").and_then(Value::as_i64).unwrap_or(0);
    let annotations = json.pointer("/metadata/annotations");
    let boost = annotations.and_then(|all| all.get(names::PRIORITY_BOOST)).and_then(Value::as_str);
    stated.saturating_add(boost.and_then(|boost| boost.parse::<i64>().ok()).unwrap_or(0))
}

/// Why it must not be queued.
fn hold(json: &Value) -> Option<Reason> {
    let annotations = json.pointer("/metadata/annotations");
    let gates = annotations.and_then(|all| all.get(names::ADMISSION_GATED_BY)).and_then(Value::as_str);
    if gates.is_some_and(|gates| !gates.is_empty()) {
        return Some(Reason::AdmissionGated);
    }
    let held = |condition: &Value| {
        let (name, status) = (text(condition, "/type"), text(condition, "/status"));
        let on_hold = name == "QuotaReserved" && status == "False" && text(condition, "/reason") == "OnHold";
        on_hold || (name == "WaitingForReplacementPods" && status == "True")
    };
    list(json, "/status/conditions").iter().any(held).then_some(Reason::OnHold)
}

fn eviction(condition: &Value) -> Eviction {
    let cause = match text(condition, "/reason") {
        "Preempted" => EvictionCause::Preempted,
        "PodsReadyTimeout" => EvictionCause::PodsReadyTimeout,
        "AdmissionCheck" => EvictionCause::AdmissionCheck,
        "ClusterQueueStopped" | "LocalQueueStopped" => EvictionCause::QueueStopped,
        "NodeFailures" => EvictionCause::NodeFailures,
        _ => EvictionCause::Deactivated,
    };
    Eviction { cause, at: time(condition, "/lastTransitionTime").unwrap_or_default() }
}

fn check_state(json: &Value) -> CheckState {
    let phase = match text(json, "/state") {
        "Ready" => CheckPhase::Ready,
        "Retry" => CheckPhase::Retry,
        "Rejected" => CheckPhase::Rejected,
        _ => CheckPhase::Pending,
    };
    CheckState { check: text(json, "/name").into(), phase }
}

/// Whether a preemption gate is closed: one without a status is.
fn preemption_gated(json: &Value) -> bool {
    let states = list(json, "/status/preemptionGates");
    let open = |gate: &Value| {
        let mut all = states.iter();
        all.any(|state| text(state, "/name") == text(gate, "/name") && text(state, "/position") == "Open")
    };
    list(json, "/spec/preemptionGates").iter().any(|gate| !open(gate))
}

fn pod_set(json: &Value) -> Result<PodSet, Unreadable> {
    let name = maybe_text(json, "/name").unwrap_or_else(|| "main".into());
    let template = shared_template(json.get("template").unwrap_or(&Value::Null));
    Ok(PodSet {
        template: template.map_err(|error| format!("pod set {name}: {error}"))?,
        count: json.get("count").map_or(Some(1), |json| count(Some(json))).unwrap_or(0),
        min_count: count(json.get("minCount")),
        topology: json.get("topologyRequest").and_then(topology_request),
        name,
    })
}

/// A topology request; one that asks for nothing is none.
fn topology_request(json: &Value) -> Option<TopologyRequest> {
    let slice = |level: &str, size: Option<&Value>| {
        Some(Slice { level: level.into(), size: count(size)? }).filter(|slice| !slice.level.is_empty())
    };
    let mut slices: Vec<Slice> = list(json, "/podsetSliceRequiredTopologyConstraints")
        .iter()
        .filter_map(|constraint| slice(text(constraint, "/topology"), constraint.get("size")))
        .collect();
    if slices.is_empty() {
        slices.extend(slice(text(json, "/podSetSliceRequiredTopology"), json.get("podSetSliceSize")));
    }
    let unconstrained = json.get("unconstrained").and_then(Value::as_bool).unwrap_or(false);
    let level = match (maybe_text(json, "/required"), maybe_text(json, "/preferred")) {
        (Some(level), _) => TopologyLevel::Required(level),
        (None, Some(level)) => TopologyLevel::Preferred(level),
        (None, None) if unconstrained => TopologyLevel::Unconstrained,
        (None, None) if !slices.is_empty() => TopologyLevel::SlicesOnly,
        (None, None) => return None,
    };
    Some(TopologyRequest { level, slices, group: maybe_text(json, "/podSetGroupName") })
}

/// The quota that a Workload's status says it holds.
///
/// # Errors
///
/// What could not be read, for people.
pub fn reservation(json: &Value, pod_sets: &[PodSet]) -> Result<Option<Reservation>, Unreadable> {
    let conditions = list(json, "/status/conditions");
    let is_true =
        |name: &str| conditions.iter().find(|it| text(it, "/type") == name && text(it, "/status") == "True");
    let (Some(reserved), Some(admission)) = (is_true("QuotaReserved"), json.pointer("/status/admission"))
    else {
        return Ok(None);
    };
    let assignments = list(admission, "/podSetAssignments");
    let open =
        list(json, "/status/placements").iter().rev().find(|placement| text(placement, "/state") != "Closed");
    Ok(Some(Reservation {
        cluster_queue: text(admission, "/clusterQueue").into(),
        at: time(reserved, "/lastTransitionTime").unwrap_or(Millis(0)),
        pod_sets: assignments.iter().map(|it| assignment(it, pod_sets)).collect::<Result<_, _>>()?,
        spoke: open.map(|placement| SpokeId::from(text(placement, "/clusterUid"))),
        placement: open.map(|placement| fairlead_model::PlacementId::from(text(placement, "/id"))),
        admitted: is_true("Admitted").is_some(),
    }))
}

fn assignment(json: &Value, pod_sets: &[PodSet]) -> Result<PodSetAssignment, Unreadable> {
    let name: Arc<str> = text(json, "/name").into();
    let specified = pod_sets.iter().find(|pod_set| pod_set.name == name).map_or(0, |pod_set| pod_set.count);
    let usage = json.get("resourceUsage").and_then(Value::as_object).into_iter().flatten();
    Ok(PodSetAssignment {
        count: count(json.get("count")).unwrap_or(specified),
        flavors: super::read::labels(json.get("flavors")),
        usage: usage
            .map(|(resource, value)| Ok((Arc::from(resource.as_str()), amount(resource, value)?)))
            .collect::<Result<_, Unreadable>>()?,
        topology: json.get("topologyAssignment").and_then(topology::decode),
        name,
    })
}
