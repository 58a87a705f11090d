//! Objects as they come from watches and from outcomes of our own writes.

use std::sync::Arc;

use fairlead_api::conditions::WorkloadCondition;
use fairlead_api::labels;
use fairlead_engine::Fact;
use fairlead_model::{ObjectKey, Reason, RunId, SpokeId, Uid};

use super::Brain;
use super::run::{Job, Workload};
use crate::jobs::{JobView, json};
use crate::mirror;
use crate::ports::{Kind, Object, Version};

impl Brain {
    /// Takes in an object, from a watch or as the answer to a write: both are facts.
    pub(crate) fn object(&mut self, object: &Object) {
        if !self.ledger.is_news(object.kind, &object.uid, object.version) {
            return;
        }
        match object.kind {
            Kind::Job => self.job_seen(object),
            Kind::Workload => self.workload_seen(object),
            Kind::Cluster => self.cluster_seen(object),
            Kind::Tombstone => self.tombstone_seen(object),
            Kind::Pod => self.pod_seen(object),
            Kind::Event => {}
            _ => self.other_seen(object),
        }
    }

    /// An object is gone.
    pub(crate) fn gone(&mut self, kind: Kind, key: &ObjectKey, uid: &Uid, version: Version) {
        self.ledger.bury(kind, uid, version, self.now.mono);
        match kind {
            Kind::Job => {
                let id = RunId::new(uid.as_str());
                self.with_run(&id, |_, run| run.job = None);
                self.dirty.insert(id);
            }
            Kind::Workload => {
                self.not_unowned(key, uid);
                self.workload_gone(uid);
            }
            Kind::Cluster => self.cluster_gone(&SpokeId::new(uid.as_str())),
            Kind::Tombstone => self.tombstone_gone(key),
            Kind::Pod => self.pod_gone(key, uid),
            Kind::Event => {}
            _ => self.other_gone(kind, key, uid),
        }
    }

    /// Every object of a kind is known. With the last kind the brain wakes up and looks at everything.
    pub(crate) fn kind_synced(&mut self, kind: Kind) {
        let was_ready = self.is_ready();
        if Kind::WATCHED.contains(&kind) {
            self.synced.insert(kind);
        }
        if !was_ready && self.is_ready() {
            self.dirty.extend(self.runs.ids().cloned());
            self.settle();
            self.review_unknown_entries();
            self.touch_all_statuses();
            self.undecided = true;
        }
    }

    fn job_seen(&mut self, object: &Object) {
        let view = JobView::of(&object.json);
        let id = RunId::new(object.uid.as_str());
        if !view.is_ours() && self.runs.get(&id).is_none() {
            return;
        }
        self.runs.ensure(&id, &object.key);
        self.with_run(&id, |_, run| {
            run.job = Some(Job { json: Arc::clone(&object.json), version: object.version, view });
        });
        self.dirty.insert(id);
    }

    fn workload_seen(&mut self, object: &Object) {
        let Some((id, key)) = owner_of(object) else {
            // Made by hand: nothing runs for it, unless a Job names it.
            self.unowned_seen(object);
            return;
        };
        self.not_unowned(&object.key, &object.uid);
        let workload = match Workload::of(object) {
            Ok(workload) => workload,
            Err(error) => {
                let key = &object.key;
                self.warn(format!("Workload {key}: its status cannot be read: {error}"));
                return;
            }
        };
        self.runs.ensure(&id, &key);
        self.runs.by_workload.insert(object.uid.clone(), id.clone());
        self.with_run(&id, |brain, run| {
            brain.measure_change(run, &workload);
            let generation = |json| json::integer(json, &["metadata", "generation"]);
            let known = run.workload.as_ref().is_some_and(|known| {
                known.uid == object.uid && generation(&known.json) == generation(&object.json)
            });
            match &mut run.base {
                Some(base) if known => mirror::refresh(Arc::make_mut(base), object),
                base => {
                    (*base, run.unreadable) = match mirror::workload(object) {
                        Ok(fact) => (Some(Arc::new(fact)), None),
                        Err(error) => (base.take(), Some(error.into())),
                    };
                }
            }
            // After a restart nobody is told again what the last leader told them.
            let said = workload.status.verdict.as_ref().and_then(|verdict| Reason::from_token(&verdict.code));
            run.told = run.told.or(said);
            run.finished |= workload.is(WorkloadCondition::Finished);
            run.workload = Some(workload);
        });
        self.dirty.insert(id);
    }

