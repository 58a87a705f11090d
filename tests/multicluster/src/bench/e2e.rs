//! End to end: what a Job costs in time, CPU and API writes, beside the same Job sent straight to one cluster.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use kube::client::Body;

use super::{
    cpu::{Draw, Idle, Reading},
    load::LightClient,
    row::Row,
};
use crate::{
    audit::{AuditLog, Counts, Verb},
    fleet::{Fleet, FleetOptions, HUB, SpokeOptions, Tenant, apply_all},
    rig::{Access, NodeSpec},
    work::{DISPATCH_CHECK, JobSpec, Jobs, Queue, dispatch_check},
};

/// Jobs of the idle rows, one at a time.
const IDLE_JOBS: u32 = 100;
/// Jobs of a burst.
const BURST: u32 = 300;
/// Jobs of a burst whose writes are counted.
const COUNTED: u32 = 60;
/// How long the idle draw is watched.
const IDLE_WINDOW: Duration = Duration::from_secs(15);
/// How much of a burst is profiled.
const PROFILE: Duration = Duration::from_secs(12);
const NAMESPACE: &str = "bench";
/// What Jobs cause; not Leases, nodes, or what a cluster writes when it starts.
const KINDS: [&str; 7] = ["jobs", "workloads", "pods", "events", "clusterqueues", "localqueues", "clusters"];

/// Runs the suite: about four minutes on two cores. Progress goes to the tracing log.
pub async fn run() -> Result<Vec<Row>> {
    let fleet = start(2, Clusters::default()).await?;
    let mut rows = idle(&fleet).await?;
    rows.extend(bursts(fleet, None).await?);
    rows.extend(counted().await?);
    Ok(rows)
}

/// The rows of the bursts alone: a minute and a half. With a folder, a CPU profile of every API server during our
/// burst is written there, for `go tool pprof`; taking them costs a little CPU itself.
pub async fn burst(profiles: Option<&Path>) -> Result<Vec<Row>> {
    let fleet = start(2, Clusters { profiling: profiles.is_some(), ..Clusters::default() }).await?;
    bursts(fleet, profiles).await
}

/// Hub and two spokes, audit off: rates and CPU.
async fn bursts(fleet: Fleet, profiles: Option<&Path>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let hub = fleet.hub_cluster()?.admin();
    let ours = warm_burst(&fleet, hub, ("burst", BURST, Some("main")), profiles).await?;
    rows.push(Row::new("burst_rate", ours.rate, "jobs/s").peer(3.7));
    rows.push(Row::new("burst_cpu", ours.per_job(), "CPU-ms/job").peer(529.0));
    rows.extend(ours.by_process());
    fleet.hub().kill()?;
    for spoke in fleet.spokes() {
        spoke.agent().kill()?;
    }
    let lone = fleet.spoke_cluster("spoke-1")?.admin();
    let plain = warm_burst(&fleet, lone, ("plain", BURST, None), None).await?;
    rows.push(Row::new("plain_rate", plain.rate, "jobs/s").peer(60.4));
    rows.push(Row::new("plain_cpu", plain.per_job(), "CPU-ms/job").peer(32.7));
    rows.push(Row::new("rate_ratio", ours.rate / plain.rate, "ratio").aim(0.45).peer(0.06));
    rows.push(Row::new("cpu_ratio", ours.per_job() / plain.per_job(), "ratio").aim(2.2).peer(16.0));
    Ok(rows)
}

/// A short burst to warm caches and connections, the idle draw, then the burst that counts.
async fn warm_burst(
    fleet: &Fleet,
    access: &Access,
    (name, jobs, queue): Load<'_>,
    profiles: Option<&Path>,
) -> Result<Burst> {
    let mut client = LightClient::connect(access, NAMESPACE).await?;
    client.burst(specs((&format!("{name}-warm"), 50, queue))).await?;
    let idle = Idle::measure(fleet, IDLE_WINDOW).await?;
    let begin = Reading::take(fleet)?;
    let burst = client.burst(specs((name, jobs, queue)));
    let time = match profiles {
        Some(folder) => tokio::try_join!(burst, profile(fleet, folder))?.0,
        None => burst.await?,
    };
    let end = Reading::take(fleet)?;
    Ok(Burst { jobs, rate: f64::from(jobs) / time.as_secs_f64(), draw: idle.beyond(&begin, &end) })
}

