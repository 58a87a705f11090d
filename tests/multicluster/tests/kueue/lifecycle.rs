//! The life of a workload: evictions, stop policies, deactivation, time limits, retention, orphans.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use fairlead_multicluster::{
    kueue::{At, Team, World, admitted, condition, finished, has, reason},
    scenario,
    scenario::Scenario,
    wait,
    work::{BOUND, JobSpec, has_condition, is_active},
};
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, PropagationPolicy};
use serde_json::{Value, json};

use super::settings;

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    vec![
        scenario!(kq_023_an_inactive_workload_stops_and_comes_back).together(),
        scenario!(kq_024_the_time_that_a_job_may_run_is_limited).together(),
        scenario!(kq_027_a_workload_that_outlives_its_job_is_finished).together(),
        scenario!(kq_028_a_gated_job_waits_until_its_gates_are_gone).together(),
        scenario!(kq_045_nothing_is_tried_before_its_time).together(),
        scenario!(kq_046_a_stopped_cluster_queue_holds_or_drains).together(),
        scenario!(kq_047_a_stopped_local_queue_holds_or_drains_its_own).together(),
        scenario!(kq_117_quota_is_held_until_the_last_pod_has_stopped).together(),
        scenario!(kq_025_a_finished_workload_goes_after_its_time),
        scenario!(kq_026_a_job_goes_after_the_hub_deactivated_it),
        scenario!(kq_217_a_restart_decides_and_writes_nothing_new),
        scenario!(a_restart_with_2000_workloads_writes_nothing_new).long().within(Duration::from_secs(900)),
        scenario!(somebody_elses_writes_are_put_right).long().within(Duration::from_secs(400)),
    ]
}

/// A team with a queue of 4 CPUs in which `train` of 3 CPUs runs.
async fn running<'w>(world: &'w World, name: &str) -> Result<Team<'w>> {
    let team = world.team(name).await?;
    team.queue(&[("cpu", "4")]).await?;
    team.submit(&JobSpec::new("train").cpu("3").run_for("600s")).await?;
    team.jobs()?.until("train", "is active", is_active).await?;
    Ok(team)
}

/// When a condition took its status, in seconds.
fn since(workload: &Value, kind: &str) -> Result<i64> {
    let found = condition(workload, kind).context("condition")?;
    let time: Timestamp = found["lastTransitionTime"].as_str().context("time")?.parse()?;
    Ok(time.as_second())
}

fn gave_back(workload: &Value, why: &str) -> bool {
    reason(workload, "Evicted") == why
        && has(workload, "Evicted", "True")
        && !has(workload, "QuotaReserved", "True")
        && has(workload, "Requeued", "False")
}

async fn kq_023_an_inactive_workload_stops_and_comes_back(world: &World) -> Result<()> {
    let team = running(world, "kq-023").await?;
    let at = team.workload_of("train").await?;
    world.patch(&at, &json!({"spec": {"active": false}})).await?;
    world.until(&at, "gave its quota back", |workload| gave_back(workload, "Deactivated")).await?;
    let job = team.jobs()?.get("train").await?.context("job")?;
    ensure!(job.spec.is_some_and(|spec| spec.suspend == Some(true)), "it is suspended");
    world.patch(&at, &json!({"spec": {"active": true}})).await?;
    let back = |workload: &Value| admitted(workload) && reason(workload, "Requeued") == "Reactivated";
    world.until(&at, "is back", back).await?;
    Ok(())
}

async fn kq_024_the_time_that_a_job_may_run_is_limited(world: &World) -> Result<()> {
    let team = world.team("kq-024").await?;
    team.queue(&[("cpu", "4")]).await?;
    let job = JobSpec::new("train").run_for("600s");
    let job = job.set("/metadata/labels", "kueue.x-k8s.io/max-exec-time-seconds", json!("6"));
    team.submit(&job).await?;
    let at = team.workload_of("train").await?;
    team.until_workload_of("train", "is ready", |workload| has(workload, "PodsReady", "True")).await?;
    world.patch(&at, &json!({"spec": {"active": false}})).await?;
    let paused =
        world.until(&at, "gave its quota back", |workload| gave_back(workload, "Deactivated")).await?;
    let past = paused["status"]["accumulatedPastExecutionTimeSeconds"].as_i64().unwrap_or(0);
    world.patch(&at, &json!({"spec": {"active": true}})).await?;
    let again = world.until(&at, "is admitted again", admitted).await?;
    let over = |workload: &Value| gave_back(workload, "DeactivatedDueToMaximumExecutionTimeExceeded");
    let workload = world.until(&at, "ran for its time", over).await?;
    ensure!(workload["spec"]["active"] == json!(false));
    // Times are cut to seconds.
    let ran = past + since(&workload, "Evicted")? - since(&again, "Admitted")?;
    ensure!((5..=8).contains(&ran), "{ran} s");
    team.jobs()?.event("train", "MaximumExecutionTimeExceeded", Duration::from_secs(10)).await?;
    Ok(())
}

