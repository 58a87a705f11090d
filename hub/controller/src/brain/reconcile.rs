//! Reconciling one run: what is, against what should be.

use std::sync::Arc;

use fairlead_api::conditions::{self, WorkloadCondition};
use fairlead_model::{Millis, ObjectKey, Reason};
use fairlead_placement::{Closing, Event, State, StopCause};
use serde_json::Value;

use super::Brain;
use super::events::Said;
use super::evict::Eviction;
use super::run::{Run, admitted_part};
use super::tally::Tally;
use super::upkeep::reclaimable;
use super::wakes::Wake;
use super::writes::GATHER_MS;
use crate::jobs::home::HomePlace;
use crate::jobs::json;
use crate::jobs::view::ManagedBy;

impl Brain {
    /// Brings everything about one run up to date: its promise, the engine, its Workload, its Job.
    pub(crate) fn reconcile(&mut self, run: &mut Run) {
        self.restore(run);
        self.notice(run);
        self.stop_where_due(run);
        self.notice(run);
        run.busy = self.is_busy(run);
        self.tell_engine(run);
        self.write_workload(run);
        self.write_job(run);
        self.place_pods(run);
        self.write_tombstone(run);
        self.recount(run);
        self.plan_wake(run);
    }

    /// Feeds the promise what has become durable or due since.
    fn notice(&mut self, run: &mut Run) {
        self.notice_held(run);
        self.notice_pods(run);
        if run.promised.is_none() && run.held.is_none() {
            // It has made room.
            run.preempted = None;
            run.displaced = None;
        }
        let Some(promised) = &run.promised else {
            return;
        };
        let id = promised.id();
        let spoke = promised.placement.promise().spoke.clone();
        let stored = run.workload.as_ref().and_then(|workload| workload.placement(&id));
        let is_open = stored.is_some_and(|stored| stored.state.is_open());
        match promised.state() {
            State::Preparing { deadline } if *deadline <= self.now.mono => {
                self.feed(run, &Event::Tick);
                self.mark_silent(&spoke, run);
            }
            State::Preparing { .. } if self.spokes.get(&spoke).is_some_and(|spoke| spoke.silent) => {
                self.feed(run, &Event::Silent);
            }
            State::Accepted if is_open => {
                run.held = None;
                self.committed(run, &spoke);
            }
            State::Finished { stored: false } if run.is_finished() && result_is_shown(run) => {
                self.feed(run, &Event::Stored);
                self.tell_end(run);
            }
            State::Closed(_) => {}
            _ => return,
        }
        self.drop_if_settled(run);
    }

    /// Follows what the status says of quota that is held without a promise.
    fn notice_held(&mut self, run: &mut Run) {
        let quiet = run.is_quiet();
        let written = run.workload_slot.is_uncertain();
        let (Some(held), Some(workload)) = (&mut run.held, &run.workload) else {
            return;
        };
        if workload.open_placement().is_some() {
            // A promise has taken over.
            return;
        }
        if !workload.reserves() {
            if held.durable && quiet && !written {
                run.held = None;
            }
            return;
        }
        let admitted = workload.is(WorkloadCondition::Admitted);
        let newly_reserved = !std::mem::replace(&mut held.durable, true);
        let newly_admitted = admitted && !held.admitted;
        held.admitted |= admitted;
        if newly_admitted {
            self.tell_home_admission(run);
        } else if newly_reserved {
            self.tell_reservation(run);
        }
    }

    fn tell_reservation(&mut self, run: &mut Run) {
        let queue = self.cluster_queue_of_run(run).unwrap_or_default();
        let note = format!("Quota reserved in ClusterQueue {queue}; waiting for admission checks");
        self.tell(run, Said { warning: false, reason: "QuotaReserved", action: "Reserve", note: &note });
        run.told = Some(Reason::WaitingForAdmissionChecks);
    }

