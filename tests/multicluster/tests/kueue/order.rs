//! The order in which workloads are looked at, and what wakes those that do not fit.

use anyhow::{Result, bail, ensure};
use fairlead_multicluster::{
    kueue::{
        At, Draft, Team, World, admission_check, admitted, cluster_queue, has, local_queue, priority_class,
        reason, reserved, resource_flavor, topology,
    },
    rig::NodeSpec,
    scenario,
    scenario::Scenario,
    wait,
    work::{BOUND, JobSpec, is_active},
};
use serde_json::{Value, json};

use crate::operations::{pending, register, scraped};

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    vec![
        scenario!(kq_035_a_small_job_passes_a_large_one).together(),
        scenario!(kq_036_nobody_passes_the_head_of_a_strict_queue).together(),
        scenario!(kq_037_a_head_from_a_namespace_that_is_not_selected_is_passed).together(),
        scenario!(kq_038_the_line_is_by_priority_time_and_uid).together(),
        scenario!(kq_041_who_preempts_is_not_overtaken_meanwhile).together(),
        scenario!(kq_042_quota_that_is_freed_or_raised_wakes).together(),
        scenario!(kq_042_a_namespace_that_is_selected_wakes).together(),
        scenario!(kq_042_a_check_that_becomes_active_wakes).together(),
        scenario!(kq_042_a_new_node_wakes).together(),
        scenario!(kq_044_equal_workloads_are_one_class).together(),
        scenario!(kq_048_a_stopped_queue_still_lends).together(),
        scenario!(kq_050_the_condition_says_why_it_waits).together(),
    ]
}

/// Waits until the Workload of a Job waits for this reason.
pub(crate) async fn waits(team: &Team<'_>, job: &str, why: &str) -> Result<Value> {
    let wanted = |workload: &Value| {
        has(workload, "QuotaReserved", "False") && reason(workload, "QuotaReserved") == why
    };
    team.until_workload_of(job, &format!("waits with {why}"), wanted).await
}

/// A Job that keeps its quota.
pub(crate) fn long(name: &str, cpu: &str) -> JobSpec {
    JobSpec::new(name).cpu(cpu).run_for("600s")
}

/// The Workload of a Job as it is now.
pub(crate) async fn now(team: &Team<'_>, job: &str) -> Result<Value> {
    let at = team.workload_of(job).await?;
    Ok(team.world().get(&at).await?.unwrap_or_default())
}

/// Makes a class, and the Job one of it.
pub(crate) async fn of_priority(team: &Team<'_>, job: JobSpec, value: i32) -> Result<JobSpec> {
    let class = team.named(&format!("priority-{value}"));
    team.world().apply(&[priority_class(&class, value)]).await?;
    Ok(job.set("/metadata/labels", "kueue.x-k8s.io/priority-class", json!(class)))
}

/// The team's ClusterQueue with so many CPUs.
fn cpus(team: &Team<'_>, cpu: &str) -> Draft {
    cluster_queue(team.name(), &[(team.name(), &[("cpu", cpu), ("memory", "1Ti")])])
}

/// A queue of 4 CPUs of which 2 are in use, with a Job of 4 at its head.
async fn with_a_large_head<'w>(world: &'w World, name: &str, strategy: &str) -> Result<Team<'w>> {
    let team = world.team(name).await?;
    team.queue_as(cpus(&team, "4").set("/spec/queueingStrategy", json!(strategy))).await?;
    team.submit(&long("runs", "2")).await?;
    team.until_workload_of("runs", "is admitted", admitted).await?;
    team.submit(&long("large", "4")).await?;
    waits(&team, "large", "WaitingForQuota").await?;
    Ok(team)
}

async fn kq_035_a_small_job_passes_a_large_one(world: &World) -> Result<()> {
    let team = with_a_large_head(world, "kq-035", "BestEffortFIFO").await?;
    team.submit(&long("small", "1")).await?;
    team.until_workload_of("small", "is admitted", admitted).await?;
    Ok(())
}

