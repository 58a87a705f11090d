//! Whether queues and checks work: their `Active` conditions, with Kueue's reasons.

use fairlead_api::conditions::{
    self, ACTIVE, AdmissionCheckReason, ClusterQueueReason, LocalQueueReason, Status, Wanted,
};
use fairlead_model::{ObjectKey, Reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::brain::Brain;
use crate::brain::run::api_time;
use crate::jobs::json;
use crate::ports::Object;

/// What an `Active` condition says.
pub(super) struct Active {
    holds: bool,
    reason: &'static str,
    message: String,
}

impl Active {
    fn yes(reason: &'static str, message: &str) -> Self {
        Self { holds: true, reason, message: message.to_owned() }
    }

    const fn no(reason: &'static str, message: String) -> Self {
        Self { holds: false, reason, message }
    }
}

impl Brain {
    /// Whether a ClusterQueue admits workloads.
    pub(in crate::brain) fn is_cluster_queue_active(&self, object: &Object) -> bool {
        self.cluster_queue_active(object).holds
    }

    /// Whether a LocalQueue takes workloads.
    pub(in crate::brain) fn is_local_queue_active(&self, object: &Object) -> bool {
        let queue = self.catalog.cluster_queue_of(&object.key).unwrap_or_default();
        self.local_queue_active(object, &queue).holds
    }

    pub(super) fn set_active(&self, list: &mut Vec<Condition>, object: &Object, active: &Active) {
        let generation = json::integer(&object.json, &["metadata", "generation"]);
        let wanted = Wanted::new(ACTIVE, Status::from(active.holds), active.reason, active.message.as_str());
        conditions::set_condition(list, wanted.at_generation(generation), &api_time(self.now.wall));
    }

    pub(super) fn local_queue_active(&self, object: &Object, queue: &str) -> Active {
        let behind = self.catalog.cluster_queues.get(&ObjectKey::new("", queue));
        if is_stopped(object) {
            return Active::no(LocalQueueReason::Stopped.as_str(), "The LocalQueue is stopped".to_owned());
        }
        match behind {
            None => {
                let message = format!("ClusterQueue {queue} does not exist");
                Active::no(LocalQueueReason::ClusterQueueDoesNotExist.as_str(), message)
            }
            Some(behind) if !self.cluster_queue_active(&behind.object).holds => {
                let message = format!("ClusterQueue {queue} is not active");
                Active::no(LocalQueueReason::ClusterQueueIsInactive.as_str(), message)
            }
            Some(_) => {
                Active::yes(LocalQueueReason::Ready.as_str(), "Can submit new workloads to the ClusterQueue")
            }
        }
    }

    /// Whether a ClusterQueue admits: the first reason by precedence, and a message with all of them.
    pub(super) fn cluster_queue_active(&self, object: &Object) -> Active {
        let mut wrong = self.wrong_with(object);
        wrong.sort_by_key(|(reason, _)| *reason);
        let Some((first, _)) = wrong.first() else {
            return Active::yes(ClusterQueueReason::Ready.as_str(), "Can admit new workloads");
        };
        let all: Vec<&str> = wrong.iter().map(|(_, text)| text.as_str()).collect();
        Active::no(first.as_str(), format!("Can't admit new workloads: {}", all.join(", ")))
    }

    /// Why workloads of this ClusterQueue are not admitted whatever they ask for, if so.
    pub(in crate::brain) fn queue_hold(&self, cluster_queue: &str) -> Option<Reason> {
        let queue = self.catalog.cluster_queues.get(&ObjectKey::new("", cluster_queue))?;
        let active = self.cluster_queue_active(&queue.object);
        if active.holds {
            return None;
        }
        let stopped = active.reason == ClusterQueueReason::Stopped.as_str();
        Some(if stopped { Reason::QueueStopped } else { Reason::ClusterQueueInactive })
    }

    fn wrong_with(&self, object: &Object) -> Vec<(ClusterQueueReason, String)> {
        let mut wrong: Vec<(ClusterQueueReason, String)> = Vec::new();
        if is_deleting(object) {
            wrong.push((ClusterQueueReason::Terminating, "it is being deleted".to_owned()));
        }
        if is_stopped(object) {
            wrong.push((ClusterQueueReason::Stopped, "it is stopped".to_owned()));
        }
        let flavors: std::collections::BTreeSet<_> =
            self.quotas(&object.key.name).into_iter().map(|(flavor, ..)| flavor).collect();
        for flavor in flavors {
            match self.catalog.flavor(&flavor) {
                None => wrong
                    .push((ClusterQueueReason::FlavorNotFound, format!("flavor {flavor} does not exist"))),
                Some(spec) => {
                    let topology = json::text(spec, &["topologyName"]);
                    if let Some(topology) = topology.filter(|name| !self.catalog.has_topology(name)) {
                        let text = format!("topology {topology} of flavor {flavor} does not exist");
                        wrong.push((ClusterQueueReason::TopologyNotFound, text));
                    }
                }
            }
        }
        if let Some(ring) = self.cohort_ring(json::text(&object.json, &["spec", "cohortName"])) {
            wrong.push((ClusterQueueReason::CohortCycle, ring));
        }
        self.wrong_with_checks(object, &mut wrong);
        wrong
    }

    fn wrong_with_checks(&self, object: &Object, wrong: &mut Vec<(ClusterQueueReason, String)>) {
        let rules = json::list(&object.json, &["spec", "admissionChecksStrategy", "admissionChecks"]);
        let mut dispatching = 0_usize;
        for rule in rules {
            let check = json::text(rule, &["name"]).unwrap_or_default();
            let Some(kept) = self.catalog.checks.get(&ObjectKey::new("", check)) else {
                let text = format!("admission check {check} does not exist");
                wrong.push((ClusterQueueReason::AdmissionCheckNotFound, text));
                continue;
            };
            let ours = self.catalog.is_dispatch_check(check);
            let active =
                if ours { self.check_active(&kept.object).holds } else { is_said_active(&kept.object) };
            if !active {
                let text = format!("admission check {check} is not active");
                wrong.push((ClusterQueueReason::AdmissionCheckInactive, text));
            }
            if ours && !json::list(rule, &["onFlavors"]).is_empty() {
                let text = format!("the dispatch check {check} must be for all flavors");
                wrong.push((ClusterQueueReason::MultiKueueAdmissionCheckAppliedPerFlavor, text));
            }
            dispatching = dispatching.saturating_add(usize::from(ours));
        }
        if dispatching > 1 {
            let text = "more than one dispatch check is named".to_owned();
            wrong.push((ClusterQueueReason::MultipleMultiKueueAdmissionChecks, text));
        }
    }

    /// The circle that a cohort is in or hangs below, as a sentence.
    fn cohort_ring(&self, cohort: Option<&str>) -> Option<String> {
        let mut path: Vec<&str> = Vec::new();
        let mut next = cohort;
        while let Some(name) = next.filter(|name| !name.is_empty()) {
            path.push(name);
            if path.iter().filter(|seen| **seen == name).count() > 1 {
                return Some(format!("its cohorts form a circle: {}", path.join(", ")));
            }
            let above = self.catalog.cohorts.get(&ObjectKey::new("", name));
            next = above.and_then(|above| json::text(&above.object.json, &["spec", "parentName"]));
        }
        None
    }

    pub(super) fn cohort_active(&self, object: &Object) -> Active {
        match self.cohort_ring(Some(&object.key.name)) {
            Some(ring) => {
                Active::no(ClusterQueueReason::CohortCycle.as_str(), format!("Nothing is admitted: {ring}"))
            }
            None => Active::yes(ClusterQueueReason::Ready.as_str(), "Its queues can admit new workloads"),
        }
    }

    pub(super) fn check_active(&self, object: &Object) -> Active {
        let part = |field| json::text(&object.json, &["spec", "parameters", field]).unwrap_or_default();
        let (kind, name) = (part("kind"), part("name"));
        if !kind.is_empty() && !self.catalog.has_parameters(kind, name) {
            let message = format!("{kind} {name} does not exist");
            return Active::no(AdmissionCheckReason::BadConfig.as_str(), message);
        }
        Active::yes(AdmissionCheckReason::Active.as_str(), "The admission check is active")
    }
}

/// Another controller's check is active unless that controller says otherwise.
fn is_said_active(object: &Object) -> bool {
    let conditions = json::list(&object.json, &["status", "conditions"]);
    let active = conditions.iter().find(|condition| json::text(condition, &["type"]) == Some(ACTIVE));
    active.is_none_or(|condition| json::text(condition, &["status"]) != Some("False"))
}

fn is_stopped(object: &Object) -> bool {
    !matches!(json::text(&object.json, &["spec", "stopPolicy"]), None | Some("None"))
}

pub(in crate::brain) fn is_deleting(object: &Object) -> bool {
    json::at(&object.json, &["metadata", "deletionTimestamp"]).is_some()
}
