//! Rows about quota alone: admit, drain, nofit, snapshot.

use fairlead_engine::fact::Preemption;
use fairlead_engine::{Fact, Policy, World};
use fairlead_model::Uid;

use crate::measure::{Sample, as_f64, median, middle, once};
use crate::row::Row;
use crate::shape::{Shape, admitted, compare, fact, job, round, tell, told};

/// Rounds, or runs, of which the median is printed.
const RUNS: usize = 9;

fn shape(queues: usize, nominal: i64, cohorts: bool) -> Shape {
    Shape { queues, nominal, cohorts, preemption: Preemption::default() }
}

/// Queues in one tree, each holding `held` workloads of one unit.
fn filled(queues: usize, held: usize, nominal: i64) -> Vec<Fact> {
    let mut facts = shape(queues, nominal, true).facts();
    for ix in 0..queues * held {
        facts.push(fact(admitted(&format!("held-{ix}"), ix % queues, (0, 1000), 1)));
    }
    facts
}

/// A row at full and at a tenth of the size.
fn scaled(
    name: &'static str,
    unit: &'static str,
    (aim, peer): (f64, Option<f64>),
    measured: impl Fn(usize) -> f64,
) -> Row {
    let small = measured(10);
    Row { name, value: measured(1), unit, aim, small: Some((small, 10)), peer }
}

/// One round admits a head of every queue; between rounds as many end and as many come, which is not timed. Per head.
pub(crate) fn admit() -> Vec<Row> {
    let arrivals = |round: usize, queues: usize| {
        (0..queues)
            .map(move |ix| fact(job(&format!("new-{round}-{ix}"), ix, (0, 2000), 1)))
            .collect::<Vec<_>>()
    };
    compare(filled(12, 3, 5).into_iter().chain(arrivals(0, 12)).collect(), &Policy::default());
    let measured = |smaller: usize| -> Sample {
        let queues = 1000 / smaller;
        let mut world = told(filled(queues, 100, 200));
        let mut samples = Vec::new();
        for run in 0..RUNS + 3 {
            tell(&mut world, arrivals(run, queues));
            let (sample, plan) = once(|| {
                let plan = round(&mut world, &Policy::default());
                world.commit(&plan);
                plan
            });
            assert_eq!(plan.admissions.len(), queues, "every head is admitted");
            let ended = plan.admissions.iter().map(|it| Fact::WorkloadGone(it.uid.clone()));
            tell(&mut world, ended.collect::<Vec<_>>());
            let heads = as_f64(queues);
            samples.push(Sample { micros: sample.micros / heads, allocations: sample.allocations / heads });
        }
        middle(&samples[3..])
    };
    let (small, full) = (measured(10), measured(1));
    let row =
        |name, value, unit, aim, small, peer| Row { name, value, unit, aim, small: Some((small, 10)), peer };
    vec![
        row("admit", full.micros, "us", 2.0, small.micros, Some(134.0)),
        row("admit_allocs", full.allocations, "allocations", 0.0, small.allocations, Some(394.0)),
    ]
}

/// One queue, drained head by head, a round each. Per workload.
pub(crate) fn drain() -> Vec<Row> {
    let pending = |count: usize| {
        let mut facts = shape(1, 1_000_000, false).facts();
        facts.extend((0..count).map(|ix| fact(job(&format!("w{ix}"), 0, (0, 1000 + count_i64(ix)), 1))));
        facts
    };
    compare(pending(6), &Policy::default());
    let measured = |smaller: usize| {
        let count = 10_000 / smaller;
        let runs = (0..3).map(|_| {
            let mut world = told(pending(count));
            let (sample, ()) = once(|| {
                for _ in 0..count {
                    let plan = round(&mut world, &Policy::default());
                    assert_eq!(plan.admissions.len(), 1);
                    world.commit(&plan);
                }
            });
            sample.micros / as_f64(count)
        });
        median(runs.collect())
    };
    vec![scaled("drain", "us", (2.0, Some(410.0)), measured)]
}

/// Full queues, each with a hundred waiting workloads of one class: one round turns all of them away. Per workload
/// turned away; `nofit_first` has one workload a queue, so that no class helps.
pub(crate) fn nofit() -> Vec<Row> {
    let waiting = |queues: usize, each: usize| {
        let all = (0..queues * each).map(move |ix| (ix, ix % queues));
        all.map(|(ix, queue)| fact(job(&format!("w{ix}"), queue, (0, 2000 + count_i64(ix)), 1)))
            .collect::<Vec<_>>()
    };
    compare(filled(11, 3, 3).into_iter().chain(waiting(11, 3)).collect(), &Policy::default());
    let measured = |smaller: usize, each: usize| {
        let queues = 1000 / smaller;
        let mut world = told(filled(queues, 100, 100));
        let mut times = Vec::new();
        for _ in 0..RUNS {
            tell(&mut world, waiting(queues, each));
            let (sample, plan) = once(|| {
                let plan = round(&mut world, &Policy::default());
                world.commit(&plan);
                plan
            });
            assert_eq!((plan.heads.len(), plan.admissions.len()), (queues, 0), "every head is turned away");
            assert!(world.pending().values().all(|it| it.active.is_empty()), "so is all of its class");
            times.push(sample.micros / as_f64(queues * each));
            clear(&mut world, queues * each);
        }
        median(times)
    };
    vec![
        scaled("nofit", "us", (0.5, Some(305.0)), |smaller| measured(smaller, 100)),
        scaled("nofit_first", "us", (2.0, Some(305.0)), |smaller| measured(smaller, 1)),
    ]
}

fn clear(world: &mut World, waiting: usize) {
    tell(world, (0..waiting).map(|ix| Fact::WorkloadGone(Uid::new(format!("w{ix}")))));
    let _settled = world.snapshot();
}

/// A snapshot and the what-if copies of a round with a single head, 1000 queues in one tree.
pub(crate) fn snapshot() -> Vec<Row> {
    let facts = |queues: usize, held: usize| {
        let mut facts = filled(queues, held, 200);
        facts.push(fact(job("one", 0, (0, 2000), 1)));
        facts
    };
    compare(facts(11, 3), &Policy::default());
    let measured = |smaller: usize| {
        let mut world = told(facts(1000 / smaller, 100));
        let runs = (0..RUNS * 3).map(|_| {
            let (sample, plan) = once(|| round(&mut world, &Policy::default()));
            assert_eq!(plan.admissions.len(), 1);
            sample.micros
        });
        median(runs.collect())
    };
    vec![scaled("snapshot", "us", (100.0, Some(9800.0)), measured)]
}

fn count_i64(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
