//! Admission policies: how an ordinary Job gets into its queue, and how it is kept there.
//!
//! They are evaluated inside the API server (Kubernetes 1.36 and newer), so there is no webhook to be down.

use serde_json::{Value, json};

use super::{guards, job_annotations, yaml};
use crate::labels::{
    ADMISSION_GATED_BY, BUILTIN_JOB_CONTROLLER, DEFAULT_QUEUE, DISPATCH, MULTIKUEUE, QUEUE_NAME, RUN,
    SYSTEM_NAMESPACE, TRUE, UNSUSPEND_VERB,
};
use crate::{fairlead, kueue};

/// The entry policies as (file name without its ending, YAML). Each file holds a policy and its binding.
pub fn admission_policies() -> Vec<(&'static str, String)> {
    vec![
        ("fairlead-cluster-queues", guards::cluster_queues()),
        ("fairlead-workloads", guards::workloads()),
        ("fairlead-default-queue", default_queue()),
        ("fairlead-suspend", suspend()),
        ("fairlead-managed-by", managed_by()),
        ("fairlead-queued-jobs", queued_jobs()),
        ("fairlead-federated-jobs", federated_jobs()),
        ("fairlead-job-annotations", job_annotations::policy()),
    ]
}

const MUTATING: &str = "Mutating";
pub(super) const VALIDATING: &str = "Validating";

/// The Job is not part of a job of another kind, which is queued as a whole. Other controllers (a CronJob, say) are
/// nothing here: their Jobs are queued one by one, and naming one as the owner leads past no queue. Naming a job that
/// does not exist does neither: the garbage collector deletes what has no owner.
fn stands_alone() -> String {
    let kinds: Vec<String> = kueue::JOB_KINDS.iter().map(|(group, kind)| format!("{group}/{kind}")).collect();
    format!(
        "!has(object.metadata.ownerReferences) || object.metadata.ownerReferences.all(owner, \
         !owner.?controller.orValue(false) || !((owner.apiVersion.split('/')[0] + '/' + owner.kind) in {kinds:?}))"
    )
}

const SUSPEND: &str = "\
Suspends every Job that names a queue, when it is created. The hub starts it once it is admitted.
Jobs that are part of a job of another kind (a JobSet, say) are left to it; those of CronJobs are not.";

fn suspend() -> String {
    let policy = json!({
        "failurePolicy": "Fail",
        // Once more when a webhook has changed the Job.
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": jobs(&["CREATE"], &labelled()),
        "matchConditions": [
            elsewhere(),
            condition("stands-alone", &stands_alone()),
            condition("not-suspended", "!object.spec.?suspend.orValue(false)"),
        ],
        "mutations": [put("/spec/suspend", "true")],
    });
    pair(MUTATING, "fairlead-suspend", SUSPEND, policy, json!({}))
}

const MANAGED_BY: &str = "\
Hands a Job over to the hub, when its queue is federated: the built-in controller ignores a Job whose
spec.managedBy names another. The hub sets the label below on LocalQueues of federated ClusterQueues; the
binding makes each such LocalQueue of the Job's namespace a parameter, and the last match condition picks the
one that the Job names. Without one the policy does nothing.
A Job that is created before its LocalQueue has the label is not handed over (the field cannot be changed
later). It still runs on a spoke, stays suspended here until it ends, and an Event says ManagedByMissing.";

fn managed_by() -> String {
    let policy = json!({
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "paramKind": local_queue(),
        "matchConstraints": jobs(&["CREATE"], &labelled()),
        "matchConditions": [
            elsewhere(),
            condition("stands-alone", &stands_alone()),
            condition("unclaimed", &unclaimed()),
            condition("names-this-queue", &names_this_queue()),
        ],
        "mutations": [put("/spec/managedBy", &format!("\"{DISPATCH}\""))],
    });
    pair(MUTATING, "fairlead-managed-by", MANAGED_BY, policy, federated_queues())
}

const DEFAULT: &str = "\
Puts Jobs that name no queue into the LocalQueue `default`, in namespaces that have one, and does for them what
fairlead-suspend and fairlead-managed-by do for others: those two are matched against the Job as it was sent, so
a label that is added here comes too late for them, also with reinvocation.
Copies on a cluster that is hub and spoke at once are no user's Jobs; they carry the run's label.";