async fn kq_027_a_workload_that_outlives_its_job_is_finished(world: &World) -> Result<()> {
    let team = running(world, "kq-027").await?;
    let at = team.workload_of("train").await?;
    let orphan =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    team.jobs()?.api().delete("train", &orphan).await?;
    let workload = world.until(&at, "is finished", finished).await?;
    ensure!(reason(&workload, "Finished") == "OwnerNotFound", "{}", workload["status"]);
    let free = |workload: &Value| workload["metadata"].get("finalizers").is_none();
    world.until(&at, "is let go", free).await?;
    Ok(())
}

async fn kq_028_a_gated_job_waits_until_its_gates_are_gone(world: &World) -> Result<()> {
    let team = world.team("kq-028").await?;
    team.queue(&[("cpu", "4")]).await?;
    let gates = json!({"kueue.x-k8s.io/admission-gated-by": "example.com/a,example.com/b"});
    team.submit(&JobSpec::new("train").set("/metadata", "annotations", gates)).await?;
    let waits = |workload: &Value| reason(workload, "QuotaReserved") == "AdmissionGated";
    team.until_workload_of("train", "is gated", waits).await?;
    let at = At::job(team.name(), "train");
    let gate =
        |value: Value| json!({"metadata": {"annotations": {"kueue.x-k8s.io/admission-gated-by": value}}});
    world.patch(&at, &gate(json!("example.com/b"))).await?;
    world
        .refuses_patch("a gate that comes later", &at, &gate(json!("example.com/c")), "may only lose entries")
        .await?;
    world.patch(&at, &gate(Value::Null)).await?;
    team.jobs()?.complete("train").await?;
    Ok(())
}

async fn kq_045_nothing_is_tried_before_its_time(world: &World) -> Result<()> {
    let team = world.team("kq-045").await?;
    team.queue(&[("cpu", "1")]).await?;
    team.submit(&JobSpec::new("first").cpu("1").run_for("600s")).await?;
    team.until_workload_of("first", "is admitted", admitted).await?;
    team.submit(&JobSpec::new("train").cpu("1")).await?;
    let at = team.workload_of("train").await?;
    let later = Timestamp::now() + Duration::from_secs(6);
    world.patch_status(&at, &json!({"requeueState": {"count": 1, "requeueAt": later.to_string()}})).await?;
    team.jobs()?.delete("first").await?;
    let workload = world.until(&at, "is admitted", admitted).await?;
    let since = since(&workload, "QuotaReserved")?;
    ensure!(since >= later.as_second(), "{since} is before {later}");
    Ok(())
}

async fn stop(world: &World, at: &At, policy: &str) -> Result<()> {
    world.patch(at, &json!({"spec": {"stopPolicy": policy}})).await?;
    Ok(())
}

async fn kq_046_a_stopped_cluster_queue_holds_or_drains(world: &World) -> Result<()> {
    let team = running(world, "kq-046").await?;
    holds_then_drains(&team, &team.cluster_queue(), "ClusterQueue").await
}

async fn kq_047_a_stopped_local_queue_holds_or_drains_its_own(world: &World) -> Result<()> {
    let team = running(world, "kq-047").await?;
    let other = fairlead_multicluster::kueue::local_queue(team.name(), "other", team.name());
    world.apply(&[other]).await?;
    holds_then_drains(&team, &team.local_queue(), "LocalQueue").await?;
    stop(world, &team.local_queue(), "Hold").await?;
    team.submit(&JobSpec::new("elsewhere").queue("other")).await?;
    team.jobs()?.complete("elsewhere").await?;
    Ok(())
}

