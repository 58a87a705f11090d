//! Requests to the Store.

use std::sync::Arc;

use fairlead_api::conditions::DeactivationReason;
use fairlead_api::kueue;
use fairlead_model::ObjectKey;
use serde_json::{Value, json};

use super::events::{About, Said, event};
use super::ledger::{Purpose, Readiness, Verb};
use super::reconcile::is_marked;
use super::run::{Run, Workload};
use super::upkeep::{is_orphan, other_finalizers};
use super::wanted::{Around, wanted};
use super::{Brain, Effect};
use crate::jobs::view::ManagedBy;
use crate::jobs::{home, json, status, workload};
use crate::ports::{Kind, Op, OpId, Request};

/// How long changes of a running copy's status are gathered before they are shown, in milliseconds.
pub(crate) const GATHER_MS: i64 = 1_000;

impl Brain {
    /// Sends a request and returns its id.
    pub(crate) fn send(&mut self, purpose: Purpose, kind: Kind, key: &ObjectKey, op: Op) -> OpId {
        let verb = match op {
            Op::Get => Verb::Read,
            Op::Delete(_) => Verb::Delete,
            Op::Create(_) | Op::Patch(_) | Op::PatchStatus(_) | Op::PutStatus(_) => Verb::Write,
        };
        let id = self.ledger.open(purpose, verb);
        self.out.push(Effect::Store(Request { id, kind, key: key.clone(), op, commit: false }));
        id
    }

    /// Tells people something about a run's Job.
    pub(crate) fn tell(&mut self, run: &Run, said: Said<'_>) {
        let about = About { job: &run.key, uid: run.id.as_str() };
        let number = self.ledger.issued();
        let (key, json) = event(about, said, &self.config.leadership, number, self.now.wall);
        self.send(Purpose::Event, Kind::Event, &key, Op::Create(json));
    }

    /// Writes what the run's Workload lacks, one operation at a time.
    pub(crate) fn write_workload(&mut self, run: &mut Run) {
        match run.workload_slot.readiness(self.now.mono) {
            Readiness::Busy => {}
            Readiness::MustRead => self.read_workload(run),
            Readiness::Free if run.workload.is_none() => self.create_workload(run),
            Readiness::Free if run.is_ending() && is_orphan(run) => self.end_orphan(run),
            Readiness::Free if run.is_ending() => self.end_workload(run),
            Readiness::Free if self.retire_workload(run) || self.sync_active(run) => {}
            Readiness::Free => self.write_status(run),
        }
    }

    pub(crate) fn take_workload(&mut self, run: &mut Run, key: &ObjectKey, op: Op, commit: bool) {
        let base = run.workload.as_ref().map_or(0, |workload| workload.version);
        let id = self.send(Purpose::Workload(run.id.clone()), Kind::Workload, key, op);
        if commit && let Some(Effect::Store(request)) = self.out.last_mut() {
            request.commit = true;
        }
        run.workload_slot.take(id, base);
    }

    fn read_workload(&mut self, run: &mut Run) {
        let key = match &run.workload {
            Some(workload) => workload.key.clone(),
            None => ObjectKey::new(
                Arc::clone(&run.key.namespace),
                workload::name_of(&run.key.name, run.id.as_str()),
            ),
        };
        self.take_workload(run, &key, Op::Get, false);
    }

    fn create_workload(&mut self, run: &mut Run) {
        let Some(job) = &run.job else {
            return;
        };
        let unwanted =
            !job.view.is_ours() || job.view.deleting || job.view.finished || run.promised.is_some();
        if unwanted || self.catalog.is_terminating(&run.key.namespace) {
            return;
        }
        if let Some(name) = job.view.prebuilt.clone() {
            self.adopt_workload(run, &name);
            return;
        }
        match workload::workload_of(&job.json, &self.catalog.priorities) {
            Ok(json) => {
                let name = json::text(&json, &["metadata", "name"]).unwrap_or_default().to_owned();
                let key = ObjectKey::new(Arc::clone(&run.key.namespace), name);
                let note = format!("Created Workload: {key}");
                self.take_workload(run, &key, Op::Create(json), false);
                let said = Said { warning: false, reason: "CreatedWorkload", action: "Create", note: &note };
                self.tell(run, said);
            }
            Err(error) => self.tell_once(run, fairlead_model::Reason::InvalidJob, &error.to_string()),
        }
    }

