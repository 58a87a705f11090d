//! The families about what happens, and their registration.

use std::time::Duration;

use fairlead_controller::measure::Subject;
use prometheus::{Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry};

use super::bounded::Bounded;

pub(super) type Counter = Bounded<IntCounterVec>;
pub(super) type Times = Bounded<HistogramVec>;

/// Labels of families about workloads of a ClusterQueue, and of a LocalQueue.
const OF_CLUSTER_QUEUE: [&str; 2] = ["cluster_queue", "priority_class"];
const OF_LOCAL_QUEUE: [&str; 3] = ["name", "namespace", "priority_class"];
const WHY: [&str; 2] = ["reason", "underlying_cause"];

/// One thing that is counted or timed for ClusterQueues and LocalQueues alike.
#[derive(Debug)]
pub(super) struct Both<T> {
    pub(super) cluster_queue: T,
    pub(super) local_queue: T,
}

/// Attempts of the engine, and Workloads made.
#[derive(Debug)]
pub(super) struct Attempts {
    pub(super) count: Counter,
    pub(super) duration: Times,
    pub(super) creation: Times,
}

impl Attempts {
    pub(super) fn register(registry: &Registry) -> prometheus::Result<Self> {
        Ok(Self {
            count: counter(
                registry,
                "kueue_admission_attempts_total",
                "Attempts to admit workloads, by whether any was admitted.",
                &["result"],
            )?,
            duration: times(
                registry,
                ("kueue_admission_attempt_duration_seconds", "How long an attempt to admit workloads took."),
                &["result"],
                prometheus::exponential_buckets(0.001, 2.0, 14)?,
            )?,
            creation: times(
                registry,
                (
                    "kueue_workload_creation_latency_seconds",
                    "From the creation of a job to that of its Workload.",
                ),
                &["job_kind"],
                prometheus::exponential_buckets(0.01, 2.0, 11)?,
            )?,
        })
    }
}

/// The way of workloads from their queue to their result.
#[derive(Debug)]
pub(super) struct Passage {
    pub(super) reserved: Both<Counter>,
    pub(super) reserved_wait: Both<Times>,
    pub(super) admitted: Both<Counter>,
    pub(super) admitted_wait: Both<Times>,
    pub(super) checks_wait: Both<Times>,
    pub(super) ready_wait: Both<Times>,
    pub(super) until_ready: Both<Times>,
    pub(super) finished: Both<Counter>,
    pub(super) execution: Both<Times>,
    pub(super) cohort_admitted: Counter,
}

impl Passage {
    pub(super) fn register(registry: &Registry) -> prometheus::Result<Self> {
        let counts = |name: &str, help: &str| {
            both_counters(registry, name, help, (&OF_CLUSTER_QUEUE, &OF_LOCAL_QUEUE))
        };
        let waits = |name: &str, help: &str, buckets: usize| both_times(registry, name, help, buckets);
        let queued = "From creation or requeueing to";
        Ok(Self {
            reserved: counts("quota_reserved_workloads_total", "Workloads that got quota reserved.")?,
            reserved_wait: waits(
                "quota_reserved_wait_time_seconds",
                &format!("{queued} the reservation of quota."),
                14,
            )?,
            admitted: counts("admitted_workloads_total", "Workloads that were admitted.")?,
            admitted_wait: waits("admission_wait_time_seconds", &format!("{queued} admission."), 16)?,
            checks_wait: waits(
                "admission_checks_wait_time_seconds",
                "From the reservation of quota to admission.",
                14,
            )?,
            ready_wait: waits(
                "ready_wait_time_seconds",
                &format!("{queued} the readiness of all pods."),
                14,
            )?,
            until_ready: waits(
                "admitted_until_ready_wait_time_seconds",
                "From admission to the readiness of all pods.",
                14,
            )?,
            finished: counts("finished_workloads_total", "Workloads that finished.")?,
            execution: waits("execution_time_seconds", "From admission to the result.", 16)?,
            cohort_admitted: counter(
                registry,
                "kueue_cohort_subtree_admitted_workloads_total",
                "Workloads that were admitted in a Cohort or below it.",
                &["cohort", "priority_class"],
            )?,
        })
    }
}

/// Workloads that had to go.
#[derive(Debug)]
pub(super) struct Evictions {
    pub(super) count: Both<Counter>,
    pub(super) once: Counter,
    pub(super) since_ready: Times,
    pub(super) latency: Times,
    pub(super) preempted: Counter,
}

