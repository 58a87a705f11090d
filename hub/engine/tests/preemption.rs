//! Whom preemption looks at: what it costs, counted, follows what is needed and not what exists.

#[path = "build/lib.rs"]
mod build;

use build::{Hub, NOW, flavor, holding, queue, with_preemption, workload};
use fairlead_engine::fact::{ClusterQueue, Preemption, VictimPolicy, Workload};
use fairlead_engine::plan::{Outcome, Spent};
use fairlead_engine::policy::FairStrategy;
use fairlead_engine::{Budget, Plan, Policy, decide};
use fairlead_model::Millis;

const WITHIN: Preemption =
    Preemption { within_queue: VictimPolicy::LowerPriority, reclaim: VictimPolicy::Never, borrow: None };
const RECLAIM: Preemption = Preemption { reclaim: VictimPolicy::Any, ..WITHIN };

fn fair() -> Policy {
    let strategies = vec![FairStrategy::LessThanOrEqualToFinalShare, FairStrategy::LessThanInitialShare];
    Policy { fair_sharing: Some(strategies), ..Policy::default() }
}

/// A workload of one CPU that has held it for a while.
fn runs(name: &str, queue: &str, since: i64) -> Workload {
    let mut held = holding(workload(name, queue, (1, 1)), queue, ("default", 1));
    if let Some(reservation) = &mut held.reservation {
        reservation.at = Millis(since);
    }
    held
}

