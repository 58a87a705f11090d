//! What a round of the reference comes to, and the same cut of the engine's plan, so that both can be compared.

use std::collections::{BTreeMap, BTreeSet};

use fairlead_engine::fact::{PodSetAssignment, PreemptionCause};
use fairlead_engine::{Outcome, Plan};
use fairlead_model::Uid;

use super::Name;

/// A pod set's name, its count, and per resource the flavor and the charged amount.
pub(crate) type PodSetGiven = (Name, u32, BTreeMap<Name, (Name, i64)>);

/// A workload that got quota.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Admitted {
    /// The workload.
    pub(crate) uid: Uid,
    /// Its ClusterQueue.
    pub(crate) queue: Name,
    /// What each pod set got.
    pub(crate) pod_sets: Vec<PodSetGiven>,
}

/// A workload that has to go.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Evicted {
    /// The victim.
    pub(crate) uid: Uid,
    /// By which rule.
    pub(crate) cause: PreemptionCause,
    /// For whom.
    pub(crate) by: Uid,
}

/// A workload that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Looked {
    /// The workload.
    pub(crate) uid: Uid,
    /// What became of it.
    pub(crate) outcome: Outcome,
}

/// One round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RoundPlan {
    /// Every head.
    pub(crate) heads: BTreeSet<Looked>,
    /// Per tree the heads in the order of handling, less those that could not get anything: their order changes
    /// nothing.
    pub(crate) order: BTreeMap<Name, Vec<Uid>>,
    /// Admissions.
    pub(crate) admitted: BTreeSet<Admitted>,
    /// Evictions.
    pub(crate) evicted: BTreeSet<Evicted>,
}

impl RoundPlan {
    /// The comparable part of an engine's plan of one round.
    pub(crate) fn of(plan: &Plan) -> Self {
        let mut round = Self::default();
        for head in plan.heads.iter().filter(|head| head.outcome != Outcome::Outside) {
            round.heads.insert(Looked { uid: head.uid.clone(), outcome: head.outcome });
            if head.entered && head.outcome != Outcome::NoFit {
                round.order.entry(head.root.clone()).or_default().push(head.uid.clone());
            }
        }
        for admission in &plan.admissions {
            round.admitted.insert(Admitted {
                uid: admission.uid.clone(),
                queue: admission.cluster_queue.clone(),
                pod_sets: admission.pod_sets.iter().map(pod_set).collect(),
            });
        }
        for eviction in &plan.evictions {
            let (uid, by) = (eviction.uid.clone(), eviction.by.clone());
            round.evicted.insert(Evicted { uid, cause: eviction.cause, by });
        }
        round
    }
}

fn pod_set(it: &PodSetAssignment) -> PodSetGiven {
    let given =
        |(resource, flavor): (&Name, &Name)| (resource.clone(), (flavor.clone(), it.usage.get(resource)));
    (it.name.clone(), it.count, it.flavors.iter().map(given).collect())
}
