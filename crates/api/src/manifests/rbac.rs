//! Roles of the hub, of the agent, and of the service accounts that the agent impersonates.
//!
//! Each rule says what it is for. Nothing here may write RBAC, and nothing of the hub grants a right on a spoke.

use serde_json::{Value, json};

use super::yaml;
use crate::labels::{
    AGENT_IDENTITY, AGENT_SERVICE_ACCOUNT, HUB_SERVICE_ACCOUNT, HUB_STATE_NAME, SYSTEM_NAMESPACE,
    TENANT_SERVICE_ACCOUNT, UNSUSPEND_VERB, VISIBILITY_API_SERVICE,
};
use crate::{fairlead, kueue};

const READ: [&str; 3] = ["get", "list", "watch"];
const CHANGE: [&str; 2] = ["patch", "update"];
const WRITE: [&str; 4] = ["create", "delete", "patch", "update"];
const CORE: &str = "";
const BATCH: &str = "batch";
const EVENTS: &str = "events.k8s.io";
const COORDINATION: &str = "coordination.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";

const HUB: &str = "\
The hub. It reads queues and Jobs, writes Workloads and statuses, and starts home jobs. It reads Secrets in its
own namespace only, and holds nothing that grants rights on a spoke.";

const FRONT_PROXY: &str =
    "How the API server's front proxy, which passes requests to the visibility API on, is known.";

/// The namespace of hub and agent. It refuses pods that are not restricted.
pub(super) fn namespace() -> String {
    let mut namespace = object("v1", "Namespace", SYSTEM_NAMESPACE, None, json!({}));
    namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = json!("restricted");
    yaml::document("", &namespace)
}

/// The hub's service account and roles.
pub(super) fn hub() -> String {
    let account = object("v1", "ServiceAccount", HUB_SERVICE_ACCOUNT, Some(SYSTEM_NAMESPACE), json!({}));
    let cluster_role = role("ClusterRole", HUB_SERVICE_ACCOUNT, None, &hub_rules());
    let role = role("Role", HUB_SERVICE_ACCOUNT, Some(SYSTEM_NAMESPACE), &hub_own_rules());
    let subject = (HUB_SERVICE_ACCOUNT, SYSTEM_NAMESPACE);
    yaml::documents([
        (HUB, &account),
        ("", &cluster_role),
        ("", &binding("ClusterRoleBinding", None, ("ClusterRole", HUB_SERVICE_ACCOUNT), subject)),
        ("Leases, the CA, join tokens and the gateway's address, in the hub's namespace.", &role),
        ("", &binding("RoleBinding", Some(SYSTEM_NAMESPACE), ("Role", HUB_SERVICE_ACCOUNT), subject)),
        (FRONT_PROXY, &front_proxy_reader(subject)),
    ])
}

/// Kubernetes' own Role, bound under a name of ours.
fn front_proxy_reader(subject: (&str, &str)) -> Value {
    let role = ("Role", "extension-apiserver-authentication-reader");
    let mut binding = binding("RoleBinding", Some("kube-system"), role, subject);
    binding["metadata"]["name"] = json!("fairlead-visibility-auth-reader");
    binding
}

