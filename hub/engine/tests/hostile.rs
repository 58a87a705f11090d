//! Hostile input: whatever the facts say, no panic, no overflow, no endless loop, and a reason for whoever waits.

#[path = "scenario/make.rs"]
mod make;

use std::sync::Arc;

use fairlead_engine::fact::{
    ClusterQueue, Cohort, FlavorQuotas, PodSet, ResourceGroup, VictimPolicy, Weight, Workload,
};
use fairlead_engine::policy::FairStrategy;
use fairlead_engine::{Budget, Fact, Outcome, Plan, Policy, Settings, World, decide};
use fairlead_model::{Amount, Millis, Reason};

use make::{lone_queue, preempting, quota, workload};

const NOW: Millis = Millis(1_000_000);

fn told(facts: impl IntoIterator<Item = Fact>) -> World {
    let mut world = World::new(Settings::default());
    tell(&mut world, facts);
    world
}

fn tell(world: &mut World, facts: impl IntoIterator<Item = Fact>) {
    for fact in facts {
        let _changed = world.absorb(fact, NOW);
    }
}

fn fair() -> Policy {
    let strategies = vec![FairStrategy::LessThanOrEqualToFinalShare, FairStrategy::LessThanInitialShare];
    Policy { fair_sharing: Some(strategies), ..Policy::default() }
}

/// Decides one round under both policies, checks that both end, and gives the classical plan.
fn plan(world: &mut World) -> Plan {
    let _under_fair_sharing = decide(&world.snapshot(), &fair(), NOW, Budget::default());
    decide(&world.snapshot(), &Policy::default(), NOW, Budget::default())
}

fn outcome(plan: &Plan, name: &str) -> Option<(Outcome, Reason)> {
    plan.heads.iter().find(|head| *head.key.name == *name).map(|head| (head.outcome, head.verdict.reason))
}

fn pending(name: &str, queue: &str, cpu: i64) -> Fact {
    Fact::Workload(Arc::new(workload(name, queue, (0, 1), cpu)))
}

fn changed(facts: &mut [Fact], change: impl Fn(&mut ClusterQueue)) {
    for fact in facts {
        if let Fact::ClusterQueue(queue) = fact {
            change(queue);
        }
    }
}

/// A chain of Cohorts `c0 ← c1 ← …`; the last is the root, or the first again where `circular`.
fn chain(length: usize, circular: bool) -> impl Iterator<Item = Fact> {
    (0..length).map(move |ix| {
        let parent = if ix + 1 < length { Some(ix + 1) } else { circular.then_some(0) };
        Fact::Cohort(Cohort {
            name: format!("c{ix}").into(),
            parent: parent.map(|parent| format!("c{parent}").into()),
            ..Cohort::default()
        })
    })
}

#[test]
fn t1_a_chain_of_10_000_cohorts_neither_overflows_the_stack_nor_stops_admission() {
    let mut world = told(chain(10_000, false).chain(lone_queue("deep", Some("c0"), 1)));
    tell(&mut world, lone_queue("top", Some("c9999"), 5));
    tell(&mut world, [pending("small", "deep", 3), pending("large", "top", 7)]);
    let plan = plan(&mut world);
    assert_eq!(outcome(&plan, "small"), Some((Outcome::Admitted, Reason::Admitted)));
    assert_eq!(plan.admissions.len(), 1, "what is lent at the root reaches the deepest queue");
    assert_eq!(outcome(&plan, "large"), Some((Outcome::NoFit, Reason::ExceedsMaxQuota)));
    world.commit(&plan);
    assert_eq!(world.usage().1.len(), 10_000, "usage reached every Cohort of the chain");
}

#[test]
fn t1_preemption_works_through_a_chain_of_10_000_cohorts() {
    let mut facts = lone_queue("deep", Some("c0"), 0);
    let mut owner = lone_queue("owner", Some("c9999"), 5);
    changed(&mut owner, |queue| queue.preemption = preempting());
    facts.extend(owner);
    let mut world = told(chain(10_000, false).chain(facts));
    tell(&mut world, [pending("borrower", "deep", 5)]);
    let first = plan(&mut world);
    assert_eq!(first.admissions.len(), 1);
    world.commit(&first);
    tell(&mut world, [Fact::Workload(Arc::new(workload("owns", "owner", (5, 2), 5)))]);
    let second = plan(&mut world);
    assert_eq!(second.evictions.len(), 1, "{:?}", outcome(&second, "owns"));
}

