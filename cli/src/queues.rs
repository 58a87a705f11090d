//! `kubectl fairlead queues`: what waits, what holds quota, what is admitted, and whether the queue works.

use fairlead_api::Quantity;
use fairlead_api::conditions;
use fairlead_api::kueue::{ClusterQueue, LocalQueue};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::DynamicObject;

use crate::args::Queues;
use crate::failure::Failure;
use crate::hub::{Hub, pick};
use crate::output::Out;
use crate::table::Table;

/// Lists LocalQueues or ClusterQueues.
pub(crate) async fn run(hub: &Hub, options: &Queues, out: &mut Out) -> Result<(), Failure> {
    let api = match (options.whole_clusters, options.all_namespaces) {
        (true, _) => hub.all::<ClusterQueue>(),
        (false, true) => hub.all::<LocalQueue>(),
        (false, false) => hub.here::<LocalQueue>(),
    };
    // A name alone does not find an object among all namespaces, so there names choose from the whole list.
    let objects = if options.all_namespaces {
        let named = |object: &DynamicObject| {
            let name = object.metadata.name.as_ref();
            options.names.is_empty() || name.is_some_and(|name| options.names.contains(name))
        };
        pick(&api, &[]).await?.into_iter().filter(named).collect()
    } else {
        pick(&api, &options.names).await?
    };
    out.objects(&objects, |wide| {
        let mut rows = Vec::with_capacity(objects.len());
        for object in &objects {
            let row = if options.whole_clusters {
                Row::of_cluster_queue(&object.clone().try_parse()?)
            } else {
                Row::of_local_queue(&object.clone().try_parse()?)
            };
            rows.push(row);
        }
        Ok(table(
            &rows,
            &Columns { namespace: options.all_namespaces, cluster_queues: options.whole_clusters, wide },
        ))
    })
}

/// `flavor/resource=amount`, where there is an amount.
fn amount(flavor: &str, resource: &str, total: Option<&Quantity>) -> Option<String> {
    total.map(|total| format!("{flavor}/{resource}={total}"))
}

/// Which columns a table has.
struct Columns {
    namespace: bool,
    cluster_queues: bool,
    wide: bool,
}

/// What a row shows of either kind of queue.
struct Row {
    namespace: String,
    name: String,
    /// The ClusterQueue of a LocalQueue, the cohort of a ClusterQueue.
    behind: String,
    /// Pending, reserving, admitted.
    counts: [Option<i32>; 3],
    conditions: Vec<Condition>,
    /// Reserved amounts by flavor and resource.
    reserved: Vec<String>,
}

impl Row {
    fn of_local_queue(queue: &LocalQueue) -> Self {
        let status = queue.status.clone().unwrap_or_default();
        let reserved = status.flavors_reservation.iter().flat_map(|flavor| {
            flavor.resources.iter().filter_map(|used| amount(&flavor.name, &used.name, used.total.as_ref()))
        });
        Self {
            namespace: queue.metadata.namespace.clone().unwrap_or_default(),
            name: queue.metadata.name.clone().unwrap_or_default(),
            behind: queue.spec.cluster_queue.clone(),
            counts: [status.pending_workloads, status.reserving_workloads, status.admitted_workloads],
            reserved: reserved.collect(),
            conditions: status.conditions.clone(),
        }
    }

    fn of_cluster_queue(queue: &ClusterQueue) -> Self {
        let status = queue.status.clone().unwrap_or_default();
        let reserved = status.flavors_reservation.iter().flat_map(|flavor| {
            flavor.resources.iter().filter_map(|used| amount(&flavor.name, &used.name, used.total.as_ref()))
        });
        Self {
            namespace: String::new(),
            name: queue.metadata.name.clone().unwrap_or_default(),
            behind: queue.spec.cohort_name.clone().unwrap_or_else(|| "-".to_owned()),
            counts: [status.pending_workloads, status.reserving_workloads, status.admitted_workloads],
            reserved: reserved.collect(),
            conditions: status.conditions.clone(),
        }
    }

