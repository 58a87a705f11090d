//! What the engine is told of workloads and spokes.

use std::sync::Arc;

use fairlead_api::conditions::WorkloadCondition;
use fairlead_api::labels;
use fairlead_engine::{Fact, fact};
use fairlead_model::{Millis, Reason, SpokeId};

use super::Brain;
use super::restore::grant_of;
use super::run::{Excluded, Grant, Run};
use super::settings::RequeuingTimestamp;
use super::upkeep::is_out_of_sync;
use crate::jobs::{ManagedBy, json};
use crate::mirror;

/// First and longest time for which a spoke that refused a run is not asked again, in milliseconds.
const EXCLUDE_MS: (i64, i64) = (5_000, 60_000);

impl Brain {
    /// Tells the engine how a run's workload is now. The row replaces the one before, so nothing adds up (rule b).
    pub(crate) fn tell_engine(&mut self, run: &Run) {
        let Some(base) = &run.base else {
            return;
        };
        let fact = match workload_fact(run, base, self.hold_of(run), self.now.mono) {
            Some(fact) => Fact::Workload(Arc::new(self.with_life(run, fact))),
            None => Fact::WorkloadGone(base.uid.clone()),
        };
        self.absorb(fact);
    }

    /// Adds what the engine is to know of evictions, waits and checks.
    fn with_life(&self, run: &Run, mut fact: fact::Workload) -> fact::Workload {
        if fact.reservation.is_some() {
            let since = run.workload.as_ref().and_then(|workload| workload.since(WorkloadCondition::Evicted));
            let decided = run.preempted.as_ref().map(|preempted| preempted.at).or(since);
            let at = decided.unwrap_or(self.now.wall);
            fact.evicted =
                self.eviction_of(run).map(|eviction| fact::Eviction { cause: eviction.cause(), at });
        } else if let Some(rules) = &self.config.lifecycle.pods_ready {
            let late = |eviction: &fact::Eviction| eviction.cause == fact::EvictionCause::PodsReadyTimeout;
            let keeps_place = rules.requeuing.timestamp == RequeuingTimestamp::Creation;
            fact.evicted = fact.evicted.filter(|eviction| !(keeps_place && late(eviction)));
        }
        if let Some(held) = &run.held {
            // Once the engine has found other room, only the write of it is due.
            fact.unhealthy_nodes.retain(|node| stands_on(&held.grant, node));
        }
        let may_return = self.requeue_of(run).is_some();
        fact.requeue_blocked &= !may_return;
        fact.requeue_at = fact.requeue_at.filter(|at| !may_return && *at > self.now.wall);
        for state in &mut fact.checks {
            // The hub answers its own check, whatever others write there.
            if self.catalog.is_dispatch_check(&state.check) {
                state.phase = fact::CheckPhase::Pending;
            }
        }
        // It matters to one rule only, and each change makes the engine decide again.
        fact.pods_ready |= !self.config.settings.block_admission;
        fact
    }

    /// Why a run must not be queued now, beside what the engine sees itself.
    fn hold_of(&self, run: &Run) -> Option<Reason> {
        if run.busy {
            return Some(Reason::Busy);
        }
        if run.job.as_ref().is_some_and(|job| is_gated(&job.json)) {
            return Some(Reason::AdmissionGated);
        }
        if is_out_of_sync(run) {
            // Quota for other pods than the job's must not be given before that is written down.
            return Some(Reason::InvalidJob);
        }
        if let Some(hold) = run.base.as_ref().and_then(|base| base.hold) {
            return Some(hold);
        }
        // On the hub's own cluster nobody would run a Job that says Fairlead does.
        let ours = run.job.as_ref().is_some_and(|job| job.view.managed_by == ManagedBy::Fairlead);
        let queue = self.cluster_queue_of_run(run).filter(|queue| self.catalog.has_cluster_queue(queue));
        let queue = queue?;
        let home = self.catalog.dispatch_check(&queue).is_none();
        // A queue that admits nothing would leave its workloads without a word.
        if ours && home { Some(Reason::InvalidJob) } else { self.queue_hold(&queue) }
    }

