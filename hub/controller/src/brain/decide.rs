//! Turning the engine's plans into promises.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_engine::{Admission, Budget, Displaced, Outcome, Plan, Preempted as Victim, decide};
use fairlead_model::{RunId, Verdict};

use super::events::Said;
use super::run::{Grant, Held, Preempted, Run};
use super::tape::Tape;
use super::{Brain, Effect};
use crate::measure::Measurement;

/// Calls of the engine in one turn; what is left then is decided in the next.
const CALLS: u32 = 64;

impl Brain {
    /// Decides until the engine has nothing more to say. Does nothing while no fact has changed.
    pub(crate) fn decide(&mut self) {
        if !self.is_ready() || !self.undecided {
            return;
        }
        let (mut admitted, mut skipped) = (false, BTreeMap::new());
        for _ in 0..CALLS {
            let snapshot = self.world.snapshot();
            if let Some(tape) = &mut self.tape {
                tape.before(snapshot, &mut self.out);
            }
            let plan = decide(&snapshot, &self.config.policy, self.now.wall, Budget::default());
            if let Some(tape) = &mut self.tape {
                tape.decided(&self.config.policy, Budget::default(), &plan);
            }
            self.world.commit(&plan);
            for head in plan.heads.iter().filter(|head| head.outcome != Outcome::Admitted) {
                let run = self.runs.by_workload.get(&head.uid).cloned();
                if let Some(run) = run {
                    self.with_run(&run, |_, run| run.verdict = Some(head.verdict.clone()));
                    self.dirty.insert(run);
                }
            }
            admitted |= !plan.admissions.is_empty();
            count_skipped(&plan, &mut skipped);
            let quiet = plan.quiet && plan.admissions.is_empty();
            for victim in &plan.evictions {
                self.preempt(victim);
            }
            for gone in &plan.displaced {
                self.displace(gone);
            }
            for admission in plan.admissions {
                self.admit(admission);
            }
            if quiet {
                self.undecided = false;
                break;
            }
        }
        self.out.push(Effect::Measure(Measurement::Attempt { admitted, skipped }));
        self.shares_changed();
        self.out.extend(self.tape.as_mut().and_then(Tape::take));
        self.tell_waiting();
    }

    /// A workload whose nodes have failed is marked, stopped, and gives its quota back when the stop is proven.
    pub(crate) fn displace(&mut self, gone: &Displaced) {
        let Some(id) = self.runs.by_workload.get(&gone.uid).cloned() else {
            return;
        };
        let message = format!("There is no room for the pods of failed nodes: {}", gone.nodes.join(", "));
        self.with_run(&id, |_, run| run.displaced = Some(message.into()));
        self.dirty.insert(id);
    }

    /// A victim is marked, stopped, and gives its quota back when the stop is proven.
    fn preempt(&mut self, victim: &Victim) {
        let Some(id) = self.runs.by_workload.get(&victim.uid).cloned() else {
            return;
        };
        let at = self.now.wall;
        let by = self.runs.by_workload.get(&victim.by).and_then(|id| self.runs.get(id));
        let by = by.and_then(|run| self.cluster_queue_of_run(run)).unwrap_or_default();
        self.out.push(Effect::Measure(Measurement::Preempted { by, reason: victim.cause.token().into() }));
        let message = format!("Preempted to make room for {}", victim.by_key);
        self.with_run(&id, |brain, run| {
            let said = Said { warning: false, reason: "Preempted", action: "Preempt", note: &message };
            brain.tell(run, said);
            run.preempted =
                Some(Preempted { cause: victim.cause.token().into(), message: message.as_str().into(), at });
        });
        self.dirty.insert(id);
    }

    fn admit(&mut self, admission: Admission) {
        let Some(id) = self.runs.by_workload.get(&admission.uid).cloned() else {
            return;
        };
        self.with_run(&id, |brain, run| {
            if may_be_admitted(run) {
                brain.grant(run, admission);
            } else if let Some(held) = run.held.as_mut().filter(|held| held.admitted) {
                // Other places, for pods whose node has failed.
                held.grant.pod_sets = admission.pod_sets;
            }
        });
        // Either way its row in the engine is made from the record again.
        self.dirty.insert(id);
    }

    /// A spoke makes a promise; without one quota is held until the checks are ready. What is held already stays as it
    /// was given.
    fn grant(&mut self, run: &mut Run, admission: Admission) {
        run.verdict = None;
        let held = run.held.as_ref().map(|held| (held.grant.at, Arc::clone(&held.grant.pod_sets)));
        let (at, pod_sets) = held.unwrap_or((self.now.wall, admission.pod_sets));
        let grant = Grant {
            cluster_queue: admission.cluster_queue,
            at,
            pod_sets,
            demand: admission.demand,
            verdict: Some(admission.verdict),
        };
        match admission.spoke {
            Some(spoke) => self.promise(run, &spoke, grant),
            None if run.held.is_none() => run.held = Some(Held { grant, durable: false, admitted: false }),
            None => {}
        }
    }

    /// Quota is reserved, the checks are ready, and no cluster takes the run now.
    fn tell_second_pass(&mut self, run: &mut Run, verdict: &Verdict) {
        if run.told != Some(verdict.reason) {
            run.told = Some(verdict.reason);
            let note = format!("{}: {}", verdict.reason, verdict.message);
            let said = Said { warning: true, reason: "SecondPassFailed", action: "Place", note: &note };
            self.tell(run, said);
        }
    }

    /// Tells people why their jobs wait, once per reason.
    fn tell_waiting(&mut self) {
        let waiting: Vec<RunId> = self.dirty.iter().cloned().collect();
        for id in waiting {
            self.with_run(&id, |brain, run| {
                let verdict = run.verdict.clone().filter(|_| run.promised.is_none());
                match verdict {
                    Some(verdict) if run.held.is_none() => {
                        brain.tell_once(run, verdict.reason, &verdict.message);
                    }
                    Some(verdict) if !run.runs_at_home() => brain.tell_second_pass(run, &verdict),
                    _ => {}
                }
            });
        }
    }
}

/// Workloads of a plan that lost to an earlier one although they would have had to preempt.
fn count_skipped(plan: &Plan, skipped: &mut BTreeMap<Arc<str>, u32>) {
    for head in &plan.heads {
        let count = skipped.entry(Arc::clone(&head.cluster_queue)).or_default();
        if head.outcome == Outcome::Skipped {
            *count = count.saturating_add(1);
        }
    }
}

/// Whether the run still waits, for quota or for a cluster, as the engine thought.
fn may_be_admitted(run: &Run) -> bool {
    let waits = run.promised.is_none() && !run.runs_at_home();
    waits && !run.is_ending() && !run.is_finished() && run.workload.is_some()
}