/// Writes a CPU profile of each API server, from now on, to the folder.
async fn profile(fleet: &Fleet, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    let taking = fleet.rig().clusters().map(async |cluster| {
        let seconds = PROFILE.as_secs();
        let request = http::Request::get(format!("/debug/pprof/profile?seconds={seconds}"));
        let answer = cluster.client().send(request.body(Body::empty())?).await?;
        ensure!(answer.status().is_success(), "{} gives no profile: {}", cluster.name(), answer.status());
        let file = folder.join(format!("{}.pprof", cluster.name()));
        let bytes = answer.into_body().collect_bytes().await?;
        fs::write(&file, bytes).with_context(|| format!("write {}", file.display()))
    });
    try_join_all(taking).await?;
    Ok(())
}

/// Name, number and queue of Jobs to submit.
type Load<'a> = (&'a str, u32, Option<&'a str>);

fn specs((name, jobs, queue): Load<'_>) -> Vec<JobSpec> {
    let job = |n: u32| JobSpec::new(&format!("{name}-{n}"));
    (0..jobs).map(|n| queue.map_or_else(|| job(n), |queue| job(n).queue(queue))).collect()
}

/// One Job at a time on an idle fleet: from the create's start until a watch on the spoke shows the copy.
async fn idle(fleet: &Fleet) -> Result<Vec<Row>> {
    let mut hub = LightClient::connect(fleet.hub_cluster()?.admin(), NAMESPACE).await?;
    let mut one = LightClient::connect(fleet.spoke_cluster("spoke-1")?.admin(), NAMESPACE).await?;
    let mut two = LightClient::connect(fleet.spoke_cluster("spoke-2")?.admin(), NAMESPACE).await?;
    let mut times = Vec::new();
    for n in 0..IDLE_JOBS {
        let name = format!("idle-{n}");
        let begin = Instant::now();
        hub.create(&JobSpec::new(&name).queue("main")).await?;
        let seen = tokio::select! {
            seen = one.shows(&name) => seen?,
            seen = two.shows(&name) => seen?,
        };
        times.push(seen.duration_since(begin));
        hub.completes(&name).await?;
    }
    times.sort_unstable();
    let at =
        |share: usize| times.get(times.len() * share / 100).map_or(0.0, |time| time.as_secs_f64() * 1000.0);
    Ok(vec![Row::new("idle_p50", at(50), "ms").aim(25.0).peer(1170.0), Row::new("idle_p99", at(99), "ms")])
}

/// What a burst gave.
struct Burst {
    jobs: u32,
    rate: f64,
    draw: Draw,
}

impl Burst {
    fn per_job(&self) -> f64 {
        self.draw.values().sum::<f64>() / f64::from(self.jobs)
    }

    fn by_process(&self) -> Vec<Row> {
        let row = |kind: &str, id| {
            Row::new(id, self.draw.get(kind).copied().unwrap_or(0.0) / f64::from(self.jobs), "CPU-ms/job")
        };
        vec![
            row("kube-apiserver", "burst_cpu_api"),
            row("etcd", "burst_cpu_etcd"),
            row("kube-controller-manager", "burst_cpu_kcm"),
            row("kube-scheduler", "burst_cpu_sched"),
            row("kwok", "burst_cpu_kwok"),
            row("fairlead-hub", "burst_cpu_hub"),
            row("fairlead-spoke", "burst_cpu_agent"),
        ]
    }
}

