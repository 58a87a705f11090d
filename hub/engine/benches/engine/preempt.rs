//! Rows about preemption.

use fairlead_engine::fact::{Preemption, VictimPolicy};
use fairlead_engine::policy::FairStrategy;
use fairlead_engine::{Fact, Policy, World};

use crate::measure::{median, once};
use crate::row::Row;
use crate::shape::{Shape, admitted, compare, fact, job, round, told};

const RUNS: usize = 15;

const WITHIN: Preemption =
    Preemption { within_queue: VictimPolicy::LowerPriority, reclaim: VictimPolicy::Never, borrow: None };
const RECLAIM: Preemption =
    Preemption { within_queue: VictimPolicy::LowerPriority, reclaim: VictimPolicy::Any, borrow: None };

/// The median time of a round that evicts `victims`; the round is not taken over, so each run decides the same.
fn timed(world: &mut World, policy: &Policy, victims: usize) -> Option<f64> {
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let (sample, plan) = once(|| round(world, policy));
        if plan.evictions.len() != victims {
            return None;
        }
        times.push(sample.micros);
    }
    Some(median(times))
}

/// One full queue of `held` workloads, and one that needs `need` of them gone.
fn full_queue(held: usize, need: i64) -> Vec<Fact> {
    let nominal = i64::try_from(held).unwrap_or(i64::MAX);
    let mut facts = Shape { queues: 1, nominal, cohorts: false, preemption: WITHIN }.facts();
    for (ix, at) in (0..held).zip(1000..) {
        facts.push(fact(admitted(&format!("held-{ix}"), 0, (0, at), 1)));
    }
    facts.push(fact(job("urgent", 0, (10, 5_000_000), need)));
    facts
}

/// [P-3] within one queue of 10k candidates.
pub(crate) fn own_queue(name: &'static str, need: i64, aim: f64) -> Vec<Row> {
    compare(full_queue(9, 3), &Policy::default());
    let victims = usize::try_from(need).unwrap_or(0);
    let measured = |held| timed(&mut told(full_queue(held, need)), &Policy::default(), victims);
    let (Some(small), Some(value)) = (measured(1000), measured(10_000)) else { return Vec::new() };
    let peer = if need == 1 { 38_000.0 } else { 40_000.0 };
    vec![Row { name, value, unit: "us", aim, small: Some((small, 10)), peer: Some(peer) }]
}

fn fair_policy() -> Policy {
    let strategies = vec![FairStrategy::LessThanOrEqualToFinalShare, FairStrategy::LessThanInitialShare];
    Policy { fair_sharing: Some(strategies), ..Policy::default() }
}

/// One tree in which every queue but the first borrows all that the first leaves unused; the first needs `need`.
fn borrowed_tree(queues: usize, each: usize, need: i64) -> Vec<Fact> {
    let count = |it: usize| i64::try_from(it).unwrap_or(i64::MAX);
    let mut shape = Shape { queues, nominal: 0, cohorts: true, preemption: RECLAIM };
    let mut facts = Vec::new();
    for fact in shape.facts() {
        facts.push(match fact {
            Fact::ClusterQueue(queue) if *queue.name == *"q0" => {
                shape.nominal = count((queues - 1) * each);
                let mut owner = queue;
                for quota in
                    owner.groups.iter_mut().flat_map(|it| &mut it.flavors).flat_map(|it| &mut it.quotas)
                {
                    quota.nominal = fairlead_model::Amount::Finite(shape.nominal);
                }
                Fact::ClusterQueue(owner)
            }
            other => other,
        });
    }
    for (ix, at) in (0..(queues - 1) * each).zip(1000..) {
        facts.push(fact(admitted(&format!("held-{ix}"), 1 + ix % (queues - 1), (0, at), 1)));
    }
    facts.push(fact(job("owner", 0, (0, 5_000_000), need)));
    facts
}

/// [P-6] in a tree of 1000 queues that hold 100k workloads.
pub(crate) fn fair(name: &'static str, need: i64, aim: f64) -> Vec<Row> {
    compare(borrowed_tree(5, 3, 2), &fair_policy());
    let victims = usize::try_from(need).unwrap_or(0);
    let measured = |queues| timed(&mut told(borrowed_tree(queues, 100, need)), &fair_policy(), victims);
    let (Some(small), Some(value)) = (measured(100), measured(1000)) else { return Vec::new() };
    let peer = if need == 1 { 857.0 } else { 915.0 };
    let (small, value) = (small / 1000.0, value / 1000.0);
    vec![Row { name, value, unit: "ms", aim, small: Some((small, 10)), peer: Some(peer) }]
}

/// Every queue is full and has a head that preempts in it: one round.
pub(crate) fn cycle() -> Vec<Row> {
    let facts = |queues: usize| {
        let mut facts = Shape { queues, nominal: 10, cohorts: true, preemption: RECLAIM }.facts();
        for (ix, at) in (0..queues * 10).zip(1000..) {
            facts.push(fact(admitted(&format!("held-{ix}"), ix % queues, (0, at), 1)));
        }
        for (ix, at) in (0..queues).zip(5_000_000..) {
            facts.push(fact(job(&format!("urgent-{ix}"), ix, (10, at), 2)));
        }
        facts
    };
    compare(facts(4), &Policy::default());
    let measured = |queues: usize| timed(&mut told(facts(queues)), &Policy::default(), queues * 2);
    let (Some(small), Some(value)) = (measured(100), measured(1000)) else { return Vec::new() };
    let (small, value) = (small / 1000.0, value / 1000.0);
    vec![Row {
        name: "preempt_cycle",
        value,
        unit: "ms",
        aim: 15.0,
        small: Some((small, 10)),
        peer: Some(893.0),
    }]
}
