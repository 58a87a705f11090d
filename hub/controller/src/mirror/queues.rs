//! Queues, cohorts, flavors, topologies and namespaces.

use std::sync::Arc;

use fairlead_api::kueue;
use fairlead_engine::fact;
use fairlead_model::Amount;
use serde::Deserialize;
use serde_json::Value;

use super::key_of;
use super::read::{Unreadable, labels, list, quantity, selector, taints, text, texts, tolerations};

fn parse<'j, T: Deserialize<'j>>(json: &'j Value, what: &str) -> Result<T, Unreadable> {
    T::deserialize(json).map_err(|error| format!("{what}: {error}"))
}

fn groups(groups: &[kueue::ResourceGroup]) -> Result<Vec<fact::ResourceGroup>, Unreadable> {
    let amount = |resource: &str, quantity: &fairlead_api::Quantity| {
        quantity.parse(resource).map(Amount::Finite).map_err(|error| format!("{resource}: {error}"))
    };
    let quota = |quota: &kueue::ResourceQuota| -> Result<fact::Quota, Unreadable> {
        let limit = |limit: &Option<fairlead_api::Quantity>| {
            limit.as_ref().map(|limit| amount(&quota.name, limit)).transpose()
        };
        Ok(fact::Quota {
            resource: quota.name.as_str().into(),
            nominal: amount(&quota.name, &quota.nominal_quota)?,
            borrowing: limit(&quota.borrowing_limit)?,
            lending: limit(&quota.lending_limit)?,
        })
    };
    let flavor = |flavor: &kueue::FlavorQuotas| -> Result<fact::FlavorQuotas, Unreadable> {
        let quotas = flavor.resources.iter().map(quota).collect::<Result<_, _>>()?;
        Ok(fact::FlavorQuotas { flavor: flavor.name.as_str().into(), quotas })
    };
    let group = |group: &kueue::ResourceGroup| -> Result<fact::ResourceGroup, Unreadable> {
        let resources = group.covered_resources.iter().map(|name| Arc::from(name.as_str())).collect();
        let flavors = group.flavors.iter().map(flavor).collect::<Result<_, _>>()?;
        Ok(fact::ResourceGroup { resources, flavors })
    };
    groups.iter().map(group).collect()
}

/// A fair-sharing weight; one unless it is said.
fn weight(json: &Value) -> Result<fact::Weight, Unreadable> {
    let Some(weight) = json.pointer("/spec/fairSharing/weight") else { return Ok(fact::Weight::default()) };
    quantity(weight)?.billionths().map(fact::Weight).map_err(|error| error.to_string())
}

const fn stop(policy: kueue::StopPolicy) -> fact::StopPolicy {
    match policy {
        kueue::StopPolicy::None => fact::StopPolicy::None,
        kueue::StopPolicy::Hold => fact::StopPolicy::Hold,
        kueue::StopPolicy::HoldAndDrain => fact::StopPolicy::HoldAndDrain,
    }
}

/// A ClusterQueue.
pub(super) fn cluster_queue(json: &Value) -> Result<fact::ClusterQueue, Unreadable> {
    let spec: kueue::ClusterQueueSpec = parse(json.get("spec").unwrap_or(&Value::Null), "spec")?;
    let namespaces = json.pointer("/spec/namespaceSelector").map(selector).transpose()?;
    let checks = spec.admission_checks_strategy.iter().flat_map(|strategy| &strategy.admission_checks);
    Ok(fact::ClusterQueue {
        name: key_of(json).name,
        cohort: spec.cohort_name.as_deref().filter(|name| !name.is_empty()).map(Arc::from),
        groups: groups(&spec.resource_groups)?,
        strategy: match spec.queueing_strategy {
            kueue::QueueingStrategy::StrictFIFO => fact::QueueingStrategy::StrictFifo,
            kueue::QueueingStrategy::BestEffortFIFO => fact::QueueingStrategy::BestEffortFifo,
        },
        namespaces,
        fungibility: fungibility(&spec),
        preemption: preemption(&spec),
        stop: stop(spec.stop_policy),
        checks: checks
            .map(|check| fact::CheckUse {
                check: check.name.as_str().into(),
                flavors: check.on_flavors.iter().map(|name| Arc::from(name.as_str())).collect(),
            })
            .collect(),
        weight: weight(json)?,
        usage_based: text(json, "/spec/admissionScope/admissionMode") == "UsageBasedAdmissionFairSharing",
        terminating: json.pointer("/metadata/deletionTimestamp").is_some(),
    })
}

