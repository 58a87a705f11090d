//! No hot loops: what does not change is not written.

use std::time::Duration;

use anyhow::{Result, ensure};
use fairlead_multicluster::{
    audit::{AuditEvent, AuditLog, Counts},
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
    at_rest(&mut log, name).await?;
    let begin = log.mark()?;
    // What is awaited is that nothing happens, so there is nothing to watch for.
    tokio::time::sleep(span).await;
    log.refresh()?;
    let writes = hub_writes(log.since(begin), name);
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

/// What the hub wrote to the team's own objects. Jobs of other scenarios may still come to their end.
fn hub_writes(events: &[AuditEvent], team: &str) -> Counts {
    let ours = |event: &&AuditEvent| event.object.namespace == team || event.object.name.starts_with(team);
    Counts::of(events.iter().filter(ours)).by("fairlead-hub").only(|key| key.verb.is_write())
}

/// Waits until the hub has written nothing to them for three seconds.
async fn at_rest(log: &mut AuditLog, team: &str) -> Result<()> {
    let mut quiet = 0;
    for _ in 0..120 {
        let begin = log.mark()?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        log.refresh()?;
        let writes = hub_writes(log.since(begin), team).writes();
        quiet = if writes == 0 { quiet + 1 } else { 0 };
        if quiet == 3 {
            return Ok(());
        }
    }
    anyhow::bail!("the hub does not come to rest")
}
