//! The roles grant what is needed, and what matters they do not grant.

use anyhow::{Context, Result, ensure};
use fairlead_api::manifests;
use fairlead_multicluster::rig::Cluster;
use http::Method;
use kube::Client;
use serde_json::{Value, json};

use crate::send;

const HUB: &str = "system:serviceaccount:fairlead-system:fairlead-hub";
const AGENT: &str = "system:serviceaccount:fairlead-system:fairlead-agent";
const TENANT: &str = "system:serviceaccount:team-a:fairlead-tenant";

/// Who, may they, verb, group, resource, namespace (empty: all), name (empty: any).
type Row = (&'static str, bool, &'static str, &'static str, &'static str, &'static str, &'static str);

const ROWS: &[Row] = &[
    (HUB, true, "patch", "kueue.x-k8s.io", "workloads/status", "team-a", ""),
    (HUB, true, "create", "kueue.x-k8s.io", "workloads", "team-a", ""),
    (HUB, true, "patch", "batch", "jobs/status", "team-a", ""),
    (HUB, true, "unsuspend", "fairlead.dev", "jobs", "team-a", ""),
    (HUB, true, "get", "", "secrets", "fairlead-system", ""),
    (HUB, true, "update", "fairlead.dev", "hubstates", "", "fairlead"),
    (HUB, false, "update", "fairlead.dev", "hubstates", "", "other"),
    (HUB, false, "get", "", "secrets", "team-a", ""),
    (HUB, false, "create", "batch", "jobs", "team-a", ""),
    (HUB, true, "delete", "batch", "jobs", "team-a", ""),
    (HUB, false, "create", "", "pods", "team-a", ""),
    (HUB, false, "impersonate", "", "serviceaccounts", "team-a", ""),
    (HUB, false, "create", "rbac.authorization.k8s.io", "clusterrolebindings", "", ""),
    (HUB, false, "update", "apiextensions.k8s.io", "customresourcedefinitions", "", ""),
    (HUB, false, "update", "fairlead.dev", "spokepolicies", "", ""),
    (AGENT, true, "watch", "", "nodes", "", ""),
    (AGENT, true, "watch", "", "pods", "", ""),
    (AGENT, true, "watch", "batch", "jobs", "", ""),
    (AGENT, true, "impersonate", "", "serviceaccounts", "team-a", "fairlead-tenant"),
    (AGENT, false, "impersonate", "", "serviceaccounts", "team-a", "default"),
    (AGENT, false, "impersonate", "", "serviceaccounts", "team-b", "fairlead-tenant"),
    (AGENT, false, "impersonate", "", "users", "", "admin"),
    (AGENT, false, "impersonate", "", "groups", "", "system:masters"),
    (AGENT, false, "create", "batch", "jobs", "team-a", ""),
    (AGENT, false, "delete", "batch", "jobs", "team-a", ""),
    (AGENT, false, "get", "", "secrets", "team-a", ""),
    (AGENT, false, "update", "fairlead.dev", "spokepolicies", "", "fairlead"),
    (AGENT, false, "create", "rbac.authorization.k8s.io", "rolebindings", "team-a", ""),
    (TENANT, true, "create", "batch", "jobs", "team-a", ""),
    (TENANT, true, "get", "", "secrets", "team-a", "registry-credentials"),
    (TENANT, false, "get", "", "secrets", "team-a", "another"),
    (TENANT, false, "list", "", "secrets", "team-a", ""),
    (TENANT, false, "create", "batch", "jobs", "team-b", ""),
    (TENANT, false, "create", "", "pods", "team-a", ""),
    (TENANT, false, "create", "rbac.authorization.k8s.io", "roles", "team-a", ""),
];

pub(crate) async fn check(cluster: &Cluster) -> Result<()> {
    let example = manifests::files().into_iter().find(|file| file.path.contains("/examples/"));
    cluster.apply(&example.context("no example")?.text).await?;
    let client = cluster.client();
    let mut wrong = Vec::new();
    for row in ROWS {
        if allowed(&client, row).await? != row.1 {
            wrong.push(row);
        }
    }
    ensure!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

async fn allowed(client: &Client, row: &Row) -> Result<bool> {
    let (user, _, verb, group, resource, namespace, name) = *row;
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": user, "resourceAttributes": {
            "verb": verb, "group": group, "resource": resource, "subresource": subresource,
            "namespace": namespace, "name": name,
        }},
    });
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let answer = send(client, Method::POST, path, &review).await?;
    answer.pointer("/status/allowed").and_then(Value::as_bool).context("no answer")
}
