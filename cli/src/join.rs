//! `kubectl fairlead join NAME`: a Cluster, a token for it, and the command that redeems it.
//!
//! Nothing is sent to the spoke. The token is shown once and stored hashed, in a Secret that goes with the Cluster.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fairlead_api::fairlead::{Cluster, ClusterSpec};
use fairlead_api::labels;
use fairlead_pki::{JOIN_TOKEN_LIFE, JoinToken, JoinTokenRecord, UnixTime};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde_json::json;

use crate::args::{DryRun, Join};
use crate::failure::{Exit, Failure};
use crate::hub::{Hub, explain_missing_kind};
use crate::output::{Format, Out};

/// Where the hub says how it is reached.
const GATEWAY: &str = "fairlead-gateway";

/// What is to be run on the spoke.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Invitation {
    /// The cluster's name.
    name: String,
    /// Where the hub is: `HOST:PORT`.
    hub: String,
    /// Whom to trust there.
    ca_pin: String,
    /// The token, in the clear. It is nowhere else.
    token: String,
    /// When it ends.
    expires: jiff::Timestamp,
    /// The whole command.
    command: String,
}

/// Creates what is missing and prints the command.
pub(crate) async fn run(hub: &Hub, options: &Join, out: &mut Out) -> Result<(), Failure> {
    let (address, ca_pin) = gateway(hub).await?;
    if options.dry_run == Some(DryRun::Client) {
        out.message(format_args!(
            "Dry run: cluster {} and a token for it would be stored. Nothing is.",
            options.name
        ));
        return Ok(());
    }
    let cluster = cluster(hub, options).await?;
    let token = fresh_token()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let record =
        JoinTokenRecord::new(&token, &options.name, UnixTime::since_unix_epoch(now), JOIN_TOKEN_LIFE);
    let secrets: Api<Secret> = Api::namespaced(hub.client.clone(), labels::SYSTEM_NAMESPACE);
    secrets.create(&post(options), &secret(&token, &record, &cluster)?).await.map_err(|error| {
        Failure::from(error).during(format_args!("store the token in {}", labels::SYSTEM_NAMESPACE))
    })?;
    if on_server(options) {
        out.message(format_args!(
            "Dry run: the hub takes cluster {} and a token for it. Nothing is stored.",
            options.name
        ));
        return Ok(());
    }
    let mut invitation = invitation(&options.name, address, ca_pin, &token, record.expires_at);
    if let Some(chart) = &options.helm {
        invitation.command = helm_command(&invitation, chart);
    }
    show(&invitation, out)
}

fn show(invitation: &Invitation, out: &mut Out) -> Result<(), Failure> {
    match out.format() {
        Format::Json | Format::Yaml => out.value(invitation),
        Format::Name => out.text(&format!("cluster.fairlead.dev/{}\n", invitation.name)),
        Format::Table | Format::Wide => {
            out.message(format_args!(
                "Run this where the kubeconfig of {} is, within {} minutes. It works once.\n",
                invitation.name,
                JOIN_TOKEN_LIFE.as_secs() / 60
            ));
            out.text(&format!("{}\n", invitation.command))
        }
    }
}

/// Address and pin, from where the hub writes them when it starts.
async fn gateway(hub: &Hub) -> Result<(String, String), Failure> {
    let maps: Api<ConfigMap> = Api::namespaced(hub.client.clone(), labels::SYSTEM_NAMESPACE);
    let Some(map) = maps.get_opt(GATEWAY).await? else {
        let message = format!(
            "there is no ConfigMap {}/{GATEWAY}: the hub has not started here; is the context the hub's?",
            labels::SYSTEM_NAMESPACE
        );
        return Err(Failure::new(Exit::NotFound, message));
    };
    let data = map.data.unwrap_or_default();
    let part = |key: &str| {
        data.get(key).cloned().ok_or_else(|| {
            let message = format!("the ConfigMap {}/{GATEWAY} lacks {key}", labels::SYSTEM_NAMESPACE);
            Failure::new(Exit::Error, message)
        })
    };
    Ok((part("address")?, part("caPin")?))
}

/// The Cluster of that name: the existing one, with the labels that were given, or a new one.
async fn cluster(hub: &Hub, options: &Join) -> Result<Cluster, Failure> {
    let clusters: Api<Cluster> = Api::all(hub.client.clone());
    let labels: std::collections::BTreeMap<_, _> = options.labels.iter().cloned().collect();
    match clusters.get_opt(&options.name).await.map_err(explain_missing_kind)? {
        Some(cluster) if cluster.metadata.deletion_timestamp.is_some() => {
            let message = format!("cluster {} is being deleted; try again when it is gone", options.name);
            Err(Failure::new(Exit::Error, message))
        }
        Some(cluster) if labels.is_empty() => Ok(cluster),
        Some(_) => {
            let mut parameters = PatchParams { field_manager: Some(manager()), ..PatchParams::default() };
            parameters.dry_run = on_server(options);
            let patch = Patch::Merge(json!({ "spec": { "labels": labels } }));
            Ok(clusters.patch(&options.name, &parameters, &patch).await?)
        }
        None => {
            let cluster = Cluster::new(&options.name, ClusterSpec { labels, ..ClusterSpec::default() });
            let created = clusters.create(&post(options), &cluster).await;
            Ok(created.map_err(explain_missing_kind)?)
        }
    }
}

