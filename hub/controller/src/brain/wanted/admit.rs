//! Giving quota and admission, and the admission checks that lie between the two, [A-2].

use fairlead_api::Quantity;
use fairlead_api::conditions::{
    self, AdmittedReason, PodsReadyReason, QuotaReservedReason, WorkloadCondition,
};
use fairlead_api::kueue::{
    Admission, AdmissionCheckState, CheckStateName, PlacementState, PodSetAssignment, UnhealthyNode, Verdict,
};
use fairlead_model::{self as model, Reason};

use super::Draft;
use crate::brain::checks::CheckUse;
use crate::brain::run::{Grant, Held, Promised, Run, api_time};
use crate::jobs::ManagedBy;
use crate::mirror::topology;

impl Draft<'_> {
    /// Quota, admission and, in a federated queue, the promise: all in one write.
    pub(super) fn admit(&mut self, grant: &Grant, promised: Option<&Promised>) {
        self.reserve(grant);
        self.admitted(&grant.cluster_queue, promised);
        self.status.resource_requests.clear();
        if let Some(promised) = promised {
            self.check_ready(&promised.cluster);
            self.placement(promised, PlacementState::Committed, None);
        }
        if let Some(verdict) = &grant.verdict {
            self.status.verdict = Some(Verdict::of(verdict, api_time(self.around.now)));
        }
    }

    /// Quota, and the checks that have to be ready before the job may start.
    fn reserve(&mut self, grant: &Grant) {
        let reserved = format!("Quota reserved in ClusterQueue {}", grant.cluster_queue);
        self.set(WorkloadCondition::QuotaReserved, true, QuotaReservedReason::QuotaReserved, &reserved);
        for past in [WorkloadCondition::Evicted, WorkloadCondition::Preempted] {
            if conditions::is_true(&self.status.conditions, past.as_str()) {
                self.set(past, false, QuotaReservedReason::QuotaReserved, &reserved);
            }
        }
        let admission = admission_of(grant);
        self.sync_checks(Some(&admission));
        self.status.admission = Some(admission);
    }

    fn admitted(&mut self, queue: &str, promised: Option<&Promised>) {
        let cluster = promised.map(|promised| &*promised.cluster);
        let admitted = match cluster {
            Some(cluster) => format!("Admitted by ClusterQueue {queue} to cluster {cluster}"),
            None => format!("Admitted by ClusterQueue {queue}"),
        };
        self.set(WorkloadCondition::Admitted, true, AdmittedReason::Admitted, &admitted);
        let waiting = "Not all pods are ready";
        self.set(WorkloadCondition::PodsReady, false, PodsReadyReason::WaitForStart, waiting);
        self.status.cluster_name = cluster.map(str::to_owned);
    }

    /// Keeps a reservation as it is held, and admits it to the hub's own cluster once every check is ready.
    pub(super) fn hold(&mut self, run: &Run, held: &Held) {
        let federated = self.around.dispatch().is_some();
        let ours = run.job.as_ref().is_some_and(|job| job.view.managed_by == ManagedBy::Fairlead);
        if held.admitted {
            if !self.workload.reserves() || !self.workload.is(WorkloadCondition::Admitted) {
                self.reserve(&held.grant);
                self.admitted(&held.grant.cluster_queue, None);
            }
            self.mend(held);
            return;
        }
        if !self.workload.reserves() {
            self.reserve(&held.grant);
        }
        let admission = self.status.admission.clone();
        self.sync_checks(admission.as_ref());
        if !federated && !ours && self.all_ready() {
            self.admit(&held.grant, None);
            return;
        }
        let waiting = AdmittedReason::UnsatisfiedAdmissionChecks;
        let pending = self.unready_checks();
        if pending.is_empty() {
            self.explain(run);
        } else {
            let message = format!("Waiting for admission checks: {}", pending.join(", "));
            self.set(WorkloadCondition::Admitted, false, waiting, &message);
            self.say_waiting(&message);
        }
    }

    /// Says which node has failed, and where its pods go instead once that is known [TAS-7].
    fn mend(&mut self, held: &Held) {
        let failed = self.around.failed_nodes.iter().map(|name| UnhealthyNode { name: name.to_string() });
        self.status.unhealthy_nodes.extend(failed);
        let Some(admission) = &mut self.status.admission else {
            return;
        };
        let places = held.grant.pod_sets.iter().map(|set| set.topology.as_ref());
        for (stored, place) in admission.pod_set_assignments.iter_mut().zip(places) {
            let old = stored.topology_assignment.as_ref().and_then(topology::read);
            if place.is_some() && old.as_ref() != place {
                stored.topology_assignment = place.and_then(topology::stored);
                self.status.unhealthy_nodes.clear();
            }
        }
    }

    fn say_waiting(&mut self, message: &str) {
        let reason = Reason::WaitingForAdmissionChecks;
        if self.status.verdict.as_ref().is_none_or(|verdict| verdict.code != reason.token()) {
            let verdict =
                model::Verdict { reason, cluster: None, message: message.into(), candidates: Vec::new() };
            self.status.verdict = Some(Verdict::of(&verdict, api_time(self.around.now)));
        }
    }

    /// Says again what a promise stands for, where somebody else has changed it.
    pub(super) fn say_again(&mut self, promised: &Promised) {
        let named = self.status.cluster_name.as_deref() == Some(&*promised.cluster);
        let admitted = self.workload.is(WorkloadCondition::Admitted);
        let ours = self.around.dispatch().map(|check| &*check.name);
        let answered =
            |check: &AdmissionCheckState| Some(&*check.name) == ours && check.state == CheckStateName::Ready;
        let listed = ours.is_none() || self.status.admission_checks.iter().any(answered);
        if self.workload.reserves() && admitted && named && listed {
            return;
        }
        let ready = self.workload.is(WorkloadCondition::PodsReady);
        self.reserve(&promised.grant);
        self.admitted(&promised.grant.cluster_queue, Some(promised));
        if ready {
            self.set(WorkloadCondition::PodsReady, true, PodsReadyReason::Started, "All pods are ready");
        }
        self.check_ready(&promised.cluster);
    }

    fn check_ready(&mut self, cluster: &str) {
        let Some(check) = self.around.dispatch() else {
            return;
        };
        let state = AdmissionCheckState {
            state: CheckStateName::Ready,
            message: format!("Promised to cluster {cluster}"),
            ..self.pending(check)
        };
        self.status.admission_checks.retain(|other| other.name != state.name);
        self.status.admission_checks.push(state);
    }

    fn pending(&self, check: &CheckUse) -> AdmissionCheckState {
        AdmissionCheckState {
            name: check.name.to_string(),
            state: CheckStateName::Pending,
            last_transition_time: api_time(self.around.now),
            message: String::new(),
            requeue_after_seconds: None,
            retry_count: None,
            pod_set_updates: Vec::new(),
        }
    }

    /// Lists the checks that apply: before there is a reservation those that apply to every flavor of the queue, then
    /// those of the assigned flavors. Where the dispatch check is the only one, it is listed with the promise, which saves
    /// a write.
    pub(super) fn sync_checks(&mut self, assigned: Option<&Admission>) {
        let around = self.around;
        let flavors: Vec<&str> = assigned
            .into_iter()
            .flat_map(|admission| &admission.pod_set_assignments)
            .flat_map(|set| set.flavors.values().map(String::as_str))
            .collect();
        let applies = |check: &CheckUse| match assigned {
            _ if check.flavors.is_empty() => true,
            Some(_) => flavors.iter().any(|flavor| check.is_for(flavor)),
            None => around.flavors.iter().all(|flavor| check.is_for(flavor)),
        };
        let applying: Vec<&CheckUse> = around.checks.iter().filter(|check| applies(check)).collect();
        let others = applying.iter().any(|check| !check.ours);
        self.status
            .admission_checks
            .retain(|listed| applying.iter().any(|check| *check.name == *listed.name));
        for check in applying.into_iter().filter(|check| others || !check.ours) {
            if !self.status.admission_checks.iter().any(|listed| *listed.name == *check.name) {
                let pending = self.pending(check);
                self.status.admission_checks.push(pending);
            }
        }
    }

    fn all_ready(&self) -> bool {
        self.unready_checks().is_empty()
    }

    /// Other controllers' checks that are not ready.
    fn unready_checks(&self) -> Vec<&str> {
        let ours = self.around.dispatch().map(|check| &*check.name);
        let listed = self.status.admission_checks.iter();
        let unready =
            listed.filter(|check| check.state != CheckStateName::Ready && Some(&*check.name) != ours);
        unready.map(|check| check.name.as_str()).collect()
    }
}

/// The stored form of a grant.
pub(crate) fn admission_of(grant: &Grant) -> Admission {
    let sets = grant.pod_sets.iter().map(|set| PodSetAssignment {
        name: set.name.to_string(),
        flavors: set
            .flavors
            .iter()
            .map(|(resource, flavor)| (resource.to_string(), flavor.to_string()))
            .collect(),
        resource_usage: set
            .usage
            .iter()
            .map(|(resource, amount)| (resource.to_string(), Quantity::of(resource, amount)))
            .collect(),
        count: i32::try_from(set.count).ok(),
        topology_assignment: set.topology.as_ref().and_then(topology::stored),
        ..PodSetAssignment::default()
    });
    Admission { cluster_queue: grant.cluster_queue.to_string(), pod_set_assignments: sets.collect() }
}
