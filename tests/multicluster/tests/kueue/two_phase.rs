//! Admission checks of other controllers, by the public protocol.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use fairlead_multicluster::{
    kueue::{
        At, Team, World, admission_check, admitted, cluster_queue, finished, has, reason, resource_flavor,
    },
    scenario,
    scenario::Scenario,
    work::JobSpec,
};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    vec![
        scenario!(kq_105_a_ready_check_admits).together(),
        scenario!(kq_105_retry_evicts_and_waits).together(),
        scenario!(kq_105_rejected_deactivates).together(),
        scenario!(kq_106_a_check_for_another_flavor_is_not_asked).together(),
        scenario!(kq_107_updates_are_merged_into_the_pods).together(),
        scenario!(kq_107_updates_that_conflict_end_the_job).together(),
    ]
}

/// A queue of the team that asks a check of somebody else's for these flavors (all of them where there are none).
async fn checked_queue(team: &Team<'_>, on_flavors: &[&str]) -> Result<String> {
    let check = team.named("check");
    team.world().apply(&[admission_check(&check, "example.com/prov")]).await?;
    let active = json!({"conditions": [{
        "type": "Active", "status": "True", "reason": "Active", "message": "",
        "lastTransitionTime": Timestamp::now().to_string(),
    }]});
    team.world().patch_status(&At::kueue("admissionchecks", &check), &active).await?;
    let flavors = [("cpu", "4"), ("memory", "1Ti")];
    let queue = cluster_queue(team.name(), &[(team.name(), &flavors)]).set(
        "/spec/admissionChecksStrategy",
        json!({"admissionChecks": [{"name": check, "onFlavors": on_flavors}]}),
    );
    team.queue_as(queue).await?;
    Ok(check)
}

/// The other controller sets the state of its check, once it is listed.
async fn answer(team: &Team<'_>, job: &str, (check, state): (&str, &str), more: &Value) -> Result<()> {
    let listed = |workload: &Value| entry(workload, check).is_some();
    let workload = team.until_workload_of(job, "lists the check", listed).await?;
    let mut list = workload["status"]["admissionChecks"].as_array().cloned().unwrap_or_default();
    let found = list.iter_mut().find(|listed| listed["name"] == check).context("listed")?;
    found["state"] = json!(state);
    found["message"] = json!("as the scenario wants");
    found["lastTransitionTime"] = json!(Timestamp::now().to_string());
    if let (Some(entry), Some(more)) = (found.as_object_mut(), more.as_object()) {
        entry.extend(more.clone());
    }
    let at = team.workload_of(job).await?;
    team.world().patch_status(&at, &json!({"admissionChecks": list})).await?;
    Ok(())
}

fn entry<'a>(workload: &'a Value, check: &str) -> Option<&'a Value> {
    let list = workload.pointer("/status/admissionChecks")?.as_array()?;
    list.iter().find(|listed| listed["name"] == check)
}

fn is_pending(workload: &Value, check: &str) -> bool {
    entry(workload, check).is_some_and(|entry| entry["state"] == "Pending")
}

async fn kq_105_a_ready_check_admits(world: &World) -> Result<()> {
    let team = world.team("kq-105a").await?;
    let check = checked_queue(&team, &[]).await?;
    team.submit(&JobSpec::new("train")).await?;
    let waits = |workload: &Value| {
        has(workload, "QuotaReserved", "True") && !admitted(workload) && is_pending(workload, &check)
    };
    let workload = team.until_workload_of("train", "has quota and waits for its check", waits).await?;
    ensure!(reason(&workload, "Admitted") == "UnsatisfiedAdmissionChecks", "{}", workload["status"]);
    let job = team.jobs()?.get("train").await?.context("job")?;
    ensure!(job.spec.is_some_and(|spec| spec.suspend == Some(true)), "it waits suspended");
    answer(&team, "train", (&check, "Ready"), &json!({})).await?;
    team.jobs()?.complete("train").await?;
    team.until_workload_of("train", "is finished", finished).await?;
    Ok(())
}

async fn kq_105_retry_evicts_and_waits(world: &World) -> Result<()> {
    let team = world.team("kq-105b").await?;
    let check = checked_queue(&team, &[]).await?;
    team.submit(&JobSpec::new("train").run_for("600s")).await?;
    answer(&team, "train", (&check, "Ready"), &json!({})).await?;
    team.until_workload_of("train", "is admitted", admitted).await?;
    answer(&team, "train", (&check, "Retry"), &json!({"requeueAfterSeconds": 3})).await?;
    let evicted = |workload: &Value| {
        has(workload, "Evicted", "True")
            && has(workload, "Requeued", "False")
            && !has(workload, "QuotaReserved", "True")
    };
    let workload = team.until_workload_of("train", "has given its quota back", evicted).await?;
    ensure!(reason(&workload, "Evicted") == "AdmissionCheck", "{}", workload["status"]);
    ensure!(workload["status"]["requeueState"]["requeueAt"].is_string(), "{}", workload["status"]);
    ensure!(is_pending(&workload, &check), "the check starts again");
    team.jobs()?.event("train", "EvictedDueToAdmissionCheck", Duration::from_secs(10)).await?;
    let again = |workload: &Value| {
        has(workload, "QuotaReserved", "True") && reason(workload, "Requeued") == "BackoffFinished"
    };
    team.until_workload_of("train", "has quota again", again).await?;
    Ok(())
}