impl Evictions {
    pub(super) fn register(registry: &Registry) -> prometheus::Result<Self> {
        let of = |first: &[&'static str]| [first, &WHY, &["priority_class"]].concat();
        Ok(Self {
            count: both_counters(
                registry,
                "evicted_workloads_total",
                "Evictions of workloads.",
                (&of(&["cluster_queue"]), &of(&["name", "namespace"])),
            )?,
            once: counter(
                registry,
                "kueue_evicted_workloads_once_total",
                "Workloads that were evicted for a reason and cause, each counted once.",
                &of(&["cluster_queue"]),
            )?,
            since_ready: times(
                registry,
                (
                    "kueue_pods_ready_to_evicted_time_seconds",
                    "From the readiness of all pods to the eviction.",
                ),
                &["cluster_queue", "reason", "underlying_cause"],
                wait_buckets(14)?,
            )?,
            latency: times(
                registry,
                ("kueue_workload_eviction_latency_seconds", "From the eviction to the return of the quota."),
                &["cluster_queue", "reason"],
                wait_buckets(14)?,
            )?,
            preempted: counter(
                registry,
                "kueue_preempted_workloads_total",
                "Workloads that had to make room, by whose workload got it.",
                &["preempting_cluster_queue", "reason"],
            )?,
        })
    }
}

/// What is asked of clusters.
#[derive(Debug)]
pub(super) struct Dispatches {
    pub(super) asked: Counter,
    pub(super) admitted: Counter,
    pub(super) answers: Counter,
    pub(super) prepare: Times,
    pub(super) commit: Times,
}

impl Dispatches {
    pub(super) fn register(registry: &Registry) -> prometheus::Result<Self> {
        let count = |name: &str, help: &str, labels: &[&str]| counter(registry, name, help, labels);
        let by_both = ["cluster_queue", "cluster"];
        Ok(Self {
            asked: count(
                "multikueue_workloads_dispatched_total",
                "Workloads that a cluster was asked to take.",
                &by_both,
            )?,
            admitted: count(
                "multikueue_workloads_admitted_total",
                "Workloads that were admitted to a cluster.",
                &by_both,
            )?,
            answers: count(
                "fairlead_prepares_total",
                "Answers of clusters that were asked to take a workload: Accepted, NoAnswer, or why not.",
                &["cluster_queue", "cluster", "result"],
            )?,
            prepare: times(
                registry,
                ("fairlead_prepare_duration_seconds", "From the choice of a cluster to its answer."),
                &["cluster"],
                prometheus::exponential_buckets(0.001, 2.0, 12)?,
            )?,
            commit: times(
                registry,
                ("fairlead_commit_duration_seconds", "From the choice of a cluster to the durable commit."),
                &["cluster"],
                prometheus::exponential_buckets(0.001, 2.0, 14)?,
            )?,
        })
    }
}

impl Both<Counter> {
    pub(super) fn count(&self, of: &Subject) {
        let act = |counter: IntCounter| counter.inc();
        self.cluster_queue.with(&[&of.cluster_queue, &of.priority_class], act);
        let local = &of.local_queue;
        self.local_queue.with(&[&local.name, &local.namespace, &of.priority_class], act);
    }
}

impl Both<Times> {
    pub(super) fn observe(&self, of: &Subject, ms: i64) {
        observe(&self.cluster_queue, &[&of.cluster_queue, &of.priority_class], ms);
        let local = &of.local_queue;
        observe(&self.local_queue, &[&local.name, &local.namespace, &of.priority_class], ms);
    }
}

pub(super) fn observe(times: &Times, values: &[&str], ms: i64) {
    let seconds = Duration::from_millis(u64::try_from(ms).unwrap_or(0)).as_secs_f64();
    times.with(values, |histogram: Histogram| histogram.observe(seconds));
}

fn counter(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> prometheus::Result<Counter> {
    Bounded::register(registry, IntCounterVec::new(Opts::new(name, help), labels)?)
}

fn times(
    registry: &Registry,
    (name, help): (&str, &str),
    labels: &[&str],
    buckets: Vec<f64>,
) -> prometheus::Result<Times> {
    histogram(registry, HistogramOpts::new(name, help).buckets(buckets), labels)
}

fn histogram(registry: &Registry, options: HistogramOpts, labels: &[&str]) -> prometheus::Result<Times> {
    Bounded::register(registry, HistogramVec::new(options, labels)?)
}

fn both_counters(
    registry: &Registry,
    name: &str,
    help: &str,
    (of_cluster_queue, of_local_queue): (&[&str], &[&str]),
) -> prometheus::Result<Both<Counter>> {
    Ok(Both {
        cluster_queue: counter(registry, &format!("kueue_{name}"), help, of_cluster_queue)?,
        local_queue: counter(registry, &format!("kueue_local_queue_{name}"), help, of_local_queue)?,
    })
}

fn both_times(
    registry: &Registry,
    name: &str,
    help: &str,
    buckets: usize,
) -> prometheus::Result<Both<Times>> {
    let options = |name: String| -> prometheus::Result<HistogramOpts> {
        Ok(HistogramOpts::new(name, help).buckets(wait_buckets(buckets)?))
    };
    Ok(Both {
        cluster_queue: histogram(registry, options(format!("kueue_{name}"))?, &OF_CLUSTER_QUEUE)?,
        local_queue: histogram(registry, options(format!("kueue_local_queue_{name}"))?, &OF_LOCAL_QUEUE)?,
    })
}

/// 1, 2.5, 5, 10 and so on: `count` in all.
fn wait_buckets(count: usize) -> prometheus::Result<Vec<f64>> {
    let mut buckets = vec![1.0];
    buckets.extend(prometheus::exponential_buckets(2.5, 2.0, count.saturating_sub(1))?);
    Ok(buckets)
}
