//! Metrics: Kueue's families and labels, so that existing dashboards work, and Fairlead's own.
//!
//! Happenings are counted as they come ([`Measures`]); levels are asked of the brain for each scrape, so nothing has to be
//! kept in step with it. Values of labels are names of objects that exist, and tokens; whatever else there may be is bounded.

mod bounded;
mod events;
mod families;
mod levels;
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use fairlead_controller::measure::{Gauges, LocalQueueGauges, Measurement, Measures};
use fairlead_engine::NodeView;
use fairlead_model::LabelSelector;
use prometheus::{GaugeVec, IntGaugeVec, Opts, Registry, TextEncoder};

use events::Events;
pub use server::{MetricsServer, router};

/// What is shown of what is known. Can be changed while the hub runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Quotas and usage of ClusterQueues.
    pub resources: bool,
    /// LocalQueues whose labels match; none at all when absent.
    pub local_queues: Option<LabelSelector>,
    /// Cohorts.
    pub cohorts: bool,
}

impl Shown {
    fn takes(&self, queue: &LocalQueueGauges) -> bool {
        self.local_queues.as_ref().is_some_and(|selector| selector.matches(&queue.labels))
    }
}

/// Which build this is.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// Its version.
    pub version: &'static str,
    /// The commit; empty when unknown.
    pub commit: &'static str,
    /// When it was built; empty when unknown.
    pub date: &'static str,
}

/// Everything that is measured.
#[derive(Debug)]
pub struct Metrics {
    /// What any process has, leader or not.
    process: Registry,
    /// What a leader has.
    leader: Registry,
    events: Events,
    skips: IntGaugeVec,
    shown: RwLock<Shown>,
    /// Cohorts above each ClusterQueue, as of the last scrape.
    cohorts: Mutex<Ancestry>,
}

impl Metrics {
    /// Nothing measured yet.
    ///
    /// # Errors
    ///
    /// When families contradict each other, which a test excludes.
    pub fn new(build: Build, shown: Shown) -> prometheus::Result<Self> {
        let process = Registry::new();
        process.register(Box::new(build_info(build)?))?;
        process.register(Box::new(prometheus::process_collector::ProcessCollector::for_self()))?;
        let leader = as_leader()?;
        let events = Events::register(&leader)?;
        let help =
            "Workloads that would have had to preempt and lost to an earlier one, in the last attempt.";
        let skips =
            IntGaugeVec::new(Opts::new("kueue_admission_cycle_preemption_skips", help), &["cluster_queue"])?;
        leader.register(Box::new(skips.clone()))?;
        let (shown, cohorts) = (RwLock::new(shown), Mutex::default());
        Ok(Self { process, leader, events, skips, shown, cohorts })
    }

    /// Shows something else from now on.
    pub fn show(&self, shown: Shown) {
        *self.shown.write().unwrap_or_else(PoisonError::into_inner) = shown;
    }

    /// What is measured, as text for Prometheus. Without levels (nobody leads here yet) it is what any process has.
    ///
    /// # Errors
    ///
    /// When families contradict each other, which a test excludes.
    pub fn text(&self, gauges: Option<&Gauges>) -> prometheus::Result<String> {
        let mut families = self.process.gather();
        if let Some(gauges) = gauges {
            let shown = self.shown.read().unwrap_or_else(PoisonError::into_inner).clone();
            self.forget(gauges, &shown);
            let levels = as_leader()?;
            levels::register(&levels, gauges, &shown)?;
            families.extend(self.leader.gather());
            families.extend(levels.gather());
            families.sort_by(|one, other| one.name().cmp(other.name()));
        }
        let text = TextEncoder::new().encode_to_string(&families)?;
        // The library writes Rust's words for what has no limit, Prometheus has its own.
        Ok(text.replace(" inf\n", " +Inf\n").replace(" -inf\n", " -Inf\n"))
    }

    /// Forgets what is gone, and learns who stands where.
    fn forget(&self, gauges: &Gauges, shown: &Shown) {
        let queues = gauges.cluster_queues.iter().map(|queue| Arc::clone(&queue.name)).collect();
        let local = gauges.local_queues.iter().filter(|queue| shown.takes(queue));
        let local = local.map(|queue| queue.key.clone()).collect();
        let clusters: BTreeSet<Arc<str>> = gauges.clusters.iter().map(|one| Arc::clone(&one.name)).collect();
        self.events.retain(&queues, &local, &clusters);
        *self.cohorts.lock().unwrap_or_else(PoisonError::into_inner) = ancestry(&gauges.nodes);
    }
}

impl Measures for Metrics {
    fn record(&self, happened: &Measurement, step: Duration) {
        let cohorts = match happened {
            Measurement::Admitted { of, .. } => {
                let cohorts = self.cohorts.lock().unwrap_or_else(PoisonError::into_inner);
                cohorts.get(&of.cluster_queue).cloned().unwrap_or_default()
            }
            _ => Vec::new(),
        };
        if let Measurement::Attempt { skipped, .. } = happened {
            self.skips.reset();
            for (queue, count) in skipped {
                self.skips.with_label_values(&[queue]).set(i64::from(*count));
            }
        }
        self.events.record(happened, step, &cohorts);
    }
}

/// A registry whose metrics say that a leader measured them.
fn as_leader() -> prometheus::Result<Registry> {
    Registry::new_custom(None, Some([("replica_role".to_owned(), "leader".to_owned())].into()))
}

fn build_info(build: Build) -> prometheus::Result<GaugeVec> {
    let labels = ["git_version", "git_commit", "build_date", "go_version", "compiler", "platform"];
    let family = GaugeVec::new(Opts::new("kueue_build_info", "Which build this is: always 1."), &labels)?;
    let platform = format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH);
    // There is no Go in it: the label stays, since dashboards ask for it.
    family.with_label_values(&[build.version, build.commit, build.date, "", "rustc", &platform]).set(1.0);
    Ok(family)
}

/// ClusterQueues with the Cohorts above them, nearest first.
type Ancestry = BTreeMap<Arc<str>, Vec<Arc<str>>>;

fn ancestry(nodes: &[NodeView]) -> Ancestry {
    let (queues, cohorts): (Vec<&NodeView>, Vec<_>) = nodes.iter().partition(|node| node.is_queue);
    let parents: BTreeMap<&str, Option<&Arc<str>>> =
        cohorts.iter().map(|node| (&*node.name, node.parent.as_ref())).collect();
    let above = |queue: &NodeView| {
        let mut above: Vec<Arc<str>> = Vec::new();
        let mut parent = queue.parent.as_ref();
        // A chain with a cycle in it ends where it would begin again.
        while let Some(name) = parent.filter(|name| !above.contains(name)) {
            above.push(Arc::clone(name));
            parent = parents.get(&**name).copied().flatten();
        }
        above
    };
    queues.into_iter().map(|queue| (Arc::clone(&queue.name), above(queue))).collect()
}

#[cfg(test)]
mod tests;
