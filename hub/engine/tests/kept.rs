//! What the engine keeps of workloads: few words, shared where they are equal. A fact that repeats what is known changes
//! nothing, one that differs anywhere changes something, and what is shared is never given to whom it does not fit.

#[path = "build/lib.rs"]
mod build;

use std::sync::Arc;

use fairlead_engine::fact::{
    CheckPhase, CheckState, Eviction, EvictionCause, LimitRange, LimitRangeItem, LimitType, Workload,
};
use fairlead_engine::policy::RequestRules;
use fairlead_engine::{Changed, Fact, Settings, World};
use fairlead_model::{Millis, ObjectKey, Reason, Resources, SpokeId};

use build::{Hub, NAMESPACE, NOW, flavor, holding, promised, queue, resources, workload};

/// Changes one thing of a workload's fact.
type Change = fn(&mut Workload);

/// One change for each thing that a fact states.
const CHANGES: [Change; 15] = [
    |it| it.key.name = "other".into(),
    |it| it.queue = "other".into(),
    |it| it.priority += 1,
    |it| it.created = Millis(77),
    |it| it.pod_sets = workload("w", "q", (2, 500)).pod_sets,
    |it| it.active = false,
    |it| it.finished = true,
    |it| it.hold = Some(Reason::Busy),
    |it| it.requeue_blocked = true,
    |it| it.requeue_at = Some(Millis(5)),
    |it| it.checks = vec![CheckState { check: "c".into(), phase: CheckPhase::Ready }],
    |it| it.reclaimable = vec![("main".into(), 1)],
    |it| it.evicted = Some(Eviction { cause: EvictionCause::Preempted, at: Millis(3) }),
    |it| it.pods_ready = true,
    |it| it.unhealthy_nodes = vec!["node".into()],
];

fn hub() -> Hub {
    Hub::new(&[flavor("default")], &[queue("q", &[("default", 1000)])])
}

fn told(world: &mut World, fact: &Workload) -> Changed {
    world.absorb(Fact::Workload(Arc::new(fact.clone())), NOW)
}

#[test]
fn a_fact_that_repeats_another_changes_nothing_and_any_other_does() {
    let pending = workload("w", "q", (1, 500));
    let held = promised(holding(pending.clone(), "q", ("default", 500)), "east", Some("p1-1"));
    let ended = Workload { finished: true, ..held.clone() };
    for start in [pending, held, ended] {
        for change in CHANGES {
            let mut hub = hub();
            let mut other = start.clone();
            change(&mut other);
            assert_eq!(told(&mut hub.world, &start), Changed::Yes);
            assert_eq!(told(&mut hub.world, &start), Changed::No, "{start:?}");
            let expected = if other == start { Changed::No } else { Changed::Yes };
            assert_eq!(told(&mut hub.world, &other), expected, "{start:?} → {other:?}");
            assert_eq!(told(&mut hub.world, &other), Changed::No, "{other:?}");
        }
    }
}

#[test]
fn every_part_of_a_reservation_counts() {
    let held = promised(holding(workload("w", "q", (1, 500)), "q", ("default", 500)), "east", None);
    let mut others = vec![held.clone(); 5];
    for (other, part) in others.iter_mut().zip(0..) {
        let Some(reservation) = &mut other.reservation else { continue };
        match part {
            0 => reservation.at = Millis(99),
            1 => reservation.spoke = Some(SpokeId::from("west")),
            2 => reservation.admitted = false,
            3 => reservation.cluster_queue = "other".into(),
            _ => reservation.pod_sets = [].into(),
        }
    }
    for other in others {
        let mut hub = hub();
        assert_eq!(told(&mut hub.world, &held), Changed::Yes);
        assert_eq!(told(&mut hub.world, &other), Changed::Yes, "{other:?}");
    }
}

#[test]
fn what_a_plan_assumed_is_not_taken_for_stated() {
    let mut hub = hub();
    let pending = workload("w", "q", (1, 500));
    hub.submit(pending.clone());
    assert_eq!(hub.round().admissions.len(), 1);
    assert_eq!(told(&mut hub.world, &pending), Changed::Yes, "the promise came to nothing");
    assert_eq!(hub.round().admissions.len(), 1);
}

/// One class, since quota does not count the resource in which they differ; but a spoke needs to know of it.
#[test]
fn workloads_of_one_class_may_demand_different_things() {
    let requests = RequestRules { exclude_prefixes: vec!["example.com/".into()], ..RequestRules::default() };
    let settings = Settings { requests, ..Settings::default() };
    let mut hub = Hub::with(settings, &[flavor("default")], &[queue("q", &[("default", 1000)])]);
    for (name, count) in [("a", 1), ("b", 7), ("c", 1)] {
        let default_request = resources(&[("example.com/seat", count)]);
        let (none, kind) = (Resources::new, LimitType::Container);
        let item = LimitRangeItem { kind, min: none(), max: none(), default: none(), default_request };
        let key = ObjectKey::new(NAMESPACE, "defaults");
        hub.tell(Fact::LimitRange(LimitRange { key, items: vec![item] }));
        hub.submit(workload(name, "q", (1, 100)));
        let plan = hub.round();
        let seats = plan.admissions[0].demand[0].requests.get("example.com/seat");
        assert_eq!(seats, count, "{name}");
    }
}
