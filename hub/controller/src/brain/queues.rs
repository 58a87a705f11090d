//! Statuses of ClusterQueues, LocalQueues, Cohorts and AdmissionChecks, the label that marks federated LocalQueues, and
//! the finalizer on what is in use.
//!
//! Numbers are sums that change with each run, so a status costs what changed, not what there is. A status is written
//! at most once a second and only when it says something new; label and finalizer go out at once.

mod active;
mod protect;
mod shares;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairlead_api::kueue::{
    AdmissionCheckStatus, ClusterQueueStatus, FlavorUsage, LocalQueueFlavorUsage, LocalQueueResourceUsage,
    LocalQueueStatus, ResourceUsage,
};
use fairlead_api::{Quantity, labels};
use fairlead_model::{Millis, ObjectKey};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Brain;
use super::ledger::{Purpose, Readiness};
use super::run::Run;
use super::tally::{Standing, Tally, Usage};
use super::wakes::Wake;
use crate::jobs::json;
use crate::ports::{Kind, Object, Op};

pub(super) use active::is_deleting;

/// Least time between two status writes of one queue, in milliseconds.
const PAUSE_MS: i64 = 1_000;

/// The sum over the runs of one queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pending: i32,
    reserving: i32,
    admitted: i32,
    reserved: Usage,
    used: Usage,
}

impl Sum {
    fn apply(&mut self, tally: &Tally, sign: i32) {
        let reserves = tally.standing >= Standing::Reserving;
        let admitted = tally.standing == Standing::Admitted;
        let one = |holds: bool| if holds { sign } else { 0 };
        self.pending = self.pending.saturating_add(one(!reserves));
        self.reserving = self.reserving.saturating_add(one(reserves));
        self.admitted = self.admitted.saturating_add(one(admitted));
        for (key, amount) in &tally.usage {
            let change = amount.saturating_mul(sign.into());
            add(&mut self.reserved, key, change);
            if admitted {
                add(&mut self.used, key, change);
            }
        }
    }
}

fn add(usage: &mut Usage, key: &(Arc<str>, Arc<str>), change: i64) {
    let sum = usage.entry(key.clone()).or_insert(0);
    *sum = sum.saturating_add(change);
    if *sum == 0 {
        usage.remove(key);
    }
}

/// Total and nominal quota by resource.
type Totals = Vec<(Arc<str>, i64, i64)>;

/// Sums of all queues, and whose statuses are to be looked at.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    touched: BTreeSet<(Kind, ObjectKey)>,
    shares: shares::Shares,
    local: BTreeMap<ObjectKey, Sum>,
    cluster: BTreeMap<Arc<str>, Sum>,
}

impl Sums {
    /// This object's status is to be looked at.
    pub(crate) fn touch(&mut self, kind: Kind, key: ObjectKey) {
        let written = matches!(
            kind,
            Kind::LocalQueue
                | Kind::ClusterQueue
                | Kind::AdmissionCheck
                | Kind::Cohort
                | Kind::ResourceFlavor
                | Kind::Topology
                | Kind::Cluster
        );
        if written {
            self.touched.insert((kind, key));
        }
    }

    fn apply(&mut self, tally: &Tally, sign: i32) {
        self.local.entry(tally.local_queue.clone()).or_default().apply(tally, sign);
        self.cluster.entry(Arc::clone(&tally.cluster_queue)).or_default().apply(tally, sign);
        self.touch(Kind::LocalQueue, tally.local_queue.clone());
        self.touch(Kind::ClusterQueue, ObjectKey::new("", Arc::clone(&tally.cluster_queue)));
    }
}

impl Brain {
    /// Moves a run's contribution to its queues.
    pub(crate) fn retally(&mut self, run: &mut Run, new: Option<Tally>) {
        if run.tally == new {
            return;
        }
        if let Some(old) = run.tally.take() {
            self.sums.apply(&old, -1);
            if let Some(runs) = self.runs.by_queue.get_mut(&old.local_queue) {
                runs.remove(&run.id);
            }
        }
        if let Some(new) = &new {
            self.sums.apply(new, 1);
            self.runs.by_queue.entry(new.local_queue.clone()).or_default().insert(run.id.clone());
        }
        run.tally = new;
    }

    /// Looks again at all runs of a queue.
    pub(crate) fn touch_queue(&mut self, kind: Kind, key: &ObjectKey) {
        let leads_there = |local: &ObjectKey| match kind {
            Kind::LocalQueue => local == key,
            _ => self.catalog.cluster_queue_of(local).is_some_and(|queue| queue == key.name),
        };
        let queues = self.runs.by_queue.iter().filter(|(local, _)| leads_there(local));
        let runs: Vec<_> = queues.flat_map(|(_, runs)| runs).cloned().collect();
        self.dirty.extend(runs);
    }

