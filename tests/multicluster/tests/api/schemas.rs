//! What the definitions accept, complete and refuse.

use anyhow::{Context, Result, ensure};
use fairlead_multicluster::rig::Cluster;
use http::Method;
use kube::Client;
use serde_json::{Value, json};

use crate::{refused, send};

const KUEUE: &str = "/apis/kueue.x-k8s.io/v1beta2";
const OURS: &str = "/apis/fairlead.dev/v1alpha1";
const DRY: &str = "?dryRun=All";

pub(crate) async fn check(cluster: &Cluster) -> Result<()> {
    let client = cluster.client();
    quantities(&client).await?;
    defaults_and_raw_fields(&client).await?;
    legacy_version(&client).await?;
    obvious_mistakes(&client).await?;
    leadership(&client).await?;
    debts(&client).await
}

async fn create(client: &Client, path: &str, body: Value) -> Result<Value> {
    send(client, Method::POST, &format!("{path}{DRY}"), &body).await
}

fn queue_of(cpu: &Value) -> Value {
    kueue(
        "ClusterQueue",
        "cq",
        &json!({"resourceGroups": [{
            "coveredResources": ["cpu"],
            "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": cpu}]}],
        }]}),
    )
}

fn kueue(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

async fn quantities(client: &Client) -> Result<()> {
    let path = format!("{KUEUE}/clusterqueues");
    for good in
        [json!(40), json!("40"), json!("1500m"), json!(".5"), json!("64Gi"), json!("129e6"), json!("2E-3")]
    {
        create(client, &path, queue_of(&good)).await.with_context(|| format!("{good}"))?;
    }
    for bad in [
        json!("40x"),
        json!(-1),
        json!("-1"),
        json!("4 0"),
        json!("1Gib"),
        json!(""),
        json!(1.5),
        json!(null),
    ] {
        refused(&format!("quota {bad}"), create(client, &path, queue_of(&bad)).await, "nominalQuota")?;
    }
    Ok(())
}

async fn defaults_and_raw_fields(client: &Client) -> Result<()> {
    // The sample flavor that Kueue's users start from has no spec.
    let flavor =
        json!({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "f"}});
    let stored = create(client, &format!("{KUEUE}/resourceflavors"), flavor).await?;
    ensure!(stored.get("spec") == Some(&json!({})), "{stored}");
    let template = json!({"spec": {"fieldOfTheFuture": 7, "containers": [{"name": "c"}]}});
    let workload = kueue("Workload", "w", &json!({"podSets": [{"template": template}]}));
    let stored = create(client, &format!("{KUEUE}/namespaces/team-a/workloads"), workload).await?;
    let want = json!({"active": true, "podSets": [{"name": "main", "count": 1, "template": template}]});
    ensure!(stored.get("spec") == Some(&want), "{stored}");
    let class = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass",
        "metadata": {"name": "high"}, "value": 1000, "description": "for demos",
    });
    let stored = create(client, &format!("{KUEUE}/workloadpriorityclasses"), class).await?;
    ensure!(stored.get("value") == Some(&json!(1000)), "{stored}");
    Ok(())
}

async fn legacy_version(client: &Client) -> Result<()> {
    let old = "/apis/kueue.x-k8s.io/v1beta1";
    for (kind, path) in [
        ("ClusterQueue", "clusterqueues"),
        ("Cohort", "cohorts"),
        ("ResourceFlavor", "resourceflavors"),
        ("Topology", "topologies"),
        ("WorkloadPriorityClass", "workloadpriorityclasses"),
        ("AdmissionCheck", "admissionchecks"),
        ("MultiKueueConfig", "multikueueconfigs"),
        ("MultiKueueCluster", "multikueueclusters"),
        ("LocalQueue", "namespaces/team-a/localqueues"),
    ] {
        let mut body = kueue(kind, "old", &json!({}));
        body["apiVersion"] = json!("kueue.x-k8s.io/v1beta1");
        refused(kind, create(client, &format!("{old}/{path}"), body).await, "kubectl fairlead convert")?;
        let list = send(client, Method::GET, &format!("{old}/{path}"), &Value::Null).await?;
        ensure!(list.get("items").is_some_and(Value::is_array), "{kind} cannot be listed: {list}");
    }
    Ok(())
}

