//! Coming from Kueue: a cluster with definitions of its shape, objects stored in the older version, and our own put in
//! their place.

use std::{path::Path, process::Stdio};

use anyhow::{Context, Result, ensure};
use fairlead_multicluster::{
    kueue::World,
    rig::{Cluster, ClusterOptions, Rig, RigOptions},
    scenario,
    scenario::Scenario,
};
use serde_json::{Value, json};

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    vec![
        scenario!(a_kueue_installation_is_taken_over),
        scenario!(convert_gives_manifests_that_are_accepted).together(),
    ]
}

/// What people have in their repositories.
const MANIFESTS: &str = "
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: kq-convert}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: kq-convert}
spec:
  cohort: kq-convert
  namespaceSelector: {}
  flavorFungibility: {whenCanBorrow: Borrow, whenCanPreempt: TryNextFlavor}
  admissionChecks: [kq-convert]
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - name: kq-convert
      resources: [{name: cpu, nominalQuota: 4, borrowingLimit: 2}]
";

async fn convert_gives_manifests_that_are_accepted(world: &World) -> Result<()> {
    let file = world.fleet().rig().folder().join("old.yaml");
    std::fs::write(&file, MANIFESTS)?;
    let converted = world.fleet().cli(&["convert", "-f", &file.display().to_string()]).await?;
    let cluster = world.cluster()?;
    let refusal = cluster.apply(MANIFESTS).await.err().context("the old ones are refused")?.to_string();
    ensure!(refusal.contains("kubectl fairlead convert -f"), "{refusal}");
    cluster.apply(&converted).await?;
    let queue =
        world.get(&fairlead_multicluster::kueue::At::cluster_queue("kq-convert")).await?.context("stored")?;
    ensure!(queue["spec"]["cohortName"] == "kq-convert", "{queue}");
    ensure!(
        queue["spec"]["admissionChecksStrategy"]["admissionChecks"] == json!([{"name": "kq-convert"}]),
        "{queue}"
    );
    Ok(())
}

async fn a_kueue_installation_is_taken_over(world: &World) -> Result<()> {
    let rig = Rig::start(RigOptions::default().cluster("kueue", ClusterOptions::default())).await?;
    let cluster = rig.cluster("kueue")?;
    install_kueue(cluster).await?;
    let hub = &world.fleet().programs().hub;
    let (code, said) = preflight(hub, cluster, &[]).await?;
    ensure!(code == 1, "{code}: {said}");
    for why in [
        "Kueue runs in the namespace kueue-system",
        "--migrate",
        "kueue-validating",
        "not this hub's definition",
    ] {
        ensure!(said.contains(why), "{why}: {said}");
    }
    let (_, said) = preflight(hub, cluster, &["--migrate"]).await?;
    ensure!(said.contains("3 objects rewritten") && !said.contains("may be stored"), "{said}");
    // Kueue goes, our definitions take the place of its own.
    for gone in [["lease", "c1f6bfd2.kueue.x-k8s.io"], ["validatingwebhookconfiguration", "kueue-validating"]]
    {
        cluster.kubectl(&[&["delete", "-n", "kueue-system"][..], &gone[..]].concat()).await?;
    }
    let charts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/fairlead-hub/templates/crds");
    let apply = ["apply", "--server-side", "--force-conflicts", "-f", &charts.display().to_string()];
    cluster.kubectl(&apply).await?;
    let (code, said) = preflight(hub, cluster, &[]).await?;
    ensure!(code == 0 && said.contains("nothing is in the way"), "{code}: {said}");
    let get = |kind: &'static str| async move {
        let printed = cluster.kubectl(&["get", kind, "old", "-n", "default", "-o", "json"]).await?;
        Ok::<Value, anyhow::Error>(serde_json::from_str(&printed)?)
    };
    let queue = get("clusterqueues.kueue.x-k8s.io").await?;
    ensure!(
        queue["apiVersion"] == "kueue.x-k8s.io/v1beta2" && queue["spec"]["cohortName"] == "all",
        "{queue}"
    );
    ensure!(queue["spec"]["flavorFungibility"]["whenCanBorrow"] == "MayStopSearch", "{queue}");
    let workload = get("workloads.kueue.x-k8s.io").await?;
    ensure!(workload["spec"]["priorityClassRef"]["kind"] == "WorkloadPriorityClass", "{workload}");
    ensure!(workload["status"]["accumulatedPastExecutionTimeSeconds"] == 7, "{workload}");
    ensure!(workload["status"]["admission"]["clusterQueue"] == "old", "an admission survives: {workload}");
    Ok(())
}

