//! The main job: ordinary Jobs, submitted to one hub, run on the right one of three clusters.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use fairlead_multicluster::{
    audit::writes_of,
    fleet::{Fleet, Tenant},
    work::{BOUND, JobSpec, Jobs, Queue, copies_created, has_condition, spokes_with},
};
use serde_json::{Value, json};

pub(crate) async fn sample_job_completes_on_one_spoke(fleet: &Fleet) -> Result<()> {
    let namespace = "sample";
    fleet.tenant(&Tenant::new(namespace)).await?;
    Queue::new(namespace).apply(fleet).await?;
    let jobs = Jobs::on_hub(fleet, namespace)?;
    jobs.create(&JobSpec::sample("sample").queue("main")).await?;
    let job = jobs.complete("sample").await?;
    let status = job.status.context("status")?;
    ensure!(status.succeeded == Some(3), "{status:?}");
    ensure!(status.start_time.is_some() && status.completion_time.is_some(), "{status:?}");
    ensure!(job.spec.and_then(|spec| spec.suspend) == Some(false), "it was admitted, so it is not suspended");
    let spokes = spokes_with(fleet, namespace, "sample").await?;
    ensure!(spokes.len() == 1, "it is on {spokes:?}");
    let copy = Jobs::on_spoke(fleet, &spokes[0], namespace)?.get("sample").await?.context("the copy")?;
    let kueue_keys = |keys: Option<BTreeMap<String, String>>| {
        keys.unwrap_or_default().into_keys().any(|key| key.starts_with("kueue.x-k8s.io/"))
    };
    ensure!(!kueue_keys(copy.metadata.labels) && !kueue_keys(copy.metadata.annotations));
    Ok(())
}

pub(crate) async fn sixty_jobs_over_two_queues_and_three_clusters(fleet: &Fleet) -> Result<()> {
    let namespaces = ["sixty-a", "sixty-b"];
    for namespace in namespaces {
        fleet.tenant(&Tenant::new(namespace)).await?;
        Queue::new(namespace).quota("cpu", "24").quota("nvidia.com/gpu", "12").apply(fleet).await?;
    }
    for n in 0..60_u32 {
        let job = JobSpec::new(&format!("job-{n}"))
            .queue("main")
            .pods(1 + n % 3)
            .cpu(["1", "2", "500m"][n as usize % 3]);
        let job = if n % 3 == 0 { job.gpus(1 + n % 2) } else { job };
        let job = if n % 5 == 0 { job.run_for("1s") } else { job };
        Jobs::on_hub(fleet, namespaces[n as usize % 2])?.create(&job).await?;
    }
    for n in 0..60_usize {
        Jobs::on_hub(fleet, namespaces[n % 2])?.complete(&format!("job-{n}")).await?;
    }
    for namespace in namespaces {
        let created = creates_by_spoke(fleet, namespace)?;
        ensure!(created.len() == 30, "{} of 30 Jobs of {namespace} were created on spokes", created.len());
        for (name, spokes) in created {
            ensure!(spokes.len() == 1, "{namespace}/{name} was created on {spokes:?}");
        }
        quota_was_never_exceeded(fleet, namespace, &[("cpu", 24_000), ("nvidia.com/gpu", 12)])?;
    }
    Ok(())
}

pub(crate) async fn failed_job_is_mirrored(fleet: &Fleet) -> Result<()> {
    let namespace = "failing";
    fleet.tenant(&Tenant::new(namespace)).await?;
    Queue::new(namespace).apply(fleet).await?;
    let jobs = Jobs::on_hub(fleet, namespace)?;
    jobs.create(&JobSpec::new("fails").queue("main").fails()).await?;
    let job = jobs.until("fails", "has failed", |job| has_condition(job, "Failed")).await?;
    ensure!(job.status.and_then(|status| status.failed) == Some(1));
    Ok(())
}

/// Queue and Job in one apply: the entry policies did not know yet that the queue is federated.
pub(crate) async fn job_older_than_its_federation_runs_on_a_spoke(fleet: &Fleet) -> Result<()> {
    let namespace = "older";
    fleet.tenant(&Tenant::new(namespace)).await?;
    let jobs = Jobs::on_hub(fleet, namespace)?;
    let created = jobs.create(&JobSpec::new("older").queue("main")).await?;
    ensure!(created.spec.and_then(|spec| spec.managed_by).is_none(), "there was no queue to know from");
    Queue::new(namespace).apply(fleet).await?;
    let job = jobs.complete("older").await?;
    ensure!(job.spec.and_then(|spec| spec.suspend) == Some(true), "the hub's own controller must not run it");
    ensure!(spokes_with(fleet, namespace, "older").await?.len() == 1);
    jobs.event("older", "ManagedByMissing", BOUND).await?;
    Ok(())
}

/// Job name → the spokes on which a Job of this name was created in the namespace, one entry a creation.
fn creates_by_spoke(fleet: &Fleet, namespace: &str) -> Result<BTreeMap<String, Vec<String>>> {
    let mut created: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for write in copies_created(fleet, namespace)? {
        created.entry(write.name).or_default().push(write.spoke);
    }
    Ok(created)
}

/// Replays every state that a Workload of the namespace reached, in the order of the hub's store, and adds up what is
/// reserved at each instant. Quota is given back when the Workload is finished or gone.
fn quota_was_never_exceeded(fleet: &Fleet, namespace: &str, quota: &[(&str, i64)]) -> Result<()> {
    let mut log = fleet.hub_cluster()?.audit_log()?;
    log.refresh()?;
    let mut reserved: BTreeMap<String, Value> = BTreeMap::new();
    let mut peak: BTreeMap<&str, i64> = BTreeMap::new();
    for write in writes_of(log.events(), "workloads").into_iter().filter(|write| write.namespace == namespace)
    {
        let usage = write.object.pointer("/status/admission/podSetAssignments").cloned();
        match usage.filter(|_| !write.gone && !finished(write.object)) {
            Some(usage) => reserved.insert(write.name.to_owned(), usage),
            None => reserved.remove(write.name),
        };
        for (resource, limit) in quota {
            let sum: i64 = reserved.values().map(|usage| sum_of(usage, resource)).sum();
            ensure!(
                sum <= *limit,
                "{namespace} held {sum} of {resource} at {:?}, {limit} are allowed",
                write.at
            );
            let highest = peak.entry(resource).or_default();
            *highest = sum.max(*highest);
        }
    }
    ensure!(
        peak.values().all(|highest| *highest > 0),
        "nothing was reserved: the replay saw no admission ({peak:?})"
    );
    Ok(())
}

fn finished(workload: &Value) -> bool {
    let conditions = workload.pointer("/status/conditions").and_then(Value::as_array);
    conditions.is_some_and(|list| {
        list.iter()
            .any(|condition| condition["type"] == json!("Finished") && condition["status"] == json!("True"))
    })
}

/// The usage of one resource over all pod sets, in its smallest unit.
fn sum_of(assignments: &Value, resource: &str) -> i64 {
    let quantity = |set: &Value| {
        let usage = set["resourceUsage"].get(resource)?.clone();
        serde_json::from_value::<fairlead_api::Quantity>(usage).ok()?.parse(resource).ok()
    };
    assignments.as_array().into_iter().flatten().filter_map(quantity).sum()
}
