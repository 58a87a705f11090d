//! What happens, counted and timed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fairlead_controller::measure::{Measurement, Subject};
use fairlead_model::ObjectKey;
use prometheus::Registry;

use super::families::{Attempts, Dispatches, Evictions, Passage, observe};

/// Counts and times what happens.
#[derive(Debug)]
pub(super) struct Events {
    attempts: Attempts,
    passage: Passage,
    evictions: Evictions,
    dispatches: Dispatches,
}

impl Events {
    /// Registers every family.
    pub(super) fn register(registry: &Registry) -> prometheus::Result<Self> {
        Ok(Self {
            attempts: Attempts::register(registry)?,
            passage: Passage::register(registry)?,
            evictions: Evictions::register(registry)?,
            dispatches: Dispatches::register(registry)?,
        })
    }

    /// Takes in what happened. `cohorts` are those above the workload's ClusterQueue.
    pub(super) fn record(&self, happened: &Measurement, step: Duration, cohorts: &[Arc<str>]) {
        match happened {
            Measurement::Attempt { admitted, .. } => {
                let result = if *admitted { "success" } else { "inadmissible" };
                self.attempts.count.with(&[result], |counter| counter.inc());
                self.attempts.duration.with(&[result], |times| times.observe(step.as_secs_f64()));
            }
            Measurement::Created { job_kind, took_ms } => {
                observe(&self.attempts.creation, &[job_kind], *took_ms);
            }
            Measurement::QuotaReserved { of, waited_ms } => {
                self.passage.reserved.count(of);
                self.passage.reserved_wait.observe(of, *waited_ms);
            }
            Measurement::Admitted { of, cluster, waited_ms, checks_ms } => {
                self.passage.admitted.count(of);
                self.passage.admitted_wait.observe(of, *waited_ms);
                self.passage.checks_wait.observe(of, *checks_ms);
                for cohort in cohorts {
                    self.passage.cohort_admitted.with(&[cohort, &of.priority_class], |counter| counter.inc());
                }
                if let Some(cluster) = cluster {
                    self.dispatches.admitted.with(&[&of.cluster_queue, cluster], |counter| counter.inc());
                }
            }
            Measurement::PodsReady { of, waited_ms, started_ms } => {
                self.passage.ready_wait.observe(of, *waited_ms);
                self.passage.until_ready.observe(of, *started_ms);
            }
            Measurement::Evicted { of, reason, cause, first, ready_ms } => {
                self.record_eviction(of, (reason, cause), *first, *ready_ms);
            }
            Measurement::Released { cluster_queue, reason, took_ms } => {
                observe(&self.evictions.latency, &[cluster_queue, reason], *took_ms);
            }
            Measurement::Preempted { by, reason } => {
                self.evictions.preempted.with(&[by, reason], |counter| counter.inc());
            }
            Measurement::Finished { of, ran_ms } => {
                self.passage.finished.count(of);
                if let Some(ran_ms) = ran_ms {
                    self.passage.execution.observe(of, *ran_ms);
                }
            }
            Measurement::Prepared { cluster_queue, cluster, result, took_ms } => {
                self.dispatches.asked.with(&[cluster_queue, cluster], |counter| counter.inc());
                self.dispatches
                    .answers
                    .with(&[&**cluster_queue, &**cluster, *result], |counter| counter.inc());
                observe(&self.dispatches.prepare, &[cluster], *took_ms);
            }
            Measurement::Committed { cluster, took_ms } => {
                observe(&self.dispatches.commit, &[cluster], *took_ms);
            }
        }
    }

    fn record_eviction(
        &self,
        of: &Subject,
        (reason, cause): (&str, &str),
        first: bool,
        ready_ms: Option<i64>,
    ) {
        let by_cluster_queue = [&*of.cluster_queue, reason, cause, &*of.priority_class];
        self.evictions.count.cluster_queue.with(&by_cluster_queue, |counter| counter.inc());
        let local = &of.local_queue;
        let by_local_queue = [&*local.name, &*local.namespace, reason, cause, &*of.priority_class];
        self.evictions.count.local_queue.with(&by_local_queue, |counter| counter.inc());
        if first {
            self.evictions.once.with(&by_cluster_queue, |counter| counter.inc());
        }
        if let Some(ready_ms) = ready_ms {
            observe(&self.evictions.since_ready, &[&*of.cluster_queue, reason, cause], ready_ms);
        }
    }

    /// Forgets queues and clusters that are gone, and LocalQueues that are not to be seen.
    pub(super) fn retain(
        &self,
        cluster_queues: &BTreeSet<Arc<str>>,
        local_queues: &BTreeSet<ObjectKey>,
        clusters: &BTreeSet<Arc<str>>,
    ) {
        let first = |of: &BTreeSet<Arc<str>>| {
            let of = of.clone();
            move |values: &[String]| values.first().is_some_and(|value| of.contains(value.as_str()))
        };
        let queue = first(cluster_queues);
        let local = |values: &[String]| match values {
            [name, namespace, ..] => {
                local_queues.contains(&ObjectKey::new(namespace.as_str(), name.as_str()))
            }
            _ => false,
        };
        for both in
            [&self.passage.reserved, &self.passage.admitted, &self.evictions.count, &self.passage.finished]
        {
            both.cluster_queue.retain(&queue);
            both.local_queue.retain(local);
        }
        let waits = [&self.passage.reserved_wait, &self.passage.admitted_wait, &self.passage.checks_wait];
        for both in waits.into_iter().chain([
            &self.passage.ready_wait,
            &self.passage.until_ready,
            &self.passage.execution,
        ]) {
            both.cluster_queue.retain(&queue);
            both.local_queue.retain(local);
        }
        for counter in [
            &self.evictions.once,
            &self.evictions.preempted,
            &self.dispatches.asked,
            &self.dispatches.admitted,
            &self.dispatches.answers,
        ] {
            counter.retain(&queue);
        }
        for times in [&self.evictions.since_ready, &self.evictions.latency] {
            times.retain(&queue);
        }
        for times in [&self.dispatches.prepare, &self.dispatches.commit] {
            times.retain(first(clusters));
        }
    }
}
