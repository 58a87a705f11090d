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
        for flavor in flavors.iter().filter(|flavor| self.catalog.flavor(flavor).is_none()) {
            wrong.push((ClusterQueueReason::FlavorNotFound, format!("flavor {flavor} does not exist")));
        }
        let checks = self.catalog.checks_of(&object.key.name);
        for check in &checks {
            match self.catalog.checks.get(&ObjectKey::new("", check.as_ref())) {
                None => {
                    let text = format!("admission check {check} does not exist");
                    wrong.push((ClusterQueueReason::AdmissionCheckNotFound, text));
                }
                Some(kept)
                    if self.catalog.is_dispatch_check(check) && !self.check_active(&kept.object).holds =>
                {
                    let text = format!("admission check {check} is not active");
                    wrong.push((ClusterQueueReason::AdmissionCheckInactive, text));
                }
                Some(_) => {}
            }
        }
        if checks.iter().filter(|check| self.catalog.is_dispatch_check(check)).count() > 1 {
            let text = "more than one dispatch check is named".to_owned();
            wrong.push((ClusterQueueReason::MultipleMultiKueueAdmissionChecks, text));
        }
        wrong
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

fn is_stopped(object: &Object) -> bool {
    !matches!(json::text(&object.json, &["spec", "stopPolicy"]), None | Some("None"))
}

pub(in crate::brain) fn is_deleting(object: &Object) -> bool {
    json::at(&object.json, &["metadata", "deletionTimestamp"]).is_some()
}
