//! What a Job costs in API writes, counted from the audit logs, printed by kind and verb.

use std::time::Duration;

use anyhow::{Result, ensure};
use fairlead_multicluster::{
    audit::{AuditEvent, AuditLog, Counts, Mark},
    fleet::{Fleet, Tenant},
    wait,
    work::{BOUND, JobSpec, Jobs, Queue, workloads},
};

/// Jobs per measurement.
const JOBS: u64 = 20;

/// Budgets of design.md §4, per Job.
const HUB_WRITES: u64 = 10;
const HUB_EVENTS: u64 = 5;
const HUB_DELETION: u64 = 4;
const SPOKE_ADDED: u64 = 4;

pub(crate) async fn per_job_are_within_budget(fleet: &Fleet) -> Result<()> {
    let plain = plain_on_a_spoke(fleet).await?;
    let three = measure(fleet, "writes-three").await?;
    for spoke in ["aws-use1", "gcp-euw4"] {
        fleet.spoke(spoke)?.agent().kill()?;
        fleet.cluster_condition(spoke, "Connected", "False").await?;
    }
    let one = measure(fleet, "writes-one").await?;
    for spoke in ["aws-use1", "gcp-euw4"] {
        fleet.spoke(spoke)?.restart_agent(&[])?;
        fleet.connected(spoke).await?;
    }
    println!(
        "  per {JOBS} Jobs: {three:?} with 3 spokes, {one:?} with 1; a plain Job alone writes {plain} on a cluster"
    );
    for costs in [&three, &one] {
        ensure!(costs.hub <= HUB_WRITES * JOBS, "hub: {costs:?}");
        ensure!(costs.events <= HUB_EVENTS * JOBS, "events: {costs:?}");
        ensure!(costs.deletion <= HUB_DELETION * JOBS, "deletion: {costs:?}");
        ensure!(costs.spoke <= plain + SPOKE_ADDED * JOBS, "spoke: {costs:?}, plain {plain}");
        ensure!(costs.remote_reads == 0, "{costs:?}");
    }
    // Deletions are not compared: the garbage collector deletes some Workloads a second time, as it happens.
    ensure!(three.hub == one.hub && three.events == one.events, "it grows with the number of spokes");
    Ok(())
}

#[derive(Debug)]
struct Costs {
    hub: u64,
    events: u64,
    deletion: u64,
    spoke: u64,
    remote_reads: u64,
}

/// One-pod Jobs that need no wait, from their create to their deletion, all in one namespace.
async fn measure(fleet: &Fleet, namespace: &str) -> Result<Costs> {
    fleet.tenant(&Tenant::new(namespace)).await?;
    Queue::new(namespace).apply(fleet).await?;
    let mut hub = fleet.hub_cluster()?.audit_log()?;
    let begin = hub.mark()?;
    let jobs = Jobs::on_hub(fleet, namespace)?;
    for n in 0..JOBS {
        jobs.create(&job(n).queue("main")).await?;
        jobs.complete(&format!("job-{n}")).await?;
    }
    settled(&mut hub, namespace).await?;
    let life = in_namespace(&hub, begin, namespace);
    let deletion = hub.mark()?;
    for n in 0..JOBS {
        jobs.delete(&format!("job-{n}")).await?;
    }
    wait::until_true("all Workloads are gone", BOUND, async || {
        Ok(workloads(fleet, namespace).await?.is_empty())
    })
    .await?;
    settled(&mut hub, namespace).await?;
    let deleted = in_namespace(&hub, deletion, namespace);
    println!("{}\n{}", life.only(|key| key.verb.is_write()), deleted.only(|key| key.verb.is_write()));
    let (spoke, remote_reads) = on_spokes(fleet, namespace).await?;
    let kinds = ["jobs", "workloads"];
    let events = life.on(&["events"]).writes() + deleted.on(&["events"]).writes();
    Ok(Costs {
        hub: life.on(&kinds).writes(),
        events,
        deletion: deleted.on(&kinds).writes(),
        spoke,
        remote_reads,
    })
}

/// Writes in the namespace on all spokes, and reads by the hub.
async fn on_spokes(fleet: &Fleet, namespace: &str) -> Result<(u64, u64)> {
    let (mut writes, mut reads) = (0, 0);
    for spoke in fleet.spokes() {
        let copies = Jobs::on_spoke(fleet, spoke.name(), namespace)?;
        wait::until_true("all copies are gone", BOUND, async || Ok(copies.list().await?.is_empty())).await?;
        let mut log = fleet.spoke_cluster(spoke.name())?.audit_log()?;
        settled(&mut log, namespace).await?;
        let all = Counts::of(log.events().iter().filter(|event| event.object.namespace == namespace));
        println!("{}: {}", spoke.name(), all.only(|key| key.verb.is_write()));
        writes += all.on(&["jobs", "pods", "events"]).writes();
        reads += Counts::of(log.events()).by("fairlead-hub").reads();
    }
    Ok((writes, reads))
}

/// The same Jobs straight to one cluster, without Fairlead: their writes, the deletion included.
async fn plain_on_a_spoke(fleet: &Fleet) -> Result<u64> {
    let namespace = "writes-plain";
    fleet.tenant(&Tenant::new(namespace)).await?;
    let jobs = Jobs::on_spoke(fleet, "onprem-a", namespace)?;
    for n in 0..JOBS {
        jobs.create(&job(n)).await?;
        jobs.complete(&format!("job-{n}")).await?;
    }
    for n in 0..JOBS {
        jobs.delete(&format!("job-{n}")).await?;
        jobs.gone(&format!("job-{n}"), BOUND).await?;
    }
    let mut log = fleet.spoke_cluster("onprem-a")?.audit_log()?;
    settled(&mut log, namespace).await?;
    let all = Counts::of(log.events().iter().filter(|event| event.object.namespace == namespace));
    println!("plain: {}", all.only(|key| key.verb.is_write()));
    Ok(all.on(&["jobs", "pods", "events"]).writes())
}

fn job(n: u64) -> JobSpec {
    JobSpec::new(&format!("job-{n}"))
}

fn in_namespace(log: &AuditLog, since: Mark, namespace: &str) -> Counts {
    Counts::of(log.since(since).iter().filter(|event| event.object.namespace == namespace))
}

/// Waits until nothing more is written in the namespace: two looks, a second apart, find the same.
async fn settled(log: &mut AuditLog, namespace: &str) -> Result<()> {
    let writes = |log: &AuditLog| {
        let ours = |event: &&AuditEvent| event.object.namespace == namespace && event.verb.is_write();
        log.events().iter().filter(ours).count()
    };
    for _ in 0..30 {
        log.refresh()?;
        let before = writes(log);
        // What is awaited is that nothing happens, so there is nothing to watch for.
        tokio::time::sleep(Duration::from_secs(1)).await;
        log.refresh()?;
        if writes(log) == before {
            return Ok(());
        }
    }
    anyhow::bail!("{namespace} does not come to rest")
}
