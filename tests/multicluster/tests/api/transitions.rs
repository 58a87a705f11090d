//! Promises in a Workload's status survive every writer.

use anyhow::{Context, Result, ensure};
use fairlead_multicluster::rig::Cluster;
use http::Method;
use kube::Client;
use serde_json::{Value, json};

use crate::{refused, send};

const PATH: &str = "/apis/kueue.x-k8s.io/v1beta2/namespaces/team-a/workloads";
const GONE: &str = "may go only once its state is Closed";
const FALLEN: &str = "never falls";

pub(crate) async fn check(cluster: &Cluster) -> Result<()> {
    let client = cluster.client();
    let workload = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": {"name": "w"},
        "spec": {"podSets": [{"template": {}}]},
    });
    send(&client, Method::POST, PATH, &workload).await?;
    patch(&client, json!([placement("p1", (3, 5), "Committed")])).await?;
    epochs(&client).await?;
    nothing_is_dropped(&client).await?;
    one_open_placement(&client).await?;
    selectable(&client).await?;
    send(&client, Method::DELETE, &format!("{PATH}/w"), &json!({})).await?;
    Ok(())
}

fn placement(id: &str, (term, seq): (u64, u64), state: &str) -> Value {
    json!({"id": id, "cluster": "c", "clusterUid": "u", "epoch": {"term": term, "seq": seq}, "state": state})
}

async fn patch(client: &Client, placements: Value) -> Result<Value> {
    let body = json!({"status": {"placements": placements}});
    send(client, Method::PATCH, &format!("{PATH}/w/status"), &body).await
}

async fn epochs(client: &Client) -> Result<()> {
    let to = |epoch| patch(client, json!([placement("p1", epoch, "Committed")]));
    refused("a fallen seq", to((3, 4)).await, FALLEN)?;
    refused("a fallen term with a higher seq", to((2, 9)).await, FALLEN)?;
    to((3, 6)).await.context("a higher seq")?;
    to((4, 1)).await.context("a higher term with a lower seq")?;
    Ok(())
}

/// As epochs above leave it: p1 at 4.1.
async fn nothing_is_dropped(client: &Client) -> Result<()> {
    refused("a null patch", patch(client, Value::Null).await, GONE)?;
    refused("an empty list", patch(client, json!([])).await, GONE)?;
    refused("another id", patch(client, json!([placement("p2", (4, 2), "Committed")])).await, GONE)?;
    let status = format!("{PATH}/w/status");
    refused("a null status", send(client, Method::PATCH, &status, &json!({"status": null})).await, GONE)?;
    let stored = send(client, Method::GET, &format!("{PATH}/w"), &Value::Null).await?;
    let mut without = stored.clone();
    without["status"].as_object_mut().context("status")?.remove("placements");
    refused("a typed PUT without the field", send(client, Method::PUT, &status, &without).await, GONE)?;
    without.as_object_mut().context("object")?.remove("status");
    refused("a typed PUT without a status", send(client, Method::PUT, &status, &without).await, GONE)?;
    // The main resource ignores the status that it is given.
    let kept = send(client, Method::PUT, &format!("{PATH}/w"), &without).await?;
    ensure!(kept.pointer("/status/placements/0/id") == Some(&json!("p1")), "{kept}");
    let mut moved = placement("p1", (4, 1), "Started");
    moved["clusterUid"] = json!("v");
    refused("another cluster", patch(client, json!([moved])).await, "stays with its cluster")
}

async fn one_open_placement(client: &Client) -> Result<()> {
    let two = |first: &str, second: &str| {
        patch(client, json!([placement("p1", (4, 1), first), placement("p2", (4, 2), second)]))
    };
    refused("two open ones", two("Stopping", "Committed").await, "at most one entry may be open")?;
    two("Closed", "Committed").await.context("one closed, one open")?;
    refused("one opened again", two("Running", "Closed").await, "a closed entry stays closed")?;
    patch(client, json!([placement("p2", (4, 2), "Running")])).await.context("the closed one goes")?;
    Ok(())
}

async fn selectable(client: &Client) -> Result<()> {
    let admitted = json!({"status": {"admission": {"clusterQueue": "cq", "podSetAssignments": []}}});
    send(client, Method::PATCH, &format!("{PATH}/w/status"), &admitted).await?;
    for (queue, count) in [("cq", 1), ("other", 0)] {
        let path = format!("{PATH}?fieldSelector=status.admission.clusterQueue%3D{queue}");
        let list = send(client, Method::GET, &path, &Value::Null).await?;
        let found = list.get("items").and_then(Value::as_array).map(Vec::len);
        ensure!(found == Some(count), "{queue}: {list}");
    }
    Ok(())
}
