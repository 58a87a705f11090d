//! Enrolment: a token works once, for one name, for a short time, for one key.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use fairlead_multicluster::{
    fleet::{Fleet, JoinCommand, create_namespace},
    process::ProcessSpec,
    wait,
    work::BOUND,
};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, api::ListParams};
use serde_json::{Value, json};

const SPOKE: &str = "gcp-euw4";
const HUB_NAMESPACE: &str = "fairlead-system";

pub(crate) async fn tokens_that_are_refused(fleet: &Fleet) -> Result<()> {
    mistyped(fleet).await?;
    foreign(fleet).await?;
    expired(fleet).await?;
    wrong_name(fleet).await?;
    used_with_another_key(fleet).await
}

async fn mistyped(fleet: &Fleet) -> Result<()> {
    let mut command = invite(fleet, "join-mistyped").await?;
    let last = if command.token.ends_with('a') { "b" } else { "a" };
    command.token.replace_range(command.token.len() - 1.., last);
    refused(fleet, "join-mistyped", &command, "TokenMistyped").await
}

/// A well-formed token that this hub never gave.
async fn foreign(fleet: &Fleet) -> Result<()> {
    let mut command = invite(fleet, "join-foreign").await?;
    fairlead_pki::JoinToken::from_entropy(&[7; 25]).expose().clone_into(&mut command.token);
    refused(fleet, "join-foreign", &command, "TokenUnknown").await
}

async fn expired(fleet: &Fleet) -> Result<()> {
    let command = invite(fleet, "join-expired").await?;
    let id = command.token.split('.').nth(1).context("the token's id")?;
    let secrets: Api<Secret> = Api::namespaced(fleet.hub_client()?, HUB_NAMESPACE);
    let name = format!("fairlead-join-{id}");
    let stored =
        secrets.get(&name).await?.data.and_then(|mut data| data.remove("record")).context("the record")?;
    let mut record: Value = serde_json::from_slice(&stored.0)?;
    record["expiresAt"] = json!(1);
    let patch = json!({"data": {"record": BASE64_STANDARD.encode(record.to_string())}});
    secrets.patch(&name, &kube::api::PatchParams::default(), &kube::api::Patch::Merge(patch)).await?;
    refused(fleet, "join-expired", &command, "TokenExpired").await
}

async fn wrong_name(fleet: &Fleet) -> Result<()> {
    let mut command = invite(fleet, "join-name").await?;
    "onprem-a".clone_into(command.value("--name")?);
    refused(fleet, "join-name", &command, "TokenWrongName").await
}

async fn used_with_another_key(fleet: &Fleet) -> Result<()> {
    let command = invite(fleet, "join-used").await?;
    create_namespace(fleet.spoke_cluster(SPOKE)?, "join-first").await?;
    let first = fleet.rig().spawn(agent(fleet, &command, "join-first")?)?;
    fleet.cluster_condition("join-used", "Connected", "True").await?;
    first.kill()?;
    refused(fleet, "join-used", &command, "TokenUsed").await?;
    // The key that redeemed it may come back with the token: a lost reply burns nothing.
    first.restart()?;
    fleet.cluster_condition("join-used", "Connected", "True").await?;
    first.kill()?;
    fleet.hub_cluster()?.kubectl(&["delete", "clusters.fairlead.dev", "join-used"]).await?;
    Ok(())
}

/// The printed join command.
async fn invite(fleet: &Fleet, name: &str) -> Result<JoinCommand> {
    JoinCommand::parse(&fleet.cli(&["join", name]).await?)
}

fn agent(fleet: &Fleet, command: &JoinCommand, namespace: &str) -> Result<ProcessSpec> {
    let access: PathBuf = fleet.spoke_cluster(SPOKE)?.admin().path().to_path_buf();
    let mut command = command.clone();
    command.args.extend(["--kubeconfig".to_owned(), access.display().to_string()]);
    command.args.extend(["--namespace".to_owned(), namespace.to_owned()]);
    Ok(command.process(fleet, &format!("agent-{namespace}")))
}

/// The agent ends with the reason on its side; the hub says it on the Cluster; and nothing is stored on the spoke.
async fn refused(fleet: &Fleet, name: &str, command: &JoinCommand, token: &str) -> Result<()> {
    let namespace = format!("{name}-{}", token.to_lowercase());
    let cluster = fleet.spoke_cluster(SPOKE)?;
    create_namespace(cluster, &namespace).await?;
    let agent = fleet.rig().spawn(agent(fleet, command, &namespace)?)?;
    let status = agent.wait(BOUND).await?.context("the agent goes on with a token that must be refused")?;
    ensure!(!status.success(), "{status}");
    ensure!(agent.log_tail(20).contains(token), "the agent said:\n{}", agent.log_tail(20));
    let secrets: Api<Secret> = Api::namespaced(cluster.client(), &namespace);
    let stored = secrets.list(&ListParams::default()).await?.items;
    ensure!(
        stored.is_empty(),
        "the spoke stored {:?}",
        stored.iter().map(|secret| &secret.metadata.name).collect::<Vec<_>>()
    );
    wait::until_true(&format!("the hub says {token}"), BOUND, async || {
        Ok(fleet.hub().log_tail(500).contains(token))
    })
    .await
}