async fn holds_then_drains(team: &Team<'_>, queue: &At, kind: &str) -> Result<()> {
    let world = team.world();
    stop(world, queue, "Hold").await?;
    team.submit(&JobSpec::new("waits")).await?;
    let suspended = |workload: &Value| reason(workload, "QuotaReserved") == "Suspended";
    team.until_workload_of("waits", "is held", suspended).await?;
    let at = team.workload_of("train").await?;
    let running = world.get(&at).await?.context("workload")?;
    ensure!(admitted(&running) && !has(&running, "Evicted", "True"), "what was admitted runs on");
    stop(world, queue, "HoldAndDrain").await?;
    let stopped = format!("{kind}Stopped");
    world.until(&at, "is drained", |workload| gave_back(workload, &stopped)).await?;
    stop(world, queue, "None").await?;
    let restarted = format!("{kind}Restarted");
    let back = |workload: &Value| admitted(workload) && reason(workload, "Requeued") == restarted;
    world.until(&at, "is back", back).await?;
    team.jobs()?.complete("waits").await?;
    Ok(())
}

async fn kq_117_quota_is_held_until_the_last_pod_has_stopped(world: &World) -> Result<()> {
    let team = world.team("kq-117").await?;
    team.queue(&[("cpu", "4")]).await?;
    team.submit(&JobSpec::new("train").cpu("3").run_for("600s").stop_after("6s")).await?;
    team.jobs()?.until("train", "is active", is_active).await?;
    let at = team.workload_of("train").await?;
    world.patch(&at, &json!({"spec": {"active": false}})).await?;
    team.submit(&JobSpec::new("next").cpu("3")).await?;
    world.until(&at, "is evicted", |workload| has(workload, "Evicted", "True")).await?;
    let terminating = |job: &k8s_openapi::api::batch::v1::Job| {
        job.status.as_ref().is_some_and(|status| status.terminating.unwrap_or(0) > 0)
    };
    team.jobs()?.until("train", "has a pod that is terminating", terminating).await?;
    let workload = world.get(&at).await?.context("workload")?;
    ensure!(has(&workload, "QuotaReserved", "True"), "quota is held: {}", workload["status"]);
    team.jobs()?.complete("next").await?;
    world.until(&at, "gave its quota back", |workload| gave_back(workload, "Deactivated")).await?;
    Ok(())
}

async fn kq_025_a_finished_workload_goes_after_its_time(_: &World) -> Result<()> {
    let file = settings::file(&json!({"objectRetentionPolicies": {"workloads": {"afterFinished": "2s"}}}))?;
    let world = World::start(&["--config", file.path()]).await?;
    let team = world.team("kq-025").await?;
    team.queue(&[("cpu", "4")]).await?;
    team.submit(&JobSpec::new("short")).await?;
    let at = team.workload_of("short").await?;
    team.jobs()?.complete("short").await?;
    world.gone(&at).await?;
    let job = team.jobs()?.get("short").await?.context("the job stays")?;
    ensure!(has_condition(&job, "Complete"));
    Ok(())
}

async fn kq_026_a_job_goes_after_the_hub_deactivated_it(_: &World) -> Result<()> {
    let policy = json!({"workloads": {"afterDeactivatedByKueue": "2s"}});
    let file = settings::file(&json!({"objectRetentionPolicies": policy}))?;
    let world = World::start(&["--config", file.path()]).await?;
    let team = world.team("kq-026").await?;
    team.queue(&[("cpu", "4")]).await?;
    team.submit(&JobSpec::new("by-hand").run_for("600s")).await?;
    let by_hand = team.workload_of("by-hand").await?;
    world.patch(&by_hand, &json!({"spec": {"active": false}})).await?;
    world.until(&by_hand, "gave its quota back", |workload| gave_back(workload, "Deactivated")).await?;
    let limited = JobSpec::new("long").run_for("600s");
    let limited = limited.set("/metadata/labels", "kueue.x-k8s.io/max-exec-time-seconds", json!("1"));
    team.submit(&limited).await?;
    team.jobs()?.gone("long", BOUND).await?;
    ensure!(team.jobs()?.get("by-hand").await?.is_some(), "what a user deactivated stays");
    Ok(())
}

async fn kq_217_a_restart_decides_and_writes_nothing_new(world: &World) -> Result<()> {
    restart_with(world, "kq-217", 40).await
}

async fn a_restart_with_2000_workloads_writes_nothing_new(world: &World) -> Result<()> {
    restart_with(world, "restart-2000", 2000).await
}