    /// Looks again at the statuses that depend on this object's spec. Such changes are rare and made by hand.
    pub(crate) fn touch_dependent_statuses(&mut self, kind: Kind, key: &ObjectKey) {
        match kind {
            Kind::ClusterQueue => {
                let locals = self.catalog.local_queues.keys();
                let there = |local: &&ObjectKey| {
                    self.catalog.cluster_queue_of(local).is_some_and(|queue| queue == key.name)
                };
                let locals: Vec<_> = locals.filter(there).cloned().collect();
                for local in locals {
                    self.sums.touch(Kind::LocalQueue, local);
                }
                self.touch_deleting();
            }
            Kind::AdmissionCheck
            | Kind::ResourceFlavor
            | Kind::Topology
            | Kind::Cohort
            | Kind::PlacementPolicy
            | Kind::MultiKueueConfig => {
                self.touch_all_statuses();
            }
            _ => {}
        }
    }

    /// Looks again at every status.
    pub(crate) fn touch_all_statuses(&mut self) {
        self.sums.touched.extend(self.catalog.kept_keys());
        let clusters = self.spokes.values().filter_map(|spoke| spoke.cluster.as_ref());
        self.sums.touched.extend(clusters.map(|cluster| (Kind::Cluster, cluster.key.clone())));
    }

    /// Writes the statuses that say something new and are not held back.
    pub(crate) fn flush_statuses(&mut self) {
        if !self.is_ready() {
            return;
        }
        self.refresh_shares();
        for (kind, key) in std::mem::take(&mut self.sums.touched) {
            if kind == Kind::Cluster {
                self.flush_cluster(&key);
            } else {
                self.flush_kept(kind, &key);
            }
        }
    }

    fn flush_kept(&mut self, kind: Kind, key: &ObjectKey) {
        let Some(kept) = self.catalog.kept_mut(kind, key) else {
            return;
        };
        let (readiness, wake, written) = (kept.slot.readiness(self.now.mono), kept.slot.wake(), kept.written);
        let object = kept.object.clone();
        let op = match readiness {
            Readiness::Busy => return self.look_again(kind, key, wake),
            Readiness::MustRead => Op::Get,
            Readiness::Free => {
                if let Some(patch) = self.label_patch(&object).or_else(|| self.finalizer_patch(&object)) {
                    Op::Patch(patch)
                } else {
                    let due = written.map(|written| written.plus(PAUSE_MS));
                    if due.is_some_and(|due| due > self.now.mono) {
                        return self.look_again(kind, key, due);
                    }
                    let Some(patch) = self.status_patch(&object) else {
                        return;
                    };
                    Op::PatchStatus(patch)
                }
            }
        };
        let status = matches!(op, Op::PatchStatus(_));
        let id = self.send(Purpose::Upkeep(kind, key.clone()), kind, key, op);
        let now = self.now.mono;
        if let Some(kept) = self.catalog.kept_mut(kind, key) {
            kept.slot.take(id, object.version);
            if status {
                kept.written = Some(now);
            }
        }
    }

    /// Comes back to a status later.
    pub(crate) fn look_again(&mut self, kind: Kind, key: &ObjectKey, at: Option<Millis>) {
        self.wakes.reset(&Wake::Upkeep(kind, key.clone()), None, at);
    }

    /// The label by which the admission policies know the LocalQueues of federated ClusterQueues.
    fn label_patch(&self, object: &Object) -> Option<Value> {
        if object.kind != Kind::LocalQueue || is_deleting(object) {
            return None;
        }
        let queue = self.catalog.cluster_queue_of(&object.key);
        let federated = queue.is_some_and(|queue| self.catalog.dispatch_check(&queue).is_some());
        let labelled =
            json::text(&object.json, &["metadata", "labels", labels::DISPATCH]) == Some(labels::TRUE);
        let value = if federated { Value::from(labels::TRUE) } else { Value::Null };
        (federated != labelled)
            .then(|| json!({"metadata": {"uid": object.uid.as_str(), "labels": {labels::DISPATCH: value}}}))
    }

    fn status_patch(&self, object: &Object) -> Option<Value> {
        match object.kind {
            Kind::LocalQueue => Self::change(object, |stored| self.local_queue_status(object, stored)),
            Kind::ClusterQueue => Self::change(object, |stored| self.cluster_queue_status(object, stored)),
            Kind::Cohort => Self::change(object, |stored| self.cohort_status(object, stored)),
            Kind::AdmissionCheck => {
                let controller = json::text(&object.json, &["spec", "controllerName"])?;
                super::is_dispatch_controller(controller).then_some(())?;
                Self::change(object, |stored: &mut AdmissionCheckStatus| {
                    self.set_active(&mut stored.conditions, object, &self.check_active(object));
                })
            }
            _ => None,
        }
    }

    /// The patch from the stored status to the changed one; none when they are equal.
    pub(crate) fn change<S>(object: &Object, change: impl FnOnce(&mut S)) -> Option<Value>
    where
        S: Clone + Default + Serialize + DeserializeOwned,
    {
        let stored = object.json.get("status").cloned().unwrap_or_else(|| json!({}));
        let mut status: S = serde_json::from_value(stored).unwrap_or_default();
        let old = serde_json::to_value(&status).ok()?;
        change(&mut status);
        let patch = json::merge_patch(&old, &serde_json::to_value(&status).ok()?)?;
        Some(json!({"metadata": {"uid": object.uid.as_str()}, "status": patch}))
    }

