//! Facts and settings as they are recorded.

use std::sync::Arc;

use fairlead_model::{
    Amount, LabelSelector, Millis, NodeClass, NodeConstraints, NodeTerm, ObjectKey, Operator, PlacementId,
    Reason, Requirement, Resources, Shape, SpokeId, Taint, TaintEffect, Toleration, Uid,
};

use super::Fault;
use super::wire::{Get, Put, Reader, Writer, fields, shared, variants};
use crate::Fact;
use crate::fact::{
    AdmissionCheck, BorrowWithinCohort, CheckKind, CheckPhase, CheckState, CheckUse, Cluster, ClusterQueue,
    ClusterReport, Cohort, Container, DispatchPolicy, Eviction, EvictionCause, Exclusion, Flavor,
    FlavorQuotas, Fungibility, FungibilityPreference, LimitRange, LimitRangeItem, LimitType, LocalQueue,
    Mode, Namespace, Node, PodSet, PodSetAssignment, PodTemplate, Preemption, Presence, QueueingStrategy,
    Quota, Reservation, ResourceGroup, RunningPod, Slice, StopPolicy, Topology, TopologyAssignment,
    TopologyLevel, TopologyRequest, VictimPolicy, Weight, WhenCan, Workload,
};

/// Ids are their text.
macro_rules! ids {
    ($($name:ident),+) => { $(
        impl Put for $name {
            fn put(&self, out: &mut Writer) {
                out.text(self.as_str());
            }
        }
        impl Get for $name {
            fn get(input: &mut Reader<'_>) -> Result<Self, Fault> {
                Ok(Self::new(input.text()?))
            }
        }
    )+ };
}
ids!(Uid, SpokeId, PlacementId);

/// Numbers with a name.
macro_rules! numbers {
    ($($name:ident),+) => { $(
        impl Put for $name {
            fn put(&self, out: &mut Writer) {
                self.0.put(out);
            }
        }
        impl Get for $name {
            fn get(input: &mut Reader<'_>) -> Result<Self, Fault> {
                Ok(Self(Get::get(input)?))
            }
        }
    )+ };
}
numbers!(Millis, Weight);

impl Put for Resources {
    fn put(&self, out: &mut Writer) {
        out.count(self.iter().count());
        for (name, amount) in self.iter() {
            name.put(out);
            amount.put(out);
        }
    }
}

impl Get for Resources {
    fn get(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let pairs: Vec<(Arc<str>, i64)> = Vec::get(input)?;
        Ok(pairs.into_iter().collect())
    }
}

/// Reasons are their tokens: the list may be put in another order.
impl Put for Reason {
    fn put(&self, out: &mut Writer) {
        out.text(self.token());
    }
}

impl Get for Reason {
    fn get(input: &mut Reader<'_>) -> Result<Self, Fault> {
        Self::from_token(&input.text()?).ok_or(Fault::Malformed)
    }
}

shared!(PodTemplate, NodeClass, Workload);

fields! {
    ObjectKey { namespace, name }
    Requirement { key, operator, values }
    LabelSelector { requirements }
    Toleration { key, exists, value, effect }
    NodeTerm { expressions, fields }
    NodeConstraints { selector, affinity, tolerations }
    Taint { key, value, effect }
    NodeClass { labels, taints }
    Shape { class, free, count }
}

variants! {
    Amount { 0 = Finite(value), 1 = Unlimited }
    Operator { 0 = In, 1 = NotIn, 2 = Exists, 3 = DoesNotExist, 4 = Gt, 5 = Lt }
    TaintEffect { 0 = NoSchedule, 1 = PreferNoSchedule, 2 = NoExecute }
}