/// A Job that comes last and is admitted in another queue shows that the small one was there to be looked at.
async fn kq_036_nobody_passes_the_head_of_a_strict_queue(world: &World) -> Result<()> {
    let team = with_a_large_head(world, "kq-036", "StrictFIFO").await?;
    let other = team.named("other");
    let queue = cluster_queue(&other, &[(team.name(), &[("cpu", "1"), ("memory", "1Ti")])]);
    world.apply(&[queue, local_queue(team.name(), "other", &other)]).await?;
    world.condition(&At::local_queue(team.name(), "other"), ("Active", "True", "Ready")).await?;
    team.submit(&long("small", "1")).await?;
    team.workload_of("small").await?;
    team.submit(&long("sign", "1").queue("other")).await?;
    team.until_workload_of("sign", "is admitted", admitted).await?;
    let small = now(&team, "small").await?;
    ensure!(!reserved(&small), "it passed the head: {}", small["status"]);
    team.jobs()?.delete("large").await?;
    team.until_workload_of("small", "is admitted", admitted).await?;
    Ok(())
}

async fn kq_037_a_head_from_a_namespace_that_is_not_selected_is_passed(world: &World) -> Result<()> {
    let (team, outside) = (world.team("kq-037").await?, world.team("kq-037-outside").await?);
    let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": team.name()}});
    let queue = cpus(&team, "4").set("/spec/queueingStrategy", json!("StrictFIFO"));
    team.queue_as(queue.set("/spec/namespaceSelector", selector)).await?;
    world.apply(&[local_queue(outside.name(), "main", team.name())]).await?;
    outside.submit(&long("head", "1")).await?;
    let mismatch = |workload: &Value| workload["status"]["verdict"]["code"] == "NamespaceMismatch";
    outside.until_workload_of("head", "says NamespaceMismatch", mismatch).await?;
    team.submit(&long("behind", "1")).await?;
    team.until_workload_of("behind", "is admitted", admitted).await?;
    Ok(())
}

/// Six Jobs come within a second or two, so that for some only the UID decides.
async fn kq_038_the_line_is_by_priority_time_and_uid(world: &World) -> Result<()> {
    register(world).await?;
    let team = world.team("kq-038").await?;
    team.queue(&[("cpu", "1")]).await?;
    team.submit(&long("runs", "1")).await?;
    team.until_workload_of("runs", "is admitted", admitted).await?;
    let mut jobs = Vec::new();
    for (name, priority) in [("a", 1), ("b", 5), ("c", 1), ("d", 5), ("e", 1), ("f", 5)] {
        jobs.push((-priority, of_priority(&team, long(name, "1"), priority).await?));
    }
    for (_, job) in &jobs {
        team.submit(job).await?;
    }
    let mut line = Vec::new();
    for (behind, job) in &jobs {
        let workload = now(&team, job.name()).await?;
        let text = |field: &str| workload["metadata"][field].as_str().unwrap_or_default().to_owned();
        line.push((*behind, text("creationTimestamp"), text("uid"), job.name().to_owned()));
    }
    line.sort();
    let wanted: Vec<String> = line.into_iter().map(|(.., name)| name).collect();
    let path = format!("clusterqueues/{}/pendingworkloads", team.name());
    wait::until(&format!("the line is {wanted:?}"), BOUND, async || {
        let shown: Vec<String> = pending(world, &path).await?.into_iter().map(|(name, ..)| name).collect();
        if shown == wanted { Ok(Some(())) } else { bail!("{shown:?}") }
    })
    .await
}

/// The one of middle priority preempts; while its victim stops, one of the highest priority comes. The middle one gets
/// what it preempted for, and only then is preempted itself.
/// The victim is in another queue, so that `top` may preempt nobody and only waits for its turn.
async fn kq_041_who_preempts_is_not_overtaken_meanwhile(world: &World) -> Result<()> {
    let team = world.team("kq-041").await?;
    let cohort = json!(team.name());
    let reclaims = json!({"reclaimWithinCohort": "Any"});
    let owner = cpus(&team, "1").set("/spec/cohortName", cohort.clone()).set("/spec/preemption", reclaims);
    team.queue_as(owner).await?;
    let other = team.named("other");
    let none: &[(&str, &str)] = &[("cpu", "0"), ("memory", "1Ti")];
    let borrower = cluster_queue(&other, &[(team.name(), none)]).set("/spec/cohortName", cohort);
    world.apply(&[borrower, local_queue(team.name(), "other", &other)]).await?;
    let middle = of_priority(&team, long("middle", "1"), 100).await?;
    let top = of_priority(&team, long("top", "1"), 200).await?;
    team.submit(&long("low", "1").queue("other").stop_after("6s")).await?;
    team.jobs()?.until("low", "is active", is_active).await?;
    team.submit(&middle).await?;
    waits(&team, "middle", "WaitingForPreemptedWorkloads").await?;
    team.submit(&top).await?;
    team.workload_of("top").await?;
    let low = now(&team, "low").await?;
    ensure!(reserved(&low), "top came too late to overtake: {}", low["status"]);
    team.until_workload_of("middle", "is admitted", admitted).await?;
    ensure!(!admitted(&now(&team, "top").await?), "the quota is in use");
    Ok(())
}

