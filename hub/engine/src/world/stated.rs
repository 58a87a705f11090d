//! A workload's fact as a row keeps it: few words, because there may be millions. What many workloads share is shared,
//! and what few have stands apart.

use std::sync::Arc;

use fairlead_model::{Millis, ObjectKey, Reason, Uid};

use super::rows::{Held, Row};
use crate::fact::{CheckState, Eviction, EvictionCause, Exclusion, PodSet, Reservation, Workload};
use crate::names::CqIx;

/// What most workloads have none of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rare {
    pub(crate) evicted: Option<Eviction>,
    pub(crate) requeue_at: Option<Millis>,
    pub(crate) checks: Vec<CheckState>,
    pub(crate) reclaimable: Vec<(Arc<str>, u32)>,
    pub(crate) unhealthy_nodes: Vec<Arc<str>>,
    pub(crate) excluded: Vec<Exclusion>,
    /// What an ended workload still states; nobody counts it.
    unused: Option<Reservation>,
}

static NOTHING: Rare = Rare {
    evicted: None,
    requeue_at: None,
    checks: Vec::new(),
    reclaimable: Vec::new(),
    unhealthy_nodes: Vec::new(),
    excluded: Vec::new(),
    unused: None,
};

/// A workload's fact, less its pod sets and what it holds.
#[expect(clippy::struct_excessive_bools, reason = "each is one condition of the object")]
#[derive(Clone, Debug)]
pub(crate) struct Stated {
    pub(crate) uid: Uid,
    pub(crate) name: Arc<str>,
    /// Namespace and name of its LocalQueue; one for all workloads of that.
    pub(crate) local: Arc<ObjectKey>,
    pub(crate) priority: i64,
    pub(crate) created: Millis,
    pub(crate) hold: Option<Reason>,
    pub(crate) active: bool,
    pub(crate) finished: bool,
    pub(crate) requeue_blocked: bool,
    pub(crate) preemption_gated: bool,
    pub(crate) pods_ready: bool,
    /// It states a reservation.
    pub(crate) reserved: bool,
    rare: Option<Box<Rare>>,
}

impl Stated {
    /// Keeps what a fact states.
    pub(super) fn of(fact: &Workload, local: Arc<ObjectKey>) -> Self {
        let rare = Rare {
            evicted: fact.evicted,
            requeue_at: fact.requeue_at,
            checks: fact.checks.clone(),
            reclaimable: fact.reclaimable.clone(),
            unhealthy_nodes: fact.unhealthy_nodes.clone(),
            excluded: fact.excluded.clone(),
            unused: fact.reservation.clone().filter(|_| fact.finished),
        };
        Self {
            uid: fact.uid.clone(),
            name: Arc::clone(&fact.key.name),
            local,
            priority: fact.priority,
            created: fact.created,
            hold: fact.hold,
            active: fact.active,
            finished: fact.finished,
            requeue_blocked: fact.requeue_blocked,
            preemption_gated: fact.preemption_gated,
            pods_ready: fact.pods_ready,
            reserved: fact.reservation.is_some(),
            rare: (rare != NOTHING).then(|| Box::new(rare)),
        }
    }

    /// The fact again, with what the row keeps apart: pod sets, and the reservation where it states one.
    pub(super) fn fact(&self, pod_sets: Arc<[PodSet]>, reservation: Option<Reservation>) -> Workload {
        let rare = self.rare().clone();
        Workload {
            uid: self.uid.clone(),
            key: self.key(),
            queue: Arc::clone(self.queue()),
            priority: self.priority,
            created: self.created,
            pod_sets,
            active: self.active,
            finished: self.finished,
            hold: self.hold,
            reservation: reservation.or(rare.unused),
            evicted: rare.evicted,
            requeue_blocked: self.requeue_blocked,
            requeue_at: rare.requeue_at,
            checks: rare.checks,
            reclaimable: rare.reclaimable,
            preemption_gated: self.preemption_gated,
            unhealthy_nodes: rare.unhealthy_nodes,
            excluded: rare.excluded,
            pods_ready: self.pods_ready,
        }
    }

    /// What most workloads have none of.
    pub(crate) fn rare(&self) -> &Rare {
        self.rare.as_deref().unwrap_or(&NOTHING)
    }

    /// Notes an eviction.
    pub(super) fn evict(&mut self, eviction: Eviction) {
        self.rare.get_or_insert_default().evicted = Some(eviction);
    }

    /// Namespace and name.
    pub(crate) fn key(&self) -> ObjectKey {
        ObjectKey { namespace: Arc::clone(&self.local.namespace), name: Arc::clone(&self.name) }
    }

    /// Its namespace.
    pub(crate) fn namespace(&self) -> &Arc<str> {
        &self.local.namespace
    }

    /// The name of its LocalQueue.
    pub(crate) fn queue(&self) -> &Arc<str> {
        &self.local.name
    }

    /// Queue-order timestamp.
    pub(crate) fn order_time(&self) -> Millis {
        match self.rare().evicted {
            Some(eviction)
                if matches!(
                    eviction.cause,
                    EvictionCause::AdmissionCheck | EvictionCause::PodsReadyTimeout
                ) =>
            {
                eviction.at
            }
            Some(_) | None => self.created,
        }
    }

    /// Whether a parked workload need not be looked at again when this becomes that; pod sets and reservations
    /// apart.
    pub(super) fn same_attempt(&self, new: &Self) -> bool {
        let (old_rare, new_rare) = (self.rare(), new.rare());
        self.local == new.local
            && self.priority == new.priority
            && self.active == new.active
            && self.hold == new.hold
            && self.requeue_blocked == new.requeue_blocked
            && self.preemption_gated == new.preemption_gated
            && !self.reserved
            && !new.reserved
            && old_rare.reclaimable == new_rare.reclaimable
            && old_rare.evicted == new_rare.evicted
            && old_rare.excluded == new_rare.excluded
            && old_rare.checks == new_rare.checks
    }
}

/// Whether a fact states the same reservation as is held of a queue.
fn is_reserved(held: &Held, queue: CqIx, stated: &Reservation) -> bool {
    let Reservation { cluster_queue: _, at, pod_sets, spoke, placement, admitted } = stated;
    held.queue == queue
        && held.at == *at
        && held.charge.pod_sets == *pod_sets
        && held.spoke == *spoke
        && held.placement == *placement
        && held.admitted == *admitted
}

impl Row {
    /// Whether a fact repeats what the row keeps; `queue` is the one that its reservation names. What a plan has assumed
    /// was not stated.
    pub(super) fn repeats(&self, fact: &Workload, queue: Option<CqIx>) -> bool {
        let new = Stated::of(fact, Arc::clone(&self.fact.local));
        let reserved = match (self.held.as_deref(), &fact.reservation) {
            (Some(held), Some(stated)) => queue.is_some_and(|queue| is_reserved(held, queue, stated)),
            (None, None) => true,
            (None, Some(_)) => fact.finished,
            (Some(_), None) => false,
        };
        let old = &self.fact;
        !self.assumed
            && reserved
            && old.name == new.name
            && (old.namespace(), old.queue()) == (&fact.key.namespace, &fact.queue)
            && (old.priority, old.created, old.hold) == (new.priority, new.created, new.hold)
            && (old.active, old.finished) == (new.active, new.finished)
            && (old.requeue_blocked, old.preemption_gated) == (new.requeue_blocked, new.preemption_gated)
            && old.pods_ready == new.pods_ready
            && old.rare() == new.rare()
            && self.gang.pod_sets == fact.pod_sets
    }
}
