//! How an ordinary Job gets into its queue, and how it is kept there.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use fairlead_multicluster::{rig::Cluster, wait};
use http::Method;
use kube::Client;
use serde_json::{Value, json};

use crate::{BOUND, refused, send};

const OURS: &str = "fairlead.dev/dispatch";
const ALIAS: &str = "kueue.x-k8s.io/multikueue";
const BUILTIN: &str = "kubernetes.io/job-controller";
const QUEUE: &str = "kueue.x-k8s.io/queue-name";
const UNQUEUED: &str = "only the hub may unsuspend";
const MOVED: &str = "can be changed only while the Job is suspended";

pub(crate) async fn check(cluster: &Cluster) -> Result<()> {
    let admin = cluster.client();
    for (namespace, name, federated) in [
        ("team-a", "fed", true),
        ("team-a", "home", false),
        ("team-b", "default", true),
        // Another federated queue, so that picking the wrong parameter would show.
        ("team-b", "other", true),
    ] {
        local_queue(&admin, namespace, name, federated).await?;
    }
    wait::until_true("the policies are obeyed", BOUND, async || {
        let queued = dry_run(&admin, "team-a", &job("probe", Some("fed"), &json!({}))).await?;
        let defaulted = dry_run(&admin, "team-b", &job("probe", None, &json!({}))).await?;
        Ok(seen(&queued) == (true, OURS, "fed") && seen(&defaulted) == (true, OURS, "default"))
    })
    .await?;
    at_creation(&admin).await?;
    owners(&admin).await?;
    default_queue(&admin).await?;
    afterwards(cluster).await
}

async fn local_queue(client: &Client, namespace: &str, name: &str, federated: bool) -> Result<()> {
    let mut queue = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue",
        "metadata": {"name": name, "labels": {}}, "spec": {"clusterQueue": "cq"},
    });
    if federated {
        queue["metadata"]["labels"][OURS] = json!("true");
    }
    let path = format!("/apis/kueue.x-k8s.io/v1beta2/namespaces/{namespace}/localqueues");
    send(client, Method::POST, &path, &queue).await?;
    Ok(())
}

fn job(name: &str, queue: Option<&str>, spec: &Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": {}},
        "spec": spec,
    });
    if let Some(queue) = queue {
        job["metadata"]["labels"][QUEUE] = json!(queue);
    }
    job["spec"]["template"] =
        json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "any"}]}});
    job
}

fn path(namespace: &str) -> String {
    format!("/apis/batch/v1/namespaces/{namespace}/jobs")
}

async fn dry_run(client: &Client, namespace: &str, job: &Value) -> Result<Value> {
    send(client, Method::POST, &format!("{}?dryRun=All", path(namespace)), job).await
}

/// What the policies decide of a Job: suspend, managedBy, queue; texts are empty when absent.
fn seen(job: &Value) -> (bool, &str, &str) {
    (
        job.pointer("/spec/suspend").and_then(Value::as_bool).unwrap_or(false),
        job.pointer("/spec/managedBy").and_then(Value::as_str).unwrap_or_default(),
        job.pointer("/metadata/labels")
            .and_then(|labels| labels.get(QUEUE))
            .and_then(Value::as_str)
            .unwrap_or_default(),
    )
}

async fn at_creation(client: &Client) -> Result<()> {
    for (queue, spec, want) in [
        (Some("fed"), json!({}), (true, OURS, "fed")),
        (Some("fed"), json!({"suspend": false}), (true, OURS, "fed")),
        (Some("fed"), json!({"managedBy": BUILTIN}), (true, OURS, "fed")),
        (Some("fed"), json!({"managedBy": ALIAS}), (true, ALIAS, "fed")),
        (Some("home"), json!({}), (true, "", "home")),
        (Some("home"), json!({"managedBy": "example.com/x"}), (true, "example.com/x", "home")),
        (Some("missing"), json!({}), (true, "", "missing")),
        (None, json!({}), (false, "", "")),
    ] {
        let stored = dry_run(client, "team-a", &job("j", queue, &spec)).await?;
        ensure!(seen(&stored) == want, "{queue:?} {spec}: {:?}", seen(&stored));
    }
    let foreign = job("j", Some("fed"), &json!({"managedBy": "example.com/x"}));
    refused(
        "a third controller",
        dry_run(client, "team-a", &foreign).await,
        "spec.managedBy must be absent or",
    )
}