async fn kq_042_quota_that_is_freed_or_raised_wakes(world: &World) -> Result<()> {
    let team = world.team("kq-042-quota").await?;
    team.queue(&[("cpu", "2")]).await?;
    team.submit(&long("runs", "2")).await?;
    team.jobs()?.until("runs", "is active", is_active).await?;
    team.submit(&long("next", "2")).await?;
    waits(&team, "next", "WaitingForQuota").await?;
    let end = json!({"spec": {"activeDeadlineSeconds": 1}});
    world.patch(&At::job(team.name(), "runs"), &end).await?;
    team.until_workload_of("next", "is admitted", admitted).await?;
    team.submit(&long("large", "3")).await?;
    waits(&team, "large", "ExceedsMaxQuota").await?;
    world.apply(&[cpus(&team, "5")]).await?;
    team.until_workload_of("large", "is admitted", admitted).await?;
    Ok(())
}

async fn kq_042_a_namespace_that_is_selected_wakes(world: &World) -> Result<()> {
    let team = world.team("kq-042-namespace").await?;
    let selector = json!({"matchLabels": {"example.com/team": team.name()}});
    team.queue_as(cpus(&team, "4").set("/spec/namespaceSelector", selector)).await?;
    team.submit(&long("waits", "1")).await?;
    waits(&team, "waits", "Misconfigured").await?;
    let labels = json!({"metadata": {"labels": {"example.com/team": team.name()}}});
    world.patch(&At::new("v1", "namespaces", "", team.name()), &labels).await?;
    team.until_workload_of("waits", "is admitted", admitted).await?;
    Ok(())
}

async fn kq_042_a_check_that_becomes_active_wakes(world: &World) -> Result<()> {
    let team = world.team("kq-042-check").await?;
    let check = admission_check(team.name(), "example.com/manual");
    world.create(&check).await?;
    let (at, name) = (check.at()?, team.name());
    let active = async |status: &str| -> Result<()> {
        let condition = json!({"type": "Active", "status": status, "reason": "Said", "message": "",
            "lastTransitionTime": "2026-12-01T08:00:00Z"});
        world.patch_status(&at, &json!({"conditions": [condition]})).await?;
        Ok(())
    };
    active("True").await?;
    let checks = json!({"admissionChecks": [{"name": name}]});
    team.queue_as(cpus(&team, "4").set("/spec/admissionChecksStrategy", checks)).await?;
    active("False").await?;
    world.condition(&team.cluster_queue(), ("Active", "False", "AdmissionCheckInactive")).await?;
    team.submit(&long("waits", "1")).await?;
    waits(&team, "waits", "Suspended").await?;
    active("True").await?;
    team.until_workload_of("waits", "reserves quota", reserved).await?;
    Ok(())
}

