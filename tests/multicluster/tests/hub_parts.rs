//! The hub's parts that speak to an API server, each on a real one: reads and writes, watches, the lease and the
//! term, the CA and join tokens.

#[path = "hub_parts/authority.rs"]
mod authority;
#[path = "hub_parts/leading.rs"]
mod leading;
#[path = "hub_parts/store.rs"]
mod store;
#[path = "hub_parts/watching.rs"]
mod watching;

use std::time::Duration;

use anyhow::{Context, Result};
use fairlead_api::manifests;
use fairlead_multicluster::rig::{Cluster, ClusterOptions, Rig, RigOptions};
use fairlead_runtime::client::{self, ClientSettings};
use kube::Client;

/// How long something may take that usually takes a second or two.
pub(crate) const BOUND: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn the_parts_of_the_hub_on_a_real_api_server() -> Result<()> {
    let rig = Rig::start(RigOptions::default().cluster("hub", ClusterOptions::default())).await?;
    let cluster = rig.cluster("hub")?;
    install(cluster).await?;
    let client = connect(cluster.admin().path()).await?;
    store::check(cluster, &client).await?;
    authority::check(&client).await?;
    leading::check(&client).await?;
    watching::check(&rig, cluster, &client).await
}

/// The hub's own client.
pub(crate) async fn connect(kubeconfig: &std::path::Path) -> Result<Client> {
    let settings = ClientSettings {
        kubeconfig: Some(kubeconfig.to_path_buf()),
        context: None,
        user_agent: "fairlead-hub/test".to_owned(),
    };
    client::connect(&settings).await.context("connect")
}

async fn install(cluster: &Cluster) -> Result<()> {
    let needed = |path: &str| {
        path.contains("fairlead-hub/") && (path.contains("/crds/") || path.contains("namespace"))
    };
    let texts: Vec<String> =
        manifests::files().into_iter().filter(|file| needed(&file.path)).map(|file| file.text).collect();
    cluster.apply(&texts.join("\n---\n")).await?;
    cluster.kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]).await?;
    Ok(())
}
