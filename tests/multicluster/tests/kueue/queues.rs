//! Queues, cohorts and flavors: whether they are active, what they count, how they go.

use anyhow::{Context, Result, ensure};
use fairlead_multicluster::{
    kueue::{
        Draft, World, admitted, cluster_queue, cohort, finished, local_queue, resource_flavor, topology,
    },
    scenario,
    scenario::Scenario,
    wait,
    work::{BOUND, JobSpec},
};
use serde_json::{Value, json};

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    vec![
        scenario!(kq_005_no_namespace_selector_means_none_and_an_empty_one_all).together(),
        scenario!(kq_006_a_cluster_queue_says_why_it_is_not_active).together(),
        scenario!(kq_007_a_deleted_cluster_queue_drains_first).together(),
        scenario!(kq_008_counters_and_usage).together(),
        scenario!(kq_009_a_cohort_need_not_be_created).together(),
        scenario!(kq_010_a_cohorts_own_quota_is_borrowed).together(),
        scenario!(kq_011_cohorts_within_cohorts).together(),
        scenario!(kq_012_cohorts_in_a_circle_are_inactive_until_it_is_broken).together(),
        scenario!(kq_014_local_queue_says_why_it_is_not_active).together(),
        scenario!(kq_015_unlabelled_job_goes_to_the_default_queue).together(),
        scenario!(a_flavors_labels_and_tolerations_are_on_the_pods).together(),
        scenario!(kq_017_flavor_in_use_cannot_vanish).together(),
        scenario!(waiting_right_after_apply_is_right_for_every_kind).together(),
    ]
}

async fn kq_005_no_namespace_selector_means_none_and_an_empty_one_all(world: &World) -> Result<()> {
    let team = world.team("kq-005").await?;
    let queue = cluster_queue(team.name(), &[(team.name(), &[("cpu", "4"), ("memory", "1Gi")])])
        .without("namespaceSelector");
    team.queue_as(queue).await?;
    team.submit(&JobSpec::new("nobody").cpu("1")).await?;
    team.until_workload_of("nobody", "says NamespaceMismatch", |workload| {
        workload.pointer("/status/verdict/code") == Some(&json!("NamespaceMismatch"))
    })
    .await?;
    world.patch(&team.cluster_queue(), &json!({"spec": {"namespaceSelector": {}}})).await?;
    team.until_workload_of("nobody", "is admitted", admitted).await?;
    Ok(())
}

async fn kq_006_a_cluster_queue_says_why_it_is_not_active(world: &World) -> Result<()> {
    let team = world.team("kq-006").await?;
    let at = team.cluster_queue();
    let checks = json!({"admissionChecks": [{"name": "kq-006-check"}]});
    let queue = cluster_queue(team.name(), &[(team.name(), &[("cpu", "4")])]);
    world.apply(&[queue.set("/spec/admissionChecksStrategy", checks)]).await?;
    let said = world.condition(&at, ("Active", "False", "FlavorNotFound")).await?;
    ensure!(said["status"].to_string().contains("kq-006-check"), "the message names everything: {said}");
    let flavor = resource_flavor(team.name()).set("/spec/nodeLabels", json!({"kubernetes.io/os": "linux"}));
    world.apply(&[flavor.clone().set("/spec/topologyName", json!("kq-006-racks"))]).await?;
    world.condition(&at, ("Active", "False", "AdmissionCheckNotFound")).await?;
    world.patch(&at, &json!({"spec": {"admissionChecksStrategy": null}})).await?;
    world.condition(&at, ("Active", "False", "TopologyNotFound")).await?;
    world.apply(&[topology("kq-006-racks", &["kubernetes.io/hostname"])]).await?;
    world.condition(&at, ("Active", "True", "Ready")).await?;
    world.patch(&at, &json!({"spec": {"stopPolicy": "Hold"}})).await?;
    world.condition(&at, ("Active", "False", "Stopped")).await?;
    world.patch(&at, &json!({"spec": {"stopPolicy": "None"}})).await?;
    world.condition(&at, ("Active", "True", "Ready")).await?;
    Ok(())
}

