//! The API as one API server enforces it, without a hub: definitions, transition rules, entry policies, roles.
//!
//! The manifests are those of `fairlead_api::manifests`, which the charts hold word for word.

#[path = "api/entry.rs"]
mod entry;
#[path = "api/roles.rs"]
mod roles;
#[path = "api/schemas.rs"]
mod schemas;
#[path = "api/transitions.rs"]
mod transitions;

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use fairlead_api::manifests;
use fairlead_multicluster::rig::{Cluster, ClusterOptions, Rig, RigOptions};
use http::Method;
use kube::Client;
use serde_json::{Value, json};

/// How long the API server may take to obey a new definition or policy. A second is usual.
pub(crate) const BOUND: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_enforces_the_api() -> Result<()> {
    let rig = Rig::start(RigOptions::default().cluster("api", ClusterOptions::default())).await?;
    let cluster = rig.cluster("api")?;
    install(cluster).await?;
    for namespace in ["team-a", "team-b"] {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        send(&cluster.client(), Method::POST, "/api/v1/namespaces", &body).await?;
    }
    schemas::check(cluster).await?;
    transitions::check(cluster).await?;
    roles::check(cluster).await?;
    entry::check(cluster).await
}

/// What an administrator does: namespace and definitions first, the rest when they are established.
async fn install(cluster: &Cluster) -> Result<()> {
    let (first, rest): (Vec<_>, Vec<_>) = manifests::files()
        .into_iter()
        .partition(|file| file.path.contains("/crds/") || file.path.contains("namespace"));
    let join = |files: &[manifests::File]| {
        let texts: Vec<&str> = files.iter().map(|file| file.text.as_str()).collect();
        texts.join("\n---\n")
    };
    cluster.apply(&join(&first)).await?;
    cluster.kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]).await?;
    let (examples, rest): (Vec<_>, Vec<_>) =
        rest.into_iter().partition(|file| file.path.contains("/examples/"));
    ensure!(examples.len() == 1, "one example, not {}", examples.len());
    cluster.apply(&join(&rest)).await?;
    Ok(())
}

/// A request to the API server: the answer, or the message of its refusal as the error.
pub(crate) async fn send(client: &Client, method: Method, path: &str, body: &Value) -> Result<Value> {
    let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let request = http::Request::builder()
        .method(&method)
        .uri(path)
        .header("content-type", kind)
        .body(if method == Method::GET { Vec::new() } else { serde_json::to_vec(body)? })?;
    match client.request::<Value>(request).await {
        Ok(answer) => Ok(answer),
        Err(kube::Error::Api(status)) => bail!("{}", status.message),
        Err(error) => Err(error).with_context(|| format!("{method} {path}")),
    }
}

/// Checks that a request was refused, and that the refusal says `why`.
pub(crate) fn refused(what: &str, answer: Result<Value>, why: &str) -> Result<()> {
    match answer {
        Ok(_) => bail!("{what}: accepted"),
        Err(error) => {
            let message = format!("{error:#}");
            ensure!(message.contains(why), "{what}: refused, but not with {why:?}: {message}");
            Ok(())
        }
    }
}