async fn obvious_mistakes(client: &Client) -> Result<()> {
    let group = |resources: Value| {
        json!({"resourceGroups": [{
            "coveredResources": ["cpu", "memory"], "flavors": [{"name": "f", "resources": resources}],
        }]})
    };
    let one = group(json!([{"name": "cpu", "nominalQuota": 1}]));
    for (what, path, body, why) in [
        (
            "uneven resources",
            "clusterqueues",
            kueue("ClusterQueue", "x", &one),
            "same resources as coveredResources",
        ),
        (
            "a topology without labels",
            "resourceflavors",
            kueue("ResourceFlavor", "x", &json!({"topologyName": "t"})),
            "nodeLabels needs at least one label",
        ),
        (
            "a hostname that is not last",
            "topologies",
            kueue(
                "Topology",
                "x",
                &json!({"levels": [{"nodeLabel": "kubernetes.io/hostname"}, {"nodeLabel": "rack"}]}),
            ),
            "may only be the last level",
        ),
        (
            "two sources",
            "multikueueclusters",
            kueue("MultiKueueCluster", "x", &json!({"clusterSource": {}})),
            "exactly one of kubeConfig and clusterProfileRef",
        ),
    ] {
        refused(what, create(client, &format!("{KUEUE}/{path}"), body).await, why)?;
    }
    Ok(())
}

fn ours(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "fairlead.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

async fn leadership(client: &Client) -> Result<()> {
    let path = format!("{OURS}/hubstates");
    let state = |incarnation: u64, term: u64, nonce: &str| json!({"spec": {"incarnation": incarnation, "term": term, "nonce": nonce}});
    let wrong = ours("HubState", "other", &state(1, 1, "a")["spec"]);
    refused("a second HubState", create(client, &path, wrong).await, "named fairlead")?;
    send(client, Method::POST, &path, &ours("HubState", "fairlead", &state(1, 1, "a")["spec"])).await?;
    let one = format!("{path}/fairlead");
    for (incarnation, term, nonce, refusal) in [
        (1, 2, "b", None),
        (1, 2, "c", Some("a new nonce needs a higher term")),
        (1, 1, "b", Some("term may fall only when incarnation rises")),
        (2, 1, "d", None),
        (1, 9, "e", Some("incarnation never falls")),
    ] {
        let answer = send(client, Method::PATCH, &one, &state(incarnation, term, nonce)).await;
        match refusal {
            Some(why) => refused(&format!("{incarnation}/{term}/{nonce}"), answer, why)?,
            None => drop(answer?),
        }
    }
    Ok(())
}

async fn debts(client: &Client) -> Result<()> {
    let path = format!("{OURS}/tombstones");
    let spec = json!({
        "run": "r1", "placement": "p3-1", "cluster": "c", "clusterUid": "u", "epoch": {"term": 3, "seq": 1},
        "job": {"namespace": "team-a", "name": "j"}, "reason": "DeadlineExceeded",
        "heldUsage": [{"clusterQueue": "cq", "flavor": "f", "resource": "cpu", "amount": "2"}],
    });
    send(client, Method::POST, &path, &ours("Tombstone", "p3-1", &spec)).await?;
    let one = format!("{path}/p3-1");
    let one = one.as_str();
    let change = |spec: Value| async move { send(client, Method::PATCH, one, &json!({"spec": spec})).await };
    change(json!({"epoch": {"term": 4, "seq": 1}, "job": {"uid": "x"}})).await?;
    refused("a fallen epoch", change(json!({"epoch": {"term": 3, "seq": 9}})).await, "epoch never falls")?;
    refused("another run", change(json!({"run": "r2"})).await, "run cannot be changed")?;
    refused("another job", change(json!({"job": {"name": "k"}})).await, "name cannot be changed")?;
    send(client, Method::DELETE, one, &json!({})).await?;
    Ok(())
}