fn post(options: &Join) -> PostParams {
    PostParams { dry_run: on_server(options), field_manager: Some(manager()) }
}

fn on_server(options: &Join) -> bool {
    options.dry_run == Some(DryRun::Server)
}

fn manager() -> String {
    labels::FieldManager::Cli.as_str().to_owned()
}

fn fresh_token() -> Result<JoinToken, Failure> {
    let mut entropy = [0; JoinToken::ENTROPY];
    getrandom::fill(&mut entropy).map_err(|error| {
        Failure::new(Exit::Error, format!("the operating system gives no random numbers: {error}"))
    })?;
    Ok(JoinToken::from_entropy(&entropy))
}

/// The Secret that holds the record. It belongs to the Cluster: who deletes that deletes its tokens.
fn secret(token: &JoinToken, record: &JoinTokenRecord, cluster: &Cluster) -> Result<Secret, Failure> {
    let mut secret = Secret {
        type_: Some(labels::JOIN_TOKEN.to_owned()),
        string_data: Some([("record".to_owned(), serde_json::to_string(record)?)].into()),
        ..Secret::default()
    };
    secret.metadata.name = Some(format!("fairlead-join-{}", token.id()));
    secret.labels_mut().insert(labels::JOIN_TOKEN.to_owned(), labels::TRUE.to_owned());
    secret.metadata.owner_references = cluster.owner_ref(&()).map(|owner| vec![owner]);
    Ok(secret)
}

fn invitation(name: &str, hub: String, ca_pin: String, token: &JoinToken, expires_at: u64) -> Invitation {
    let token = token.expose().to_owned();
    let expires = i64::try_from(expires_at).ok().and_then(|second| jiff::Timestamp::from_second(second).ok());
    // Not as an argument: those are seen by everybody who may list the processes of the machine.
    let command = format!(
        "FAIRLEAD_JOIN_TOKEN={token} fairlead-spoke join --hub {hub} --ca-pin {ca_pin} --name {name}"
    );
    let expires = expires.unwrap_or(jiff::Timestamp::MAX);
    Invitation { name: name.to_owned(), hub, ca_pin, token, expires, command }
}

/// The same as an installation of the agent's chart.
fn helm_command(invitation: &Invitation, chart: &str) -> String {
    let Invitation { name, hub, ca_pin, token, .. } = invitation;
    format!(
        "helm upgrade --install fairlead-spoke {chart} --namespace {} --create-namespace \\\n  \
         --set hub.address={hub} --set hub.caPin={ca_pin} --set cluster.name={name} --set join.token={token}",
        labels::SYSTEM_NAMESPACE
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> JoinToken {
        JoinToken::from_entropy(&[7; JoinToken::ENTROPY])
    }

    #[test]
    fn the_command_has_everything_that_the_spoke_needs() {
        let token = token();
        let made = invitation("aws-use1", "127.0.0.1:7443".into(), "sha256:ab".into(), &token, 900);
        let expected = format!(
            "FAIRLEAD_JOIN_TOKEN={} fairlead-spoke join --hub 127.0.0.1:7443 --ca-pin sha256:ab --name aws-use1",
            token.expose()
        );
        assert_eq!(made.command, expected);
        assert_eq!(made.expires, jiff::Timestamp::from_second(900).unwrap());
    }

    #[test]
    fn the_helm_command_sets_the_same() {
        let token = token();
        let made = invitation("aws-use1", "127.0.0.1:7443".into(), "sha256:ab".into(), &token, 900);
        let command = helm_command(&made, "charts/fairlead-spoke");
        assert!(
            command.starts_with("helm upgrade --install fairlead-spoke charts/fairlead-spoke --namespace")
        );
        for set in ["hub.address=127.0.0.1:7443", "hub.caPin=sha256:ab", "cluster.name=aws-use1"] {
            assert!(command.contains(&format!("--set {set} ")), "{command}");
        }
        assert!(command.ends_with(&format!("--set join.token={}", token.expose())), "{command}");
    }

    #[test]
    fn what_is_stored_belongs_to_the_cluster_and_does_not_hold_the_token() {
        let token = token();
        let record =
            JoinTokenRecord::new(&token, "a", UnixTime::since_unix_epoch(Duration::ZERO), JOIN_TOKEN_LIFE);
        let mut cluster = Cluster::new("a", ClusterSpec::default());
        cluster.metadata.uid = Some("uid-1".to_owned());
        let secret = secret(&token, &record, &cluster).unwrap();
        let text = serde_json::to_string(&secret).unwrap();
        let proof = token.expose().rsplit('.').next().unwrap();
        assert!(!text.contains(proof), "{text}");
        assert_eq!(secret.metadata.name, Some(format!("fairlead-join-{}", token.id())));
        assert_eq!(secret.metadata.owner_references.unwrap()[0].uid, "uid-1");
        let stored: JoinTokenRecord = serde_json::from_str(&secret.string_data.unwrap()["record"]).unwrap();
        assert_eq!((stored.cluster.as_str(), stored.expires_at), ("a", 900));
    }
}
