//! What each outcome of the store means on a real API server.

use anyhow::{Context, Result, bail, ensure};
use fairlead_model::{ObjectKey, Uid};
use fairlead_multicluster::rig::Cluster;
use fairlead_runtime::store::{Call, Op, Options, Outcome, Propagation, Store};
use fairlead_runtime::{Object, Resource};
use kube::Client;
use serde_json::{Value, json};

pub(crate) const CONFIG_MAPS: Resource = Resource::new("", "v1", "configmaps", true);
const SECRETS: Resource = Resource::new("", "v1", "secrets", true);
const CLUSTERS: Resource = Resource::new("fairlead.dev", "v1alpha1", "clusters", false);

pub(crate) async fn check(cluster: &Cluster, client: &Client) -> Result<()> {
    let store = Store::new(client.clone());
    writes_are_conditional(&store).await?;
    deletes_have_a_precondition(&store).await?;
    statuses_are_written_apart(&store).await?;
    a_dry_run_stores_nothing(&store).await?;
    secrets_can_be_looked_up_without_their_data(&store).await?;
    rights_are_those_of_the_impersonated(cluster, &store).await
}

pub(crate) fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": value}})
}

pub(crate) async fn execute(store: &Store, resource: &Resource, name: &str, op: Op) -> Outcome {
    with(store, resource, name, op, &Options { field_manager: Some("fairlead-test"), ..Options::default() })
        .await
}

async fn with(store: &Store, resource: &Resource, name: &str, op: Op, options: &Options) -> Outcome {
    let key = ObjectKey::new(if resource.namespaced() { "default" } else { "" }, name);
    store.execute(&Call { resource, key: &key, op: &op, options }).await
}

pub(crate) fn done(outcome: Outcome) -> Result<Object> {
    match outcome {
        Outcome::Done(object) => Ok(object),
        other => bail!("not done: {other:?}"),
    }
}

async fn writes_are_conditional(store: &Store) -> Result<()> {
    let created = done(execute(store, &CONFIG_MAPS, "a", Op::Create(config_map("a", "1"))).await)?;
    let twice = execute(store, &CONFIG_MAPS, "a", Op::Create(config_map("a", "1"))).await;
    ensure!(twice == Outcome::AlreadyExists, "{twice:?}");
    let patch = |version: u64, value: &str| {
        Op::Patch(json!({"metadata": {"resourceVersion": version.to_string()}, "data": {"key": value}}))
    };
    let patched = done(execute(store, &CONFIG_MAPS, "a", patch(created.version, "2")).await)?;
    ensure!(patched.version > created.version && patched.json["data"]["key"] == "2");
    ensure!(patched.json["metadata"].get("managedFields").is_none());
    let stale = execute(store, &CONFIG_MAPS, "a", patch(created.version, "3")).await;
    ensure!(stale == Outcome::Conflict, "{stale:?}");
    let missing = execute(store, &CONFIG_MAPS, "b", Op::Get).await;
    ensure!(missing == Outcome::NotFound, "{missing:?}");
    let malformed = execute(store, &CONFIG_MAPS, "B_", Op::Create(config_map("B_", "1"))).await;
    ensure!(
        matches!(&malformed, Outcome::Refused { code: 422, reason, .. } if reason == "Invalid"),
        "{malformed:?}"
    );
    Ok(())
}

async fn deletes_have_a_precondition(store: &Store) -> Result<()> {
    let current = done(execute(store, &CONFIG_MAPS, "a", Op::Get).await)?;
    let delete = |uid: &Uid| Op::Delete { uid: uid.clone(), propagation: Propagation::Background };
    let other = execute(store, &CONFIG_MAPS, "a", delete(&Uid::new("someone-else"))).await;
    ensure!(other == Outcome::Conflict, "{other:?}");
    done(execute(store, &CONFIG_MAPS, "a", delete(&current.uid)).await)?;
    let gone = execute(store, &CONFIG_MAPS, "a", delete(&current.uid)).await;
    ensure!(gone == Outcome::NotFound, "{gone:?}");
    Ok(())
}

async fn statuses_are_written_apart(store: &Store) -> Result<()> {
    let body = json!({"apiVersion": "fairlead.dev/v1alpha1", "kind": "Cluster", "metadata": {"name": "s"}, "spec": {}});
    done(execute(store, &CLUSTERS, "s", Op::Create(body)).await)?;
    let patch = json!({"spec": {"cordon": true}, "status": {"nodes": 3}});
    let written = done(execute(store, &CLUSTERS, "s", Op::PatchStatus(patch)).await)?;
    ensure!(
        written.json["status"]["nodes"] == 3 && written.json["spec"]["cordon"] != true,
        "{}",
        written.json
    );
    Ok(())
}

async fn a_dry_run_stores_nothing(store: &Store) -> Result<()> {
    let dry = Options { dry_run: true, ..Options::default() };
    done(with(store, &CONFIG_MAPS, "dry", Op::Create(config_map("dry", "1")), &dry).await)?;
    let read = execute(store, &CONFIG_MAPS, "dry", Op::Get).await;
    ensure!(read == Outcome::NotFound, "{read:?}");
    Ok(())
}

async fn secrets_can_be_looked_up_without_their_data(store: &Store) -> Result<()> {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": "x"}});
    let created = done(execute(store, &SECRETS, "s", Op::Create(secret)).await)?;
    let seen = done(execute(store, &SECRETS, "s", Op::GetMetadata).await)?;
    ensure!(seen.uid == created.uid && seen.json.get("data").is_none(), "{}", seen.json);
    Ok(())
}

async fn rights_are_those_of_the_impersonated(cluster: &Cluster, store: &Store) -> Result<()> {
    let tenant = Options {
        impersonate: Some("system:serviceaccount:default:tenant".to_owned()),
        ..Options::default()
    };
    let create = || Op::Create(config_map("tenants", "1"));
    let denied = with(store, &CONFIG_MAPS, "tenants", create(), &tenant).await;
    ensure!(
        matches!(&denied, Outcome::Refused { code: 403, reason, .. } if reason == "Forbidden"),
        "{denied:?}"
    );
    let grant = ["create", "rolebinding", "tenant", "--clusterrole=edit", "--serviceaccount=default:tenant"];
    cluster.kubectl(&grant).await?;
    // The API server's authoriser sees the new binding a moment later.
    fairlead_multicluster::wait::until_true("the tenant may write", super::BOUND, async || {
        Ok(matches!(with(store, &CONFIG_MAPS, "tenants", create(), &tenant).await, Outcome::Done(_)))
    })
    .await
    .context("with the tenant's rights")
}