    /// Keeps since when pods are missing, or done with, so that neither is written for a moment's sake.
    fn notice_pods(&self, run: &mut Run) {
        let since = |since: Option<Millis>, holds: bool| holds.then(|| since.unwrap_or(self.now.mono));
        let ready = run.workload.as_ref().is_some_and(|workload| workload.is(WorkloadCondition::PodsReady));
        let needed = run.workload.as_ref().map_or(0, super::run::Workload::admitted_count);
        let missing = ready && run.pods().is_some_and(|(there, _)| there < needed);
        run.unready_since = since(run.unready_since, missing);
        run.reclaim_since = since(run.reclaim_since, reclaimable(run).is_some());
    }

    /// The commit is durable: start, unless that has become wrong in the meantime. Nothing was started yet, so
    /// taking the promise back needs no proof.
    fn committed(&mut self, run: &mut Run, spoke: &fairlead_model::SpokeId) {
        let reachable = self.spokes.get(spoke).is_some_and(|spoke| spoke.connected);
        if run.is_ending() || !reachable || self.eviction_of(run).is_some() {
            self.feed(run, &Event::Abandon);
            return;
        }
        self.feed(run, &Event::Committed);
        let Some(promised) = &run.promised else {
            return;
        };
        let note = format!(
            "Admitted by ClusterQueue {} to cluster {}",
            promised.grant.cluster_queue, promised.cluster
        );
        self.tell(run, Said { warning: false, reason: "Admitted", action: "Admit", note: &note });
        run.told = Some(Reason::Admitted);
        if run.job.as_ref().is_some_and(|job| job.view.managed_by != ManagedBy::Fairlead) {
            let note = "The job was created before its queue was federated, so it has no spec.managedBy: it runs on a \
                        cluster and stays suspended here until it has ended";
            self.tell_once(run, Reason::ManagedByMissing, note);
        }
    }

    /// Forgets a closed promise once the hub's own objects say that it is closed, or never said that it was open.
    fn drop_if_settled(&mut self, run: &mut Run) {
        let Some(promised) = run.promised.as_ref().filter(|promised| promised.closing().is_some()) else {
            return;
        };
        let id = promised.id();
        let workload = run.workload.as_ref();
        let stored = workload.and_then(|workload| workload.placement(&id));
        let settled = match (workload, stored) {
            (None, _) => true,
            // The commit may still land.
            (Some(_), None) => !run.workload_slot.is_uncertain(),
            (Some(workload), Some(_)) if workload.deleted_at.is_some() => !workload.held,
            (Some(_), Some(stored)) => !stored.state.is_open() || run.is_finished(),
        };
        if !settled || run.tombstone {
            return;
        }
        self.feed(run, &Event::Stored);
        let Some(promised) = run.promised.take() else {
            return;
        };
        let spoke = promised.placement.promise().spoke.clone();
        if let Some(spoke) = self.spokes.get_mut(&spoke) {
            spoke.promises.remove(&id);
        }
        self.runs.by_placement.remove(&id);
        run.settled = Some(id);
        run.unshown_since = None;
        match promised.closing() {
            Some(Closing::Refused { reason, detail }) => self.exclude(run, &spoke, *reason, detail),
            Some(Closing::NoAnswer) => {
                self.exclude(run, &spoke, Reason::NoAnswer, &Arc::from("no answer within 2 s"));
            }
            Some(Closing::Released | Closing::Stopped) | None => {}
        }
        self.touch_namesakes(run);
    }

    fn tell_home_admission(&mut self, run: &mut Run) {
        let queue = self.cluster_queue_of_run(run).unwrap_or_default();
        let note = format!("Admitted by ClusterQueue {queue}");
        self.tell(run, Said { warning: false, reason: "Admitted", action: "Admit", note: &note });
        run.told = Some(Reason::Admitted);
    }

