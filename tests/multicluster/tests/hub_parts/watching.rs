//! Watches on a real API server, across a cut, a restart of the API server, and changes that nobody saw.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::{Context, Result, bail, ensure};
use fairlead_multicluster::binaries::Part;
use fairlead_multicluster::proxy::{Cut, Proxy};
use fairlead_multicluster::rig::{Cluster, Rig};
use fairlead_runtime::store::{Op, Store};
use fairlead_runtime::watch::{self, Event, Target};
use kube::Client;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::store::{CONFIG_MAPS, config_map, done, execute};
use super::{BOUND, connect};

pub(crate) async fn check(rig: &Rig, cluster: &Cluster, client: &Client) -> Result<()> {
    let store = Store::new(client.clone());
    labels_that_stop_matching_are_gone(client, &store).await?;
    nothing_is_missed_across_a_gap(rig, cluster, &store).await
}

/// What a watch has told.
struct Seen {
    events: mpsc::Receiver<Event>,
    /// Value of the key by name, for what exists.
    state: BTreeMap<String, String>,
    cancel: CancellationToken,
}

impl Seen {
    fn start(client: Client, label_selector: &str) -> Self {
        let (sender, events) = mpsc::channel(1);
        let cancel = CancellationToken::new();
        let target = Target {
            namespace: Some("default".to_owned()),
            label_selector: Some(label_selector.to_owned()),
            ..Target::all(CONFIG_MAPS)
        };
        tokio::spawn(watch::run(client, target, sender, |event| event, cancel.clone()));
        Self { events, state: BTreeMap::new(), cancel }
    }

    /// Takes events until the state is as given.
    async fn until(&mut self, wanted: &[(&str, &str)]) -> Result<()> {
        let wanted: BTreeMap<String, String> =
            wanted.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let reach = async {
            while self.state != wanted {
                match self.events.recv().await.context("the watch ended")? {
                    Event::Upsert(object) => {
                        let value = object
                            .json
                            .pointer("/data/key")
                            .and_then(|value| value.as_str())
                            .context("a value")?;
                        self.state.insert(object.key.name.to_string(), value.to_owned());
                    }
                    Event::Gone { key, .. } => {
                        ensure!(self.state.remove(&*key.name).is_some(), "{key} was gone twice");
                    }
                    Event::Synced => {}
                }
            }
            Ok(())
        };
        match tokio::time::timeout(BOUND, reach).await {
            Ok(reached) => reached,
            Err(_elapsed) => bail!("never {wanted:?}, but {:?}", self.state),
        }
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

async fn put(store: &Store, name: &str, watched: &str) -> Result<()> {
    let mut body = config_map(name, "1");
    body["metadata"]["labels"] = json!({"watched": watched});
    done(execute(store, &CONFIG_MAPS, name, Op::Create(body)).await)?;
    Ok(())
}

async fn set(store: &Store, name: &str, patch: serde_json::Value) -> Result<()> {
    done(execute(store, &CONFIG_MAPS, name, Op::Patch(patch)).await)?;
    Ok(())
}

async fn delete(store: &Store, name: &str) -> Result<()> {
    let uid = done(execute(store, &CONFIG_MAPS, name, Op::Get).await)?.uid;
    done(
        execute(
            store,
            &CONFIG_MAPS,
            name,
            Op::Delete { uid, propagation: fairlead_runtime::store::Propagation::default() },
        )
        .await,
    )?;
    Ok(())
}

async fn labels_that_stop_matching_are_gone(client: &Client, store: &Store) -> Result<()> {
    put(store, "before", "one").await?;
    put(store, "other", "not").await?;
    let mut seen = Seen::start(client.clone(), "watched=one");
    seen.until(&[("before", "1")]).await?;
    put(store, "after", "one").await?;
    seen.until(&[("after", "1"), ("before", "1")]).await?;
    set(store, "before", json!({"data": {"key": "2"}})).await?;
    seen.until(&[("after", "1"), ("before", "2")]).await?;
    set(store, "before", json!({"metadata": {"labels": {"watched": "no"}}})).await?;
    seen.until(&[("after", "1")]).await
}

/// The watch is cut off; meanwhile objects change, vanish and are replaced, and the API server starts anew, so
/// that it has forgotten where the watch was.
async fn nothing_is_missed_across_a_gap(rig: &Rig, cluster: &Cluster, store: &Store) -> Result<()> {
    for name in ["kept", "changed", "deleted", "replaced"] {
        put(store, name, "gap").await?;
    }
    let (proxy, client) = through_a_proxy(rig, cluster).await?;
    let mut seen = Seen::start(client, "watched=gap");
    seen.until(&[("changed", "1"), ("deleted", "1"), ("kept", "1"), ("replaced", "1")]).await?;
    proxy.cut(Cut::Reset);
    set(store, "changed", json!({"data": {"key": "2"}})).await?;
    delete(store, "deleted").await?;
    delete(store, "replaced").await?;
    put(store, "replaced", "gap").await?;
    set(store, "replaced", json!({"data": {"key": "3"}})).await?;
    let api_server = cluster.part(Part::ApiServer)?;
    api_server.kill()?;
    api_server.restart()?;
    cluster.ready().await?;
    proxy.heal();
    seen.until(&[("changed", "2"), ("kept", "1"), ("replaced", "3")]).await?;
    put(store, "new", "gap").await?;
    seen.until(&[("changed", "2"), ("kept", "1"), ("new", "1"), ("replaced", "3")]).await
}

async fn through_a_proxy(rig: &Rig, cluster: &Cluster) -> Result<(Proxy, Client)> {
    let target: SocketAddr =
        cluster.url().trim_start_matches("https://").parse().context("the API server's address")?;
    let proxy = Proxy::start(target).await?;
    let kubeconfig = cluster.admin().kubeconfig().replace(&target.to_string(), &proxy.address().to_string());
    let path = rig.folder().join("proxied.yaml");
    std::fs::write(&path, kubeconfig)?;
    Ok((proxy, connect(&path).await?))
}