    /// Keeps a run away from a spoke for a while that doubles with each refusal.
    pub(crate) fn exclude(&mut self, run: &mut Run, spoke: &SpokeId, reason: Reason, detail: &Arc<str>) {
        let tries = run.excluded.iter().find(|known| known.spoke == *spoke).map_or(0, |known| known.tries);
        let wait =
            EXCLUDE_MS.0.saturating_mul(1_i64.checked_shl(tries).unwrap_or(i64::MAX)).min(EXCLUDE_MS.1);
        run.excluded.retain(|known| known.spoke != *spoke);
        run.excluded.push(Excluded {
            spoke: spoke.clone(),
            reason,
            detail: Arc::clone(detail),
            until: self.now.mono.plus(wait),
            tries: tries.saturating_add(1).min(8),
        });
        self.spoke_mut(spoke).shunned_by.insert(run.id.clone());
        self.undecided = true;
    }

    /// The spoke has changed in a way that may make it take what it refused.
    pub(crate) fn lift_exclusions(&mut self, id: &SpokeId, which: impl Fn(Reason) -> bool) {
        let runs: Vec<_> = self.spoke_mut(id).shunned_by.iter().cloned().collect();
        for run in runs {
            let now = self.now.mono;
            let mine = self.with_run(&run, |_, record| {
                let mine = record.excluded.iter_mut().filter(|excluded| excluded.spoke == *id);
                mine.filter(|excluded| which(excluded.reason)).for_each(|excluded| excluded.until = now);
            });
            if mine.is_some() {
                self.dirty.insert(run);
            }
        }
    }

    /// Tells the engine of a spoke's Cluster object and presence.
    pub(crate) fn tell_engine_of_spoke(&mut self, id: &SpokeId) {
        let Some(spoke) = self.spokes.get(id) else {
            return;
        };
        let Some(cluster) = &spoke.cluster else {
            return;
        };
        let fact = mirror::cluster(cluster, spoke.presence(self.now.mono));
        self.absorb(Fact::Cluster(fact));
    }
}

/// Whether pods of a grant have their place on this node.
fn stands_on(grant: &Grant, node: &Arc<str>) -> bool {
    let places = grant.pod_sets.iter().filter_map(|set| set.topology.as_ref());
    places.flat_map(|place| &place.domains).any(|(values, _)| values.last() == Some(node))
}

/// Whether an annotation of the job holds its admission back.
fn is_gated(job: &serde_json::Value) -> bool {
    let gates = json::text(job, &["metadata", "annotations", labels::ADMISSION_GATED_BY]);
    gates.is_some_and(|gates| gates.split(',').any(|gate| !gate.trim().is_empty()))
}

/// The engine's row of a run; none when the engine is to forget it.
fn workload_fact(
    run: &Run,
    base: &fact::Workload,
    hold: Option<Reason>,
    now: Millis,
) -> Option<fact::Workload> {
    let workload = run.workload.as_ref();
    let finished = run.is_finished();
    let reservation = if finished { None } else { reservation_of(run) };
    // Nothing is decided for a workload that is going, or that this hub could not run.
    if reservation.is_none() && (workload.is_none() || run.is_ending()) {
        return None;
    }
    let active = workload.is_none_or(super::run::Workload::is_active);
    let mut fact = base.clone();
    fact.active = active;
    fact.finished = finished;
    fact.hold = hold;
    fact.reservation = reservation;
    fact.excluded = run
        .excluded
        .iter()
        .filter(|excluded| excluded.until > now)
        .map(|excluded| fact::Exclusion {
            spoke: excluded.spoke.clone(),
            reason: excluded.reason,
            detail: Arc::clone(&excluded.detail),
        })
        .collect();
    Some(fact)
}

/// Rule f: the quota that a run holds, from the grant to the proof of stop. A promise that is not durable yet counts
/// like one that is; a stored admission counts even where its promise has closed, until that too is stored.
fn reservation_of(run: &Run) -> Option<fact::Reservation> {
    if let Some(promised) = &run.promised {
        let promise = promised.placement.promise();
        let spoke = Some(promise.spoke.clone());
        return Some(reservation(
            &promised.grant,
            spoke,
            Some(promise.id()),
            promised.state().is_committed(),
        ));
    }
    if let Some(held) = &run.held {
        return Some(reservation(&held.grant, None, None, held.admitted));
    }
    let workload = run.workload.as_ref().filter(|workload| workload.reserves())?;
    Some(reservation(&grant_of(workload), None, None, workload.is(WorkloadCondition::Admitted)))
}

fn reservation(
    grant: &Grant,
    spoke: Option<SpokeId>,
    placement: Option<fairlead_model::PlacementId>,
    admitted: bool,
) -> fact::Reservation {
    fact::Reservation {
        cluster_queue: Arc::clone(&grant.cluster_queue),
        at: grant.at,
        pod_sets: Arc::clone(&grant.pod_sets),
        spoke,
        placement,
        admitted,
    }
}