    fn tell_end(&mut self, run: &Run) {
        if run.job.is_none() {
            return;
        }
        let message = run
            .promised
            .as_ref()
            .and_then(|promised| promised.copy.as_ref())
            .and_then(|copy| copy.terminal.as_ref())
            .map(|terminal| terminal.message.to_string());
        let note = format!("Workload is finished: {}", message.unwrap_or_default());
        self.tell(run, Said { warning: false, reason: "FinishedWorkload", action: "Finish", note: &note });
    }

    /// Orders a stop where the run must not go on. An eviction is durable before anything is stopped for it.
    fn stop_where_due(&mut self, run: &mut Run) {
        let barred = self.is_barred(run);
        let written = run.workload_slot.is_uncertain();
        if barred && !written && run.held.as_ref().is_some_and(|held| !held.durable) {
            run.held = None;
        }
        let evicted = self.eviction_of(run).is_some_and(|eviction| is_marked(run, &eviction));
        let Some(promised) = &run.promised else {
            return;
        };
        match promised.state() {
            // With a commit in flight its outcome decides; see `committed`.
            State::Accepted if written => {}
            State::Preparing { .. } | State::Accepted if barred => self.feed(run, &Event::Abandon),
            State::Preparing { .. } | State::Accepted => {}
            _ if run.is_ending() => self.feed(run, &Event::Stop(StopCause::Deleted)),
            _ if evicted => self.feed(run, &Event::Stop(StopCause::Evicted)),
            _ if self.retention_end(run).is_some_and(|end| end <= self.now.wall) => {
                self.feed(run, &Event::Stop(StopCause::Retired));
            }
            _ => {}
        }
    }

    /// The ClusterQueue whose quota a run holds, or else waits for.
    pub(crate) fn cluster_queue_of_run(&self, run: &Run) -> Option<Arc<str>> {
        if let Some(promised) = &run.promised {
            return Some(Arc::clone(&promised.grant.cluster_queue));
        }
        let workload = run.workload.as_ref()?;
        if let Some(held) = &run.held {
            return Some(Arc::clone(&held.grant.cluster_queue));
        }
        if let Some(admission) = &workload.status.admission {
            return Some(admission.cluster_queue.as_str().into());
        }
        self.catalog.cluster_queue_of(&ObjectKey::new(Arc::clone(&workload.key.namespace), workload.queue()))
    }

    /// Whether the Job should be unsuspended; none where it is left as it is.
    pub(crate) fn wants_to_run(&self, run: &Run) -> Option<bool> {
        let job = run.job.as_ref()?;
        let workload = run.workload.as_ref();
        if run.is_finished() || !job.view.is_ours() {
            return None;
        }
        if run.is_ending() {
            // The Workload goes and the Job stays: another one is made once nothing of this admission is left.
            let stays = !job.view.deleting && job.view.managed_by != ManagedBy::Fairlead;
            return (stays && workload.is_some()).then_some(false);
        }
        if run.runs_at_home() {
            return Some(!self.eviction_of(run).is_some_and(|eviction| is_marked(run, &eviction)));
        }
        if job.view.managed_by != ManagedBy::Fairlead {
            // Unsuspending it would start it here.
            return Some(false);
        }
        match run.promised.as_ref().map(super::run::Promised::state) {
            Some(State::Running | State::Finished { .. }) => Some(true),
            Some(
                State::Starting | State::Vanished | State::Stopping(StopCause::Deleted | StopCause::Retired),
            ) => None,
            Some(State::Stopping(StopCause::Evicted)) => Some(false),
            Some(State::Preparing { .. } | State::Accepted | State::Closed(_)) | None => {
                // Until the Workload is known it may yet turn out to be admitted.
                workload.map(|_| false)
            }
        }
    }

