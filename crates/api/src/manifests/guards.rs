//! Admission policies that guard Kueue's kinds where a definition's own rules cannot: rules that compare amounts cost
//! more than a definition may, and a rule of a definition would run on every status write, too.

use serde_json::{Value, json};

use super::admission::{VALIDATING, condition, pair, validation, variable};
use crate::kueue;
use crate::labels::ELASTIC_JOB;

const CLUSTER_QUEUES: &str = "\
Denies ClusterQueues whose fields contradict each other in amounts or between checks and flavors. Everything
cheaper is in the definition.";

/// What a ClusterQueue may not say.
pub(super) fn cluster_queues() -> String {
    const GROUPS: &str = "object.spec.?resourceGroups.orValue([])";
    let lent = "variables.groups.all(g, g.flavors.all(f, f.resources.all(r, !has(r.lendingLimit) || \
                quantity(string(r.lendingLimit)).compareTo(quantity(string(r.nominalQuota))) <= 0)))";
    // What was wrong before may stay, so that the other fields can be changed.
    let checks = "!variables.changed || variables.checks.all(c, c.?onFlavors.orValue([]).all(name, \
                  variables.groups.exists(g, g.flavors.exists(f, f.name == name))))";
    let changed = format!(
        "oldObject == null || variables.checks != {} || variables.groups != {}",
        checks_of("oldObject"),
        GROUPS.replace("object", "oldObject")
    );
    let policy = json!({
        "failurePolicy": "Fail",
        "matchConstraints": resources("clusterqueues", &["CREATE", "UPDATE"]),
        "variables": [
            variable("groups", GROUPS),
            variable("checks", &checks_of("object")),
            variable("changed", &changed),
        ],
        "validations": [
            validation(lent, "lendingLimit must not be more than nominalQuota"),
            validation(checks, "onFlavors may name flavors of this queue only"),
        ],
    });
    pair(VALIDATING, "fairlead-cluster-queues", CLUSTER_QUEUES, policy, denying())
}

fn checks_of(object: &str) -> String {
    format!("{object}.spec.?admissionChecksStrategy.admissionChecks.orValue([])")
}

const WORKLOADS: &str = "\
Freezes what a Workload's quota was reserved for. It looks at changes of the spec only, so a status write costs
nothing here.";

/// What of a Workload cannot be changed while it holds quota.
pub(super) fn workloads() -> String {
    let without_counts = |object: &str| {
        format!(
            "{object}.spec.podSets.map(p, [p.name, p.template, p.?topologyRequest.orValue({{}}), p.?minCount.orValue(0)])"
        )
    };
    let lowered = format!(
        "object.metadata.?annotations['{ELASTIC_JOB}'].orValue('') == 'true' && {} == {} && \
         object.spec.podSets.all(p, oldObject.spec.podSets.exists(o, o.name == p.name && p.count <= o.count))",
        without_counts("object"),
        without_counts("oldObject")
    );
    let class = |object: &str| format!("{object}.spec.?priorityClassRef");
    let class_stays = format!(
        "{new}.hasValue() == {old}.hasValue() && (!{new}.hasValue() || \
         ({new}.value().group == {old}.value().group && {new}.value().kind == {old}.value().kind && \
         ({new}.value().kind == 'WorkloadPriorityClass' || {new}.value().name == {old}.value().name)))",
        new = class("object"),
        old = class("oldObject")
    );
    let frozen = |what: &str| format!("{what} cannot be changed while quota is reserved");
    let policy = json!({
        "failurePolicy": "Fail",
        "matchConstraints": resources("workloads", &["UPDATE"]),
        "matchConditions": [condition("holds-quota", &holds("QuotaReserved"))],
        "validations": [
            validation(
                &format!("object.spec.podSets == oldObject.spec.podSets || ({lowered})"),
                &frozen("podSets"),
            ),
            validation("object.spec.?queueName == oldObject.spec.?queueName", &frozen("queueName")),
            validation(&class_stays, &frozen("priorityClassRef, but for the name of a WorkloadPriorityClass,")),
            validation(
                &format!(
                    "object.spec.?maximumExecutionTimeSeconds == oldObject.spec.?maximumExecutionTimeSeconds \
                     || !({})",
                    holds("Admitted")
                ),
                "maximumExecutionTimeSeconds cannot be changed while the workload is admitted",
            ),
        ],
    });
    pair(VALIDATING, "fairlead-workloads", WORKLOADS, policy, denying())
}

/// A condition of the stored object is true.
fn holds(kind: &str) -> String {
    format!("oldObject.?status.conditions.orValue([]).exists(c, c.type == '{kind}' && c.status == 'True')")
}

fn denying() -> Value {
    json!({ "validationActions": ["Deny"] })
}

fn resources(plural: &str, operations: &[&str]) -> Value {
    json!({ "resourceRules": [{
        "apiGroups": [kueue::GROUP],
        "apiVersions": [kueue::VERSION],
        "operations": operations,
        "resources": [plural],
    }]})
}