async fn kq_007_a_deleted_cluster_queue_drains_first(world: &World) -> Result<()> {
    let team = world.team("kq-007").await?;
    team.queue(&[("cpu", "4")]).await?;
    team.submit(&JobSpec::new("runs").cpu("1").run_for("8s")).await?;
    team.until_workload_of("runs", "is admitted", admitted).await?;
    world.delete(&team.cluster_queue()).await?;
    world.condition(&team.cluster_queue(), ("Active", "False", "Terminating")).await?;
    team.submit(&JobSpec::new("late").cpu("1")).await?;
    team.until_workload_of("late", "says that the queue is inactive", |workload| {
        workload.pointer("/status/verdict/code") == Some(&json!("ClusterQueueInactive"))
    })
    .await?;
    ensure!(world.get(&team.cluster_queue()).await?.is_some(), "it went before its workload");
    team.until_workload_of("runs", "is finished", finished).await?;
    world.gone(&team.cluster_queue()).await?;
    world.condition(&team.local_queue(), ("Active", "False", "ClusterQueueDoesNotExist")).await?;
    let late = team.until_workload_of("late", "still waits", |workload| !admitted(workload)).await?;
    ensure!(late["status"]["admission"].is_null(), "{late}");
    Ok(())
}

/// One admitted and one that only reserves, in a queue that borrows.
async fn kq_008_counters_and_usage(world: &World) -> Result<()> {
    let team = world.team("kq-008").await?;
    let check = fairlead_multicluster::kueue::admission_check("kq-008", "example.com/manual");
    world.create(&check).await?;
    let active = json!({"conditions": [{"type": "Active", "status": "True", "reason": "Active", "message": "",
        "lastTransitionTime": "2026-12-01T08:00:00Z"}]});
    world.patch_status(&check.at()?, &active).await?;
    let lender = cluster_queue("kq-008-lender", &[(team.name(), &[("cpu", "4"), ("memory", "1Ti")])])
        .set("/spec/cohortName", json!("kq-008"));
    let queue = cluster_queue(team.name(), &[(team.name(), &[("cpu", "4"), ("memory", "1Ti")])])
        .set("/spec/cohortName", json!("kq-008"))
        .set("/spec/admissionChecksStrategy/admissionChecks", json!([{"name": "kq-008"}]));
    world.apply(&[lender]).await?;
    team.queue_as(queue).await?;
    for name in ["one", "two"] {
        team.submit(&JobSpec::new(name).cpu("3").run_for("60s")).await?;
        team.until_workload_of(name, "reserves quota", fairlead_multicluster::kueue::reserved).await?;
    }
    let ready = json!({"admissionChecks": [{"name": "kq-008", "state": "Ready", "message": "",
        "lastTransitionTime": "2026-12-01T08:00:00Z"}]});
    world.patch_status(&team.workload_of("one").await?, &ready).await?;
    team.until_workload_of("one", "is admitted", admitted).await?;
    team.submit(&JobSpec::new("three").cpu("3")).await?;
    let cpu = |status: &Value, list: &str| {
        status[list][0]["resources"]
            .as_array()
            .and_then(|all| all.iter().find(|one| one["name"] == "cpu"))
            .cloned()
    };
    world
        .until(&team.cluster_queue(), "counts", |queue| {
            let status = &queue["status"];
            (&status["admittedWorkloads"], &status["reservingWorkloads"], &status["pendingWorkloads"])
                == (&json!(1), &json!(2), &json!(1))
                && cpu(status, "flavorsReservation")
                    == Some(json!({"name": "cpu", "total": "6", "borrowed": "2"}))
                && cpu(status, "flavorsUsage") == Some(json!({"name": "cpu", "total": "3", "borrowed": "0"}))
        })
        .await?;
    world
        .until(&team.local_queue(), "counts", |queue| {
            let status = &queue["status"];
            status["admittedWorkloads"] == 1
                && cpu(status, "flavorsReservation") == Some(json!({"name": "cpu", "total": "6"}))
        })
        .await?;
    Ok(())
}

/// Two queues of 4 cpus in a cohort; a Job of 6 in the first.
async fn borrows(world: &World, name: &str, cohort: &str, own: &str) -> Result<()> {
    let team = world.team(name).await?;
    let queue = |named: &str, quota: &str, cohort: &str| {
        cluster_queue(named, &[(team.name(), &[("cpu", quota), ("memory", "1Ti")])])
            .set("/spec/cohortName", json!(cohort))
    };
    world.apply(&[queue(&team.named("lender"), "4", name)]).await?;
    team.queue_as(queue(team.name(), own, cohort)).await?;
    team.submit(&JobSpec::new("large").cpu("5").run_for("20s")).await?;
    team.until_workload_of("large", "is admitted", admitted).await?;
    Ok(())
}