    /// Where a Job of a home queue was admitted, with its original pod template.
    pub(crate) fn home_place(&self, run: &Run) -> Option<(Value, HomePlace)> {
        if !run.runs_at_home() {
            return None;
        }
        let workload = run.workload.as_ref()?;
        let admission = workload.status.admission.as_ref()?;
        let template = json::list(&workload.json, &["spec", "podSets"]).first()?.get("template")?.clone();
        let flavors = admission.pod_set_assignments.iter().flat_map(|set| set.flavors.values());
        let mut specs = self.flavor_specs(flavors.map(String::as_str));
        specs.extend(self.additions_of(run).ok().map(|additions| additions.as_flavor()));
        let main = admission.pod_set_assignments.first();
        let place = HomePlace {
            flavors: specs,
            cluster_queue: admission.cluster_queue.clone(),
            local_queue: workload.queue().to_owned(),
            workload: workload.key.name.to_string(),
            count: admitted_part(run, main.and_then(|set| set.count).map(i64::from)),
            topology: main.is_some_and(|set| set.topology_assignment.is_some()),
        };
        Some((template, place))
    }

    /// The specs of these flavors, each once, in order of name.
    pub(crate) fn flavor_specs<'a>(&self, names: impl Iterator<Item = &'a str>) -> Vec<Value> {
        let names: std::collections::BTreeSet<&str> = names.collect();
        names.into_iter().filter_map(|name| self.catalog.flavor(name)).cloned().collect()
    }

    /// A namesake's promise is not closed yet: an earlier job of this name, whose copy has not stopped.
    fn is_busy(&self, run: &Run) -> bool {
        let open =
            |id: &fairlead_model::RunId| self.runs.get(id).is_some_and(|other| other.promised.is_some());
        !run.is_ending() && self.runs.namesakes(run).iter().any(open)
    }

    fn recount(&mut self, run: &mut Run) {
        let tally = Tally::of(run, |local| self.catalog.cluster_queue_of(local));
        self.retally(run, tally);
    }

    fn retention_end(&self, run: &Run) -> Option<Millis> {
        let promised = run.promised.as_ref()?;
        if !matches!(promised.state(), State::Finished { stored: true }) {
            return None;
        }
        let workload = run.workload.as_ref()?;
        let finished = conditions::find(&workload.status.conditions, "Finished")?;
        let at = Millis(finished.last_transition_time.0.as_millisecond());
        Some(at.plus(self.config.retain_finished_ms))
    }

    fn plan_wake(&mut self, run: &mut Run) {
        let deadline = run.promised.as_ref().and_then(|promised| match promised.state() {
            State::Preparing { deadline } => Some(*deadline),
            _ => None,
        });
        let wall = |at: Millis| self.now.mono.plus(at.since(self.now.wall));
        let later = |at: &Millis| *at > self.now.mono;
        let next = [
            run.workload_slot.wake(),
            run.job_slot.wake(),
            run.tombstone_slot.wake(),
            self.pods_wake(&run.id),
            deadline,
            run.excluded.iter().map(|excluded| excluded.until).min(),
            run.unshown_since.map(|since| since.plus(GATHER_MS)),
            run.unready_since.map(|since| since.plus(GATHER_MS)),
            run.reclaim_since.map(|since| since.plus(GATHER_MS)),
            self.lifecycle_due(run).map(wall),
            self.retention_end(run).map(wall),
            self.tombstone_due(run).map(wall),
        ];
        let next = next.into_iter().flatten().filter(later).min();
        let wake = Wake::Run(run.id.clone());
        self.wakes.reset(&wake, run.wake, next);
        run.wake = next;
    }
}

/// Whether this eviction is durable.
pub(crate) fn is_marked(run: &Run, eviction: &Eviction) -> bool {
    run.workload.as_ref().is_some_and(|workload| {
        let list = &workload.status.conditions;
        let said = conditions::find(list, WorkloadCondition::Evicted.as_str());
        said.is_some_and(|said| said.status == "True" && *said.reason == *eviction.reason)
    })
}

/// Whether the Job shows the result, or is not there to show it.
fn result_is_shown(run: &Run) -> bool {
    run.job.as_ref().is_none_or(|job| job.view.finished || job.view.deleting)
}
