//! ClusterQueue: a pool of quota with rules for who gets it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::quota::{group_rules, limits_need};
use super::{FairSharing, FairSharingStatus, FlavorUsage, ResourceGroup, StopPolicy};
use crate::schema;

/// A ClusterQueue holds quota and admits workloads into it. With an AdmissionCheck whose controller is
/// `fairlead.dev/dispatch` it is federated: its jobs run on one of the registered clusters. Without one its jobs
/// run on the hub's own cluster.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kueue.x-k8s.io",
    version = "v1beta2",
    kind = "ClusterQueue",
    status = "ClusterQueueStatus",
    schema = "disabled",
    doc = "A pool of quota with rules for who gets it.",
    derive = "Default",
    derive = "PartialEq",
    shortname = "cq",
    category = "fairlead",
    printcolumn = r#"{"name": "Cohort", "type": "string", "jsonPath": ".spec.cohortName"}"#,
    printcolumn = r#"{"name": "Active", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Active\")].status"}"#,
    printcolumn = r#"{"name": "Pending", "type": "integer", "jsonPath": ".status.pendingWorkloads"}"#,
    printcolumn = r#"{"name": "Admitted", "type": "integer", "jsonPath": ".status.admittedWorkloads"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Strategy", "type": "string", "priority": 1, "jsonPath": ".spec.queueingStrategy"}"#,
    printcolumn = r#"{"name": "Reserving", "type": "integer", "priority": 1, "jsonPath": ".status.reservingWorkloads"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "priority": 1, "jsonPath": ".status.conditions[?(@.type==\"Active\")].reason"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = spec_rules()))]
pub struct ClusterQueueSpec {
    /// The quota: groups of resources, each with the flavors that they may come from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic", "x-kubernetes-validations" = group_rules()))]
    pub resource_groups: Vec<ResourceGroup>,

    /// The cohort whose unused quota may be borrowed. A Cohort object of that name need not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253), regex(pattern = schema::OBJECT_NAME))]
    pub cohort_name: Option<String>,

    /// What happens when the first workload in line does not fit.
    #[serde(default)]
    pub queueing_strategy: QueueingStrategy,

    /// The namespaces whose workloads may be admitted. Absent means none, `{}` means every one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,

    /// When to go on to the next flavor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flavor_fungibility: Option<FlavorFungibility>,

    /// Which workloads may be preempted for those of this queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemption: Option<ClusterQueuePreemption>,

    /// The checks that must pass between quota reservation and admission.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admission_checks_strategy: Option<AdmissionChecksStrategy>,

    /// Whether the queue runs.
    #[serde(default)]
    pub stop_policy: StopPolicy,

    /// How this queue shares what is left over in its cohort.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair_sharing: Option<FairSharing>,

    /// Whether past use of a LocalQueue counts in the order of admission.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admission_scope: Option<AdmissionScope>,

    /// Admits one workload with several flavors at once. It cannot be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrent_admission_policy: Option<ConcurrentAdmissionPolicy>,
}

/// Rules that look at more than one field. The entry policy `fairlead-cluster-queues` has those that cost too much for
/// a definition, because they compare amounts or every check with every flavor.
fn spec_rules() -> Value {
    const POLICY: &str = "!has(self.concurrentAdmissionPolicy) || ";
    const LAST: &str = "!has(self.concurrentAdmissionPolicy) || \
        !has(self.concurrentAdmissionPolicy.migration.constraints) || \
        !has(self.concurrentAdmissionPolicy.migration.constraints.lastAcceptableFlavorName) || ";
    let rule = |rule: String, message: &str| json!({ "rule": rule, "message": message });
    json!([
        limits_need("cohortName"),
        rule(
            "has(self.concurrentAdmissionPolicy) == has(oldSelf.concurrentAdmissionPolicy) && \
             (!has(self.concurrentAdmissionPolicy) \
             || self.concurrentAdmissionPolicy == oldSelf.concurrentAdmissionPolicy)"
                .to_owned(),
            "concurrentAdmissionPolicy cannot be changed",
        ),
        rule(
            format!(
                "{POLICY}(has(self.resourceGroups) && size(self.resourceGroups) == 1 \
                 && size(self.resourceGroups[0].flavors) <= 16 \
                 && (!has(self.queueingStrategy) || self.queueingStrategy != 'StrictFIFO'))"
            ),
            "concurrentAdmissionPolicy needs exactly one resource group, at most 16 flavors and BestEffortFIFO",
        ),
        rule(
            format!("{LAST}self.concurrentAdmissionPolicy.migration.mode == 'TryPreferredFlavors'"),
            "lastAcceptableFlavorName needs the mode TryPreferredFlavors",
        ),
        rule(
            format!(
                "{LAST}(has(self.resourceGroups) && self.resourceGroups.exists(g, g.flavors.exists(f, \
                 f.name == self.concurrentAdmissionPolicy.migration.constraints.lastAcceptableFlavorName)))"
            ),
            "lastAcceptableFlavorName must be a flavor of this queue",
        ),
    ])
}

/// What happens when the first workload in line does not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum QueueingStrategy {
    /// Later workloads that fit go first.
    #[default]
    BestEffortFIFO,
    /// Later workloads wait.
    StrictFIFO,
}