async fn kq_009_a_cohort_need_not_be_created(world: &World) -> Result<()> {
    borrows(world, "kq-009", "kq-009", "4").await
}

async fn kq_010_a_cohorts_own_quota_is_borrowed(world: &World) -> Result<()> {
    let pool = cohort("kq-010-pool", &[("kq-010", &[("cpu", "5"), ("memory", "1Ti")])]);
    world.apply(&[pool]).await?;
    borrows(world, "kq-010", "kq-010-pool", "0").await
}

async fn kq_011_cohorts_within_cohorts(world: &World) -> Result<()> {
    let below = |name: &str, parent: &str| cohort(name, &[]).set("/spec/parentName", json!(parent));
    world.apply(&[below("kq-011-leaf", "kq-011-mid"), below("kq-011-mid", "kq-011")]).await?;
    borrows(world, "kq-011", "kq-011-leaf", "2").await
}

async fn kq_012_cohorts_in_a_circle_are_inactive_until_it_is_broken(world: &World) -> Result<()> {
    let team = world.team("kq-012").await?;
    let below = |name: &str, parent: &str| cohort(name, &[]).set("/spec/parentName", json!(parent));
    let (a, b) = (below("kq-012-a", "kq-012-b"), below("kq-012-b", "kq-012-a"));
    world
        .apply(&[a, b.clone(), resource_flavor(team.name()), local_queue(team.name(), "main", team.name())])
        .await?;
    let queue = cluster_queue(team.name(), &[(team.name(), &[("cpu", "4"), ("memory", "1Ti")])]);
    world.apply(&[queue.set("/spec/cohortName", json!("kq-012-a"))]).await?;
    world.condition(&team.cluster_queue(), ("Active", "False", "CohortCycle")).await?;
    world.condition(&b.at()?, ("Active", "False", "CohortCycle")).await?;
    team.submit(&JobSpec::new("waits").cpu("1")).await?;
    team.until_workload_of("waits", "waits", |workload| {
        workload.pointer("/status/verdict/code") == Some(&json!("ClusterQueueInactive"))
    })
    .await?;
    world.patch(&b.at()?, &json!({"spec": {"parentName": null}})).await?;
    world.condition(&b.at()?, ("Active", "True", "Ready")).await?;
    team.until_workload_of("waits", "is admitted", admitted).await?;
    Ok(())
}

async fn kq_014_local_queue_says_why_it_is_not_active(world: &World) -> Result<()> {
    let team = world.team("kq-014").await?;
    let queue = local_queue(team.name(), "dangling", "kq-014-missing");
    world.apply(std::slice::from_ref(&queue)).await?;
    world.condition(&queue.at()?, ("Active", "False", "ClusterQueueDoesNotExist")).await?;
    team.queue(&[("cpu", "4")]).await?;
    world.patch(&team.cluster_queue(), &json!({"spec": {"stopPolicy": "Hold"}})).await?;
    world.condition(&team.local_queue(), ("Active", "False", "ClusterQueueIsInactive")).await?;
    world.patch(&team.cluster_queue(), &json!({"spec": {"stopPolicy": "None"}})).await?;
    world.patch(&team.local_queue(), &json!({"spec": {"stopPolicy": "Hold"}})).await?;
    world.condition(&team.local_queue(), ("Active", "False", "Stopped")).await?;
    world.patch(&team.local_queue(), &json!({"spec": {"stopPolicy": "None"}})).await?;
    world.condition(&team.local_queue(), ("Active", "True", "Ready")).await?;
    Ok(())
}

async fn kq_015_unlabelled_job_goes_to_the_default_queue(world: &World) -> Result<()> {
    let team = world.team("kq-015").await?;
    team.queue(&[("cpu", "4")]).await?;
    world.apply(&[local_queue(team.name(), "default", team.name())]).await?;
    // The policy's view of LocalQueues follows after a moment.
    let mut tries = 0..;
    let mut next_name = || format!("plain-{}", tries.next().unwrap_or(0));
    let (name, created) = wait::until("the policy knows the queue", BOUND, async || {
        let name = next_name();
        let created = team.jobs()?.create(&JobSpec::new(&name)).await?;
        if created
            .metadata
            .labels
            .as_ref()
            .is_some_and(|labels| labels.contains_key("kueue.x-k8s.io/queue-name"))
        {
            return Ok(Some((name, created)));
        }
        team.jobs()?.delete(&name).await?;
        Ok(None)
    })
    .await?;
    ensure!(created.spec.context("spec")?.suspend == Some(true));
    team.jobs()?.complete(&name).await?;
    Ok(())
}