async fn owners(client: &Client) -> Result<()> {
    let owned = |kind: &str, version: &str, controller: bool| {
        let mut job = job("j", Some("fed"), &json!({}));
        job["metadata"]["ownerReferences"] = json!([
            {"apiVersion": version, "kind": kind, "name": "o", "uid": "u", "controller": controller},
        ]);
        job
    };
    for (what, job, suspended) in [
        ("a JobSet's", owned("JobSet", "jobset.x-k8s.io/v1alpha2", true), false),
        ("a CronJob's", owned("CronJob", "batch/v1", true), true),
        ("one with an owner that is no job that is queued", owned("CronJob", "example.com/v1", true), true),
        ("one with an owner that is no controller", owned("JobSet", "jobset.x-k8s.io/v1alpha2", false), true),
    ] {
        let stored = dry_run(client, "team-a", &job).await?;
        ensure!(seen(&stored).0 == suspended, "{what}: {:?}", seen(&stored));
    }
    Ok(())
}

async fn default_queue(client: &Client) -> Result<()> {
    let mut copy = job("j", None, &json!({}));
    copy["metadata"]["labels"] = json!({"fairlead.dev/run": "r"});
    let stored = dry_run(client, "team-b", &copy).await?;
    ensure!(seen(&stored) == (false, "", ""), "a copy: {:?}", seen(&stored));
    let alias = dry_run(client, "team-b", &job("j", None, &json!({"managedBy": ALIAS}))).await?;
    ensure!(seen(&alias) == (true, ALIAS, "default"), "{:?}", seen(&alias));
    let foreign = job("j", None, &json!({"managedBy": "example.com/x"}));
    refused(
        "a third controller",
        dry_run(client, "team-b", &foreign).await,
        "spec.managedBy must be absent or",
    )?;
    let queue = "/apis/kueue.x-k8s.io/v1beta2/namespaces/team-b/localqueues/default";
    send(client, Method::PATCH, queue, &json!({"metadata": {"labels": {OURS: null}}})).await?;
    wait::until_true("the default queue is a home queue", BOUND, async || {
        let stored = dry_run(client, "team-b", &job("j", None, &json!({}))).await?;
        Ok(seen(&stored) == (true, "", "default"))
    })
    .await
}

/// What becomes of a Job once it is there: by a user with every right on Jobs, by the hub, by an administrator.
async fn afterwards(cluster: &Cluster) -> Result<()> {
    let admin = cluster.client();
    for object in grant() {
        cluster.apply(&serde_json::to_string(&object)?).await?;
    }
    let alice = cluster.access_for_user("alice", None)?.client().await?;
    let hub = cluster
        .access_for_service_account("fairlead-system", "fairlead-hub", Duration::from_mins(10))
        .await?
        .client()
        .await?;
    send(&admin, Method::POST, &path("team-a"), &job("queued", Some("home"), &json!({}))).await?;
    let plain = job("plain", None, &json!({"suspend": true}));
    send(&admin, Method::POST, &path("team-a"), &plain).await?;
    let suspend = |flag: bool| json!({"spec": {"suspend": flag}});
    let label = |queue: Option<&str>| json!({"metadata": {"labels": {QUEUE: queue}}});
    let as_alice = |name: &'static str, body: Value| change(&alice, name, body);

    refused("alice starts a queued Job", as_alice("queued", suspend(false)).await, UNQUEUED)?;
    as_alice("queued", json!({"metadata": {"annotations": {"a": "b"}}}))
        .await
        .context("she may annotate it")?;
    as_alice("queued", label(Some("fed"))).await.context("she may move it while it waits")?;
    as_alice("queued", label(Some("home"))).await.context("and back")?;
    change(&hub, "queued", suspend(false)).await.context("the hub starts it")?;
    refused("alice moves a running Job", as_alice("queued", label(Some("fed"))).await, MOVED)?;
    refused("alice takes it out of its queue", as_alice("queued", label(None)).await, MOVED)?;
    as_alice("queued", suspend(true)).await.context("she may suspend it")?;
    change(&admin, "queued", suspend(false)).await.context("an administrator may start it by hand")?;

    as_alice("plain", suspend(false)).await.context("alice starts a Job without a queue")?;
    refused("alice puts a running Job into a queue", as_alice("plain", label(Some("fed"))).await, MOVED)
}

async fn change(client: &Client, name: &str, body: Value) -> Result<Value> {
    send(client, Method::PATCH, &format!("{}/{name}", path("team-a")), &body).await
}

/// Every right on Jobs in team-a, for alice.
fn grant() -> [Value; 2] {
    let group = "rbac.authorization.k8s.io";
    let head = |kind: &str| json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": "alice", "namespace": "team-a"}});
    let mut role = head("Role");
    role["rules"] = json!([{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["*"]}]);
    let mut binding = head("RoleBinding");
    binding["roleRef"] = json!({"apiGroup": group, "kind": "Role", "name": "alice"});
    binding["subjects"] = json!([{"apiGroup": group, "kind": "User", "name": "alice"}]);
    [role, binding]
}
