//! What an admission gives, by name, as plans state it. Workloads of one class that get the same flavors get the same,
//! so it is built once and shared.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_model::PodDemand;

use super::Round;
use super::entry::{Assignment, Entry};
use crate::fact::PodSetAssignment;
use crate::names::{FlavorIx, Interned, ResIx, next};
use crate::plan::Admission;
use crate::world::rows::{Gang, Row};

/// How many are kept before all are forgotten: they are quickly built again.
const MOST: usize = 4096;

/// What an admission gives.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    pub(crate) pod_sets: Arc<[PodSetAssignment]>,
    pub(crate) demand: Arc<[PodDemand]>,
}

/// Grants of earlier admissions, by class, pods and flavors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grants {
    known: BTreeMap<Vec<u32>, (Arc<Gang>, Grant)>,
}

impl Grants {
    fn find(&self, key: &[u32], gang: &Arc<Gang>) -> Option<Grant> {
        let (of, grant) = self.known.get(key)?;
        // A class does not tell what its pods request beside what is charged.
        Arc::ptr_eq(of, gang).then(|| grant.clone())
    }

    /// Keeps what an admission gave to a workload that held nothing before.
    pub(crate) fn keep(&mut self, names: &Interned, row: &Row, admission: &Admission) {
        if admission.pod_sets.iter().any(|pod_set| pod_set.topology.is_some()) {
            return;
        }
        let mut key = vec![row.class];
        for pod_set in &*admission.pod_sets {
            let pairs = pod_set.flavors.iter().filter_map(|(resource, flavor)| {
                Some((names.resources.find(resource)?, names.flavors.find(flavor)?))
            });
            write(&mut key, pod_set.count, pairs);
        }
        if self.known.len() >= MOST {
            self.known.clear();
        }
        let grant =
            Grant { pod_sets: Arc::clone(&admission.pod_sets), demand: Arc::clone(&admission.demand) };
        self.known.insert(key, (Arc::clone(&row.gang), grant));
    }
}

/// Adds a pod set to a key.
fn write(key: &mut Vec<u32>, count: u32, pairs: impl Iterator<Item = (ResIx, FlavorIx)>) {
    let start = key.len();
    key.extend([count, 0]);
    key.extend(pairs.flat_map(|(resource, flavor)| [resource, flavor]));
    let length = next(key.len().saturating_sub(start));
    if let Some(slot) = key.get_mut(start.saturating_add(1)) {
        *slot = length;
    }
}

impl Round<'_> {
    /// What an entry is given; `key` is scratch.
    pub(crate) fn grant(&self, row: &Row, entry: &Entry, key: &mut Vec<u32>) -> Grant {
        let assignment = &entry.assignment;
        // What is held already may be charged by other counts, and places are everybody's own.
        if entry.second_pass || assignment.pod_sets.iter().any(|choice| choice.topology.is_some()) {
            return self.new_grant(row, assignment);
        }
        key.clear();
        key.push(row.class);
        for choice in &assignment.pod_sets {
            let pairs = choice.flavors.iter().map(|(resource, choice)| (*resource, choice.flavor));
            write(key, choice.count, pairs);
        }
        self.world.grants.find(key, &row.gang).unwrap_or_else(|| self.new_grant(row, assignment))
    }

    fn new_grant(&self, row: &Row, assignment: &Assignment) -> Grant {
        let pods = row.gang.requests.iter().zip(&assignment.pod_sets);
        let demand =
            pods.map(|(pod, choice)| PodDemand { requests: pod.effective.clone(), count: choice.count });
        Grant { pod_sets: self.by_name(row, assignment).into(), demand: demand.collect() }
    }

    /// An assignment by name.
    pub(crate) fn by_name(&self, row: &Row, assignment: &Assignment) -> Vec<PodSetAssignment> {
        let names = &self.world.names;
        let pod_sets = row.gang.pod_sets.iter().zip(&assignment.pod_sets);
        let mut assigned = Vec::with_capacity(assignment.pod_sets.len());
        for (pod_set, choice) in pod_sets {
            let flavors = choice.flavors.iter();
            let usage = choice.requests.iter().filter(|(resource, _)| choice.flavor(*resource).is_some());
            assigned.push(PodSetAssignment {
                name: Arc::clone(&pod_set.name),
                count: choice.count,
                flavors: flavors
                    .map(|(resource, choice)| {
                        (names.resources.name(*resource), names.flavors.name(choice.flavor))
                    })
                    .collect(),
                usage: usage.map(|(resource, amount)| (names.resources.name(*resource), *amount)).collect(),
                topology: choice.topology.clone(),
            });
        }
        assigned
    }
}
