//! Waiting for pods to be ready. Each scenario starts a hub with short times.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use fairlead_multicluster::{
    kueue::{Team, World, admitted, condition, has, reason},
    scenario,
    scenario::Scenario,
    work::JobSpec,
};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::settings;

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    vec![
        scenario!(kq_112_each_timeout_waits_longer).within(Duration::from_secs(300)),
        scenario!(kq_113_one_timeout_too_many_deactivates),
        scenario!(kq_116_readiness_is_said_without_any_configuration).together(),
        scenario!(kq_115_a_blocking_queue_admits_one_after_the_other),
    ]
}

/// A Job whose pod no node takes.
fn never_ready(name: &str) -> JobSpec {
    JobSpec::new(name).set("/spec/template/spec", "nodeSelector", json!({"no-such": "node"}))
}

async fn start(rules: Value) -> Result<(World, settings::File)> {
    let file = settings::file(&json!({"waitForPodsReady": rules}))?;
    Ok((World::start(&["--config", file.path()]).await?, file))
}

async fn team(world: &World) -> Result<Team<'_>> {
    let team = world.team("ready").await?;
    team.queue(&[("cpu", "4")]).await?;
    Ok(team)
}

async fn kq_112_each_timeout_waits_longer(_: &World) -> Result<()> {
    let requeuing = json!({"backoffBaseSeconds": 1, "backoffMaxSeconds": 60});
    let (world, _file) = start(json!({"timeout": "2s", "requeuingStrategy": requeuing})).await?;
    let team = team(&world).await?;
    team.submit(&never_ready("train")).await?;
    for count in 1..=3_i64 {
        let counted = |workload: &Value| {
            workload["status"]["requeueState"]["count"] == json!(count) && has(workload, "Requeued", "False")
        };
        let workload = team.until_workload_of("train", "is put back", counted).await?;
        let stats = &workload["status"]["schedulingStats"]["evictions"][0];
        ensure!(stats["underlyingCause"] == "WaitForStart" && stats["count"] == json!(count), "{stats}");
        let at = |value: &Value| value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
        let evicted = condition(&workload, "Evicted").and_then(|evicted| at(&evicted["lastTransitionTime"]));
        let due = at(&workload["status"]["requeueState"]["requeueAt"]);
        let wait = due.context("requeueAt")?.as_second() - evicted.context("Evicted")?.as_second();
        // Both are cut to seconds.
        ensure!((wait - (1 << (count - 1))).abs() <= 1, "{count}: {wait} s");
    }
    Ok(())
}

async fn kq_113_one_timeout_too_many_deactivates(_: &World) -> Result<()> {
    let requeuing = json!({"backoffLimitCount": 1, "backoffBaseSeconds": 1});
    let (world, _file) = start(json!({"timeout": "2s", "requeuingStrategy": requeuing})).await?;
    let team = team(&world).await?;
    team.submit(&never_ready("train")).await?;
    let off = |workload: &Value| {
        reason(workload, "Evicted") == "DeactivatedDueToRequeuingLimitExceeded"
            && workload["spec"]["active"] == json!(false)
    };
    team.until_workload_of("train", "is deactivated", off).await?;
    ensure!(team.jobs()?.get("train").await?.is_some(), "the job stays");
    Ok(())
}

async fn kq_116_readiness_is_said_without_any_configuration(world: &World) -> Result<()> {
    let team = world.team("kq-116").await?;
    team.queue(&[("cpu", "4")]).await?;
    team.submit(&never_ready("late")).await?;
    let waits = |workload: &Value| admitted(workload) && reason(workload, "PodsReady") == "WaitForStart";
    team.until_workload_of("late", "waits for its pods", waits).await?;
    team.submit(&JobSpec::new("ready").run_for("600s")).await?;
    let started =
        |workload: &Value| has(workload, "PodsReady", "True") && reason(workload, "PodsReady") == "Started";
    team.until_workload_of("ready", "is ready", started).await?;
    Ok(())
}

async fn kq_115_a_blocking_queue_admits_one_after_the_other(_: &World) -> Result<()> {
    let (world, _file) = start(json!({"timeout": "60s", "blockAdmission": true})).await?;
    let team = team(&world).await?;
    team.submit(&never_ready("first")).await?;
    team.until_workload_of("first", "is admitted", admitted).await?;
    team.submit(&JobSpec::new("second")).await?;
    let blocked = |workload: &Value| reason(workload, "QuotaReserved") == "WaitingForPodsReady";
    team.until_workload_of("second", "waits", blocked).await?;
    team.jobs()?.delete("first").await?;
    team.jobs()?.complete("second").await?;
    let workload =
        team.until_workload_of("second", "was ready", |workload| has(workload, "Finished", "True"));
    workload.await?;
    team.jobs()?.event("second", "WaitingForPodsReady", Duration::from_secs(10)).await?;
    Ok(())
}
