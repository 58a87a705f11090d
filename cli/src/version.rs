//! `kubectl fairlead version`: this command, the hub, the spokes, and whether they go together.

use fairlead_api::conditions::{self, ClusterCondition};
use fairlead_api::fairlead::Cluster;
use fairlead_api::labels;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::ListParams;
use serde::Serialize;

use crate::args::{Connection, Version};
use crate::failure::Failure;
use crate::hub::{Hub, explain_missing_kind};
use crate::output::{Format, Out};
use crate::table::Table;

/// The version of this command.
const OWN: &str = env!("CARGO_PKG_VERSION");

/// One program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Component {
    /// `client`, `hub`, or `spoke/NAME`.
    name: String,
    /// Its version; absent when it has not said.
    version: Option<String>,
    /// The version of its Kubernetes API server.
    kubernetes: Option<String>,
    /// Why it does not go together with the hub; absent when it does, or has not said.
    skew: Option<String>,
}

/// All of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Versions {
    components: Vec<Component>,
}

/// Prints the versions.
pub(crate) async fn run(connection: &Connection, options: &Version, out: &mut Out) -> Result<(), Failure> {
    let mut components =
        vec![Component { name: "client".into(), version: Some(OWN.into()), kubernetes: None, skew: None }];
    if !options.client {
        let hub = Hub::connect(connection).await?;
        components.push(hub_component(&hub).await?);
        let clusters: Api<Cluster> = Api::all(hub.client.clone());
        let list = clusters.list(&ListParams::default()).await.map_err(explain_missing_kind)?;
        components.extend(list.items.iter().map(spoke_component));
    }
    match out.format() {
        Format::Json | Format::Yaml => out.value(&Versions { components }),
        Format::Name => {
            out.text(&components.iter().map(|c| format!("{}\n", c.name)).collect::<Vec<_>>().concat())
        }
        Format::Table | Format::Wide => {
            let text = table(&components).render(out.width());
            out.text(&text)
        }
    }
}

async fn hub_component(hub: &Hub) -> Result<Component, Failure> {
    let kubernetes = hub.client.apiserver_version().await?.git_version;
    let maps: Api<ConfigMap> = Api::namespaced(hub.client.clone(), labels::SYSTEM_NAMESPACE);
    // A user need not be allowed to read it; then the hub's version is simply not known.
    let map = maps.get_opt("fairlead-gateway").await.ok().flatten();
    let version = map.and_then(|map| map.data?.remove("version"));
    let skew = version.as_deref().and_then(client_skew);
    Ok(Component { name: "hub".into(), version, kubernetes: Some(kubernetes), skew })
}

/// The client follows the hub: another minor version may not know its fields.
fn client_skew(hub: &str) -> Option<String> {
    let minor = |version: &str| version.split('.').take(2).collect::<Vec<_>>().join(".");
    (minor(hub) != minor(OWN)).then(|| format!("this command is {OWN}; use the one of the hub's version"))
}

fn spoke_component(cluster: &Cluster) -> Component {
    let status = cluster.status.clone().unwrap_or_default();
    let versions = status.versions.unwrap_or_default();
    let filled = |text: String| Some(text).filter(|text| !text.is_empty());
    let skew = conditions::find(&status.conditions, ClusterCondition::VersionCompatible.as_str())
        .filter(|condition| condition.status == conditions::Status::False.as_str())
        .map(|condition| format!("{}: {}", condition.reason, condition.message));
    Component {
        name: format!("spoke/{}", cluster.metadata.name.as_deref().unwrap_or_default()),
        version: filled(versions.agent),
        kubernetes: filled(versions.kubernetes),
        skew,
    }
}

fn table(components: &[Component]) -> Table {
    let mut table = Table::new(["COMPONENT", "VERSION", "KUBERNETES", "SKEW"], "Nothing.");
    for component in components {
        let shown = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        table.row([
            component.name.clone(),
            shown(&component.version),
            shown(&component.kubernetes),
            component.skew.clone().unwrap_or_default(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use fairlead_api::fairlead::{ClusterSpec, ClusterStatus};

    use super::*;

    #[test]
    fn spokes_without_a_word_yet_and_skew_are_shown() {
        let mut cluster = Cluster::new("new", ClusterSpec::default());
        let quiet = spoke_component(&cluster);
        let wanted = conditions::Wanted::new(
            ClusterCondition::VersionCompatible,
            false,
            "VersionSkew",
            "agent 0.9 is too new",
        );
        let mut status = ClusterStatus::default();
        let time = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH);
        conditions::set_condition(&mut status.conditions, wanted, &time);
        cluster.status = Some(status);
        let text = table(&[quiet, spoke_component(&cluster)]).render(Some(80));
        let expected = "\
COMPONENT   VERSION   KUBERNETES   SKEW
spoke/new   -         -
spoke/new   -         -            VersionSkew: agent 0.9 is too new
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_patch_level_is_no_skew() {
        let patch = format!("{}.99", OWN.rsplit_once('.').unwrap().0);
        assert_eq!(client_skew(&patch), None);
        assert!(client_skew("99.0.0").is_some());
    }
}
