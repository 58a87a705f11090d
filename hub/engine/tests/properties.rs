//! Properties of the engine over random trees and workloads. Most compare it with the reference, round by round; the
//! rest hold for any engine.

#![expect(
    clippy::clone_on_ref_ptr,
    reason = "the reference is for reading; `Arc::clone` everywhere hides the rule"
)]

#[path = "reference/lib.rs"]
mod reference;
#[path = "scenario/lib.rs"]
mod scenario;

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_engine::fact::{Reservation, Workload};
use fairlead_engine::{Admission, Budget, Fact, Plan, Policy, decide};
use fairlead_model::{Millis, Uid};
use proptest::prelude::*;

use scenario::{Scenario, Scope, Stage, Step, lone_queue, preempting, scenario, told, usage, workload};

/// Plays a whole scenario, comparing every round with the reference.
fn play(scenario: &Scenario) {
    let mut stage = Stage::set(scenario);
    for step in &scenario.steps {
        stage.step(step, &mut |stage, plan| stage.compare(plan));
    }
}

/// The scenario without changes of quota.
fn unchanged(scenario: Scenario) -> Scenario {
    let steps = scenario.steps.into_iter().filter(|step| !matches!(step, Step::Change(_))).collect();
    Scenario { steps, ..scenario }
}

/// The fact that states an admission.
fn stated(workload: &Workload, admission: &Admission, at: Millis) -> Fact {
    let reservation = Reservation {
        cluster_queue: Arc::clone(&admission.cluster_queue),
        at,
        pod_sets: admission.pod_sets.clone(),
        spoke: None,
        placement: None,
        admitted: true,
    };
    Fact::Workload(Arc::new(Workload { reservation: Some(reservation), ..workload.clone() }))
}

/// Tells the reference of the reservations of a plan: a ledger that only adds up.
fn enter(stage: &mut Stage, plan: &Plan) {
    for admission in &plan.admissions {
        let Some(workload) = stage.workloads.iter().find(|it| it.uid == admission.uid) else {
            unreachable!("{} was never created", admission.uid);
        };
        let fact = stated(workload, admission, plan.at);
        stage.reference.absorb(fact);
    }
}

/// How often each victim was evicted for each preemptor.
type Evictions = BTreeMap<(Uid, Uid), u32>;

/// Plays a scenario and then rounds on unchanged facts, victims leaving at once, until three in a row are idle: the
/// evictions of that time, and whether it came to an end.
fn run_out(scenario: &Scenario, idle: impl Fn(&Plan) -> bool) -> (Evictions, bool) {
    let mut stage = Stage::set(scenario);
    for step in &scenario.steps {
        stage.step(step, &mut |_, _| {});
    }
    let (mut evictions, mut idle_rounds) = (Evictions::new(), 0);
    for _ in 0..200 {
        stage.round(&mut |_, plan| {
            idle_rounds = if idle(plan) { idle_rounds + 1 } else { 0 };
            for it in &plan.evictions {
                *evictions.entry((it.uid.clone(), it.by.clone())).or_insert(0) += 1;
            }
        });
        stage.release();
        if idle_rounds == 3 {
            return (evictions, true);
        }
    }
    (evictions, false)
}

const EVERYTHING: Scope = Scope { preemption: true, fair: false, partial: true };
const EVERYTHING_FAIR: Scope = Scope { fair: true, ..EVERYTHING };

