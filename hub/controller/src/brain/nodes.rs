//! Nodes of the hub's own cluster that fail under workloads whose places name them [TAS-7].
//!
//! One failed node is written to the Workload, and the engine looks for other room for its pods. Where there is none, or
//! when a second node fails, the workload is evicted.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_model::{Taint, TaintEffect, Toleration};

use super::Brain;
use super::pods::places_of;
use super::run::Run;
use crate::mirror;
use crate::ports::Object;

/// The level at which an assignment names nodes.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// What of a node decides whether it has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    host: Arc<str>,
    /// `Ready`, if it says so at all.
    ready: Option<bool>,
    taints: Vec<Taint>,
}

/// The nodes of the hub's own cluster.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    by_name: BTreeMap<Arc<str>, Node>,
    by_host: BTreeMap<Arc<str>, Arc<str>>,
}

impl Brain {
    /// A node of the hub's own cluster is as given.
    pub(crate) fn node_seen(&mut self, object: &Object) {
        let (ready, taints) = mirror::node_health(&object.json);
        let name = Arc::clone(&object.key.name);
        let host = mirror::hostname(&object.json).unwrap_or_else(|| Arc::clone(&name));
        let node = Node { host: Arc::clone(&host), ready, taints };
        let old = self.nodes.by_name.insert(Arc::clone(&name), node.clone());
        self.nodes.by_host.insert(host, name);
        if old.is_some_and(|old| old != node) {
            self.dirty.extend(self.pods.runs().cloned());
        }
    }

    /// A node of the hub's own cluster is gone.
    pub(crate) fn node_gone(&mut self, name: &str) {
        if let Some(node) = self.nodes.by_name.remove(name) {
            self.nodes.by_host.remove(&node.host);
            self.dirty.extend(self.pods.runs().cloned());
        }
    }

    /// The nodes of a run's places that have failed and of which its Workload does not say so.
    pub(crate) fn newly_failed(&self, run: &Run) -> Vec<Arc<str>> {
        let places = if run.runs_at_home() { places_of(run) } else { None };
        let Some((assignment, known)) = places else {
            return Vec::new();
        };
        if assignment.levels.last().is_none_or(|level| **level != *HOSTNAME) {
            return Vec::new();
        }
        let tolerations = self.tolerations_of(run);
        let hosts = assignment.domains.iter().filter_map(|(values, _)| values.last());
        hosts
            .filter(|host| !known.contains(host) && self.has_failed(run, host, &tolerations))
            .cloned()
            .collect()
    }

    /// Whether there is no hope for the pods of a run on this node: it is gone, or it is not well and none of them lives.
    fn has_failed(&self, run: &Run, host: &Arc<str>, tolerations: &[Toleration]) -> bool {
        let name = self.nodes.by_host.get(host);
        let Some((name, node)) = name.and_then(|name| Some((name, self.nodes.by_name.get(name)?))) else {
            return true;
        };
        let repels = |taint: &Taint| {
            taint.effect != TaintEffect::PreferNoSchedule
                && !tolerations.iter().any(|toleration| toleration.tolerates(taint))
        };
        match node.ready {
            None => true,
            Some(ready) => (!ready || node.taints.iter().any(repels)) && !self.pods.live_on(&run.id, name),
        }
    }

    /// What the pods of a run tolerate, with what its flavors add.
    fn tolerations_of(&self, run: &Run) -> Vec<Toleration> {
        let sets = run.base.iter().flat_map(|base| base.pod_sets.iter());
        let mut all: Vec<_> = sets.flat_map(|set| set.template.nodes.tolerations.iter().cloned()).collect();
        let admission = run.workload.as_ref().and_then(|workload| workload.status.admission.as_ref());
        let flavors = admission.into_iter().flat_map(|admission| &admission.pod_set_assignments);
        let names = flavors.flat_map(|set| set.flavors.values()).map(String::as_str);
        for flavor in self.flavor_specs(names) {
            all.extend(mirror::tolerations(&flavor));
        }
        all
    }
}
