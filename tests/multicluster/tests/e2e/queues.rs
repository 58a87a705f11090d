//! Queues: home queues, and what statuses say.

use anyhow::{Context, Result, ensure};
use fairlead_multicluster::{
    fleet::{Fleet, Tenant, create_namespace},
    wait,
    work::{BOUND, JobSpec, Jobs, Queue, spokes_with},
};
use serde_json::{Value, json};

pub(crate) async fn home_queue_runs_in_place(fleet: &Fleet) -> Result<()> {
    let namespace = "home";
    create_namespace(fleet.hub_cluster()?, namespace).await?;
    let flavor = json!({"nodeLabels": {"kubernetes.io/os": "linux"}});
    Queue::new(namespace).home().flavor(flavor).apply(fleet).await?;
    let jobs = Jobs::on_hub(fleet, namespace)?;
    let created = jobs.create(&JobSpec::sample("local").queue("main")).await?;
    let spec = created.spec.context("spec")?;
    ensure!(
        spec.suspend == Some(true) && spec.managed_by.is_none(),
        "suspended at entry, run by the built-in controller"
    );
    let job = jobs.complete("local").await?;
    let pod = job.spec.context("spec")?.template.spec.context("pod")?;
    ensure!(
        pod.node_selector.is_some_and(|labels| labels.contains_key("kubernetes.io/os")),
        "the flavor's node labels"
    );
    ensure!(job.status.and_then(|status| status.succeeded) == Some(3));
    ensure!(spokes_with(fleet, namespace, "local").await?.is_empty());
    Ok(())
}

pub(crate) async fn statuses_count_what_waits_and_runs(fleet: &Fleet) -> Result<()> {
    let namespace = "counted";
    fleet.tenant(&Tenant::new(namespace)).await?;
    Queue::new(namespace).quota("cpu", "1").apply(fleet).await?;
    let jobs = Jobs::on_hub(fleet, namespace)?;
    jobs.create(&JobSpec::new("runs").queue("main").cpu("1").run_for("20s")).await?;
    jobs.until("runs", "is active", fairlead_multicluster::work::is_active).await?;
    jobs.create(&JobSpec::new("waits").queue("main").cpu("1")).await?;
    for path in [
        format!("/apis/kueue.x-k8s.io/v1beta2/clusterqueues/{namespace}"),
        format!("/apis/kueue.x-k8s.io/v1beta2/namespaces/{namespace}/localqueues/main"),
    ] {
        let wanted = json!({"pendingWorkloads": 1, "reservingWorkloads": 1, "admittedWorkloads": 1});
        wait::until_true(&format!("{path} counts"), BOUND, async || {
            let request = http::Request::get(&path).body(Vec::new())?;
            let queue: Value = fleet.hub_client()?.request(request).await?;
            let status = &queue["status"];
            ensure!(
                wanted.as_object().into_iter().flatten().all(|(key, value)| status[key] == *value),
                "{status}"
            );
            Ok(true)
        })
        .await?;
    }
    let table = fleet.cli(&["queues", "-n", namespace]).await?;
    ensure!(table.contains("main") && table.contains(namespace), "{table}");
    jobs.delete("runs").await?;
    jobs.complete("waits").await?;
    Ok(())
}