/// When to go on to the next flavor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.preference) \
             || (has(self.whenCanBorrow) && self.whenCanBorrow == 'TryNextFlavor' \
             && (!has(self.whenCanPreempt) || self.whenCanPreempt == 'TryNextFlavor'))",
    "message": "preference may be set only while whenCanBorrow and whenCanPreempt are TryNextFlavor"
}]))]
pub struct FlavorFungibility {
    /// What to do when a workload fits into a flavor only by borrowing.
    #[serde(default)]
    pub when_can_borrow: WhenCanBorrow,

    /// What to do when a workload fits into a flavor only by preempting.
    #[serde(default)]
    pub when_can_preempt: WhenCanPreempt,

    /// Which of two flavors wins when one needs borrowing and the other preemption. It may be set only when both
    /// fields above are `TryNextFlavor`; `BorrowingOverPreemption` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preference: Option<FungibilityPreference>,
}

/// What to do when a workload fits into a flavor only by borrowing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WhenCanBorrow {
    /// Take this flavor.
    #[default]
    MayStopSearch,
    /// Look at the next one first.
    TryNextFlavor,
}

/// What to do when a workload fits into a flavor only by preempting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WhenCanPreempt {
    /// Look at the next one first.
    #[default]
    TryNextFlavor,
    /// Take this flavor.
    MayStopSearch,
}

/// Which of two imperfect flavors wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FungibilityPreference {
    /// Rather borrow than preempt.
    BorrowingOverPreemption,
    /// Rather preempt than borrow.
    PreemptionOverBorrowing,
}

/// Which workloads may be preempted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!(has(self.reclaimWithinCohort) && self.reclaimWithinCohort == 'Never' \
             && has(self.borrowWithinCohort) && has(self.borrowWithinCohort.policy) \
             && self.borrowWithinCohort.policy != 'Never')",
    "message": "borrowWithinCohort.policy must be Never while reclaimWithinCohort is Never"
}]))]
pub struct ClusterQueuePreemption {
    /// Within this queue.
    #[serde(default)]
    pub within_cluster_queue: WithinClusterQueue,

    /// In other queues of the cohort that use more than their nominal quota, when the workload fits into the
    /// nominal quota of its own.
    #[serde(default)]
    pub reclaim_within_cohort: ReclaimWithinCohort,

    /// In other queues of the cohort, when the workload has to borrow itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub borrow_within_cohort: Option<BorrowWithinCohort>,
}

/// Preemption within a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WithinClusterQueue {
    /// None.
    #[default]
    Never,
    /// Of lower priority.
    LowerPriority,
    /// Of lower priority, or of equal priority and newer.
    LowerOrNewerEqualPriority,
}

/// Reclaiming nominal quota within a cohort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReclaimWithinCohort {
    /// None.
    #[default]
    Never,
    /// Of lower priority.
    LowerPriority,
    /// Any.
    Any,
}

/// Preemption while borrowing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BorrowWithinCohort {
    /// Which workloads.
    #[serde(default)]
    pub policy: BorrowWithinCohortPolicy,

    /// Only workloads with a priority up to this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_priority_threshold: Option<i32>,
}

/// Which workloads may be preempted while borrowing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BorrowWithinCohortPolicy {
    /// None.
    #[default]
    Never,
    /// Of lower priority.
    LowerPriority,
}

/// The checks of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionChecksStrategy {
    /// The checks, each with the flavors that it is for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub admission_checks: Vec<AdmissionCheckRule>,
}

/// One check of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionCheckRule {
    /// The name of an AdmissionCheck.
    #[schemars(length(min = 1, max = 316))]
    pub name: String,

    /// The flavors for which the check runs. Empty means all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub on_flavors: Vec<String>,
}

/// Whether past use of a LocalQueue counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionScope {
    /// How the order of admission is made.
    pub admission_mode: AdmissionMode,
}

/// How the order of admission is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AdmissionMode {
    /// LocalQueues that used less lately come first.
    UsageBasedAdmissionFairSharing,
    /// Past use does not count.
    NoAdmissionFairSharing,
}

/// Admits one workload with several flavors at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConcurrentAdmissionPolicy {
    /// What happens when a better flavor becomes free.
    pub migration: MigrationPolicy,
}

/// What happens when a better flavor becomes free.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MigrationPolicy {
    /// Whether the workload moves.
    pub mode: MigrationMode,

    /// Limits on moving.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraints: Option<MigrationConstraints>,
}

/// Whether an admitted workload moves to a better flavor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MigrationMode {
    /// It moves.
    TryPreferredFlavors,
    /// It stays where it was first admitted.
    RetainFirstAdmission,
}

/// Limits on moving.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MigrationConstraints {
    /// The last flavor, in the queue's order, that is acceptable. Only with `TryPreferredFlavors`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub last_acceptable_flavor_name: Option<String>,
}

/// What the hub observed of a ClusterQueue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterQueueStatus {
    /// `Active` says whether the queue admits workloads, and why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,

    /// What workloads with reserved quota hold, by flavor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub flavors_reservation: Vec<FlavorUsage>,

    /// What admitted workloads use, by flavor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub flavors_usage: Vec<FlavorUsage>,

    /// How many workloads wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_workloads: Option<i32>,

    /// How many workloads have quota reserved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserving_workloads: Option<i32>,

    /// How many workloads are admitted and not finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admitted_workloads: Option<i32>,

    /// The measured share, when fair sharing is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair_sharing: Option<FairSharingStatus>,
}
