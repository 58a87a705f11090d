//! Roles for people: Kueue's names and aggregation labels, so that bindings and aggregations of its users go on working.
//!
//! `kueue-batch-admin-role` and `kueue-batch-user-role` are put together by the API server from every role with their label,
//! an administrator's own ones included.

use serde_json::{Value, json};

use super::rbac::{object, role, rule};
use super::yaml;
use crate::{fairlead, kueue};

const ADMIN: &str = "rbac.kueue.x-k8s.io/batch-admin";
const USER: &str = "rbac.kueue.x-k8s.io/batch-user";
const VIEW: &str = "rbac.authorization.k8s.io/aggregate-to-view";
const EDIT: &str = "rbac.authorization.k8s.io/aggregate-to-edit";
const ROOT: &str = "rbac.authorization.k8s.io/aggregate-to-admin";
const EDITING: [&str; 7] = ["create", "delete", "get", "list", "patch", "update", "watch"];
const READING: [&str; 3] = ["get", "list", "watch"];
const VISIBILITY: &str = "visibility.kueue.x-k8s.io";

const HEAD: &str = "\
Roles for people, with the names and aggregation labels of Kueue's. Bind kueue-batch-admin-role to whoever runs the
queues, and kueue-batch-user-role, by a RoleBinding in their namespace, to whoever submits jobs. A role of your own joins
them with the label rbac.kueue.x-k8s.io/batch-admin or rbac.kueue.x-k8s.io/batch-user (value \"true\").";

/// A kind that people edit and view.
struct Subject {
    name: &'static str,
    group: &'static str,
    resources: &'static [&'static str],
    edited_by: &'static [&'static str],
    viewed_by: &'static [&'static str],
}

const fn subject(
    name: &'static str,
    (group, resources): (&'static str, &'static [&'static str]),
    edited_by: &'static [&'static str],
    viewed_by: &'static [&'static str],
) -> Subject {
    Subject { name, group, resources, edited_by, viewed_by }
}

const SUBJECTS: [Subject; 10] = [
    subject(
        "kueue-clusterqueue",
        (kueue::GROUP, &["clusterqueues", "clusterqueues/status"]),
        &[ADMIN],
        &[ADMIN],
    ),
    subject("kueue-cohort", (kueue::GROUP, &["cohorts", "cohorts/status"]), &[ADMIN], &[ADMIN]),
    subject(
        "kueue-localqueue",
        (kueue::GROUP, &["localqueues", "localqueues/status"]),
        &[ADMIN],
        &[ADMIN, USER, VIEW, EDIT, ROOT],
    ),
    subject("kueue-resourceflavor", (kueue::GROUP, &["resourceflavors"]), &[ADMIN], &[ADMIN]),
    subject("kueue-topology", (kueue::GROUP, &["topologies"]), &[ADMIN], &[ADMIN]),
    subject(
        "kueue-workload",
        (kueue::GROUP, &["workloads", "workloads/status"]),
        &[ADMIN],
        &[ADMIN, USER, VIEW, EDIT, ROOT],
    ),
    subject("kueue-workloadpriorityclass", (kueue::GROUP, &["workloadpriorityclasses"]), &[ADMIN], &[ADMIN]),
    subject("kueue-job", ("batch", &["jobs", "jobs/status"]), &[ADMIN, USER], &[ADMIN, USER]),
    subject("fairlead-cluster", (fairlead::GROUP, &["clusters", "clusters/status"]), &[ADMIN], &[ADMIN]),
    subject("fairlead-placementpolicy", (fairlead::GROUP, &["placementpolicies"]), &[ADMIN], &[ADMIN]),
];

/// Every role for people.
pub(super) fn people() -> String {
    let mut roles =
        vec![aggregate("kueue-batch-admin-role", ADMIN), aggregate("kueue-batch-user-role", USER)];
    for subject in &SUBJECTS {
        let editing = rule(subject.group, subject.resources, &EDITING);
        let viewing = rule(subject.group, subject.resources, &READING);
        roles.push(labelled(&format!("{}-editor-role", subject.name), &[editing], subject.edited_by));
        roles.push(labelled(&format!("{}-viewer-role", subject.name), &[viewing], subject.viewed_by));
    }
    let pending = |queues: &str| rule(VISIBILITY, &[&format!("{queues}/pendingworkloads")], &["get"]);
    roles.push(labelled("kueue-pending-workloads-cq-viewer-role", &[pending("clusterqueues")], &[ADMIN]));
    roles.push(labelled("kueue-pending-workloads-lq-viewer-role", &[pending("localqueues")], &[ADMIN, USER]));
    let metrics = json!({"nonResourceURLs": ["/metrics"], "verbs": ["get"]});
    roles.push(labelled("kueue-metrics-reader", &[metrics], &[]));
    yaml::documents(
        roles.iter().enumerate().map(|(number, role)| (if number == 0 { HEAD } else { "" }, role)),
    )
}

fn aggregate(name: &str, label: &str) -> Value {
    let mut labels = serde_json::Map::new();
    labels.insert(label.to_owned(), json!("true"));
    let fields = json!({
        // Without rules: they are the API server's, and who applies this again must not claim them.
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": labels}]},
    });
    object("rbac.authorization.k8s.io/v1", "ClusterRole", name, None, fields)
}

fn labelled(name: &str, rules: &[Value], labels: &[&str]) -> Value {
    let mut role = role("ClusterRole", name, None, rules);
    for label in labels {
        role["metadata"]["labels"][*label] = json!("true");
    }
    role
}