    fn workload_gone(&mut self, uid: &Uid) {
        let Some(id) = self.runs.by_workload.get(uid).cloned() else {
            return;
        };
        self.with_run(&id, |_, run| {
            if run.workload.as_ref().is_some_and(|workload| workload.uid == *uid) {
                run.workload = None;
                run.verdict = None;
                run.held = None;
            }
        });
        self.dirty.insert(id);
    }

    fn other_seen(&mut self, object: &Object) {
        let (kind, key) = (object.kind, &object.key);
        if kind == Kind::Node {
            self.node_seen(object);
        }
        // Our own status writes come back too; they change nothing else.
        let same_spec = self.catalog.kept_mut(kind, key).is_some_and(|kept| {
            let mark = |object: &Object| {
                let at = |field| json::at(&object.json, &["metadata", field]).cloned();
                // Whether another controller's check is active is said in its status.
                let said = json::list(&object.json, &["status", "conditions"]).iter();
                let active: Vec<_> = said
                    .filter(|_| kind == Kind::AdmissionCheck)
                    .map(|condition| (condition.get("type").cloned(), condition.get("status").cloned()))
                    .collect();
                (object.uid.clone(), at("generation"), at("deletionTimestamp"), at("labels"), active)
            };
            mark(&kept.object) == mark(object)
        });
        self.catalog.upsert(object);
        self.sums.touch(kind, key.clone());
        if same_spec {
            return;
        }
        for fact in self.mirror.upsert(object) {
            self.absorb(fact);
        }
        self.related_changed(kind, key);
    }

    fn other_gone(&mut self, kind: Kind, key: &ObjectKey, uid: &Uid) {
        // A new object of the same name may already be known.
        if self.catalog.kept_mut(kind, key).is_some_and(|kept| kept.object.uid != *uid) {
            return;
        }
        self.catalog.remove(kind, key);
        if kind == Kind::Node {
            self.node_gone(&key.name);
        }
        for fact in self.mirror.gone(kind, key) {
            self.absorb(fact);
        }
        self.related_changed(kind, key);
    }

    /// What else depends on this object.
    fn related_changed(&mut self, kind: Kind, key: &ObjectKey) {
        match kind {
            Kind::WorkloadPriorityClass | Kind::PriorityClass => {
                let all: Vec<RunId> = self.runs.ids().cloned().collect();
                let concerned = |id: &RunId| self.runs.get(id).is_some_and(|run| !run.is_finished());
                self.dirty.extend(all.into_iter().filter(|id| concerned(id)));
            }
            Kind::Namespace => {
                let there: Vec<RunId> = self.runs.ids().cloned().collect();
                let in_it = |id: &RunId| self.runs.get(id).is_some_and(|run| run.key.namespace == key.name);
                self.dirty.extend(there.into_iter().filter(|id| in_it(id)));
            }
            Kind::ClusterQueue | Kind::LocalQueue => {
                self.touch_queue(kind, key);
                self.touch_dependent_statuses(kind, key);
            }
            Kind::AdmissionCheck
            | Kind::ResourceFlavor
            | Kind::Topology
            | Kind::Cohort
            | Kind::PlacementPolicy
            | Kind::MultiKueueConfig => {
                self.dirty.extend(self.runs.ids().cloned());
                self.touch_dependent_statuses(kind, key);
            }
            _ => self.touch_dependent_statuses(kind, key),
        }
    }

    /// Tells the engine, and remembers whether it has to decide again.
    pub(crate) fn absorb(&mut self, fact: Fact) {
        if let Some(tape) = &mut self.tape {
            tape.fact(&fact, self.now.wall);
        }
        if self.world.absorb(fact, self.now.wall) == fairlead_engine::Changed::Yes {
            self.undecided = true;
        }
    }

    pub(crate) fn warn(&mut self, text: String) {
        self.out.push(super::Effect::Warn(text));
    }
}

/// The run that a Workload belongs to, and the name of its Job: by its owner, or, where that was taken off, by the label
/// and annotation that it got at birth.
fn owner_of(object: &Object) -> Option<(RunId, ObjectKey)> {
    let mut owners = json::list(&object.json, &["metadata", "ownerReferences"]).iter();
    let owner = owners.find(|owner| {
        json::flag(owner, &["controller"]) && json::text(owner, &["kind"]) == Some(crate::jobs::view::GVK.2)
    });
    let born = |field: &str, key: &str| json::text(&object.json, &["metadata", field, key]);
    let (uid, name) = match owner {
        Some(owner) => (json::text(owner, &["uid"])?, json::text(owner, &["name"])?),
        None => (born("labels", labels::JOB_UID)?, born("annotations", labels::JOB_OWNER_NAME)?),
    };
    Some((RunId::new(uid), ObjectKey::new(Arc::clone(&object.key.namespace), name)))
}