fn fungibility(spec: &kueue::ClusterQueueSpec) -> fact::Fungibility {
    let Some(stated) = &spec.flavor_fungibility else { return fact::Fungibility::default() };
    fact::Fungibility {
        when_can_borrow: match stated.when_can_borrow {
            kueue::WhenCanBorrow::MayStopSearch => fact::WhenCan::MayStopSearch,
            kueue::WhenCanBorrow::TryNextFlavor => fact::WhenCan::TryNextFlavor,
        },
        when_can_preempt: match stated.when_can_preempt {
            kueue::WhenCanPreempt::MayStopSearch => fact::WhenCan::MayStopSearch,
            kueue::WhenCanPreempt::TryNextFlavor => fact::WhenCan::TryNextFlavor,
        },
        preference: match stated.preference {
            Some(kueue::FungibilityPreference::PreemptionOverBorrowing) => {
                fact::FungibilityPreference::PreemptionOverBorrowing
            }
            Some(kueue::FungibilityPreference::BorrowingOverPreemption) | None => {
                fact::FungibilityPreference::BorrowingOverPreemption
            }
        },
    }
}

fn preemption(spec: &kueue::ClusterQueueSpec) -> fact::Preemption {
    let Some(stated) = &spec.preemption else { return fact::Preemption::default() };
    let borrow = stated.borrow_within_cohort.as_ref();
    let borrow = borrow.filter(|borrow| borrow.policy == kueue::BorrowWithinCohortPolicy::LowerPriority);
    fact::Preemption {
        within_queue: match stated.within_cluster_queue {
            kueue::WithinClusterQueue::Never => fact::VictimPolicy::Never,
            kueue::WithinClusterQueue::LowerPriority => fact::VictimPolicy::LowerPriority,
            kueue::WithinClusterQueue::LowerOrNewerEqualPriority => {
                fact::VictimPolicy::LowerOrNewerEqualPriority
            }
        },
        reclaim: match stated.reclaim_within_cohort {
            kueue::ReclaimWithinCohort::Never => fact::VictimPolicy::Never,
            kueue::ReclaimWithinCohort::LowerPriority => fact::VictimPolicy::LowerPriority,
            kueue::ReclaimWithinCohort::Any => fact::VictimPolicy::Any,
        },
        borrow: borrow.map(|borrow| fact::BorrowWithinCohort {
            max_priority: borrow.max_priority_threshold.map(i64::from),
        }),
    }
}

/// A LocalQueue.
pub(super) fn local_queue(json: &Value) -> Result<fact::LocalQueue, Unreadable> {
    let spec: kueue::LocalQueueSpec = parse(json.get("spec").unwrap_or(&Value::Null), "spec")?;
    Ok(fact::LocalQueue {
        key: key_of(json),
        cluster_queue: spec.cluster_queue.into(),
        stop: stop(spec.stop_policy),
        weight: weight(json)?,
    })
}

/// A Cohort.
pub(super) fn cohort(json: &Value) -> Result<fact::Cohort, Unreadable> {
    let spec: kueue::CohortSpec = parse(json.get("spec").unwrap_or(&Value::Null), "spec")?;
    Ok(fact::Cohort {
        name: key_of(json).name,
        parent: spec.parent_name.as_deref().filter(|name| !name.is_empty()).map(Arc::from),
        groups: groups(&spec.resource_groups)?,
        weight: weight(json)?,
    })
}

/// A ResourceFlavor.
pub(super) fn flavor(json: &Value) -> fact::Flavor {
    fact::Flavor {
        name: key_of(json).name,
        node_labels: labels(json.pointer("/spec/nodeLabels")),
        taints: taints(list(json, "/spec/nodeTaints")),
        tolerations: tolerations(list(json, "/spec/tolerations")),
        topology: super::read::maybe_text(json, "/spec/topologyName"),
    }
}

/// A Topology.
pub(super) fn topology(json: &Value) -> fact::Topology {
    let levels = list(json, "/spec/levels").iter().filter_map(|level| level.get("nodeLabel").cloned());
    fact::Topology { name: key_of(json).name, levels: texts(&levels.collect::<Vec<_>>()) }
}

/// A Namespace.
pub(super) fn namespace(json: &Value) -> fact::Namespace {
    fact::Namespace { name: key_of(json).name, labels: labels(json.pointer("/metadata/labels")) }
}
