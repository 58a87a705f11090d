//! What a run counts for in the statuses of its queues.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_api::conditions::WorkloadCondition;
use fairlead_api::kueue::Admission;
use fairlead_model::ObjectKey;

use super::run::Run;

/// How far a workload has come, as queue statuses count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// It waits.
    Pending,
    /// Quota is reserved for it.
    Reserving,
    /// It is admitted.
    Admitted,
}

/// Usage by flavor and resource.
pub(crate) type Usage = BTreeMap<(Arc<str>, Arc<str>), i64>;

/// What one workload counts for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) local_queue: ObjectKey,
    /// The ClusterQueue that holds its quota, or that it waits for.
    pub(crate) cluster_queue: Arc<str>,
    pub(crate) standing: Standing,
    pub(crate) usage: Usage,
}

impl Tally {
    /// What this run counts for; nothing once it is over or has no Workload.
    pub(crate) fn of(run: &Run, cluster_queue_of: impl Fn(&ObjectKey) -> Option<Arc<str>>) -> Option<Self> {
        let workload = run.workload.as_ref()?;
        if workload.is(WorkloadCondition::Finished) {
            return None;
        }
        let local_queue = ObjectKey::new(Arc::clone(&workload.key.namespace), workload.queue());
        let admission = workload.status.admission.as_ref();
        let standing = match admission {
            Some(_) if workload.is(WorkloadCondition::Admitted) => Standing::Admitted,
            Some(_) if workload.is(WorkloadCondition::QuotaReserved) => Standing::Reserving,
            _ if workload.deleted_at.is_some() => return None,
            _ => Standing::Pending,
        };
        let cluster_queue = match admission {
            Some(admission) if standing > Standing::Pending => admission.cluster_queue.as_str().into(),
            _ => cluster_queue_of(&local_queue).unwrap_or_default(),
        };
        let usage = admission.filter(|_| standing > Standing::Pending).map(usage_of).unwrap_or_default();
        Some(Self { local_queue, cluster_queue, standing, usage })
    }
}

/// The usage of an admission over all pod sets.
pub(crate) fn usage_of(admission: &Admission) -> Usage {
    let mut usage = Usage::new();
    for set in &admission.pod_set_assignments {
        for (resource, quantity) in &set.resource_usage {
            let flavor = set.flavors.get(resource).map_or("", String::as_str);
            let amount = quantity.parse(resource).unwrap_or(0);
            let sum = usage.entry((flavor.into(), resource.as_str().into())).or_insert(0);
            *sum = sum.saturating_add(amount);
        }
    }
    usage
}