async fn a_flavors_labels_and_tolerations_are_on_the_pods(world: &World) -> Result<()> {
    let team = world.team("flavor-pods").await?;
    let taint = json!([{"key": "pool", "value": "a", "effect": "NoSchedule"}]);
    let toleration = json!([{"key": "pool", "operator": "Equal", "value": "a", "effect": "NoSchedule"}]);
    team.queue(&[("cpu", "4")]).await?;
    let spec = json!({"spec": {
        "nodeLabels": {"kubernetes.io/os": "linux"}, "nodeTaints": taint, "tolerations": toleration,
    }});
    world.patch(&resource_flavor(team.name()).at()?, &spec).await?;
    team.submit(&JobSpec::new("runs").cpu("1").run_for("60s")).await?;
    team.until_workload_of("runs", "is admitted", admitted).await?;
    let job = fairlead_multicluster::kueue::At::job(team.name(), "runs");
    let pod = |job: &Value| job["spec"]["template"]["spec"].clone();
    world
        .until(&job, "runs with the flavor's labels and tolerations", |job| {
            job["spec"]["suspend"] == false
                && pod(job)["nodeSelector"]["kubernetes.io/os"] == "linux"
                && pod(job)["tolerations"][0]["key"] == "pool"
        })
        .await?;
    Ok(())
}

async fn kq_017_flavor_in_use_cannot_vanish(world: &World) -> Result<()> {
    let team = world.team("kq-017").await?;
    team.queue(&[("cpu", "4")]).await?;
    let flavor = resource_flavor(team.name()).at()?;
    let held = |object: &Value| object["metadata"]["finalizers"] == json!(["kueue.x-k8s.io/resource-in-use"]);
    for at in [&flavor, &team.cluster_queue()] {
        world.until(at, "has the finalizer", held).await?;
    }
    world.delete(&flavor).await?;
    world
        .until(&flavor, "is being deleted", |flavor| !flavor["metadata"]["deletionTimestamp"].is_null())
        .await?;
    team.submit(&JobSpec::new("runs").cpu("1")).await?;
    team.until_workload_of("runs", "is admitted", admitted).await?;
    ensure!(world.get(&flavor).await?.is_some(), "it went while the queue names it");
    team.until_workload_of("runs", "is finished", finished).await?;
    world.delete(&team.cluster_queue()).await?;
    world.gone(&team.cluster_queue()).await?;
    world.gone(&flavor).await
}

/// `kubectl wait` believes a condition only when it belongs to the present generation.
async fn waiting_right_after_apply_is_right_for_every_kind(world: &World) -> Result<()> {
    let team = world.team("kinds-wait").await?;
    let cluster = world.cluster()?;
    let applied = |policy: &str| -> Vec<Draft> {
        vec![
            resource_flavor(team.name()),
            cluster_queue(team.name(), &[(team.name(), &[("cpu", "4")])])
                .set("/spec/stopPolicy", json!(policy)),
            local_queue(team.name(), "main", team.name()).set("/spec/stopPolicy", json!(policy)),
            cohort(team.name(), &[]),
            fairlead_multicluster::kueue::admission_check(team.name(), "fairlead.dev/dispatch"),
        ]
    };
    for (policy, status) in [("None", "True"), ("Hold", "False"), ("None", "True")] {
        world.apply(&applied(policy)).await?;
        for (kind, status) in
            [("clusterqueue", status), ("localqueue", status), ("cohort", "True"), ("admissioncheck", "True")]
        {
            let name = if kind == "localqueue" { "main" } else { team.name() };
            let (object, condition) = (format!("{kind}/{name}"), format!("--for=condition=Active={status}"));
            cluster.kubectl(&["wait", &condition, "--timeout=30s", "-n", team.name(), &object]).await?;
        }
    }
    Ok(())
}