    fn active(&self) -> String {
        conditions::find(&self.conditions, conditions::ACTIVE)
            .map_or_else(|| "Unknown".into(), |c| c.status.clone())
    }

    fn why(&self) -> String {
        conditions::find(&self.conditions, conditions::ACTIVE)
            .filter(|condition| condition.status != conditions::Status::True.as_str())
            .map(|condition| format!("{}: {}", condition.reason, condition.message))
            .unwrap_or_default()
    }
}

fn table(rows: &[Row], columns: &Columns) -> Table {
    let mut titles = Vec::new();
    if columns.namespace {
        titles.push("NAMESPACE");
    }
    titles.push("NAME");
    titles.push(if columns.cluster_queues { "COHORT" } else { "CLUSTERQUEUE" });
    titles.extend(["PENDING", "RESERVING", "ADMITTED", "ACTIVE"]);
    if columns.wide {
        titles.push("RESERVED");
    }
    titles.push("WHY");
    let mut table = Table::new(titles, "No queues.");
    for row in rows {
        let mut cells = Vec::new();
        if columns.namespace {
            cells.push(row.namespace.clone());
        }
        cells.extend([row.name.clone(), row.behind.clone()]);
        cells.extend(row.counts.map(|count| count.map_or_else(|| "-".to_owned(), |count| count.to_string())));
        cells.push(row.active());
        if columns.wide {
            cells.push(if row.reserved.is_empty() { "-".to_owned() } else { row.reserved.join(",") });
        }
        cells.push(row.why());
        table.row(cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use fairlead_api::kueue::ClusterQueueSpec;
    use serde_json::{Value, json};

    use super::*;

    fn local(active: &str, reason: &str, message: &str) -> Value {
        json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "LocalQueue",
            "metadata": { "name": "train", "namespace": "team-a" },
            "spec": { "clusterQueue": "research" },
            "status": {
                "conditions": [{ "type": "Active", "status": active, "reason": reason, "message": message,
                                 "lastTransitionTime": "2026-12-01T08:00:00Z" }],
                "pendingWorkloads": 12,
                "reservingWorkloads": 3,
                "admittedWorkloads": 2,
                "flavorsReservation": [{ "name": "a100", "resources": [{ "name": "cpu", "total": "9" }] }],
            },
        })
    }

    fn columns(namespace: bool, wide: bool) -> Columns {
        Columns { namespace, cluster_queues: false, wide }
    }

    #[test]
    fn a_local_queue_that_does_not_work_says_why() {
        let row = Row::of_local_queue(
            &serde_json::from_value(local("False", "ClusterQueueDoesNotExist", "no ClusterQueue research"))
                .unwrap(),
        );
        let text = table(&[row], &columns(false, false)).render(Some(80));
        let expected = "\
NAME    CLUSTERQUEUE   PENDING   RESERVING   ADMITTED   ACTIVE   WHY
train   research       12        3           2          False
    ClusterQueueDoesNotExist: no ClusterQueue research
";
        assert_eq!(text, expected);
    }

    #[test]
    fn wide_and_all_namespaces_add_columns() {
        let row = Row::of_local_queue(&serde_json::from_value(local("True", "Ready", "works")).unwrap());
        let text = table(&[row], &columns(true, true)).render(None);
        assert!(text.starts_with("NAMESPACE   NAME "), "{text}");
        assert!(text.contains("a100/cpu=9"), "{text}");
        assert!(!text.contains("works"), "{text}");
    }

    #[test]
    fn a_cluster_queue_without_a_status_is_unknown_and_not_zero() {
        let row = Row::of_cluster_queue(&ClusterQueue::new("research", ClusterQueueSpec::default()));
        let columns = Columns { namespace: false, cluster_queues: true, wide: false };
        let text = table(&[row], &columns).render(None);
        assert_eq!(text.lines().nth(1), Some("research   -        -         -           -          Unknown"));
    }
}