fn hub_rules() -> Vec<Value> {
    let queues =
        ["clusterqueues", "localqueues", "cohorts", "resourceflavors", "topologies", "admissionchecks"];
    let classes = ["workloadpriorityclasses", "multikueueconfigs", "multikueueclusters"];
    let statuses = [
        "clusterqueues/status",
        "localqueues/status",
        "cohorts/status",
        "admissionchecks/status",
        "multikueueclusters/status",
        "workloads/status",
    ];
    vec![
        rule(kueue::GROUP, &queues, &READ),
        // The finalizer that protects what is in use, and the label on federated LocalQueues.
        rule(kueue::GROUP, &queues, &CHANGE),
        rule(kueue::GROUP, &classes, &READ),
        rule(kueue::GROUP, &["workloads"], &READ),
        rule(kueue::GROUP, &["workloads"], &WRITE),
        rule(kueue::GROUP, &statuses, &CHANGE),
        rule(fairlead::GROUP, &["clusters", "placementpolicies"], &READ),
        rule(
            fairlead::GROUP,
            &["clusters/status", "placementpolicies/status", "hubstates/status", "tombstones/status"],
            &CHANGE,
        ),
        rule(fairlead::GROUP, &["hubstates"], &["create", "list", "watch"]),
        named(rule(fairlead::GROUP, &["hubstates"], &["get", "patch", "update"]), &[HUB_STATE_NAME]),
        rule(fairlead::GROUP, &["tombstones"], &READ),
        rule(fairlead::GROUP, &["tombstones"], &WRITE),
        // No such resource exists: the admission policy fairlead-queued-jobs asks for this verb.
        rule(fairlead::GROUP, &["jobs"], &[UNSUSPEND_VERB]),
        rule(BATCH, &["jobs"], &READ),
        rule(BATCH, &["jobs", "jobs/status"], &CHANGE),
        // Jobs whose time to be kept is over.
        rule(BATCH, &["jobs"], &["delete"]),
        // Workloads are owned by their Jobs and block their deletion.
        rule(BATCH, &["jobs/finalizers"], &["update"]),
        rule(CORE, &["namespaces"], &READ),
        // What pods request by default, and the nodes and pods of the hub's own cluster, for topologies.
        rule(CORE, &["limitranges", "nodes", "pods"], &READ),
        rule("node.k8s.io", &["runtimeclasses"], &READ),
        // Pods of home jobs wait at a gate until they are told their place.
        rule(CORE, &["pods"], &["patch"]),
        // A Job without a WorkloadPriorityClass has the priority of its pods.
        rule("scheduling.k8s.io", &["priorityclasses"], &READ),
        rule(EVENTS, &["events"], &["create", "patch"]),
        // Who scrapes metrics or looks at queues, and whether they may.
        rule("authentication.k8s.io", &["tokenreviews"], &["create"]),
        rule("authorization.k8s.io", &["subjectaccessreviews"], &["create"]),
        // Whom the API server trusts as the visibility API.
        named(rule("apiregistration.k8s.io", &["apiservices"], &["get", "patch"]), &[VISIBILITY_API_SERVICE]),
        // The hub refuses to run on definitions without its schema's marker.
        rule("apiextensions.k8s.io", &["customresourcedefinitions"], &["get"]),
    ]
}

fn hub_own_rules() -> Vec<Value> {
    vec![
        rule(COORDINATION, &["leases"], &READ),
        rule(COORDINATION, &["leases"], &["create", "patch", "update"]),
        rule(CORE, &["secrets"], &READ),
        rule(CORE, &["secrets"], &WRITE),
        // The gateway's address and the CA's pin, for `kubectl fairlead join`.
        rule(CORE, &["configmaps"], &["create", "get", "patch", "update"]),
    ]
}

const AGENT: &str = "\
The agent. It reads what it reports (nodes, pods, Jobs, namespaces, the SpokePolicy) and writes nothing in any
tenant's namespace under its own name: there it impersonates the one service account that the SpokePolicy names.
It reads no Secret outside its own namespace, and cannot write RBAC.";

const IMPERSONATOR: &str = "\
Lets the agent act as a tenant's service account. Bind it with a RoleBinding in each tenant's namespace, never
with a ClusterRoleBinding: the binding's namespace is the limit. examples/tenant.yaml shows one.";

const TENANT: &str = "\
What the impersonated service account may do in a tenant's namespace: create and delete Jobs, and see whether
what they refer to exists. Secrets are not in it; examples/tenant.yaml names those that may be referenced.";

/// The agent's service account and roles, and the roles to bind in a tenant's namespace.
pub(super) fn spoke() -> String {
    let account = object("v1", "ServiceAccount", AGENT_SERVICE_ACCOUNT, Some(SYSTEM_NAMESPACE), json!({}));
    let impersonate = named(rule(CORE, &["serviceaccounts"], &["impersonate"]), &[TENANT_SERVICE_ACCOUNT]);
    let subject = (AGENT_SERVICE_ACCOUNT, SYSTEM_NAMESPACE);
    yaml::documents([
        (AGENT, &account),
        ("", &role("ClusterRole", AGENT_SERVICE_ACCOUNT, None, &agent_rules())),
        ("", &binding("ClusterRoleBinding", None, ("ClusterRole", AGENT_SERVICE_ACCOUNT), subject)),
        (
            "The floor, the certificate and the lease of the agent, in its own namespace.",
            &role("Role", AGENT_SERVICE_ACCOUNT, Some(SYSTEM_NAMESPACE), &agent_own_rules()),
        ),
        ("", &binding("RoleBinding", Some(SYSTEM_NAMESPACE), ("Role", AGENT_SERVICE_ACCOUNT), subject)),
        (IMPERSONATOR, &role("ClusterRole", "fairlead-agent-impersonator", None, &[impersonate])),
        (TENANT, &role("ClusterRole", TENANT_SERVICE_ACCOUNT, None, &tenant_rules())),
    ])
}