#[test]
fn t1_a_circle_of_cohorts_makes_its_queues_inactive_with_a_reason_and_harms_no_other() {
    for length in [1, 2, 10_000] {
        let mut world = told(chain(length, true).chain(lone_queue("inside", Some("c0"), 5)));
        tell(&mut world, lone_queue("outside", None, 5));
        tell(&mut world, [pending("stuck", "inside", 1), pending("free", "outside", 1)]);
        let plan = plan(&mut world);
        let names: Vec<_> = plan.admissions.iter().map(|it| it.key.name.to_string()).collect();
        assert_eq!(names, ["free"], "a circle of {length}");
        let (reason, detail) = world.inactive_reason("inside").unwrap();
        assert_eq!(reason, Reason::ClusterQueueInactive);
        assert!(detail.contains("cycle"), "{detail}");
    }
}

#[test]
fn t1_a_queue_leaves_a_circle_when_it_is_broken() {
    let mut world = told(chain(3, true).chain(lone_queue("inside", Some("c0"), 5)));
    tell(&mut world, [pending("stuck", "inside", 1)]);
    assert_eq!(plan(&mut world).admissions.len(), 0);
    tell(&mut world, [Fact::CohortGone("c2".into())]);
    assert_eq!(plan(&mut world).admissions.len(), 1);
}

#[test]
fn t3_quantities_at_the_ends_of_64_bits_saturate() {
    for nominal in [i64::MAX, i64::MAX - 1, 0, i64::MIN] {
        for cpu in [i64::MAX, i64::MAX / 2 + 1, 1, 0] {
            let mut world = told(lone_queue("a", Some("c"), nominal).into_iter().chain(lone_queue(
                "b",
                Some("c"),
                nominal,
            )));
            tell(&mut world, (0..4).map(|ix| pending(&format!("a{ix}"), "a", cpu)));
            tell(&mut world, (0..4).map(|ix| pending(&format!("b{ix}"), "b", cpu)));
            for _ in 0..6 {
                let plan = plan(&mut world);
                world.commit(&plan);
                let _settled = world.snapshot();
            }
            let (queues, cohorts) = world.usage();
            for usage in queues.values().chain(cohorts.values()).flat_map(|it| it.by_flavor.values()) {
                assert!(usage.values().all(|(total, borrowed)| *total >= 0 && *borrowed >= 0), "{usage:?}");
            }
        }
    }
}

#[test]
fn t9_counts_times_requests_saturate() {
    let base = workload("huge", "a", (0, 1), i64::MAX);
    let pod_sets: Vec<PodSet> = (0..3)
        .map(|ix| PodSet {
            name: format!("p{ix}").into(),
            count: u32::MAX,
            min_count: Some(1),
            ..base.pod_sets[0].clone()
        })
        .collect();
    let huge = Workload { pod_sets: pod_sets.into(), ..base };
    let mut world = told(lone_queue("a", None, i64::MAX));
    tell(&mut world, [Fact::Workload(Arc::new(huge))]);
    assert_eq!(plan(&mut world).heads.len(), 1);
}

#[test]
fn t2_limits_at_the_ends_of_64_bits_saturate() {
    for limit in [Amount::Finite(i64::MAX), Amount::Unlimited, Amount::Finite(0)] {
        let mut facts = lone_queue("a", Some("c"), i64::MAX);
        facts.extend(lone_queue("b", Some("c"), 10));
        changed(&mut facts, |queue| {
            queue.preemption = preempting();
            for quota in
                queue.groups.iter_mut().flat_map(|group| &mut group.flavors).flat_map(|it| &mut it.quotas)
            {
                (quota.borrowing, quota.lending) = (Some(limit), Some(limit));
            }
        });
        let mut world = told(facts);
        tell(&mut world, [pending("a0", "a", i64::MAX), pending("b0", "b", 11)]);
        for _ in 0..4 {
            let plan = plan(&mut world);
            world.commit(&plan);
        }
    }
}

