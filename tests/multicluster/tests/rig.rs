//! The rig itself: real clusters start, run Jobs, are audited, and leave nothing behind.

#![expect(clippy::print_stdout, reason = "figures for whoever reads the test's output")]

use std::{
    collections::BTreeMap,
    fs,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use fairlead_multicluster::{
    audit::{Counts, Verb, writes_of},
    binaries::Part,
    process::end_all,
    procfs::ProcessId,
    rig::{Cluster, ClusterOptions, NodeSpec, Rig, RigOptions},
    wait,
};
use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{Node, Pod},
};
use kube::{
    Api,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::json;

/// Real work takes a second or two; a loaded machine more.
const BOUND: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn two_clusters_run_jobs_are_audited_and_leave_nothing() -> Result<()> {
    let rig = start().await?;
    let one = rig.cluster("one")?;
    plain_job_completes(one).await?;
    audit_counts_it(one).await?;
    durations_failures_and_stops(one).await?;
    nodes_can_be_added(rig.cluster("two")?).await?;
    identities_have_only_their_rights(one).await?;
    api_server_comes_back(rig.cluster("two")?).await?;
    let usage = rig.usage()?;
    ensure!(usage.len() == 1 + 2 * 4 && usage.values().all(|used| used.resident > 1 << 20), "{usage:?}");
    nothing_remains(rig)
}

/// What `demo --keep` and `demo down` do.
#[tokio::test(flavor = "multi_thread")]
async fn a_left_rig_runs_on_until_it_is_ended() -> Result<()> {
    let rig = Rig::start(RigOptions::default().cluster("kept", ClusterOptions::default())).await?;
    let folder = rig.folder().to_path_buf();
    let client = rig.cluster("kept")?.client();
    let pids = rig.leave();
    let nodes: Api<Node> = Api::all(client);
    nodes.list(&ListParams::default()).await.context("the API server ended with its owner")?;
    let mut ended = end_all(&pids)?;
    ended.sort();
    let parts =
        ["etcd", "kept-kube-apiserver", "kept-kube-controller-manager", "kept-kube-scheduler", "kept-kwok"];
    ensure!(ended == parts, "{ended:?}");
    ensure!(nodes.list(&ListParams::default()).await.is_err());
    fs::remove_dir_all(folder)?;
    Ok(())
}

async fn start() -> Result<Rig> {
    let node = NodeSpec::new("node-1", "8", "32Gi").gpus(4).label("pool", "gpu");
    let options = RigOptions::default()
        .cluster("one", ClusterOptions::default().audit().node(node.clone()))
        .cluster("two", ClusterOptions::default().node(node));
    let begin = Instant::now();
    let rig = Rig::start(options).await?;
    println!("rig up in {:.1} s", begin.elapsed().as_secs_f32());
    Ok(rig)
}

fn job(name: &str, annotations: &[(&str, &str)]) -> Result<Job> {
    let annotations: BTreeMap<&str, &str> = annotations.iter().copied().collect();
    Ok(serde_json::from_value(json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": {
            "metadata": {"annotations": annotations},
            "spec": {"restartPolicy": "Never", "containers": [
                {"name": "main", "image": "any", "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}},
            ]},
        }},
    }))?)
}

fn jobs(cluster: &Cluster) -> Api<Job> {
    Api::namespaced(cluster.client(), "default")
}

async fn condition(cluster: &Cluster, name: &str, wanted: &str) -> Result<Job> {
    wait::until(&format!("Job {name} is {wanted}"), BOUND, async || {
        let job = jobs(cluster).get(name).await?;
        let conditions =
            job.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let holds =
            conditions.iter().any(|condition| condition.type_ == wanted && condition.status == "True");
        Ok(holds.then_some(job))
    })
    .await
}

async fn plain_job_completes(cluster: &Cluster) -> Result<()> {
    jobs(cluster).create(&PostParams::default(), &job("plain", &[])?).await?;
    let job = condition(cluster, "plain", "Complete").await?;
    ensure!(job.status.context("status")?.succeeded == Some(1));
    Ok(())
}