fn agent_rules() -> Vec<Value> {
    vec![
        rule(CORE, &["nodes", "pods", "namespaces"], &READ),
        rule(BATCH, &["jobs"], &READ),
        rule(fairlead::GROUP, &["spokepolicies"], &READ),
        rule(fairlead::GROUP, &["spokepolicies/status"], &CHANGE),
        rule("apiextensions.k8s.io", &["customresourcedefinitions"], &["get"]),
    ]
}

fn agent_own_rules() -> Vec<Value> {
    vec![
        rule(CORE, &["configmaps", "secrets"], &["create", "get", "patch", "update"]),
        // A refused join leaves nothing: the key it was made with goes.
        named(rule(CORE, &["secrets"], &["delete"]), &[AGENT_IDENTITY]),
        rule(COORDINATION, &["leases"], &["create", "get", "patch", "update"]),
        rule(EVENTS, &["events"], &["create", "patch"]),
    ]
}

fn tenant_rules() -> Vec<Value> {
    vec![
        rule(BATCH, &["jobs"], &["create", "delete", "get", "patch", "update"]),
        // A Job with our finalizer is deleted in the foreground.
        rule(BATCH, &["jobs/finalizers"], &["update"]),
        rule(CORE, &["configmaps", "persistentvolumeclaims", "serviceaccounts"], &["get"]),
    ]
}

const EXAMPLE: &str = "\
An example, not part of the chart: what a spoke's administrator applies for one tenant, here the namespace
`team-a`. The SpokePolicy says what the hub may do there, and RBAC makes it so.";

/// What an administrator applies for one tenant.
pub(super) fn tenant_example() -> String {
    const NAMESPACE: &str = "team-a";
    let secret = named(rule(CORE, &["secrets"], &["get"]), &["registry-credentials"]);
    let account = object("v1", "ServiceAccount", TENANT_SERVICE_ACCOUNT, Some(NAMESPACE), json!({}));
    let tenant = (TENANT_SERVICE_ACCOUNT, NAMESPACE);
    let agent = (AGENT_SERVICE_ACCOUNT, SYSTEM_NAMESPACE);
    yaml::documents([
        (EXAMPLE, &spoke_policy_example(NAMESPACE)),
        ("", &account),
        ("", &binding("RoleBinding", Some(NAMESPACE), ("ClusterRole", TENANT_SERVICE_ACCOUNT), tenant)),
        ("", &binding("RoleBinding", Some(NAMESPACE), ("ClusterRole", "fairlead-agent-impersonator"), agent)),
        (
            "The Secrets that Jobs of this tenant may refer to. The agent asks only whether they exist.",
            &role("Role", "fairlead-tenant-references", Some(NAMESPACE), &[secret]),
        ),
        ("", &binding("RoleBinding", Some(NAMESPACE), ("Role", "fairlead-tenant-references"), tenant)),
    ])
}

fn spoke_policy_example(namespace: &str) -> Value {
    let spec = json!({ "namespaces": [{
        "name": namespace,
        "serviceAccount": TENANT_SERVICE_ACCOUNT,
        "kinds": ["batch/v1/Job"],
        "secrets": ["registry-credentials"],
        "serviceAccounts": ["default"],
    }]});
    let api_version = format!("{}/{}", fairlead::GROUP, fairlead::VERSION);
    object(&api_version, "SpokePolicy", crate::labels::SPOKE_POLICY_NAME, None, json!({ "spec": spec }))
}

pub(super) fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({ "apiGroups": [group], "resources": resources, "verbs": verbs })
}

fn named(mut rule: Value, names: &[&str]) -> Value {
    rule["resourceNames"] = json!(names);
    rule
}

pub(super) fn role(kind: &str, name: &str, namespace: Option<&str>, rules: &[Value]) -> Value {
    object(&format!("{RBAC}/v1"), kind, name, namespace, json!({ "rules": rules }))
}

/// Binds `role` (its kind and name) to `subject` (a service account and its namespace).
fn binding(kind: &str, namespace: Option<&str>, role: (&str, &str), subject: (&str, &str)) -> Value {
    let fields = json!({
        "roleRef": { "apiGroup": RBAC, "kind": role.0, "name": role.1 },
        "subjects": [{ "kind": "ServiceAccount", "name": subject.0, "namespace": subject.1 }],
    });
    object(&format!("{RBAC}/v1"), kind, role.1, namespace, fields)
}

pub(super) fn object(
    api_version: &str,
    kind: &str,
    name: &str,
    namespace: Option<&str>,
    fields: Value,
) -> Value {
    let mut object = fields;
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    object["metadata"] = json!({ "name": name, "labels": { "app.kubernetes.io/part-of": "fairlead" } });
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}