fn default_queue() -> String {
    let unlabelled = json!({ "matchExpressions": [
        { "key": QUEUE_NAME, "operator": "DoesNotExist" },
        { "key": RUN, "operator": "DoesNotExist" },
    ]});
    let queue_and_suspend = format!(
        "Object{{metadata: Object.metadata{{labels: {{'{QUEUE_NAME}': '{DEFAULT_QUEUE}'}}}}, \
         spec: Object.spec{{suspend: true}}}}"
    );
    let hand_over = format!(
        "params.metadata.?labels['{DISPATCH}'].orValue('') == '{TRUE}' && ({}) \
         ? Object{{spec: Object.spec{{managedBy: '{DISPATCH}'}}}} : Object{{}}",
        unclaimed()
    );
    let mut constraints = jobs(&["CREATE"], &unlabelled);
    constraints["namespaceSelector"] = users_namespaces();
    let policy = json!({
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "paramKind": local_queue(),
        "matchConstraints": constraints,
        "matchConditions": [condition("stands-alone", &stands_alone())],
        "mutations": [apply(&queue_and_suspend), apply(&hand_over)],
    });
    let binding = json!({ "paramRef": { "name": DEFAULT_QUEUE, "parameterNotFoundAction": "Allow" } });
    pair(MUTATING, "fairlead-default-queue", DEFAULT, policy, binding)
}

const QUEUED: &str = "\
Denies what would let a Job that names a queue run outside of it:
- created without suspend, which happens only when fairlead-suspend is missing or was skipped;
- unsuspended by anyone without the verb `unsuspend` on `jobs.fairlead.dev`. That resource does not exist: the
  verb is a permission and nothing else. The hub's role has it, and so has whoever holds every verb, so a
  cluster administrator can start a Job by hand. An admission policy cannot know the hub's service account,
  because charts may be installed anywhere; it can ask the authorizer.
- moved into a queue, to another queue or out of one while it is not suspended;
- gated anew: what holds back admission may only be taken away after the Job was created.
What cannot be expressed here is left to the hub: that a Job is not started before its own admission.";

fn queued_jobs() -> String {
    let created = "request.operation == 'CREATE'";
    let (suspended, was_suspended) = (suspended("object"), suspended("oldObject"));
    let (gates, old_gates) = (gates_of("object"), gates_of("oldObject"));
    let may_unsuspend = format!(
        "authorizer.group('{}').resource('jobs').namespace(object.metadata.namespace)\
         .name(object.metadata.name).check('{UNSUSPEND_VERB}').allowed()",
        fairlead::GROUP
    );
    let rules = [
        (
            format!("!({created}) || {suspended}"),
            "a Job that names a queue must be created suspended; is the policy fairlead-suspend installed?"
                .to_owned(),
        ),
        (
            format!("{created} || {suspended} || !{was_suspended} || {may_unsuspend}"),
            "only the hub may unsuspend a Job that names a queue; it does so when the Job is admitted"
                .to_owned(),
        ),
        (
            format!(
                "{created} || {} == {} || ({suspended} && {was_suspended})",
                queue_of("object"),
                queue_of("oldObject")
            ),
            format!("the label {QUEUE_NAME} can be changed only while the Job is suspended"),
        ),
        (
            format!("{created} || {gates}.all(gate, gate in {old_gates})"),
            format!("the annotation {ADMISSION_GATED_BY} may only lose entries after the Job was created"),
        ),
    ];
    let policy = json!({
        "failurePolicy": "Fail",
        "matchConstraints": jobs(&["CREATE", "UPDATE"], &labelled()),
        "matchConditions": [
            elsewhere(),
            condition("stands-alone", &stands_alone()),
            condition("breaks-a-rule", &broken(&rules)),
        ],
        "validations": validations(&rules),
    });
    pair(VALIDATING, "fairlead-queued-jobs", QUEUED, policy, json!({ "validationActions": ["Deny"] }))
}

const FEDERATED: &str = "\
Denies Jobs of federated queues that a third controller would run: the hub would run them on a spoke as well,
and a run has at most one live copy.";

fn federated_jobs() -> String {
    let rules = [(
        format!(
            "!has(object.spec.managedBy) || \
             object.spec.managedBy in ['{DISPATCH}', '{MULTIKUEUE}', '{BUILTIN_JOB_CONTROLLER}']"
        ),
        format!("spec.managedBy must be absent or {DISPATCH} in a federated queue"),
    )];
    let policy = json!({
        "failurePolicy": "Fail",
        "paramKind": local_queue(),
        "matchConstraints": jobs(&["CREATE"], &labelled()),
        "matchConditions": [
            elsewhere(),
            condition("stands-alone", &stands_alone()),
            condition("names-this-queue", &names_this_queue()),
            condition("breaks-a-rule", &broken(&rules)),
        ],
        "validations": validations(&rules),
    });
    let mut binding = federated_queues();
    binding["validationActions"] = json!(["Deny"]);
    pair(VALIDATING, "fairlead-federated-jobs", FEDERATED, policy, binding)
}

