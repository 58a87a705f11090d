//! What the pods of workloads come to, and which workloads are equivalent.

use std::collections::BTreeSet;
use std::sync::Arc;

use fairlead_model::ObjectKey;

use super::World;
use super::rows::{Amounts, ClassKey, Gang, Place, Row};
use super::stated::Stated;
use crate::fact::PodSet;
use crate::names::RowIx;
use crate::requests::{PodRequests, Surroundings, pod_requests};

impl World {
    /// Per pod set, what one pod comes to.
    fn requests_of(&self, namespace: &Arc<str>, pod_sets: &[PodSet]) -> Box<[PodRequests]> {
        let from = ObjectKey::new(Arc::clone(namespace), "");
        let ranges: Vec<_> = self
            .limit_ranges
            .range(from..)
            .take_while(|(key, _)| key.namespace == *namespace)
            .map(|(_, range)| range)
            .collect();
        let compute = |pod_set: &PodSet| {
            let class = pod_set.template.runtime_class.as_ref();
            let overhead = class.and_then(|class| self.runtime_classes.get(class));
            let around = Surroundings { limit_ranges: &ranges, overhead };
            pod_requests(&pod_set.template, around, &self.settings.requests)
        };
        pod_sets.iter().map(compute).collect()
    }

    /// Gives every requested resource an ordinal, so that rounds need not look names up.
    fn intern_requests(&mut self, requests: &[PodRequests]) -> Box<[Amounts]> {
        let mut charged = Vec::with_capacity(requests.len());
        for pod in requests {
            let amounts =
                pod.charged.iter().map(|(name, amount)| (self.names.resources.intern(name), amount));
            charged.push(amounts.collect());
        }
        if self.names.resources.find("pods").is_none() {
            self.names.resources.intern(&Arc::from("pods"));
        }
        charged.into()
    }

    /// The pods of a workload with what they come to.
    pub(super) fn gang_of(&mut self, namespace: &Arc<str>, pod_sets: &Arc<[PodSet]>) -> Arc<Gang> {
        let requests = self.requests_of(namespace, pod_sets);
        let charged = self.intern_requests(&requests);
        self.gangs.share(Gang { pod_sets: Arc::clone(pod_sets), requests, charged })
    }

    pub(super) fn class_of(&mut self, stated: &Stated, gang: &Gang) -> u32 {
        let rare = stated.rare();
        let key = ClassKey {
            priority: stated.priority,
            pod_sets: Arc::clone(&gang.pod_sets),
            charged: gang.requests.iter().map(|pod| pod.charged.clone()).collect(),
            reclaimed: rare.reclaimable.clone(),
            excluded: rare.excluded.iter().map(|exclusion| exclusion.spoke.clone()).collect(),
            gated: stated.preemption_gated,
        };
        self.class_named(key)
    }

    /// The number of a class, new if need be.
    pub(super) fn class_named(&mut self, key: ClassKey) -> u32 {
        let fresh = self.next_class;
        let class = *self.classes.entry(key).or_insert(fresh);
        if class == fresh {
            self.next_class = fresh.wrapping_add(1);
        }
        class
    }

    /// Forgets classes that no workload has any more, once they are many.
    pub(super) fn sweep_classes(&mut self) {
        if self.classes.len() > self.by_uid.len().saturating_mul(2).saturating_add(1024) {
            let used: BTreeSet<u32> = self.rows.iter().map(|(_, row)| row.class).collect();
            self.classes.retain(|_, class| used.contains(class));
        }
    }

    /// Recomputes the requests of pending workloads that a change concerns.
    pub(super) fn recompute(&mut self, changed: bool, concerns: impl Fn(&Row) -> bool) -> bool {
        if !changed {
            return false;
        }
        let pending = |row: &Row| !matches!(row.place, Place::Held(_) | Place::Finished);
        let rows: Vec<RowIx> =
            self.rows.iter().filter(|(_, row)| pending(row) && concerns(row)).map(|(ix, _)| ix).collect();
        for ix in rows {
            let Some(row) = self.row(ix) else { continue };
            let (before, namespace) = (Arc::clone(&row.gang), Arc::clone(row.fact.namespace()));
            let gang = self.gang_of(&namespace, &before.pod_sets);
            if gang.requests == before.requests {
                continue;
            }
            let Some(class) =
                self.row(ix).map(|row| row.fact.clone()).map(|fact| self.class_of(&fact, &gang))
            else {
                continue;
            };
            self.unqueue(ix);
            if let Some(row) = self.row_mut(ix) {
                row.gang = gang;
                row.class = class;
                row.forget_scan();
            }
            self.enqueue(ix, false);
        }
        true
    }
}

/// Whether a workload has pods of a RuntimeClass.
pub(super) fn uses_class(row: &Row, class: &Arc<str>) -> bool {
    row.gang.pod_sets.iter().any(|pod_set| pod_set.template.runtime_class.as_ref() == Some(class))
}
