//! The place in line after an eviction, and what is counted.

use anyhow::{Context, Result, ensure};
use fairlead_multicluster::{
    kueue::{Team, World, admitted, cluster_queue, has, priority_class},
    scenario,
    scenario::Scenario,
    wait,
    work::{BOUND, JobSpec, is_active},
};
use serde_json::{Value, json};

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    vec![
        scenario!(kq_033_evictions_are_counted).together(),
        scenario!(kq_040_a_preempted_workload_keeps_its_place).together(),
    ]
}

/// A queue of one CPU that preempts lower priorities, and a class that is higher than none.
async fn preempting<'w>(world: &'w World, name: &str) -> Result<Team<'w>> {
    let team = world.team(name).await?;
    let queue = cluster_queue(name, &[(name, &[("cpu", "1"), ("memory", "1Ti")])])
        .set("/spec/preemption", json!({"withinClusterQueue": "LowerPriority"}));
    team.queue_as(queue).await?;
    world.apply(&[priority_class(&team.named("high"), 100)]).await?;
    Ok(team)
}

fn high(team: &Team<'_>, name: &str) -> JobSpec {
    let class = json!(team.named("high"));
    JobSpec::new(name).cpu("1").set("/metadata/labels", "kueue.x-k8s.io/priority-class", class)
}

async fn kq_033_evictions_are_counted(world: &World) -> Result<()> {
    let team = preempting(world, "kq-033").await?;
    team.submit(&JobSpec::new("low").cpu("1").run_for("600s")).await?;
    for count in 1..=2 {
        team.jobs()?.until("low", "is active", is_active).await?;
        let name = format!("high-{count}");
        team.submit(&high(&team, &name)).await?;
        let counted = |workload: &Value| {
            let stats = &workload["status"]["schedulingStats"]["evictions"][0];
            stats["reason"] == "Preempted" && stats["count"] == json!(count)
        };
        team.until_workload_of("low", "was preempted", counted).await?;
        team.jobs()?.complete(&name).await?;
    }
    Ok(())
}

async fn kq_040_a_preempted_workload_keeps_its_place(world: &World) -> Result<()> {
    let team = preempting(world, "kq-040").await?;
    team.submit(&JobSpec::new("first").cpu("1").run_for("600s")).await?;
    team.jobs()?.until("first", "is active", is_active).await?;
    let first = world.get(&team.workload_of("first").await?).await?.unwrap_or_default();
    // Creation times are whole seconds, and workloads of one second stand in no particular order.
    let created: jiff::Timestamp =
        first["metadata"]["creationTimestamp"].as_str().context("time")?.parse()?;
    let later = async || Ok(jiff::Timestamp::now().as_second() > created.as_second());
    wait::until_true("a later second has begun", BOUND, later).await?;
    team.submit(&JobSpec::new("second").cpu("1").run_for("600s")).await?;
    team.submit(&high(&team, "high")).await?;
    team.until_workload_of("first", "is preempted", |workload| has(workload, "Evicted", "True")).await?;
    team.jobs()?.complete("high").await?;
    team.until_workload_of("first", "runs again", admitted).await?;
    let at = team.workload_of("second").await?;
    let second = world.get(&at).await?.unwrap_or_default();
    ensure!(!admitted(&second), "the younger one waits: {}", second["status"]);
    Ok(())
}