async fn audit_counts_it(cluster: &Cluster) -> Result<()> {
    let mut log = cluster.audit_log()?;
    let completed = log
        .until("the Job's last status is in the audit log", |event| {
            let complete = |value: &serde_json::Value| value.to_string().contains(r#""type":"Complete""#);
            event.wrote("jobs")
                && event.is_about("default", "plain")
                && event.response.as_ref().is_some_and(complete)
        })
        .await?;
    ensure!(completed.agent == "kube-controller-manager", "written by {}", completed.agent);
    ensure!(completed.answered >= completed.received);
    let counts = Counts::of(log.events());
    println!("{}", counts.on(&["jobs", "pods"]));
    let creates = |agent: &str| {
        counts.by(agent).on(&["jobs"]).sum(|key| key.verb == Verb::Create && key.subresource.is_empty())
    };
    ensure!(counts.on(&["jobs"]).sum(|key| key.verb == Verb::Create) == 1);
    ensure!(creates("kube-controller-manager") == 0);
    ensure!(counts.by("kube-scheduler").on(&["pods"]).sum(|key| key.subresource == "binding") == 1);
    ensure!(counts.by("kwok").on(&["pods"]).writes() >= 2, "kwok reports running and completed");
    ensure!(counts.reads() > 0);
    let states = writes_of(log.events(), "jobs");
    ensure!(states.len() >= 3 && states.iter().all(|state| state.name == "plain" && !state.gone));
    ensure!(states.windows(2).all(|pair| pair[0].revision <= pair[1].revision));
    Ok(())
}

async fn durations_failures_and_stops(cluster: &Cluster) -> Result<()> {
    let api = jobs(cluster);
    let create = async |name: &str, annotations: &[(&str, &str)]| -> Result<()> {
        api.create(&PostParams::default(), &job(name, annotations)?).await?;
        Ok(())
    };
    create("timed", &[("fairlead.dev/run-for", "2s")]).await?;
    create("fails", &[("fairlead.dev/fail", "true")]).await?;
    create("long", &[("fairlead.dev/run-for", "1h")]).await?;
    condition(cluster, "fails", "Failed").await?;
    let status = condition(cluster, "timed", "Complete").await?.status.context("status")?;
    let (started, ended) = (status.start_time.context("start")?, status.completion_time.context("end")?);
    ensure!(ended.0.duration_since(started.0).as_secs() >= 2, "ran from {started:?} to {ended:?}");
    stop_is_proven(cluster).await
}

/// A deleted pod reports its containers terminated before it is gone.
async fn stop_is_proven(cluster: &Cluster) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "default");
    let of_long = ListParams::default().labels("job-name=long");
    wait::until_true("the long Job runs", BOUND, async || {
        let list = pods.list(&of_long).await?;
        Ok(list
            .items
            .iter()
            .any(|pod| pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running"))))
    })
    .await?;
    let name =
        pods.list(&of_long).await?.items.first().and_then(|pod| pod.metadata.name.clone()).context("pod")?;
    jobs(cluster).delete("long", &DeleteParams::foreground()).await?;
    wait::until_true("the long Job is gone", BOUND, async || {
        Ok(jobs(cluster).get_opt("long").await?.is_none())
    })
    .await?;
    let mut log = cluster.audit_log()?;
    log.until("the pod's terminated containers are in the audit log", |event| {
        let phase = event
            .response
            .as_ref()
            .and_then(|pod| pod.pointer("/status/phase"))
            .and_then(|phase| phase.as_str());
        event.wrote("pods")
            && event.object.name == name
            && phase == Some("Failed")
            && event.response.as_ref().is_some_and(|pod| {
                pod.pointer("/status/containerStatuses/0/state/terminated/exitCode") == Some(&json!(137))
            })
    })
    .await?;
    Ok(())
}

async fn nodes_can_be_added(cluster: &Cluster) -> Result<()> {
    let node = NodeSpec::new("node-2", "16", "64Gi").gpus(8).taint("nvidia.com/gpu", "present", "NoSchedule");
    cluster.add_node(&node).await?;
    cluster.nodes_ready().await?;
    let nodes: Api<Node> = Api::all(cluster.client());
    let added = nodes.get("node-2").await?;
    let allocatable = added.status.and_then(|status| status.allocatable).context("allocatable")?;
    ensure!(allocatable.get("nvidia.com/gpu").is_some_and(|gpus| gpus.0 == "8"), "{allocatable:?}");
    ensure!(allocatable.get("cpu").is_some_and(|cpu| cpu.0 == "16"));
    ensure!(nodes.list(&ListParams::default()).await?.items.len() == 2);
    Ok(())
}

async fn identities_have_only_their_rights(cluster: &Cluster) -> Result<()> {
    let stranger = cluster.access_for_user("stranger", None)?;
    let denied = match cluster.kubectl_as(&stranger, &["get", "jobs"], "").await {
        Ok(listed) => bail!("a stranger may list Jobs: {listed}"),
        Err(denied) => denied.to_string(),
    };
    ensure!(denied.contains("forbidden") && denied.contains("stranger"), "{denied}");
    cluster
        .kubectl(&[
            "create",
            "rolebinding",
            "readers",
            "--clusterrole=view",
            "--group=team",
            "--serviceaccount=default:default",
        ])
        .await?;
    let member = cluster.access_for_user("member", Some("team"))?;
    cluster.kubectl_as(&member, &["get", "jobs"], "").await?;
    let account = cluster.access_for_service_account("default", "default", Duration::from_secs(3600)).await?;
    let pods: Api<Pod> = Api::namespaced(account.client().await?, "default");
    pods.list(&ListParams::default()).await?;
    Ok(())
}

async fn api_server_comes_back(cluster: &Cluster) -> Result<()> {
    let api_server = cluster.part(Part::ApiServer)?;
    api_server.kill()?;
    ensure!(cluster.kubectl(&["get", "nodes"]).await.is_err());
    api_server.restart()?;
    cluster.ready().await?;
    ensure!(cluster.kubectl(&["get", "nodes"]).await?.contains("node-1"), "objects outlive an API server");
    ensure!(api_server.usage()?.cpu > Duration::ZERO);
    Ok(())
}

fn nothing_remains(rig: Rig) -> Result<()> {
    let folder = rig.folder().to_path_buf();
    let recorded = fs::read_to_string(folder.join("pids"))?;
    let warden = rig.keeper().warden();
    drop(rig);
    let pids: Vec<u32> = recorded.lines().filter_map(|line| line.split(' ').next()?.parse().ok()).collect();
    // etcd, two clusters of four, and the API server that was started again.
    ensure!(pids.len() == 1 + 2 * 4 + 1, "{recorded}");
    for pid in pids.into_iter().chain([warden]) {
        ensure!(ProcessId::of(pid).is_err(), "{pid} still runs; started:\n{recorded}");
    }
    ensure!(std::env::var_os("FAIRLEAD_RIG_KEEP").is_some() || !folder.exists());
    Ok(())
}