    fn local_queue_status(&self, object: &Object, status: &mut LocalQueueStatus) {
        let sum = self.sums.local.get(&object.key).cloned().unwrap_or_default();
        status.pending_workloads = Some(sum.pending);
        status.reserving_workloads = Some(sum.reserving);
        status.admitted_workloads = Some(sum.admitted);
        let queue = self.catalog.cluster_queue_of(&object.key).unwrap_or_default();
        let quotas = self.quotas(&queue);
        let list = |usage: &Usage| -> Vec<LocalQueueFlavorUsage> {
            let by_flavor = by_flavor(&quotas, usage);
            let resource = |(name, total, _): (Arc<str>, i64, i64)| LocalQueueResourceUsage {
                total: Some(Quantity::of(&name, total)),
                name: name.to_string(),
            };
            by_flavor
                .into_iter()
                .map(|(name, resources)| LocalQueueFlavorUsage {
                    name: name.to_string(),
                    resources: resources.into_iter().map(resource).collect(),
                })
                .collect()
        };
        status.flavors_reservation = list(&sum.reserved);
        status.flavors_usage = list(&sum.used);
        self.set_active(&mut status.conditions, object, &self.local_queue_active(object, &queue));
    }

    fn cluster_queue_status(&self, object: &Object, status: &mut ClusterQueueStatus) {
        let sum = self.sums.cluster.get(&object.key.name).cloned().unwrap_or_default();
        status.pending_workloads = Some(sum.pending);
        status.reserving_workloads = Some(sum.reserving);
        status.admitted_workloads = Some(sum.admitted);
        let quotas = self.quotas(&object.key.name);
        let list = |usage: &Usage| -> Vec<FlavorUsage> {
            let resource = |(name, total, nominal): (Arc<str>, i64, i64)| ResourceUsage {
                total: Some(Quantity::of(&name, total)),
                borrowed: Some(Quantity::of(&name, total.saturating_sub(nominal).max(0))),
                name: name.to_string(),
            };
            by_flavor(&quotas, usage)
                .into_iter()
                .map(|(name, resources)| FlavorUsage {
                    name: name.to_string(),
                    resources: resources.into_iter().map(resource).collect(),
                })
                .collect()
        };
        status.flavors_reservation = list(&sum.reserved);
        status.flavors_usage = list(&sum.used);
        status.fair_sharing = self.share_of(Kind::ClusterQueue, &object.key.name);
        self.set_active(&mut status.conditions, object, &self.cluster_queue_active(object));
    }

    /// Flavor, resource and nominal quota of a ClusterQueue, in its own order.
    fn quotas(&self, cluster_queue: &str) -> Vec<(Arc<str>, Arc<str>, i64)> {
        let mut quotas = Vec::new();
        let Some(queue) = self.catalog.cluster_queues.get(&ObjectKey::new("", cluster_queue)) else {
            return quotas;
        };
        for group in json::list(&queue.object.json, &["spec", "resourceGroups"]) {
            for flavor in json::list(group, &["flavors"]) {
                let name: Arc<str> = json::text(flavor, &["name"]).unwrap_or_default().into();
                for resource in json::list(flavor, &["resources"]) {
                    let of: Arc<str> = json::text(resource, &["name"]).unwrap_or_default().into();
                    let nominal = resource.get("nominalQuota").cloned().unwrap_or_default();
                    let nominal = serde_json::from_value::<Quantity>(nominal).ok();
                    let nominal = nominal.and_then(|quantity| quantity.parse(&of).ok()).unwrap_or(0);
                    quotas.push((Arc::clone(&name), of, nominal));
                }
            }
        }
        quotas
    }
}

/// Totals and nominal quotas by flavor: every quota of the queue, used or not, and what else is in use.
fn by_flavor(quotas: &[(Arc<str>, Arc<str>, i64)], usage: &Usage) -> Vec<(Arc<str>, Totals)> {
    let mut lists: Vec<(Arc<str>, Totals)> = Vec::new();
    let known = quotas.iter().map(|(flavor, resource, nominal)| (flavor, resource, *nominal));
    let declared = |key: &(Arc<str>, Arc<str>)| quotas.iter().any(|(f, r, _)| (f, r) == (&key.0, &key.1));
    let others = usage.keys().filter(|key| !declared(key)).map(|(flavor, resource)| (flavor, resource, 0));
    for (flavor, resource, nominal) in known.chain(others) {
        let total = usage.get(&(Arc::clone(flavor), Arc::clone(resource))).copied().unwrap_or(0);
        let entry = (Arc::clone(resource), total, nominal);
        match lists.iter_mut().find(|(name, _)| name == flavor) {
            Some((_, list)) => list.push(entry),
            None => lists.push((Arc::clone(flavor), vec![entry])),
        }
    }
    lists
}
