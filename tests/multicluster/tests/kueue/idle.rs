//! No hot loops: what does not change is not written.

use std::time::Duration;

use anyhow::{Result, ensure};
use fairlead_multicluster::{
    audit::{AuditLog, Counts},
    kueue::{
        Draft, World, admission_check, cluster_queue, cohort, local_queue, pod_set, priority_class,
        resource_flavor, topology, workload,
    },
    scenario,
    scenario::Scenario,
    work::JobSpec,
};
use serde_json::json;

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    vec![
        scenario!(idle_objects_are_not_written),
        scenario!(two_hundred_idle_objects_of_each_kind_are_not_written)
            .within(Duration::from_secs(400))
            .long(),
    ]
}

async fn idle_objects_are_not_written(world: &World) -> Result<()> {
    idle(world, "idle", 10, Duration::from_secs(10)).await
}

async fn two_hundred_idle_objects_of_each_kind_are_not_written(world: &World) -> Result<()> {
    idle(world, "idle-long", 200, Duration::from_secs(60)).await
}

/// So many of each kind, and nothing happens for this long.
async fn idle(world: &World, name: &str, count: u32, span: Duration) -> Result<()> {
    let team = world.team(name).await?;
    let objects: Vec<Draft> =
        (0..count).flat_map(|n| one_of_each(team.name(), &team.named(&n.to_string()))).collect();
    for some in objects.chunks(100) {
        world.apply(some).await?;
    }
    for n in 0..count {
        let queue = team.named(&n.to_string());
        team.submit(&JobSpec::new(&format!("waits-{n}")).queue(&queue).cpu("9")).await?;
    }
    let mut log = world.cluster()?.audit_log()?;
    at_rest(&mut log).await?;
    let begin = log.mark()?;
    // What is awaited is that nothing happens, so there is nothing to watch for.
    tokio::time::sleep(span).await;
    log.refresh()?;
    let ours = Counts::of(log.since(begin)).by("fairlead-hub");
    let writes = ours.only(|key| key.verb.is_write() && key.resource != "leases");
    println!("  {count} of each kind, {} s: {} writes", span.as_secs(), writes.writes());
    ensure!(writes.writes() == 0, "{writes}");
    Ok(())
}

fn one_of_each(namespace: &str, name: &str) -> Vec<Draft> {
    vec![
        resource_flavor(name),
        topology(name, &["rack"]),
        priority_class(name, 1),
        cohort(name, &[]),
        admission_check(name, "fairlead.dev/dispatch"),
        admission_check(&format!("{name}-other"), "example.com/other"),
        cluster_queue(name, &[(name, &[("cpu", "4"), ("memory", "1Gi")])])
            .set("/spec/cohortName", json!(name)),
        local_queue(namespace, name, name),
        workload(namespace, name, name, &[pod_set("main", 1, &[("cpu", "9")])]),
        Draft::new(json!({
            "apiVersion": "fairlead.dev/v1alpha1", "kind": "PlacementPolicy", "metadata": {"name": name},
            "spec": {},
        })),
        Draft::new(json!({
            "apiVersion": "fairlead.dev/v1alpha1", "kind": "Cluster", "metadata": {"name": name}, "spec": {},
        })),
    ]
}

/// Waits until the hub has written nothing for three seconds.
async fn at_rest(log: &mut AuditLog) -> Result<()> {
    let mut quiet = 0;
    for _ in 0..120 {
        let begin = log.mark()?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        log.refresh()?;
        let writes =
            Counts::of(log.since(begin)).by("fairlead-hub").only(|key| key.resource != "leases").writes();
        quiet = if writes == 0 { quiet + 1 } else { 0 };
        if quiet == 3 {
            return Ok(());
        }
    }
    anyhow::bail!("the hub does not come to rest")
}