/// No other controller than the built-in one has been named for the Job.
fn unclaimed() -> String {
    format!("!has(object.spec.managedBy) || object.spec.managedBy == '{BUILTIN_JOB_CONTROLLER}'")
}

/// A policy and its binding, in one file.
pub(super) fn pair(family: &str, name: &str, comment: &str, policy: Value, binding: Value) -> String {
    let object = |kind: &str, spec: Value| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": format!("{family}AdmissionPolicy{kind}"),
            "metadata": { "name": name, "labels": { "app.kubernetes.io/part-of": "fairlead" } },
            "spec": spec,
        })
    };
    let mut bound = binding;
    bound["policyName"] = json!(name);
    let (policy, binding) = (object("", policy), object("Binding", bound));
    yaml::documents([(comment, &policy), ("", &binding)])
}

/// Jobs. A policy's selectors are evaluated on every write of any kind, before its rules are, and selecting by
/// namespace costs the most. So policies about labelled Jobs leave the namespace to [`elsewhere`].
pub(super) fn jobs(operations: &[&str], selector: &Value) -> Value {
    json!({
        "objectSelector": selector,
        "resourceRules": [{
            "apiGroups": ["batch"],
            "apiVersions": ["v1"],
            "operations": operations,
            "resources": ["jobs"],
        }],
    })
}

/// Every namespace but the cluster's own and ours, as a selector: what it leaves out works also when a policy cannot
/// be evaluated.
fn users_namespaces() -> Value {
    json!({ "matchExpressions": [{
        "key": "kubernetes.io/metadata.name",
        "operator": "NotIn",
        "values": ["kube-system", SYSTEM_NAMESPACE],
    }]})
}

/// The same as a match condition.
pub(super) fn elsewhere() -> Value {
    condition("elsewhere", &format!("!(request.namespace in ['kube-system', '{SYSTEM_NAMESPACE}'])"))
}

/// Objects that name a queue.
pub(super) fn labelled() -> Value {
    json!({ "matchExpressions": [{ "key": QUEUE_NAME, "operator": "Exists" }] })
}

/// The kind of the parameters: a LocalQueue in the Job's namespace.
fn local_queue() -> Value {
    json!({ "apiVersion": format!("{}/{}", kueue::GROUP, kueue::VERSION), "kind": "LocalQueue" })
}

/// A binding to each LocalQueue that the hub has labelled as federated.
fn federated_queues() -> Value {
    json!({ "paramRef": {
        "selector": { "matchLabels": { DISPATCH: TRUE } },
        "parameterNotFoundAction": "Allow",
    }})
}

/// Whether a Job is suspended.
fn suspended(object: &str) -> String {
    format!("{object}.spec.?suspend.orValue(false)")
}

fn queue_of(object: &str) -> String {
    format!("{object}.metadata.?labels['{QUEUE_NAME}'].orValue('')")
}

/// What the annotation lists.
fn gates_of(object: &str) -> String {
    format!(
        "{object}.metadata.?annotations['{ADMISSION_GATED_BY}'].orValue('').split(',')\
         .map(gate, gate.trim()).filter(gate, gate != '')"
    )
}

fn names_this_queue() -> String {
    format!("{} == params.metadata.name", queue_of("object"))
}

fn apply(expression: &str) -> Value {
    json!({ "patchType": "ApplyConfiguration", "applyConfiguration": { "expression": expression } })
}

/// Sets one field whose parent is there for sure: costs the API server less than applying a typed object.
fn put(path: &str, value: &str) -> Value {
    let expression = format!("[JSONPatch{{op: \"add\", path: \"{path}\", value: {value}}}]");
    json!({ "patchType": "JSONPatch", "jsonPatch": { "expression": expression } })
}

pub(super) fn condition(name: &str, expression: &str) -> Value {
    json!({ "name": name, "expression": expression })
}

pub(super) fn variable(name: &str, expression: &str) -> Value {
    json!({ "name": name, "expression": expression })
}

pub(super) fn validation(expression: &str, message: &str) -> Value {
    json!({ "expression": expression, "message": message, "reason": "Forbidden" })
}

/// The match condition of a policy that is to look closer only where one of its rules is broken. Evaluating a policy
/// costs the API server four times what its match conditions cost alone, and nearly every write breaks no rule.
fn broken(rules: &[(String, String)]) -> String {
    let holds: Vec<String> = rules.iter().map(|(rule, _)| format!("({rule})")).collect();
    format!("!({})", holds.join(" && "))
}

/// Rules, each with what to say when it is broken.
fn validations(rules: &[(String, String)]) -> Value {
    rules.iter().map(|(rule, message)| validation(rule, message)).collect()
}
