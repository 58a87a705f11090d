//! The Philly trace (data/philly.csv, from the traces published by msr-fiddle under CC-BY-4.0), decisions only.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairlead_engine::fact::{
    ClusterQueue, Cohort, Container, Flavor, FlavorQuotas, LocalQueue, Namespace, PodSet,
};
use fairlead_engine::fact::{PodTemplate, Quota, ResourceGroup, StopPolicy, Weight, Workload};
use fairlead_engine::{Budget, Fact, Policy, Settings, World, decide};
use fairlead_model::{Amount, LabelSelector, Labels, Millis, ObjectKey, Uid};

use crate::make::workload;
use crate::measure::{as_f64, once};
use crate::row::Row;
use crate::shape::compare;

/// GPUs of the whole cluster, as the trace's authors state.
const GPUS: i64 = 2490;
const GPU: &str = "nvidia.com/gpu";

/// One job of the trace; times in seconds.
#[derive(Clone, Debug)]
struct Job {
    arrives: i64,
    runs: i64,
    gpus: i64,
    cluster: Arc<str>,
}

/// Where the data lies: `FAIRLEAD_DATA`, else beside the checkout.
fn data() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3)?.join("shared/data");
    let folder = std::env::var_os("FAIRLEAD_DATA").map_or(beside, PathBuf::from);
    Some(folder.join("philly.csv")).filter(|file| file.exists())
}

/// Jobs in the order of arrival.
fn jobs(text: &str) -> Vec<Job> {
    let mut jobs: Vec<Job> = text.lines().skip(1).filter_map(job).collect();
    jobs.sort_by_key(|job| job.arrives);
    jobs
}

fn job(line: &str) -> Option<Job> {
    let mut cells = line.split(',');
    let arrives = seconds(cells.next()?)?;
    let runs = cells.next()?.split('.').next()?.parse().ok()?;
    let gpus = cells.next()?.parse().ok()?;
    Some(Job { arrives, runs, gpus, cluster: cells.nth(1)?.trim().into() })
}

/// Seconds since the first of January 2017 of `2017-MM-DD hh:mm:ss`.
fn seconds(stamp: &str) -> Option<i64> {
    const BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let (date, time) = stamp.split_once(' ')?;
    let number = |text: Option<&str>| text?.parse::<i64>().ok();
    let (mut date, mut time) = (date.split('-').skip(1), time.split(':'));
    let month = usize::try_from(number(date.next())?).ok()?;
    let days = BEFORE.get(month.checked_sub(1)?)? + number(date.next())? - 1;
    Some(((days * 24 + number(time.next())?) * 60 + number(time.next())?) * 60 + number(time.next())?)
}

/// Each virtual cluster is a ClusterQueue in one Cohort, with nominal quota by its share of GPU time.
fn setup(jobs: &[Job]) -> Vec<Fact> {
    let mut time: BTreeMap<&Arc<str>, i64> = BTreeMap::new();
    for job in jobs {
        *time.entry(&job.cluster).or_insert(0) += job.gpus * job.runs.max(1);
    }
    let all: i64 = time.values().sum();
    let mut facts = vec![
        Fact::Namespace(Namespace { name: "ns".into(), labels: Labels::new() }),
        Fact::Flavor(Flavor { name: "gpu".into(), ..Flavor::default() }),
        Fact::Cohort(Cohort { name: "philly".into(), ..Cohort::default() }),
    ];
    let (mut left, last) = (GPUS, time.len() - 1);
    for (ix, (cluster, time)) in time.iter().enumerate() {
        let share = i64::try_from(i128::from(GPUS) * i128::from(*time) / i128::from(all)).unwrap_or(0);
        let nominal = if ix == last { left } else { share };
        left -= nominal;
        let quota =
            Quota { resource: GPU.into(), nominal: Amount::Finite(nominal), borrowing: None, lending: None };
        let flavors = vec![FlavorQuotas { flavor: "gpu".into(), quotas: vec![quota] }];
        facts.push(Fact::ClusterQueue(ClusterQueue {
            name: Arc::clone(cluster),
            cohort: Some("philly".into()),
            groups: vec![ResourceGroup { resources: vec![GPU.into()], flavors }],
            namespaces: Some(LabelSelector::default()),
            ..ClusterQueue::default()
        }));
        facts.push(Fact::LocalQueue(LocalQueue {
            key: ObjectKey::new("ns", Arc::clone(cluster)),
            cluster_queue: Arc::clone(cluster),
            stop: StopPolicy::None,
            weight: Weight::default(),
        }));
    }
    facts
}