/// A workload that asks for CPUs in front of all others.
fn urgent(queue: &str, cpu: i64) -> Workload {
    Workload { priority: 10, ..workload(&format!("urgent-{queue}"), queue, (1, cpu)) }
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// One full queue of `held` workloads.
fn full_queue(held: usize) -> Hub {
    let full = with_preemption(queue("q", &[("default", count(held))]), WITHIN);
    let mut hub = Hub::new(&[flavor("default")], &[full]);
    for ix in 0..held {
        hub.submit(runs(&format!("held-{ix}"), "q", count(ix)));
    }
    hub
}

/// A tree in which `borrowers` queues, ten to a cohort, borrow three CPUs each of what the queue `owner` leaves.
fn borrowed_tree(borrowers: usize, policy: Policy) -> Hub {
    let in_cohort = |name: &str, cohort: String, nominal: usize| ClusterQueue {
        cohort: Some(cohort.into()),
        ..with_preemption(queue(name, &[("default", count(nominal))]), RECLAIM)
    };
    let names: Vec<String> = (0..borrowers).map(|ix| format!("q{ix:03}")).collect();
    let mut queues = vec![in_cohort("owner", "root".into(), 3 * borrowers)];
    queues.extend(names.iter().zip(0..).map(|(name, ix)| in_cohort(name, format!("c{:02}", ix / 10), 0)));
    let mut hub = Hub::new(&[flavor("default")], &queues);
    hub.policy = policy;
    for ix in 0..borrowers.div_ceil(10) {
        hub.tell(fairlead_engine::Fact::Cohort(fairlead_engine::fact::Cohort {
            name: format!("c{ix:02}").into(),
            parent: Some("root".into()),
            ..Default::default()
        }));
    }
    for (ix, name) in names.iter().enumerate() {
        (0..3).for_each(|each| hub.submit(runs(&format!("held-{ix}-{each}"), name, count(ix * 3 + each))));
    }
    hub
}

/// What a round costs in which somebody evicts so many.
fn cost(hub: &mut Hub, head: Workload, victims: usize) -> Spent {
    hub.submit(head);
    let plan = hub.round();
    assert_eq!(plan.evictions.len(), victims);
    plan.spent
}

#[test]
fn p3_a_search_looks_at_those_it_takes() {
    let spent = |held| cost(&mut full_queue(held), urgent("q", 3), 3);
    assert_eq!(spent(10), spent(1000));
    // For each of both searches, of which one is simulated: three who go, and one who would be next.
    assert!(spent(1000).candidates <= 8, "{:?}", spent(1000));
}

#[test]
fn p1_who_is_protected_is_not_looked_at() {
    let mut hub = full_queue(1000);
    hub.submit(Workload { priority: 0, ..urgent("q", 1) });
    let plan = hub.round();
    assert_eq!((plan.evictions.len(), plan.spent), (0, Spent::default()));
}

#[test]
fn p1_equal_priority_is_not_looked_at_where_nobody_is_newer() {
    let newer = Preemption { within_queue: VictimPolicy::LowerOrNewerEqualPriority, ..WITHIN };
    let full = with_preemption(queue("q", &[("default", 100)]), newer);
    let mut hub = Hub::new(&[flavor("default")], &[full]);
    (0..100).for_each(|ix| hub.submit(runs(&format!("held-{ix}"), "q", ix)));
    hub.submit(Workload { created: Millis(1), ..workload("late", "q", (1, 1)) });
    let plan = hub.round();
    assert_eq!((plan.evictions.len(), plan.spent.candidates), (0, 0));
}

#[test]
fn p1_another_flavors_workloads_are_not_looked_at() {
    let two = queue("q", &[("default", 100), ("other", 1)]);
    let mut hub = Hub::new(&[flavor("default"), flavor("other")], &[with_preemption(two, WITHIN)]);
    (0..100).for_each(|ix| hub.submit(Workload { priority: 20, ..runs(&format!("held-{ix}"), "q", ix) }));
    let there = holding(workload("there", "q", (1, 1)), "q", ("other", 1));
    hub.submit(there);
    let spent = cost(&mut hub, urgent("q", 1), 1);
    assert!(spent.candidates <= 4, "{spent:?}");
}

#[test]
fn p6_fair_sharing_looks_at_the_parts_of_the_tree_that_it_comes_to() {
    let spent = |borrowers| cost(&mut borrowed_tree(borrowers, fair()), urgent("owner", 2), 2);
    assert_eq!(spent(30), spent(300));
}

#[test]
fn s1_what_ifs_end_a_round_and_the_rest_stays_in_line() {
    let queues = ["a", "b"].map(|name| with_preemption(queue(name, &[("default", 1)]), WITHIN));
    let mut hub = Hub::new(&[flavor("default")], &queues);
    for name in ["a", "b"] {
        hub.submit(runs(&format!("held-{name}"), name, 1));
        hub.submit(urgent(name, 1));
    }
    let mut round = |what_ifs| -> Plan {
        let snapshot = hub.world.snapshot();
        let plan = decide(&snapshot, &Policy::default(), NOW, Budget { what_ifs, ..Budget::default() });
        hub.world.commit(&plan);
        plan
    };
    let none = round(0);
    assert_eq!((none.heads.len(), none.quiet), (0, false), "nothing may be asked, so nothing is decided");
    let first = round(1);
    let looked_at: Vec<&str> = first.heads.iter().map(|head| &*head.key.name).collect();
    assert_eq!(
        (looked_at, first.quiet),
        (vec!["urgent-a"], false),
        "who was begun is finished, nobody else is"
    );
    let both = round(u32::MAX);
    assert!(both.heads.iter().all(|head| head.outcome == Outcome::PendingPreemption), "{both:?}");
    assert_eq!(both.evictions.iter().map(|it| &*it.by_key.name).collect::<Vec<_>>(), ["urgent-b"]);
}

#[test]
fn p6_the_second_strategy_takes_only_what_the_first_refused() {
    let in_pool = |name: &str, cpu: i64| {
        let rules = Preemption { reclaim: VictimPolicy::LowerPriority, ..WITHIN };
        let queue = with_preemption(queue(name, &[("default", cpu)]), rules);
        ClusterQueue { cohort: Some("pool".into()), ..queue }
    };
    let mut hub = Hub::new(&[flavor("default")], &[in_pool("owner", 4), in_pool("borrower", 0)]);
    hub.policy = fair();
    hub.submit(runs("small", "borrower", 1));
    let large = holding(workload("large", "borrower", (1, 3)), "borrower", ("default", 3));
    hub.submit(Workload { priority: 20, ..large });
    // The first strategy takes `small`, which is not enough, and `large` is protected.
    hub.submit(urgent("owner", 2));
    let plan = hub.round();
    assert_eq!(plan.evictions, Vec::new());
}