    /// Tells people why a run cannot go on, unless that is what they were told last.
    pub(crate) fn tell_once(&mut self, run: &mut Run, reason: fairlead_model::Reason, note: &str) {
        if run.told == Some(reason) {
            return;
        }
        run.told = Some(reason);
        let warning = super::events::is_warning(reason);
        self.tell(run, Said { warning, reason: reason.token(), action: "Wait", note });
    }

    fn write_status(&mut self, run: &mut Run) {
        if self.sync_spec(run) {
            return;
        }
        let around = self.around(run);
        let Some(write) = wanted(run, &around) else {
            return;
        };
        let Some(workload) = &run.workload else {
            return;
        };
        let old = serde_json::to_value(&workload.status).unwrap_or(Value::Null);
        let new = serde_json::to_value(&write.status).unwrap_or(Value::Null);
        let Some(patch) = json::merge_patch(&old, &new) else {
            return;
        };
        let key = workload.key.clone();
        let put = replacement(workload, &patch);
        self.take_workload(run, &key, Op::PutStatus(put), write.commit);
        self.tell_eviction(run, &around);
    }

    /// Tells people of an eviction when it is being marked, and of a rejection.
    fn tell_eviction(&mut self, run: &Run, around: &Around) {
        if let Some((reason, message)) = &around.deactivate {
            let reason = match reason {
                DeactivationReason::AdmissionCheck => "AdmissionCheckRejected",
                other => other.as_str(),
            };
            self.tell(run, Said { warning: true, reason, action: "Deactivate", note: message });
        }
        if let Some(eviction) = around.evict.as_ref().filter(|eviction| !is_marked(run, eviction)) {
            let reason = format!("EvictedDueTo{}", eviction.reason);
            let said = Said { warning: false, reason: &reason, action: "Evict", note: &eviction.message };
            self.tell(run, said);
        }
    }

    /// Lets go of a Workload whose job is gone: asks for its deletion, and takes our finalizer off once nothing of
    /// the run can be running any more.
    fn end_workload(&mut self, run: &mut Run) {
        let Some(workload) = &run.workload else {
            return;
        };
        let key = workload.key.clone();
        if workload.deleted_at.is_none() {
            let uid = workload.uid.clone();
            self.take_workload(run, &key, Op::Delete(uid), false);
            return;
        }
        if !workload.held || !Self::may_let_go(run) {
            return;
        }
        self.take_finalizer(run);
    }