fields! {
    Quota { resource, nominal, borrowing, lending }
    FlavorQuotas { flavor, quotas }
    ResourceGroup { resources, flavors }
    Fungibility { when_can_borrow, when_can_preempt, preference }
    BorrowWithinCohort { max_priority }
    Preemption { within_queue, reclaim, borrow }
    CheckUse { check, flavors }
    ClusterQueue {
        name, cohort, groups, strategy, namespaces, fungibility, preemption, stop, checks, weight, usage_based,
        terminating,
    }
    LocalQueue { key, cluster_queue, stop, weight }
    Cohort { name, parent, groups, weight }
    Flavor { name, node_labels, taints, tolerations, topology }
    Topology { name, levels }
    DispatchPolicy { required, preferred, names }
    AdmissionCheck { name, kind, usable }
    Namespace { name, labels }
    LimitRangeItem { kind, max, min, default, default_request }
    LimitRange { key, items }
}

variants! {
    QueueingStrategy { 0 = StrictFifo, 1 = BestEffortFifo }
    StopPolicy { 0 = None, 1 = Hold, 2 = HoldAndDrain }
    WhenCan { 0 = MayStopSearch, 1 = TryNextFlavor }
    FungibilityPreference { 0 = BorrowingOverPreemption, 1 = PreemptionOverBorrowing }
    VictimPolicy { 0 = Never, 1 = LowerPriority, 2 = LowerOrNewerEqualPriority, 3 = Any }
    CheckKind { 0 = Dispatch(policy), 1 = Other }
    LimitType { 0 = Container, 1 = Pod }
}

fields! {
    Cluster { spoke, name, labels, cordoned, presence, mode, elastic }
    ClusterReport { spoke, free, empty, bound }
    Node { name, labels, taints, allocatable, usable }
    RunningPod { key, node, requests }
}

variants! {
    Presence { 0 = NotReady, 1 = Fresh, 2 = Suspect, 3 = Lost }
    Mode { 0 = Reported, 1 = QuotaOnly }
}

fields! {
    Container { requests, limits, sidecar }
    PodTemplate { containers, init_containers, pod, overhead, runtime_class, claims, nodes }
    Slice { level, size }
    TopologyRequest { level, slices, group }
    PodSet { name, count, min_count, template, topology }
    TopologyAssignment { levels, domains }
    PodSetAssignment { name, count, flavors, usage, topology }
    Reservation { cluster_queue, at, pod_sets, spoke, placement, admitted }
    Eviction { cause, at }
    CheckState { check, phase }
    Exclusion { spoke, reason, detail }
    Workload {
        uid, key, queue, priority, created, pod_sets, active, finished, hold, reservation, evicted,
        requeue_blocked, requeue_at, checks, reclaimable, preemption_gated, unhealthy_nodes, excluded,
        pods_ready,
    }
}

variants! {
    TopologyLevel { 0 = Required(level), 1 = Preferred(level), 2 = Unconstrained, 3 = SlicesOnly }
    EvictionCause {
        0 = Preempted, 1 = PodsReadyTimeout, 2 = AdmissionCheck, 3 = QueueStopped, 4 = NodeFailures,
        5 = Deactivated,
    }
    CheckPhase { 0 = Pending, 1 = Ready, 2 = Retry, 3 = Rejected }
    Fact {
        0 = ClusterQueue(it), 1 = ClusterQueueGone(it), 2 = LocalQueue(it), 3 = LocalQueueGone(it),
        4 = Cohort(it), 5 = CohortGone(it), 6 = Flavor(it), 7 = FlavorGone(it), 8 = Topology(it),
        9 = TopologyGone(it), 10 = Check(it), 11 = CheckGone(it), 12 = Namespace(it), 13 = NamespaceGone(it),
        14 = LimitRange(it), 15 = LimitRangeGone(it), 16 = RuntimeClass(name, it), 17 = RuntimeClassGone(it),
        18 = Node(it), 19 = NodeGone(it), 20 = Pod(it), 21 = PodGone(it), 22 = Workload(it),
        23 = WorkloadGone(it), 24 = Cluster(it), 25 = ClusterGone(it), 26 = Report(it),
    }
}