/// Jobs that run, that have ended, that wait and that are inactive; versions of everything; a restart; the same versions.
async fn restart_with(world: &World, name: &str, count: usize) -> Result<()> {
    let team = world.team(name).await?;
    team.queue(&[("cpu", "4")]).await?;
    for n in 0..count {
        // Each third one ends at once; of the others forty run and the rest waits.
        let job = JobSpec::new(&format!("job-{n:04}")).cpu("100m");
        let job = if n % 3 == 0 { job } else { job.run_for("3000s") };
        team.submit(&job).await?;
    }
    let last = format!("job-{:04}", count - 1);
    let looked_at = |workload: &Value| condition(workload, "QuotaReserved").is_some();
    team.until_workload_of(&last, "was looked at", looked_at).await?;
    let at = team.workload_of("job-0001").await?;
    world.patch(&at, &json!({"spec": {"active": false}})).await?;
    world.until(&at, "gave its quota back", |workload| gave_back(workload, "Deactivated")).await?;
    let before = settled_versions(&team).await?;
    world.fleet().restart_hub(&[]).await?;
    let probe = world.team(&format!("{name}-probe")).await?;
    probe.queue(&[("cpu", "1")]).await?;
    probe.submit(&JobSpec::new("proof")).await?;
    probe.jobs()?.complete("proof").await?;
    let after = versions(&team).await?;
    ensure!(before.len() == after.len(), "{} objects became {}", before.len(), after.len());
    for (old, new) in before.iter().zip(&after) {
        ensure!(old == new, "written after the restart: {old:?}, now {new:?}");
    }
    Ok(())
}

/// Names and versions of the team's Workloads and Jobs, once they have stayed the same for a moment.
async fn settled_versions(team: &Team<'_>) -> Result<Vec<(String, String)>> {
    let (mut last, mut since) = (Vec::new(), Instant::now());
    wait::until("nothing is written any more", Duration::from_secs(120), async || {
        let now = versions(team).await?;
        if now != last {
            (last, since) = (now, Instant::now());
        }
        // The status of a running job is gathered for a second.
        Ok((since.elapsed() > Duration::from_secs(3)).then(|| last.clone()))
    })
    .await
}

async fn versions(team: &Team<'_>) -> Result<Vec<(String, String)>> {
    let mut all = Vec::new();
    for (api, plural) in [("kueue.x-k8s.io/v1beta2", "workloads"), ("batch/v1", "jobs")] {
        let path = At::new(api, plural, team.name(), "any").collection().to_owned();
        let request = http::Request::get(path).body(Vec::new())?;
        let list: Value = team.world().client()?.request(request).await?;
        for object in list["items"].as_array().into_iter().flatten() {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
            all.push((format!("{plural}/{}", text("name")), text("resourceVersion")));
        }
    }
    Ok(all)
}

/// For a minute somebody patches statuses and specs of Workloads at random, as far as the definitions let it through.
async fn somebody_elses_writes_are_put_right(world: &World) -> Result<()> {
    let team = world.team("meddled").await?;
    team.queue(&[("cpu", "3")]).await?;
    let names: Vec<String> = (0..8).map(|n| format!("job-{n}")).collect();
    for name in &names {
        team.submit(&JobSpec::new(name).cpu("1").run_for("15s")).await?;
    }
    let end = Instant::now() + Duration::from_secs(60);
    let mut dice = 7_u64;
    while Instant::now() < end {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (which, roll) = ((dice >> 33) % 8, (dice >> 40) % 6);
        let at = team.workload_of(&names[usize::try_from(which)?]).await?;
        let Some(workload) = world.get(&at).await?.filter(|workload| !finished(workload)) else { continue };
        let mut conditions = workload["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.retain(|condition| condition["type"] != "QuotaReserved" || roll != 0);
        conditions.retain(|condition| condition["type"] != "Admitted" || roll != 1);
        let status = match roll {
            0 => json!({"admission": null, "conditions": conditions}),
            1 => json!({"conditions": conditions}),
            2 => json!({"admissionChecks": [], "verdict": null}),
            3 => json!({"requeueState": {"count": 3}}),
            4 => json!({"conditions": []}),
            _ => json!({"schedulingStats": null}),
        };
        // What the definition forbids is refused, and that is all right.
        drop(world.patch_status(&at, &status).await);
        ensure!(running_pods(&team).await? <= 3, "more runs than there is quota for");
    }
    for name in &names {
        team.jobs()?.complete(name).await?;
    }
    Ok(())
}

async fn running_pods(team: &Team<'_>) -> Result<usize> {
    let path = format!("/api/v1/namespaces/{}/pods", team.name());
    let request = http::Request::get(path).body(Vec::new())?;
    let pods: Value = team.world().client()?.request(request).await?;
    let runs =
        |pod: &&Value| !["Succeeded", "Failed"].contains(&pod["status"]["phase"].as_str().unwrap_or(""));
    Ok(pods["items"].as_array().into_iter().flatten().filter(runs).count())
}