fn submitted(ix: usize, job: &Job) -> Fact {
    let base = workload(&format!("job-{ix:06}"), &job.cluster, (0, job.arrives * 1000), 0);
    let container =
        Container { requests: [(Arc::from(GPU), job.gpus)].into_iter().collect(), ..Container::default() };
    let template = Arc::new(PodTemplate { containers: vec![container], ..PodTemplate::default() });
    let pod_set = PodSet { template, ..base.pod_sets[0].clone() };
    Fact::Workload(Arc::new(Workload { pod_sets: Arc::from([pod_set]), ..base }))
}

/// Replays jobs on a virtual clock, deciding at every instant at which something arrives or ends until a plan admits
/// nothing; gives the time of all decisions in seconds, and how many jobs were admitted.
fn play(jobs: &[Job]) -> (f64, usize) {
    let mut world = World::new(Settings::default());
    for fact in setup(jobs) {
        let _changed = world.absorb(fact, Millis(0));
    }
    let by_uid: BTreeMap<Uid, i64> = jobs
        .iter()
        .enumerate()
        .map(|(ix, job)| (Uid::new(format!("job-{ix:06}")), job.runs.max(1)))
        .collect();
    let (mut micros, mut admitted, mut next) = (0.0, 0, 0);
    let mut ends: BTreeMap<i64, Vec<Uid>> = BTreeMap::new();
    loop {
        let arrival = jobs.get(next).map(|job| job.arrives);
        let Some(now) = arrival.into_iter().chain(ends.keys().next().copied()).min() else { break };
        let at = Millis(now * 1000);
        for uid in ends.remove(&now).unwrap_or_default() {
            let _changed = world.absorb(Fact::WorkloadGone(uid), at);
        }
        while let Some(job) = jobs.get(next).filter(|job| job.arrives == now) {
            let _changed = world.absorb(submitted(next, job), at);
            next += 1;
        }
        loop {
            let (sample, plan) = once(|| {
                let plan = decide(&world.snapshot(), &Policy::default(), at, Budget::default());
                world.commit(&plan);
                plan
            });
            micros += sample.micros;
            for it in &plan.admissions {
                ends.entry(now + by_uid[&it.uid]).or_default().push(it.uid.clone());
            }
            admitted += plan.admissions.len();
            if plan.admissions.is_empty() {
                break;
            }
        }
    }
    (micros / 1e6, admitted)
}

/// The whole trace.
pub(crate) fn replay() -> Vec<Row> {
    let Some(text) = data().and_then(|file| std::fs::read_to_string(file).ok()) else {
        let told = writeln!(std::io::stderr(), "philly: skipped, no philly.csv (set FAIRLEAD_DATA)");
        drop(told);
        return Vec::new();
    };
    let jobs = jobs(&text);
    let few: Vec<Job> = jobs.iter().take(12).cloned().collect();
    compare(
        setup(&few).into_iter().chain(few.iter().enumerate().map(|(ix, it)| submitted(ix, it))).collect(),
        &Policy::default(),
    );
    let (small, small_admitted) = play(&jobs[..jobs.len() / 10]);
    let (value, admitted) = play(&jobs);
    assert_eq!((small_admitted, admitted), (jobs.len() / 10, jobs.len()), "every job is admitted in the end");
    let _rate = as_f64(admitted) / value;
    vec![Row { name: "philly", value, unit: "s", aim: 0.5, small: Some((small, 10)), peer: None }]
}