async fn kq_105_rejected_deactivates(world: &World) -> Result<()> {
    let team = world.team("kq-105c").await?;
    let check = checked_queue(&team, &[]).await?;
    team.submit(&JobSpec::new("train")).await?;
    answer(&team, "train", (&check, "Rejected"), &json!({})).await?;
    let off = |workload: &Value| {
        workload["spec"]["active"] == json!(false)
            && reason(workload, "Evicted") == "DeactivatedDueToAdmissionCheck"
            && !has(workload, "QuotaReserved", "True")
    };
    team.until_workload_of("train", "is deactivated", off).await?;
    team.jobs()?.event("train", "AdmissionCheckRejected", Duration::from_secs(10)).await?;
    let at = team.workload_of("train").await?;
    world.patch(&at, &json!({"spec": {"active": true}})).await?;
    answer(&team, "train", (&check, "Ready"), &json!({})).await?;
    team.jobs()?.complete("train").await?;
    Ok(())
}

async fn kq_106_a_check_for_another_flavor_is_not_asked(world: &World) -> Result<()> {
    let team = world.team("kq-106").await?;
    let (check, spot) = (team.named("check"), team.named("spot"));
    let flavor = resource_flavor(&spot).set("/spec/nodeLabels", json!({"kq-106": "spot"}));
    world.apply(&[admission_check(&check, "example.com/prov"), flavor]).await?;
    let quotas = [("cpu", "1"), ("memory", "1Ti")];
    let queue = cluster_queue(team.name(), &[(team.name(), &quotas), (&spot, &quotas)]).set(
        "/spec/admissionChecksStrategy",
        json!({"admissionChecks": [{"name": check, "onFlavors": [spot]}]}),
    );
    team.queue_as(queue).await?;
    team.submit(&JobSpec::new("first").cpu("1").run_for("600s")).await?;
    let workload = team.until_workload_of("first", "is admitted", admitted).await?;
    ensure!(entry(&workload, &check).is_none(), "{}", workload["status"]);
    team.submit(&JobSpec::new("second").cpu("1")).await?;
    let asked = |workload: &Value| has(workload, "QuotaReserved", "True") && is_pending(workload, &check);
    let workload = team.until_workload_of("second", "waits for the check of its flavor", asked).await?;
    ensure!(!admitted(&workload));
    Ok(())
}

async fn kq_107_updates_are_merged_into_the_pods(world: &World) -> Result<()> {
    let team = world.team("kq-107a").await?;
    let check = checked_queue(&team, &[]).await?;
    team.submit(&JobSpec::new("train")).await?;
    let update = json!({"name": "main", "labels": {"example.com/a": "b"}, "annotations": {"example.com/c": "d"},
        "nodeSelector": {"kubernetes.io/os": "linux"}, "tolerations": [{"key": "spot", "operator": "Exists"}]});
    answer(&team, "train", (&check, "Ready"), &json!({"podSetUpdates": [update]})).await?;
    let job = serde_json::to_value(team.jobs()?.complete("train").await?)?;
    let template = &job["spec"]["template"];
    ensure!(template["spec"]["nodeSelector"]["kubernetes.io/os"] == "linux", "{template}");
    ensure!(template["spec"]["tolerations"][0]["key"] == "spot", "{template}");
    ensure!(template["metadata"]["labels"]["example.com/a"] == "b", "{template}");
    ensure!(template["metadata"]["annotations"]["example.com/c"] == "d", "{template}");
    Ok(())
}

async fn kq_107_updates_that_conflict_end_the_job(world: &World) -> Result<()> {
    let team = world.team("kq-107b").await?;
    let check = checked_queue(&team, &[]).await?;
    let selector = json!({"kubernetes.io/os": "linux"});
    let job = JobSpec::new("train").set("/spec/template/spec", "nodeSelector", selector);
    team.submit(&job).await?;
    let update = json!({"name": "main", "nodeSelector": {"kubernetes.io/os": "plan9"}});
    answer(&team, "train", (&check, "Ready"), &json!({"podSetUpdates": [update]})).await?;
    let workload = team.until_workload_of("train", "is finished", finished).await?;
    ensure!(reason(&workload, "Finished") == "FailedToStart", "{}", workload["status"]);
    Ok(())
}