async fn kq_042_a_new_node_wakes(world: &World) -> Result<()> {
    let team = world.team("kq-042-node").await?;
    let host = "kubernetes.io/hostname";
    let flavor = resource_flavor(team.name())
        .set("/spec/nodeLabels/example.com~1team", json!(team.name()))
        .set("/spec/tolerations", json!([{"key": "example.com/team", "operator": "Exists"}]))
        .set("/spec/topologyName", json!(team.name()));
    let queues = [cpus(&team, "4"), local_queue(team.name(), "main", team.name())];
    world.apply(&[topology(team.name(), &[host]), flavor]).await?;
    world.apply(&queues).await?;
    world.condition(&team.cluster_queue(), ("Active", "True", "Ready")).await?;
    let placed = ("kueue.x-k8s.io/podset-required-topology", json!(host));
    team.submit(&long("waits", "2").set("/spec/template/metadata/annotations", placed.0, placed.1)).await?;
    let parked = |workload: &Value| has(workload, "QuotaReserved", "False");
    team.until_workload_of("waits", "does not fit", parked).await?;
    let node = NodeSpec::new(&team.named("new"), "2", "64Gi").label("example.com/team", team.name()).taint(
        "example.com/team",
        team.name(),
        "NoSchedule",
    );
    world.cluster()?.add_node(&node).await?;
    team.until_workload_of("waits", "is admitted", admitted).await?;
    Ok(())
}

/// How many Jobs are alike in row 44.
const ALIKE: u32 = 20;

async fn kq_044_equal_workloads_are_one_class(world: &World) -> Result<()> {
    let team = world.team("kq-044").await?;
    team.queue(&[("cpu", "1")]).await?;
    let names: Vec<String> = (0..ALIKE).map(|number| format!("alike-{number}")).collect();
    for name in &names {
        team.submit(&JobSpec::new(name).cpu("2")).await?;
    }
    let line = |family: &str, count: u32| {
        let labels =
            format!("cluster_queue=\"{}\",status=\"inadmissible\",replica_role=\"leader\"", team.name());
        format!("{family}{{{labels}}} {count}")
    };
    let (pending, classes) = ("kueue_pending_workloads", "kueue_pending_scheduling_hashes");
    scraped(world, team.name(), &[line(pending, ALIKE), line(classes, 1)]).await?;
    team.submit(&JobSpec::new("other").cpu("3")).await?;
    scraped(world, team.name(), &[line(pending, ALIKE.saturating_add(1)), line(classes, 2)]).await?;
    world.apply(&[cpus(&team, "64")]).await?;
    for name in &names {
        team.until_workload_of(name, "is admitted", admitted).await?;
    }
    Ok(())
}

async fn kq_048_a_stopped_queue_still_lends(world: &World) -> Result<()> {
    let team = world.team("kq-048").await?;
    let lender = cluster_queue(&team.named("lender"), &[(team.name(), &[("cpu", "4"), ("memory", "1Ti")])])
        .set("/spec/cohortName", json!(team.name()))
        .set("/spec/stopPolicy", json!("Hold"));
    world.apply(&[resource_flavor(team.name()), lender.clone()]).await?;
    world.condition(&lender.at()?, ("Active", "False", "Stopped")).await?;
    team.queue_as(cpus(&team, "0").set("/spec/cohortName", json!(team.name()))).await?;
    team.submit(&long("borrows", "3")).await?;
    team.until_workload_of("borrows", "is admitted", admitted).await?;
    Ok(())
}

async fn kq_050_the_condition_says_why_it_waits(world: &World) -> Result<()> {
    let team = world.team("kq-050").await?;
    let taint = json!([{"key": "example.com/pool", "value": "a", "effect": "NoSchedule"}]);
    let flavor = resource_flavor(team.name()).set("/spec/nodeTaints", taint);
    world.apply(&[flavor, cpus(&team, "4"), local_queue(team.name(), "main", team.name())]).await?;
    world.condition(&team.local_queue(), ("Active", "True", "Ready")).await?;
    let tolerating = |job: JobSpec, value: &str| {
        let toleration = json!([{"key": "example.com/pool", "value": value, "effect": "NoSchedule"}]);
        job.set("/spec/template/spec", "tolerations", toleration)
    };
    team.submit(&tolerating(long("wrong", "1"), "b")).await?;
    waits(&team, "wrong", "NoMatchingFlavor").await?;
    team.submit(&tolerating(long("large", "5"), "a")).await?;
    waits(&team, "large", "ExceedsMaxQuota").await?;
    team.submit(&tolerating(long("runs", "4"), "a")).await?;
    team.until_workload_of("runs", "is admitted", admitted).await?;
    team.submit(&tolerating(long("late", "1"), "a")).await?;
    waits(&team, "late", "WaitingForQuota").await?;
    Ok(())
}