/// 256 cases, or as many as `PROPTEST_CASES` says.
fn config() -> ProptestConfig {
    ProptestConfig { max_shrink_iters: 4000, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    /// [T-1]…[T-9], [Q-1]…[Q-10], [F-1]…[F-8], [S-1], [S-2], [S-4].
    #[test]
    fn plans_equal_the_reference_without_preemption(scenario in scenario(Scope::default())) {
        play(&scenario);
    }

    /// [F-9].
    #[test]
    fn plans_equal_the_reference_with_partial_admission(
        scenario in scenario(Scope { partial: true, ..Scope::default() })
    ) {
        play(&scenario);
    }

    /// [S-3], [P-5].
    #[test]
    fn plans_equal_the_reference_with_fair_order(scenario in scenario(Scope { fair: true, ..Scope::default() })) {
        play(&scenario);
    }

    /// [P-1]…[P-4], [P-7], [S-4].
    #[test]
    fn plans_equal_the_reference_with_classical_preemption(
        scenario in scenario(Scope { preemption: true, ..Scope::default() })
    ) {
        play(&scenario);
    }

    /// [P-5], [P-6].
    #[test]
    fn plans_equal_the_reference_with_fair_preemption(
        scenario in scenario(Scope { preemption: true, fair: true, partial: false })
    ) {
        play(&scenario);
    }

    /// [F-9] with [P-1]…[P-4].
    #[test]
    fn plans_equal_the_reference_with_everything(scenario in scenario(EVERYTHING)) {
        play(&scenario);
    }

    /// [F-9] with [P-6].
    #[test]
    fn plans_equal_the_reference_with_everything_fair(scenario in scenario(EVERYTHING_FAIR)) {
        play(&scenario);
    }

    /// [T-3], [T-4], [T-9]: what the engine keeps step by step is what adding everything up gives.
    #[test]
    fn usage_is_the_sum_of_reservations_at_every_node(
        scenario in prop_oneof![scenario(EVERYTHING).boxed(), scenario(EVERYTHING_FAIR).boxed()]
    ) {
        let mut stage = Stage::set(&scenario);
        for step in &scenario.steps {
            stage.step(step, &mut enter);
            let _settled = stage.world.snapshot();
            prop_assert_eq!(usage(&stage.world), stage.reference.usage());
        }
    }

    /// [T-1], [T-6]: with quota unchanged no node ever gets more than its own and what it may borrow.
    #[test]
    fn nothing_is_borrowed_beyond_limits(
        scenario in prop_oneof![scenario(EVERYTHING).boxed(), scenario(EVERYTHING_FAIR).boxed()]
    ) {
        let scenario = unchanged(scenario);
        let mut stage = Stage::set(&scenario);
        for step in &scenario.steps {
            stage.step(step, &mut enter);
            prop_assert_eq!(stage.reference.over_limits(), Vec::<String>::new());
        }
    }

    /// On otherwise unchanged facts no workload is evicted twice for the same preemptor, and there is an end to
    /// admissions and evictions.
    #[test]
    fn preemption_settles(
        scenario in prop_oneof![scenario(EVERYTHING).boxed(), scenario(EVERYTHING_FAIR).boxed()]
    ) {
        let (evictions, ended) = run_out(&scenario, |plan| plan.admissions.is_empty() && plan.evictions.is_empty());
        let twice: Vec<_> = evictions.iter().filter(|(_, times)| **times > 1).collect();
        prop_assert!(twice.is_empty(), "evicted more than once for the same preemptor: {:?}", twice);
        prop_assert!(ended, "admissions and evictions do not end");
    }

    /// On unchanged facts plans become quiet, so that whoever decides until then comes to an end.
    #[test]
    fn rounds_become_quiet(
        scenario in prop_oneof![scenario(EVERYTHING).boxed(), scenario(EVERYTHING_FAIR).boxed()]
    ) {
        prop_assert!(run_out(&scenario, |plan| plan.quiet).1);
    }

    /// A decision leaves the world as it was, what-ifs and later rounds included.
    #[test]
    fn a_decision_changes_nothing(
        scenario in prop_oneof![scenario(EVERYTHING).boxed(), scenario(EVERYTHING_FAIR).boxed()]
    ) {
        let mut stage = Stage::set(&scenario);
        for step in &scenario.steps {
            stage.step(step, &mut |_, _| {});
            let _settled = stage.world.snapshot();
            let before = format!("{:?}", stage.world);
            let _plan = decide(&stage.world.snapshot(), &stage.policy, stage.now, Budget { rounds: 4, ..Budget::default() });
            prop_assert_eq!(before, format!("{:?}", stage.world));
        }
    }

    /// Many rounds in one call decide what as many calls would with each plan committed in between.
    #[test]
    fn rounds_in_one_call_equal_rounds_in_many(
        scenario in prop_oneof![scenario(EVERYTHING).boxed(), scenario(EVERYTHING_FAIR).boxed()]
    ) {
        let mut stage = Stage::set(&scenario);
        for step in &scenario.steps {
            stage.step(step, &mut |_, _| {});
        }
        let at = stage.now.plus(1000);
        let together = decide(&stage.world.snapshot(), &stage.policy, at, Budget { rounds: 6, ..Budget::default() });
        let mut apart = Plan::default();
        while apart.rounds < 6 && !apart.quiet {
            let plan = decide(&stage.world.snapshot(), &stage.policy, at, Budget::default());
            stage.world.commit(&plan);
            apart.admissions.extend(plan.admissions);
            apart.evictions.extend(plan.evictions);
            (apart.rounds, apart.quiet) = (apart.rounds + 1, plan.quiet);
        }
        let admitted = |plan: &Plan| plan.admissions.iter().map(|it| it.uid.clone()).collect::<Vec<_>>();
        let evicted = |plan: &Plan| plan.evictions.iter().map(|it| it.uid.clone()).collect::<Vec<_>>();
        prop_assert_eq!(admitted(&together), admitted(&apart));
        prop_assert_eq!(evicted(&together), evicted(&apart));
        prop_assert_eq!((together.rounds, together.quiet), (apart.rounds, apart.quiet));
    }

    /// The order in which independent facts are told changes no plan, byte for byte.
    #[test]
    fn permuted_facts_give_the_same_plan(
        (scenario, shuffled) in prop_oneof![scenario(EVERYTHING).boxed(), scenario(EVERYTHING_FAIR).boxed()]
            .prop_flat_map(|it| { let facts = all_facts(&it); (Just(it), Just(facts).prop_shuffle()) })
    ) {
        let budget = Budget { rounds: 8, ..Budget::default() };
        let mut plain = told(all_facts(&scenario));
        let mut mixed = told(shuffled);
        let at = Millis(1_000_000);
        let (one, other) = (
            decide(&plain.snapshot(), &scenario.policy, at, budget),
            decide(&mixed.snapshot(), &scenario.policy, at, budget),
        );
        prop_assert_eq!(format!("{:?}", one), format!("{:?}", other));
    }
}

/// The facts of a scenario as far as they are independent of each other: no changes, no ends.
fn all_facts(scenario: &Scenario) -> Vec<Fact> {
    let created = scenario.steps.iter().filter_map(|step| match step {
        Step::Create(workload) => Some(Fact::Workload(Arc::new(workload.clone()))),
        Step::Finish(_) | Step::Delete(_) | Step::Change(_) | Step::Rounds(_) => None,
    });
    scenario.setup.iter().cloned().chain(created).collect()
}

/// [P-1] One case in full: the owner of quota takes it back from who borrows it, and gets it in the round after.
#[test]
fn the_owner_of_quota_takes_it_back_from_a_borrower() {
    let mut owner = lone_queue("owner", Some("c"), 5);
    if let Some(Fact::ClusterQueue(queue)) = owner.get_mut(2) {
        queue.preemption = preempting();
    }
    let setup = owner.into_iter().chain(lone_queue("borrower", Some("c"), 0)).collect();
    let create = |name, queue, age| Step::Create(workload(name, queue, (0, age), 5));
    let steps = vec![
        create("lent", "borrower", 1),
        Step::Rounds(true),
        create("own", "owner", 2),
        Step::Rounds(true),
    ];
    let scenario = Scenario { policy: Policy::default(), setup, steps };
    play(&scenario);
    let mut stage = Stage::set(&scenario);
    let mut seen = Vec::new();
    for step in &scenario.steps {
        stage.step(step, &mut |_, plan| {
            seen.extend(plan.admissions.iter().map(|it| format!("admit {}", it.key.name)));
            seen.extend(
                plan.evictions.iter().map(|it| format!("evict {} {}", it.key.name, it.cause.token())),
            );
        });
    }
    assert_eq!(seen, ["admit lent", "evict lent InCohortReclamation", "admit own"]);
}