#[test]
fn p5_weights_of_zero_divide_nothing() {
    for weight in [0, 1, i64::MAX, i64::MIN] {
        let mut facts = lone_queue("a", Some("c"), 4);
        facts.extend(lone_queue("b", Some("c"), 4));
        changed(&mut facts, |queue| {
            queue.weight = Weight(weight);
            queue.preemption = preempting();
        });
        facts.push(Fact::Cohort(Cohort { name: "c".into(), weight: Weight(weight), ..Cohort::default() }));
        let mut world = told(facts);
        tell(&mut world, (0..3).map(|ix| pending(&format!("a{ix}"), "a", 3)));
        for round in 0..6 {
            tell(&mut world, [Fact::Workload(Arc::new(workload(&format!("b{round}"), "b", (round, 9), 3)))]);
            let plan = decide(&world.snapshot(), &fair(), NOW, Budget::default());
            world.commit(&plan);
        }
        assert!(!world.usage().0.is_empty());
    }
}

#[test]
fn p5_shares_of_huge_amounts_do_not_overflow() {
    let mut facts = lone_queue("a", Some("c"), 1);
    facts.extend(lone_queue("b", Some("c"), 1));
    facts.extend(lone_queue("lender", Some("c"), i64::MAX / 2));
    changed(&mut facts, |queue| {
        queue.weight = Weight(i64::MAX);
        queue.preemption = preempting();
    });
    let mut world = told(facts);
    tell(&mut world, [pending("a0", "a", i64::MAX / 4), pending("b0", "b", i64::MAX / 4)]);
    for round in 0..4 {
        tell(&mut world, [pending(&format!("b{}", round + 1), "b", i64::MAX / 5)]);
        let plan = decide(&world.snapshot(), &fair(), NOW, Budget::default());
        world.commit(&plan);
    }
}

#[test]
fn q4_empty_queues_groups_and_workloads_decide_nothing_or_admit_for_free() {
    let mut facts = lone_queue("bare", None, 1);
    changed(&mut facts, |queue| queue.groups.clear());
    let mut hollow = lone_queue("hollow", None, 1);
    changed(&mut hollow, |queue| queue.groups = vec![ResourceGroup::default()]);
    facts.extend(hollow);
    let mut flavorless = lone_queue("flavorless", None, 1);
    changed(&mut flavorless, |queue| queue.groups[0].flavors.clear());
    facts.extend(flavorless);
    let mut world = told(facts);
    let idle = plan(&mut world);
    assert!(idle.quiet && idle.heads.is_empty());
    let empty = |name: &str, queue: &str| {
        let base = workload(name, queue, (0, 1), 1);
        Fact::Workload(Arc::new(Workload { pod_sets: Arc::from([]), ..base }))
    };
    tell(
        &mut world,
        [pending("one", "bare", 1), pending("two", "hollow", 1), pending("three", "flavorless", 1)],
    );
    let plan_ = plan(&mut world);
    assert_eq!(outcome(&plan_, "one"), Some((Outcome::NoFit, Reason::ResourceNotCovered)));
    assert_eq!(outcome(&plan_, "two"), Some((Outcome::NoFit, Reason::ResourceNotCovered)));
    assert_eq!(outcome(&plan_, "three").map(|(outcome, _)| outcome), Some(Outcome::NoFit));
    world.commit(&plan_);
    tell(&mut world, [empty("none", "bare")]);
    let plan_ = plan(&mut world);
    assert_eq!(plan_.admissions.len(), 1, "a workload without pods needs nothing");
}

#[test]
fn s5_a_workload_deleted_between_decision_and_commit_leaves_no_trace() {
    let mut world = told(lone_queue("a", None, 5));
    tell(&mut world, [pending("gone", "a", 5), pending("next", "a", 5)]);
    let plan_ = plan(&mut world);
    assert_eq!(plan_.admissions.len(), 1);
    let admitted = plan_.admissions[0].uid.clone();
    tell(&mut world, [Fact::WorkloadGone(admitted.clone())]);
    world.commit(&plan_);
    let after = plan(&mut world);
    assert_eq!(after.admissions.len(), 1, "the other one gets the quota");
    assert_ne!(after.admissions[0].uid, admitted);
    world.commit(&after);
    let usage = world.usage().0;
    assert_eq!(usage["a"].by_flavor["default"]["cpu"], (5, 0));
}

