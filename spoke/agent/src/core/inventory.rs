//! What this cluster holds: watched objects as they come and go.

use std::sync::Arc;

use fairlead_model::{ObjectKey, PlacementId, Uid};
use serde_json::Value;

use super::copy::{Copy, Stamps};
use super::policy::Policy;
use super::room::Claim;
use super::row::Row;
use super::{Core, constraints, pods};
use crate::ports::{Kind, Object};

impl Core {
    /// A watched object exists, in this version.
    pub(super) fn object(&mut self, object: &Object) {
        match object.kind {
            Kind::Job => {
                self.job(object);
            }
            Kind::ForeignJob => {
                self.foreign.insert(object.key.clone(), object.uid.clone());
            }
            Kind::Pod => {
                let pod = pods::read(&object.json);
                self.capacity.pod(&object.uid, &pod);
                self.ledgers.pod(&object.uid, &pod);
                self.pod_changed(pod.job.as_ref(), pod.placement.as_deref());
            }
            Kind::Node => {
                if self.capacity.node(&object.key.name, &object.json) {
                    self.node_flipped();
                }
            }
            Kind::Namespace => {
                let terminating = object.json.pointer("/metadata/deletionTimestamp").is_some();
                let name = Arc::clone(&object.key.name);
                if terminating {
                    self.namespaces.remove(&name)
                } else {
                    self.namespaces.insert(name)
                };
            }
            Kind::SpokePolicy if is_the_policy(&object.key) => self.policy = Policy::read(&object.json),
            Kind::SpokePolicy
            | Kind::ConfigMap
            | Kind::Secret
            | Kind::PersistentVolumeClaim
            | Kind::ServiceAccount => {}
        }
    }

    /// A watched object is gone.
    pub(super) fn gone(&mut self, kind: Kind, key: &ObjectKey, uid: &Uid, last: Option<&Value>) {
        match kind {
            Kind::Job => self.job_gone(uid, last),
            Kind::ForeignJob => {
                // Another one may have the name by now.
                if self.foreign.get(key) == Some(uid) {
                    self.foreign.remove(key);
                }
            }
            Kind::Pod => {
                let job = self.ledgers.job_of(uid).cloned();
                let last = last.map(pods::read);
                self.capacity.pod_gone(uid);
                self.ledgers.pod_gone(uid, last.as_ref());
                self.pod_changed(job.as_ref(), last.and_then(|pod| pod.placement).as_deref());
            }
            Kind::Node => {
                self.capacity.node_gone(&key.name);
                self.node_flipped();
            }
            Kind::Namespace => {
                self.namespaces.remove(&key.name);
            }
            Kind::SpokePolicy if is_the_policy(key) => self.policy = Policy::default(),
            Kind::SpokePolicy
            | Kind::ConfigMap
            | Kind::Secret
            | Kind::PersistentVolumeClaim
            | Kind::ServiceAccount => {}
        }
    }

    /// A kind has been listed. What waited for the whole inventory can go on.
    pub(super) fn listed(&mut self, kind: Kind) {
        if self.synced.insert(kind) && self.inventory_ready() {
            self.dirty.extend(self.rows.keys().cloned());
            self.reporter.changed();
        }
    }

    /// A Job that carries our label, from a watch or from the answer to one of our own operations. Says whether it
    /// was taken as the copy of the placement whose stamp it carries.
    pub(super) fn job(&mut self, object: &Object) -> bool {
        let Some(stamps) = Stamps::read(&object.json) else { return false };
        let placement = stamps.placement.clone();
        if !self.rows.contains_key(&placement) {
            self.add(placement.clone(), Row::of_stamps(&stamps, &object.key));
        }
        let Some(row) = self.rows.get_mut(&placement) else { return false };
        if !belongs(row, &stamps, object) {
            tracing::warn!(job = %object.key, %placement, "a Job carries the stamps of another object; it is left alone");
            return false;
        }
        if row.key != object.key {
            let old = std::mem::replace(&mut row.key, object.key.clone());
            super::unlist(&mut self.by_key, &old, &placement);
            self.by_key.entry(object.key.clone()).or_default().insert(placement.clone());
        }
        if let Some(copy) = &mut row.copy {
            copy.update(object);
        } else {
            row.copy = Some(Copy::new(object));
            self.by_job.insert(object.uid.clone(), placement.clone());
        }
        self.claim(&placement, &object.json);
        self.dirty.insert(placement);
        true
    }

    /// A copy takes room until its pods are bound; known from the order where there was one, else from the Job.
    fn claim(&mut self, placement: &PlacementId, job: &Value) {
        let running = |copy: &Copy| !copy.gone && copy.status.terminal.is_none();
        let running = self.rows.get(placement).and_then(|row| row.copy.as_ref()).is_some_and(running);
        if running && !self.claims.contains_key(placement) {
            let spec = job.pointer("/spec/template/spec").unwrap_or(&Value::Null);
            let claim = Claim { demand: constraints::demand(job), constraints: constraints::read(spec) };
            self.claims.insert(placement.clone(), claim);
            self.reporter.changed();
        }
    }

    fn job_gone(&mut self, uid: &Uid, last: Option<&Value>) {
        let Some(placement) = self.by_job.get(uid).cloned() else { return };
        self.change(&placement, |row| {
            if let Some(copy) = &mut row.copy {
                copy.end(last);
            }
        });
    }

    /// Marks the placements that a pod matters to.
    fn pod_changed(&mut self, job: Option<&Uid>, label: Option<&str>) {
        if let Some(placement) = job.and_then(|job| self.by_job.get(job)) {
            self.dirty.insert(placement.clone());
        }
        // A Stop may wait for pods whose Job is gone.
        let labelled = label.map(PlacementId::from).filter(|placement| self.rows.contains_key(placement));
        self.dirty.extend(labelled);
    }

    /// A node's kubelet reports again or no longer; a stop may rest on that.
    fn node_flipped(&mut self) {
        let waiting = std::mem::take(&mut self.awaiting_nodes);
        self.dirty.extend(waiting);
    }
}

/// Whether a Job with these stamps can be the copy of this row. A Job that somebody made from a copy's YAML
/// carries its stamps, too: the first one seen is the copy.
fn belongs(row: &Row, stamps: &Stamps, object: &Object) -> bool {
    let same = row.run == stamps.run && row.epoch == stamps.epoch;
    same && match &row.copy {
        Some(copy) => copy.uid == object.uid,
        None => row.key == object.key || row.key.name.is_empty(),
    }
}

fn is_the_policy(key: &ObjectKey) -> bool {
    *key.name == *fairlead_api::labels::SPOKE_POLICY_NAME
}
