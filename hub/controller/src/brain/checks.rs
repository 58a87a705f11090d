//! Which admission checks a ClusterQueue names, and what their additions to the pods come to.

use std::sync::Arc;

use fairlead_api::kueue::{CheckStateName, PodSetUpdate};
use fairlead_model::ObjectKey;

use super::Brain;
use super::catalog::Catalog;
use super::run::Run;
use crate::jobs::json;
use crate::jobs::updates::{Additions, Conflict, merge};

/// A check that a ClusterQueue names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckUse {
    pub(crate) name: Arc<str>,
    /// The flavors it applies to; empty means all.
    pub(crate) flavors: Vec<Arc<str>>,
    /// It is the dispatch check, which the hub answers itself.
    pub(crate) ours: bool,
}

impl CheckUse {
    /// Whether it applies where this flavor is assigned.
    pub(crate) fn is_for(&self, flavor: &str) -> bool {
        self.flavors.is_empty() || self.flavors.iter().any(|named| **named == *flavor)
    }
}

impl Catalog {
    /// The checks that a ClusterQueue names, with the flavors they are for.
    pub(crate) fn checks_in_use(&self, cluster_queue: &str) -> Vec<CheckUse> {
        let path = ["spec", "admissionChecksStrategy", "admissionChecks"];
        let queue = self.cluster_queues.get(&ObjectKey::new("", cluster_queue));
        let listed = queue.map_or(&[][..], |queue| json::list(&queue.object.json, &path));
        let named = listed.iter().filter_map(|check| {
            let name = json::text(check, &["name"])?;
            let flavors = json::list(check, &["onFlavors"]).iter().filter_map(|flavor| flavor.as_str());
            let flavors = flavors.map(Arc::from).collect();
            Some(CheckUse { name: name.into(), flavors, ours: self.is_dispatch_check(name) })
        });
        named.collect()
    }
}

impl Brain {
    /// What the ready checks of a run add to its pods.
    ///
    /// # Errors
    ///
    /// [`Conflict`] when they contradict each other, the flavors or the job.
    pub(crate) fn additions_of(&self, run: &Run) -> Result<Additions, Conflict> {
        let Some(workload) = &run.workload else {
            return Ok(Additions::default());
        };
        let ready =
            workload.status.admission_checks.iter().filter(|check| check.state == CheckStateName::Ready);
        let updates: Vec<&PodSetUpdate> = ready.flat_map(|check| &check.pod_set_updates).collect();
        if updates.is_empty() {
            return Ok(Additions::default());
        }
        let Some(set) = json::list(&workload.json, &["spec", "podSets"]).first() else {
            return Ok(Additions::default());
        };
        let name = json::text(set, &["name"]).unwrap_or(fairlead_api::kueue::MAIN_POD_SET);
        let admission = workload.status.admission.iter().flat_map(|admission| &admission.pod_set_assignments);
        let flavors = self.flavor_specs(admission.flat_map(|set| set.flavors.values()).map(String::as_str));
        let template = set.get("template").cloned().unwrap_or_default();
        merge(&template, &flavors, updates.into_iter().filter(|update| update.name == name))
    }
}