/// Runs the program against a cluster, as its administrator, and returns its exit code and what it said.
async fn preflight(hub: &Path, cluster: &Cluster, args: &[&str]) -> Result<(i32, String)> {
    let output = tokio::process::Command::new(hub)
        .arg("preflight")
        .arg("--kubeconfig")
        .arg(cluster.admin().path())
        .args(args)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Ok((output.status.code().unwrap_or(-1), said))
}

/// Definitions with both versions, as Kueue's have; objects stored as v1beta1; then v1beta2 becomes the stored version,
/// as it did in Kueue; a lease that is held and a webhook.
async fn install_kueue(cluster: &Cluster) -> Result<()> {
    let kinds = [
        ("ClusterQueue", "clusterqueues", "Cluster"),
        ("Cohort", "cohorts", "Cluster"),
        ("Workload", "workloads", "Namespaced"),
    ];
    let definitions = |stored: &str| -> String {
        let items: Vec<Value> =
            kinds.iter().map(|(kind, plural, scope)| definition(kind, plural, scope, stored)).collect();
        json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
    };
    cluster.apply(&definitions("v1beta1")).await?;
    cluster.kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]).await?;
    cluster.apply(&old_objects().to_string()).await?;
    let status = json!({"status": {
        "accumulatedPastExexcutionTimeSeconds": 7,
        "admission": {"clusterQueue": "old", "podSetAssignments": []},
    }});
    let patch = [
        "patch",
        "workloads.v1beta1.kueue.x-k8s.io",
        "old",
        "-n",
        "default",
        "--subresource=status",
        "--type=merge",
        "-p",
    ];
    cluster.kubectl(&[&patch[..], &[&status.to_string()]].concat()).await?;
    cluster.apply(&definitions("v1beta2")).await?;
    let now = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(120);
    let leftovers = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}},
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "c1f6bfd2.kueue.x-k8s.io", "namespace": "kueue-system"},
            "spec": {"holderIdentity": "kueue-0", "leaseDurationSeconds": 15, "renewTime": format!("{now:.6}")}},
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "kueue-validating"},
            "webhooks": [{"name": "v.kb.io", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "failurePolicy": "Ignore",
                "clientConfig": {"service": {"name": "kueue-webhook-service", "namespace": "kueue-system"}},
                "rules": [{"apiGroups": ["kueue.x-k8s.io"], "apiVersions": ["v1beta2"], "operations": ["CREATE"], "resources": ["localqueues"]}]}]},
    ]});
    cluster.apply(&leftovers.to_string()).await?;
    Ok(())
}

fn definition(kind: &str, plural: &str, scope: &str, stored: &str) -> Value {
    let version = |name: &str| {
        json!({
            "name": name, "served": true, "storage": name == stored, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.kueue.x-k8s.io")},
        "spec": {
            "group": "kueue.x-k8s.io", "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [version("v1beta1"), version("v1beta2")],
        },
    })
}

fn old_objects() -> Value {
    let object = |kind: &str, namespace: Option<&str>, spec: Value| {
        let mut metadata = json!({"name": "old"});
        if let Some(namespace) = namespace {
            metadata["namespace"] = json!(namespace);
        }
        json!({"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": kind, "metadata": metadata, "spec": spec})
    };
    let queue = json!({
        "cohort": "all", "namespaceSelector": {}, "flavorFungibility": {"whenCanBorrow": "Borrow"},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
            {"name": "f", "resources": [{"name": "cpu", "nominalQuota": "4"}]}]}],
    });
    let workload = json!({
        "queueName": "main", "priority": 5, "priorityClassName": "high",
        "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass",
        "podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": []}}}],
    });
    json!({"apiVersion": "v1", "kind": "List", "items": [
        object("ClusterQueue", None, queue),
        object("Cohort", None, json!({"parent": "root"})),
        object("Workload", Some("default"), workload),
    ]})
}
