//! The custom resource definitions.

use serde_json::{Value, json};

use super::definitions::{Definition, metadata};
use crate::{fairlead, kueue, labels};

/// The definitions that the hub's API server needs.
pub fn hub_crds() -> Vec<Value> {
    let kueue = [
        cluster_queue(),
        Definition::of::<kueue::LocalQueue, kueue::LocalQueueSpec>().with_status::<kueue::LocalQueueStatus>(),
        Definition::of::<kueue::Cohort, kueue::CohortSpec>().with_status::<kueue::CohortStatus>(),
        Definition::of::<kueue::ResourceFlavor, kueue::ResourceFlavorSpec>(),
        Definition::of::<kueue::Topology, kueue::TopologySpec>(),
        Definition::of::<kueue::WorkloadPriorityClass, kueue::WorkloadPriorityClassFields>().without_spec(),
        Definition::of::<kueue::AdmissionCheck, kueue::AdmissionCheckSpec>()
            .with_status::<kueue::AdmissionCheckStatus>(),
        Definition::of::<kueue::MultiKueueConfig, kueue::MultiKueueConfigSpec>(),
        Definition::of::<kueue::MultiKueueCluster, kueue::MultiKueueClusterSpec>()
            .with_status::<kueue::MultiKueueClusterStatus>(),
    ];
    let ours = [
        Definition::of::<fairlead::Cluster, fairlead::ClusterSpec>().with_status::<fairlead::ClusterStatus>(),
        Definition::of::<fairlead::PlacementPolicy, fairlead::PlacementPolicySpec>()
            .with_status::<fairlead::PlacementPolicyStatus>(),
        Definition::of::<fairlead::HubState, fairlead::HubStateSpec>()
            .with_status::<fairlead::HubStateStatus>()
            .with_rules(singleton(labels::HUB_STATE_NAME)),
        Definition::of::<fairlead::Tombstone, fairlead::TombstoneSpec>()
            .with_status::<fairlead::TombstoneStatus>(),
    ];
    let legacy = kueue.into_iter().map(|definition| with_legacy_version(render(&definition)));
    // An API server decodes every write once more for each further version that it serves. Users write queues, and
    // old manifests of these deserve the hint; Workloads are made by the hub, many at a time.
    let rest = [workload()].into_iter().chain(ours);
    legacy.chain(rest.map(|definition| render(&definition))).collect()
}

/// The definitions that a spoke's API server needs.
pub fn spoke_crds() -> Vec<Value> {
    let policy = Definition::of::<fairlead::SpokePolicy, fairlead::SpokePolicySpec>()
        .with_status::<fairlead::SpokePolicyStatus>()
        .with_rules(singleton(labels::SPOKE_POLICY_NAME));
    vec![render(&policy)]
}

fn cluster_queue() -> Definition {
    Definition::of::<kueue::ClusterQueue, kueue::ClusterQueueSpec>()
        .with_status::<kueue::ClusterQueueStatus>()
}

fn workload() -> Definition {
    Definition::of::<kueue::Workload, kueue::WorkloadSpec>()
        .with_status::<kueue::WorkloadStatus>()
        .with_rules(placement_rules())
}

/// Promises survive every writer, also one that replaces the whole status and has never heard of placements.
///
/// These rules stand at the root of the object, because a rule below `status` is not evaluated when a writer drops
/// the field that it belongs to. They use `oldSelf` and so run on updates only: a create has nothing to break.
/// `optionalOldSelf` is not set, because with it they would run on creates too and would have to unwrap `oldSelf`.
fn placement_rules() -> Vec<Value> {
    const OLD: &str =
        "!has(oldSelf.status) || !has(oldSelf.status.placements) || oldSelf.status.placements.all(old, ";
    const NEW: &str = "!has(self.status) || !has(self.status.placements) || self.status.placements.all(new, \
                       new.id != old.id || ";
    vec![
        rule(
            &format!(
                "{OLD}old.state == 'Closed' || (has(self.status) && has(self.status.placements) && \
                 self.status.placements.exists(new, new.id == old.id)))"
            ),
            "status.placements: an entry may go only once its state is Closed; write the list with every open entry",
        ),
        rule(
            &format!(
                "{OLD}{NEW}new.epoch.term > old.epoch.term || \
                 (new.epoch.term == old.epoch.term && new.epoch.seq >= old.epoch.seq)))"
            ),
            "status.placements: the epoch (term, seq) of an entry never falls",
        ),
        rule(
            &format!("{OLD}{NEW}(new.cluster == old.cluster && new.clusterUid == old.clusterUid)))"),
            "status.placements: an entry stays with its cluster; make a new entry for another one",
        ),
        rule(
            &format!("{OLD}{NEW}old.state != 'Closed' || new.state == 'Closed'))"),
            "status.placements: a closed entry stays closed; make a new entry",
        ),
        rule(
            "!has(self.status) || !has(self.status.placements) || \
             self.status.placements.filter(p, p.state != 'Closed').size() <= 1",
            "status.placements: at most one entry may be open, because a run has at most one live copy",
        ),
    ]
}

fn singleton(name: &str) -> Vec<Value> {
    vec![rule(
        &format!("self.metadata.name == '{name}'"),
        &format!("the only object of this kind is named {name}"),
    )]
}

fn rule(rule: &str, message: &str) -> Value {
    json!({ "rule": rule, "message": message })
}

/// The whole definition with one version.
fn render(definition: &Definition) -> Value {
    let mut rendered = definition.derived.clone();
    rendered["apiVersion"] = json!("apiextensions.k8s.io/v1");
    rendered["kind"] = json!("CustomResourceDefinition");
    rendered["metadata"] = metadata(&definition.derived);
    rendered["spec"]["versions"][0]["schema"] = json!({ "openAPIV3Schema": definition.schema() });
    rendered
}

/// Adds the version that is served only to be refused with a hint. It stores nothing, and what is stored can still be
/// read and deleted through it.
fn with_legacy_version(mut definition: Value) -> Value {
    let legacy = json!({
        "name": kueue::LEGACY_VERSION,
        "served": true,
        "storage": false,
        "deprecated": true,
        "deprecationWarning": format!(
            "{0}/{1} is read only; run `kubectl fairlead convert -f FILE` to get {0}/{2}",
            kueue::GROUP, kueue::LEGACY_VERSION, kueue::VERSION
        ),
        "subresources": definition["spec"]["versions"][0].get("subresources").cloned().unwrap_or_default(),
        "schema": { "openAPIV3Schema": {
            "type": "object",
            "description": format!(
                "This version is served to be read only. Run `kubectl fairlead convert -f FILE` to get {}/{}.",
                kueue::GROUP, kueue::VERSION
            ),
            "x-kubernetes-preserve-unknown-fields": true,
            "x-kubernetes-validations": [rule("false", &format!(
                "{0}/{1} cannot be written; convert the manifest to {0}/{2} with `kubectl fairlead convert -f FILE`",
                kueue::GROUP, kueue::LEGACY_VERSION, kueue::VERSION
            ))],
        }},
    });
    let mut legacy = legacy;
    if legacy["subresources"].is_null()
        && let Some(fields) = legacy.as_object_mut()
    {
        fields.remove("subresources");
    }
    if let Some(Value::Array(versions)) = definition.pointer_mut("/spec/versions") {
        versions.push(legacy);
    }
    definition
}