#[test]
fn p7_a_victim_deleted_between_decision_and_commit_frees_its_quota_once() {
    let mut facts = lone_queue("a", None, 5);
    changed(&mut facts, |queue| queue.preemption.within_queue = VictimPolicy::LowerPriority);
    let mut world = told(facts);
    tell(&mut world, [pending("victim", "a", 5)]);
    let first = plan(&mut world);
    world.commit(&first);
    tell(&mut world, [Fact::Workload(Arc::new(workload("urgent", "a", (9, 2), 5)))]);
    let second = plan(&mut world);
    assert_eq!(second.evictions.len(), 1);
    tell(&mut world, [Fact::WorkloadGone("victim".into())]);
    world.commit(&second);
    let third = plan(&mut world);
    assert_eq!(third.admissions.len(), 1);
    world.commit(&third);
    assert_eq!(world.usage().0["a"].by_flavor["default"]["cpu"], (5, 0));
}

#[test]
fn f3_a_flavor_that_vanishes_stops_its_queue_with_a_reason_and_keeps_what_is_held() {
    let mut world = told(lone_queue("a", None, 5));
    tell(&mut world, [pending("runs", "a", 2), pending("waits", "a", 2)]);
    let first = plan(&mut world);
    world.commit(&first);
    tell(&mut world, [Fact::FlavorGone("default".into())]);
    let second = plan(&mut world);
    assert_eq!(second.admissions.len(), 0);
    assert_eq!(world.inactive_reason("a").map(|(reason, _)| reason), Some(Reason::ClusterQueueInactive));
    world.commit(&second);
    let _settled = world.snapshot();
    assert_eq!(world.usage().0["a"].by_flavor["default"]["cpu"], (2, 0), "what runs still counts");
    tell(&mut world, lone_queue("a", None, 5));
    assert_eq!(plan(&mut world).admissions.len(), 1, "it goes on when the flavor is back");
}

#[test]
fn f3_a_flavor_that_vanishes_between_decision_and_commit_is_charged_as_decided() {
    let mut world = told(lone_queue("a", None, 5));
    tell(&mut world, [pending("w", "a", 2)]);
    let plan_ = plan(&mut world);
    tell(&mut world, [Fact::FlavorGone("default".into())]);
    world.commit(&plan_);
    let _settled = world.snapshot();
    assert_eq!(world.usage().0["a"].by_flavor["default"]["cpu"], (2, 0));
}

#[test]
fn t9_a_queue_that_vanishes_while_it_holds_quota_breaks_nothing() {
    let mut world = told(lone_queue("a", Some("c"), 5).into_iter().chain(lone_queue("b", Some("c"), 5)));
    tell(&mut world, [pending("x", "a", 8)]);
    let first = plan(&mut world);
    assert_eq!(first.admissions.len(), 1);
    world.commit(&first);
    tell(&mut world, [Fact::ClusterQueueGone("a".into()), pending("y", "b", 5), pending("z", "a", 1)]);
    let second = plan(&mut world);
    assert_eq!(outcome(&second, "z"), Some((Outcome::Outside, Reason::ClusterQueueNotFound)));
    world.commit(&second);
    tell(&mut world, [Fact::WorkloadGone("x".into())]);
    tell(&mut world, lone_queue("a", Some("c"), 5));
    let _third = plan(&mut world);
    let _settled = world.snapshot();
    assert!(world.usage().0["a"].by_flavor.is_empty());
}

#[test]
fn f2_quota_of_the_same_flavor_and_resource_stated_twice_is_read_the_same_way_everywhere() {
    let mut facts = lone_queue("a", None, 5);
    changed(&mut facts, |queue| {
        let again = FlavorQuotas { flavor: "default".into(), quotas: vec![quota("cpu", 1)] };
        queue.groups[0].flavors.push(again);
    });
    let mut world = told(facts);
    tell(&mut world, (0..4).map(|ix| pending(&format!("w{ix}"), "a", 2)));
    for _ in 0..6 {
        let plan = plan(&mut world);
        world.commit(&plan);
    }
    let usage = world.usage().0;
    let used = usage["a"].by_flavor.values().flat_map(|it| it.values()).map(|(total, _)| *total).sum::<i64>();
    assert!(used <= 5, "uses {used}");
}
