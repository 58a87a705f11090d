//! What the hub's API server itself refuses and changes: entry policies, schemas, transition rules.

use anyhow::{Context, Result, ensure};
use fairlead_multicluster::{
    fleet::{Fleet, Tenant, apply_all, create_namespace},
    work::{JobSpec, Jobs, Queue, until_workload},
};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

const WORKLOADS: &str = "/apis/kueue.x-k8s.io/v1beta2/namespaces";

pub(crate) async fn entry_policies_suspend_and_mark(fleet: &Fleet) -> Result<()> {
    let namespace = "entry";
    fleet.tenant(&Tenant::new(namespace)).await?;
    Queue::new(namespace).quota("cpu", "0").apply(fleet).await?;
    let jobs = Jobs::on_hub(fleet, namespace)?;
    let plain = jobs.create(&JobSpec::new("plain")).await?.spec.context("spec")?;
    ensure!(
        plain.suspend != Some(true) && plain.managed_by.is_none(),
        "a Job without the label is left alone"
    );
    let queued = jobs.create(&JobSpec::new("queued").queue("main")).await?.spec.context("spec")?;
    ensure!(queued.suspend == Some(true), "a queued Job starts suspended");
    ensure!(queued.managed_by.as_deref() == Some("fairlead.dev/dispatch"), "{:?}", queued.managed_by);
    let start = Patch::Merge(json!({"spec": {"suspend": false}}));
    // An administrator may do anything; a user may not start a queued Job.
    let user = fleet.hub_cluster()?.access_for_user("entry-user", None)?;
    let grant = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "entry-user", "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"kind": "User", "name": "entry-user"}],
    });
    apply_all(fleet.hub_cluster()?, &[grant]).await?;
    let as_user: kube::Api<k8s_openapi::api::batch::v1::Job> =
        kube::Api::namespaced(user.client().await?, namespace);
    let refused = as_user.patch("queued", &PatchParams::default(), &start).await;
    ensure!(refused.is_err(), "a user started a queued Job");
    Ok(())
}

pub(crate) async fn malformed_quantity_is_rejected_at_apply(fleet: &Fleet) -> Result<()> {
    let namespace = "malformed";
    create_namespace(fleet.hub_cluster()?, namespace).await?;
    let refused =
        apply_all(fleet.hub_cluster()?, &Queue::new(namespace).quota("cpu", "12 cores").objects()).await;
    let message = refused.err().context("a quota of \"12 cores\" was accepted")?.to_string();
    ensure!(message.contains("nominalQuota"), "{message}");
    let jobs = Jobs::on_hub(fleet, namespace)?;
    let refused = jobs.create(&JobSpec::new("malformed").queue("main").cpu("1,5")).await;
    ensure!(refused.is_err(), "a request of \"1,5\" CPU was accepted");
    Ok(())
}

pub(crate) async fn placements_cannot_be_lost_or_turned_back(fleet: &Fleet) -> Result<()> {
    let namespace = "transitions";
    fleet.tenant(&Tenant::new(namespace)).await?;
    Queue::new(namespace).apply(fleet).await?;
    let jobs = Jobs::on_hub(fleet, namespace)?;
    jobs.create(&JobSpec::new("long").queue("main").run_for("1h")).await?;
    jobs.until("long", "is active", fairlead_multicluster::work::is_active).await?;
    let placed = |workload: &Value| workload.pointer("/status/placements/0").is_some();
    let workload = until_workload(
        fleet,
        (namespace, "long"),
        "has a placement",
        fairlead_multicluster::work::BOUND,
        placed,
    )
    .await?;
    let name = workload.pointer("/metadata/name").and_then(Value::as_str).context("name")?;
    let path = format!("{WORKLOADS}/{namespace}/workloads/{name}/status");
    let placement = workload.pointer("/status/placements/0").context("placement")?;
    let mut fallen = placement.clone();
    fallen["epoch"]["term"] = json!(0);
    for (what, patch) in [
        ("a null patch", json!({"status": {"placements": null}})),
        ("an empty list", json!({"status": {"placements": []}})),
        ("a fallen term", json!({"status": {"placements": [fallen]}})),
    ] {
        let request = http::Request::patch(&path)
            .header("content-type", "application/merge-patch+json")
            .body(serde_json::to_vec(&patch)?)?;
        let answer = fleet.hub_client()?.request::<Value>(request).await;
        ensure!(answer.is_err(), "{what} was accepted");
    }
    let mut without = workload.clone();
    without["status"].as_object_mut().context("status")?.remove("placements");
    let request = http::Request::put(&path)
        .header("content-type", "application/json")
        .body(serde_json::to_vec(&without)?)?;
    ensure!(
        fleet.hub_client()?.request::<Value>(request).await.is_err(),
        "a PUT without placements was accepted"
    );
    jobs.delete("long").await
}

pub(crate) async fn old_version_is_refused_with_a_hint(fleet: &Fleet) -> Result<()> {
    let old = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ResourceFlavor",
        "metadata": {"name": "old-version"}, "spec": {},
    });
    let refused =
        apply_all(fleet.hub_cluster()?, &[old]).await.err().context("v1beta1 was accepted")?.to_string();
    ensure!(refused.contains("kubectl fairlead convert"), "{refused}");
    Ok(())
}