    /// Takes our finalizer off.
    pub(crate) fn take_finalizer(&mut self, run: &mut Run) {
        let Some(workload) = run.workload.as_ref().filter(|workload| workload.held) else {
            return;
        };
        let key = workload.key.clone();
        let finalizers = other_finalizers(workload);
        let mut metadata = guard(&workload.uid, workload.version);
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("finalizers".into(), json!(finalizers));
        }
        self.take_workload(run, &key, Op::Patch(json!({"metadata": metadata})), false);
    }

    /// Writes what the user's Job lacks: suspension first, then its status.
    pub(crate) fn write_job(&mut self, run: &mut Run) {
        let Some(job) = run.job.as_ref().filter(|job| !job.view.deleting && !job.view.finished) else {
            return;
        };
        let op = match run.job_slot.readiness(self.now.mono) {
            Readiness::Busy => return,
            Readiness::MustRead => Op::Get,
            Readiness::Free => match self.retired_job(run).or_else(|| self.job_change(run)) {
                Some(op) => op,
                None => return,
            },
        };
        if matches!(op, Op::Delete(_)) {
            self.tell_retired(run);
        }
        let base = job.version;
        let started = matches!(&op, Op::Patch(patch)
            if json::at(patch, &["spec", "suspend"]) == Some(&Value::Bool(false)));
        if matches!(op, Op::PatchStatus(_)) {
            run.unshown_since = None;
        }
        let key = run.key.clone();
        let id = self.send(Purpose::Job(run.id.clone()), Kind::Job, &key, op);
        run.job_slot.take(id, base);
        if started {
            let note = Self::start_note(run);
            self.tell(run, Said { warning: false, reason: "Started", action: "Start", note: &note });
        }
    }

    fn start_note(run: &Run) -> String {
        match &run.promised {
            Some(promised) => format!("Runs on cluster {}", promised.cluster),
            None => "Runs on the hub's own cluster".to_owned(),
        }
    }

    fn job_change(&self, run: &Run) -> Option<Op> {
        let job = run.job.as_ref()?;
        let runs = self.wants_to_run(run);
        if runs == Some(job.view.suspended) {
            let mut patch = match (job.view.suspended, self.home_place(run)) {
                (false, _) => home::stop_patch(),
                (true, Some((original, place))) => {
                    let additions = self.additions_of(run).ok()?;
                    let mut patch = home::start_patch(&job.json, &original, &place);
                    if let Some(template) = patch.pointer_mut("/spec/template").and_then(Value::as_object_mut)
                    {
                        additions.stamp(template);
                    }
                    patch
                }
                (true, None) => json!({"spec": {"suspend": false}}),
            };
            if let Some(patch) = patch.as_object_mut() {
                patch.insert("metadata".into(), json!({"uid": run.id.as_str()}));
            }
            return Some(Op::Patch(patch));
        }
        if let Some(mut patch) = restoration(run, runs) {
            if let Some(patch) = patch.as_object_mut() {
                patch.insert("metadata".into(), json!({"uid": run.id.as_str()}));
            }
            return Some(Op::Patch(patch));
        }
        let mut patch = status::mirror(&job.json, self.shown(run)?, self.now.wall)?;
        if let Some(patch) = patch.as_object_mut() {
            patch.insert("metadata".into(), json!({"uid": run.id.as_str()}));
        }
        Some(Op::PatchStatus(patch))
    }

    /// What of a copy the Job may show now.
    fn shown<'a>(&self, run: &'a Run) -> Option<status::Shown<'a>> {
        let job = run.job.as_ref()?;
        if run.held.is_some() && job.view.managed_by != ManagedBy::Fairlead {
            return None;
        }
        let ours = job.view.managed_by == ManagedBy::Fairlead;
        let Some(promised) = &run.promised else {
            let waits = run.workload.as_ref().is_some_and(|workload| workload.status.verdict.is_some());
            return (ours && waits && !run.is_finished()).then_some(status::Shown::Waiting);
        };
        let copy = promised.copy.as_ref()?;
        let shows = matches!(
            promised.state(),
            fairlead_placement::State::Running | fairlead_placement::State::Finished { .. }
        );
        if !shows {
            return None;
        }
        // The Workload says Finished before the Job says Complete; with an end known, nothing else is worth a write.
        let due = if copy.terminal.is_some() {
            run.is_finished()
        } else {
            let all_ready = copy.active > 0 && copy.ready >= copy.active;
            let since = run.unshown_since?;
            let never_shown = json::at(&job.json, &["status", "startTime"]).is_none();
            (all_ready && never_shown) || self.now.mono >= since.plus(GATHER_MS)
        };
        due.then_some(status::Shown::Copy(copy))
    }
}

/// What gives a stopped Job back what its user wrote.
fn restoration(run: &Run, runs: Option<bool>) -> Option<Value> {
    let job = run.job.as_ref().filter(|job| job.view.suspended && runs == Some(false))?;
    let workload = run.workload.as_ref()?;
    let set = json::list(&workload.json, &["spec", "podSets"]).first()?;
    home::restore_patch(&job.json, set)
}

/// The object that replaces a Workload's status: what is stored with this difference applied, so that no field which is
/// newer than our types is lost.
fn replacement(workload: &Workload, patch: &Value) -> Value {
    let mut status = workload.json.get("status").cloned().unwrap_or_default();
    json::apply_merge_patch(&mut status, patch);
    let mut metadata = guard(&workload.uid, workload.version);
    metadata["namespace"] = json!(&*workload.key.namespace);
    metadata["name"] = json!(&*workload.key.name);
    json!({
        "apiVersion": format!("{}/{}", kueue::GROUP, kueue::VERSION),
        "kind": "Workload",
        "metadata": metadata,
        "status": status,
    })
}

/// Makes a write conditional on the object being the one and the version that it was made from.
pub(crate) fn guard(uid: &fairlead_model::Uid, version: u64) -> Value {
    json!({"uid": uid.as_str(), "resourceVersion": version.to_string()})
}
