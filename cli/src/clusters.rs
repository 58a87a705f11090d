//! `kubectl fairlead clusters`: who has joined, and whether work can go there.

use fairlead_api::conditions::{self, ClusterCondition};
use fairlead_api::fairlead::Cluster;
use fairlead_api::labels;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::age;
use crate::args::Clusters;
use crate::failure::Failure;
use crate::hub::{Hub, pick};
use crate::output::Out;
use crate::table::Table;

const NOTHING: &str = "No clusters. Add one with: kubectl fairlead join NAME";

/// Lists clusters.
pub(crate) async fn run(hub: &Hub, options: &Clusters, out: &mut Out) -> Result<(), Failure> {
    let objects = pick(&hub.all::<Cluster>(), &options.names).await?;
    let now = Timestamp::now();
    out.objects(&objects, |wide| {
        let clusters = objects.iter().map(|object| Ok(object.clone().try_parse()?));
        Ok(table(&clusters.collect::<Result<Vec<Cluster>, Failure>>()?, wide, now))
    })
}

fn table(clusters: &[Cluster], wide: bool, now: Timestamp) -> Table {
    let mut titles = vec!["NAME", "CONNECTED", "SCHEDULABLE", "CLOUD", "GPUS", "FREE", "CERT", "AGE"];
    if wide {
        titles.extend(["PRESENCE", "NODES", "AGENT", "KUBERNETES"]);
    }
    titles.push("WHY");
    let mut table = Table::new(titles, NOTHING);
    for cluster in clusters {
        let mut cells = narrow_cells(cluster, now);
        if wide {
            cells.extend(wide_cells(cluster));
        }
        cells.push(why(conditions(cluster)));
        table.row(cells);
    }
    table
}

fn conditions(cluster: &Cluster) -> &[Condition] {
    cluster.status.as_ref().map_or(&[], |status| status.conditions.as_slice())
}

fn narrow_cells(cluster: &Cluster, now: Timestamp) -> Vec<String> {
    let status = cluster.status.as_ref();
    let condition = |type_: ClusterCondition| {
        conditions::find(conditions(cluster), type_.as_str())
            .map_or_else(|| "Unknown".into(), |c| c.status.clone())
    };
    let devices = status.and_then(|status| status.devices);
    let count = |count: Option<i64>| count.map_or_else(|| "-".to_owned(), |count| count.to_string());
    let expires = status.and_then(|status| status.identity.as_ref()?.expires_at.as_ref()).map(|time| time.0);
    let created = cluster.metadata.creation_timestamp.as_ref().map(|time| time.0);
    vec![
        cluster.metadata.name.clone().unwrap_or_default(),
        condition(ClusterCondition::Connected),
        condition(ClusterCondition::Schedulable),
        cluster.spec.labels.get(labels::CLOUD).cloned().unwrap_or_else(|| "-".to_owned()),
        count(devices.map(|devices| devices.total)),
        count(devices.map(|devices| devices.free)),
        age::until(expires, now),
        age::since(created, now),
    ]
}

fn wide_cells(cluster: &Cluster) -> Vec<String> {
    let status = cluster.status.as_ref();
    let dash = || "-".to_owned();
    let versions = status.and_then(|status| status.versions.as_ref());
    let version = |text: Option<&String>| text.filter(|text| !text.is_empty()).cloned().unwrap_or_else(dash);
    vec![
        status.and_then(|status| status.presence).map_or_else(dash, |presence| format!("{presence:?}")),
        status.and_then(|status| status.nodes).map_or_else(dash, |nodes| nodes.to_string()),
        version(versions.map(|versions| &versions.agent)),
        version(versions.map(|versions| &versions.kubernetes)),
    ]
}

/// The first condition that does not hold, in the order in which they build on each other.
fn why(conditions: &[Condition]) -> String {
    ClusterCondition::ALL
        .iter()
        .filter_map(|type_| conditions::find(conditions, type_.as_str()))
        .find(|condition| condition.status != conditions::Status::True.as_str())
        .map(|condition| format!("{}: {}", condition.reason, condition.message))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use fairlead_api::fairlead::ClusterSpec;
    use serde_json::json;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn cluster(name: &str, connected: &str, message: &str) -> Cluster {
        let condition = |type_: &str, status: &str, reason: &str| {
            json!({ "type": type_, "status": status, "reason": reason, "message": message,
                    "lastTransitionTime": "2026-12-01T08:00:00Z" })
        };
        let reason = if connected == "True" { "AsExpected" } else { "HeartbeatMissing" };
        serde_json::from_value(json!({
            "apiVersion": "fairlead.dev/v1alpha1",
            "kind": "Cluster",
            "metadata": { "name": name, "creationTimestamp": "2026-12-01T08:00:00Z" },
            "spec": { "labels": { "fairlead.dev/cloud": "aws" } },
            "status": {
                "conditions": [
                    condition("Schedulable", connected, reason),
                    condition("Registered", "True", "AsExpected"),
                    condition("Connected", connected, reason),
                ],
                "presence": "Fresh",
                "nodes": 4,
                "devices": { "total": 32, "free": 7 },
                "identity": { "fingerprint": "ab", "expiresAt": "2026-12-02T08:00:00Z" },
                "versions": { "agent": "0.1.0", "kubernetes": "v1.36.3" },
            },
        }))
        .unwrap()
    }

    #[test]
    fn a_row_says_whether_and_why_not() {
        let message = "no heartbeat for 41 s; next look in 10 s";
        let clusters = [cluster("aws-use1", "True", ""), cluster("gcp-euw4", "False", message)];
        let text = table(&clusters, false, at("2026-12-01T08:05:00Z")).render(Some(80));
        let expected = "\
NAME       CONNECTED   SCHEDULABLE   CLOUD   GPUS   FREE   CERT   AGE   WHY
aws-use1   True        True          aws     32     7      23h    5m
gcp-euw4   False       False         aws     32     7      23h    5m
    HeartbeatMissing: no heartbeat for 41 s; next look in 10 s
";
        assert_eq!(text, expected);
        assert!(text.lines().all(|line| line.len() <= 80));
    }

    #[test]
    fn wide_has_versions_and_one_line_a_cluster_in_a_pipe() {
        let text = table(&[cluster("a", "True", "")], true, at("2026-12-01T08:05:00Z")).render(None);
        assert_eq!(text.lines().count(), 2);
        for part in ["Fresh", "4", "0.1.0", "v1.36.3"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn a_cluster_that_nobody_joined_yet_has_a_row_too() {
        let text = table(&[Cluster::new("new", ClusterSpec::default())], false, at("2026-12-01T08:05:00Z"))
            .render(None);
        assert!(text.lines().nth(1).is_some_and(|row| row.starts_with("new    Unknown")), "{text}");
    }
}