/// Audit on: API writes a Job, with two spokes, and how they grow from one spoke to four.
async fn counted() -> Result<Vec<Row>> {
    let two = writes(2).await?;
    let one = writes(1).await?;
    let four = writes(4).await?;
    Ok(vec![
        Row::new("writes_hub", two.hub, "writes/job").aim(10.0).peer(20.4),
        Row::new("writes_spoke", two.spoke, "writes/job").aim(4.0),
        Row::new("reads_remote", two.remote_reads, "reads/job").aim(0.0).peer(13.0),
        Row::new("reads_agent", two.agent_reads, "reads/job"),
        Row::new("writes_all", two.all, "writes/job").peer(54.3),
        Row::new("slope_writes", (four.all - one.all) / 3.0, "writes/job/spoke").aim(0.05).peer(6.9),
    ])
}

/// Writes a Job, deletion left out.
struct Writes {
    /// On Jobs and Workloads of the hub.
    hub: f64,
    /// By our agents, on spokes, beyond what a plain Job would cause: everything they do but the creation.
    spoke: f64,
    /// Everything on all clusters: Events and queue statuses too.
    all: f64,
    /// Reads by the hub on spokes.
    remote_reads: f64,
    /// Look-ups by our agents on their own cluster.
    agent_reads: f64,
}

async fn writes(spokes: usize) -> Result<Writes> {
    let fleet = start(spokes, Clusters { audit: true, ..Clusters::default() }).await?;
    let mut logs: Vec<(String, AuditLog)> = fleet.rig().audit_logs()?.into_iter().collect();
    let marks = logs.iter_mut().map(|(_, log)| log.mark()).collect::<Result<Vec<_>>>()?;
    let mut client = LightClient::connect(fleet.hub_cluster()?.admin(), NAMESPACE).await?;
    client.burst(specs(("counted", COUNTED, Some("main")))).await?;
    // Statuses are coalesced for a second, and acknowledged copies lose their finalizer: they belong to the Jobs.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (mut hub, mut spoke, mut all, mut remote_reads, mut agent_reads) = (0, 0, 0, 0, 0);
    for ((name, log), mark) in logs.iter_mut().zip(marks) {
        log.refresh()?;
        let counts = Counts::of(
            log.since(mark).iter().filter(|event| KINDS.contains(&event.object.resource.as_str())),
        );
        all += counts.writes();
        if name == HUB {
            hub += counts.on(&["jobs", "workloads"]).writes();
        } else {
            remote_reads += Counts::of(log.since(mark)).by("fairlead-hub").reads();
            spoke += counts.by("fairlead-agent").writes();
            agent_reads += Counts::of(log.since(mark)).by("fairlead-agent").sum(|key| key.verb == Verb::Get);
        }
    }
    let per_job = |count: u64| u32::try_from(count).map_or(f64::INFINITY, f64::from) / f64::from(COUNTED);
    Ok(Writes {
        hub: per_job(hub),
        spoke: per_job(spoke) - 1.0,
        all: per_job(all),
        remote_reads: per_job(remote_reads),
        agent_reads: per_job(agent_reads),
    })
}

/// What the API servers do beside their work.
#[derive(Clone, Copy, Default)]
struct Clusters {
    audit: bool,
    profiling: bool,
}

/// A hub and `spokes` spokes with room for everything, and one federated queue.
async fn start(spokes: usize, Clusters { audit, profiling }: Clusters) -> Result<Fleet> {
    let spoke = |n: usize| {
        let nodes = (1..=4).map(|node| NodeSpec::new(&format!("node-{node}"), "64", "256Gi").pods(1000));
        nodes.fold(SpokeOptions::new(&format!("spoke-{n}")), SpokeOptions::node)
    };
    let spokes = (1..=spokes).map(spoke).collect();
    let options = FleetOptions { spokes, audit, profiling, ..FleetOptions::default() };
    let fleet = Fleet::start(options).await.context("start the fleet")?;
    apply_all(fleet.hub_cluster()?, &dispatch_check(DISPATCH_CHECK, &[])).await?;
    fleet.tenant(&Tenant::new(NAMESPACE)).await?;
    Queue::new(NAMESPACE).apply(&fleet).await?;
    let jobs = Jobs::on_hub(&fleet, NAMESPACE)?;
    jobs.create(&JobSpec::new("first").queue("main")).await?;
    jobs.complete("first").await?;
    Ok(fleet)
}
