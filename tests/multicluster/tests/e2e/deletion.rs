//! Deletion: of a Job on the hub, with and without the link, with and without the hub.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use fairlead_multicluster::{
    audit::Verb,
    fleet::{Fleet, Tenant},
    proxy::Cut,
    wait,
    work::{
        BOUND, JobSpec, Jobs, Queue, copy_writes, has_condition, is_active, placed, until_workload,
        workload_of,
    },
};
use serde_json::Value;

/// The bound of issue 3 is 2 s; tests fail at five times a bound, and print the figure.
const DELETED_WITHIN: Duration = Duration::from_secs(10);

pub(crate) async fn copy_is_deleted_within_two_seconds(fleet: &Fleet) -> Result<()> {
    let (jobs, copies, _) = running(fleet, "deleted").await?;
    let begin = Instant::now();
    jobs.delete("long").await?;
    copy_goes(&copies, DELETED_WITHIN).await?;
    println!("  the copy has a deletion timestamp after {:.2} s (aim 2 s)", begin.elapsed().as_secs_f32());
    nothing_is_left(fleet, "deleted", &copies).await
}

pub(crate) async fn deleted_while_the_link_is_down(fleet: &Fleet) -> Result<()> {
    let (jobs, copies, spoke) = running(fleet, "deleted-cut").await?;
    let link = fleet.spoke(&spoke)?.link().cut_until_dropped(Cut::BlackHole);
    jobs.delete("long").await?;
    jobs.gone("long", BOUND).await?;
    let deleting = |workload: &Value| workload.pointer("/metadata/deletionTimestamp").is_some();
    until_workload(fleet, ("deleted-cut", "long"), "is kept by its finalizer", BOUND, deleting).await?;
    ensure!(copies.get("long").await?.is_some(), "nobody could have told the spoke");
    drop(link);
    copy_goes(&copies, BOUND).await?;
    nothing_is_left(fleet, "deleted-cut", &copies).await
}

pub(crate) async fn deleted_while_hub_and_link_are_down(fleet: &Fleet) -> Result<()> {
    let (jobs, copies, spoke) = running(fleet, "deleted-down").await?;
    let link = fleet.spoke(&spoke)?.link().cut_until_dropped(Cut::BlackHole);
    fleet.hub().kill()?;
    jobs.delete("long").await?;
    fleet.restart_hub(&[]).await?;
    ensure!(copies.get("long").await?.is_some(), "absence on the hub is never an order to delete");
    drop(link);
    copy_goes(&copies, BOUND).await?;
    nothing_is_left(fleet, "deleted-down", &copies).await
}

/// `kubectl replace --force`: a new Job of the same name, at once.
pub(crate) async fn replaced_job_starts_after_the_old_one_stopped(fleet: &Fleet) -> Result<()> {
    let namespace = "replaced";
    fleet.tenant(&Tenant::new(namespace)).await?;
    Queue::new(namespace).apply(fleet).await?;
    let jobs = Jobs::on_hub(fleet, namespace)?;
    jobs.create(&JobSpec::new("train").queue("main").run_for("1h").stop_after("3s")).await?;
    jobs.until("train", "is active", is_active).await?;
    let spoke = placed(fleet, namespace, "train").await?;
    let old = Jobs::on_spoke(fleet, &spoke, namespace)?.get("train").await?.context("the old copy")?;
    let replacement = JobSpec::new("train").queue("main").object().to_string();
    let hub = fleet.hub_cluster()?;
    hub.kubectl_as(hub.admin(), &["replace", "--force", "-n", namespace, "-f", "-"], &replacement).await?;
    jobs.complete("train").await?;
    let old = old.metadata.uid.context("its UID")?;
    let writes = copy_writes(fleet, namespace)?;
    let ended = writes
        .iter()
        .find(|write| write.uid == old && write.gone)
        .context("the old copy was never removed")?;
    let created =
        writes.iter().find(|write| write.uid != old && write.verb == Verb::Create).context("no new copy")?;
    let (created, ended) = (created.received, ended.received);
    ensure!(created >= ended, "the new copy was created at {created}, the old one was gone at {ended}");
    Ok(())
}

/// A namespace with a Job `long` that runs on some spoke: (the hub's Jobs, the spoke's Jobs, the spoke).
async fn running(fleet: &Fleet, namespace: &str) -> Result<(Jobs, Jobs, String)> {
    fleet.tenant(&Tenant::new(namespace)).await?;
    Queue::new(namespace).apply(fleet).await?;
    let jobs = Jobs::on_hub(fleet, namespace)?;
    jobs.create(&JobSpec::new("long").queue("main").run_for("1h")).await?;
    jobs.until("long", "is active", is_active).await?;
    let spoke = placed(fleet, namespace, "long").await?;
    let copies = Jobs::on_spoke(fleet, &spoke, namespace)?;
    Ok((jobs, copies, spoke))
}

/// Waits until the copy is being deleted, or gone.
async fn copy_goes(copies: &Jobs, bound: Duration) -> Result<()> {
    wait::until_true("the copy is being deleted", bound, async || {
        Ok(copies.get("long").await?.is_none_or(|copy| copy.metadata.deletion_timestamp.is_some()))
    })
    .await
}

/// The copy, the Job, the Workload and its quota go; the queue takes the next Job.
async fn nothing_is_left(fleet: &Fleet, namespace: &str, copies: &Jobs) -> Result<()> {
    copies.gone("long", BOUND).await?;
    wait::until_true("the Workload is gone", BOUND, async || {
        Ok(workload_of(fleet, namespace, "long").await?.is_none())
    })
    .await?;
    let jobs = Jobs::on_hub(fleet, namespace)?;
    jobs.gone("long", BOUND).await?;
    jobs.create(&JobSpec::new("next").queue("main")).await?;
    let next = jobs.complete("next").await?;
    ensure!(has_condition(&next, "Complete"));
    Ok(())
}
