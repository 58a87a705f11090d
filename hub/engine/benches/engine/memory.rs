//! Rows about memory, and the large world of two million workloads.

use std::io::{Result, Write};
use std::process::Command;

use fairlead_engine::fact::Preemption;
use fairlead_engine::{Fact, Policy, World};
use fairlead_model::Uid;

use crate::measure::{as_f64, once, retained};
use crate::row::Row;
use crate::shape::{Shape, admitted, compare, fact, job, round, tell, told};

/// The hidden argument by which the large world runs in a process of its own, so that its memory is its own.
pub(crate) const CHILD: &str = "--million";

fn shape(queues: usize, nominal: i64) -> Vec<Fact> {
    Shape { queues, nominal, cohorts: true, preemption: Preemption::default() }.facts()
}

/// What a world keeps for each admitted workload, its facts included; 1000 queues.
pub(crate) fn bytes() -> Vec<Row> {
    let measured = |each: usize| {
        let mut world = told(shape(1000, 1_000_000));
        let (grown, ()) = retained(|| {
            for ix in 0..1000 * each {
                tell(&mut world, [fact(admitted(&format!("workload-{ix:08}"), ix % 1000, (0, 1000), 1))]);
            }
            let _settled = world.snapshot();
        });
        grown / as_f64(1000 * each)
    };
    let (small, value) = (measured(10), measured(100));
    vec![Row { name: "bytes", value, unit: "B", aim: 400.0, small: Some((small, 10)), peer: Some(4584.0) }]
}

/// A world of 1000 full queues, each with as many workloads waiting as holding quota.
fn full_world(each: usize) -> World {
    let mut world = told(shape(1000, i64::try_from(each).unwrap_or(i64::MAX)));
    for ix in 0..1000 * each {
        tell(&mut world, [fact(admitted(&format!("held-{ix:07}"), ix % 1000, (0, 1000), 1))]);
    }
    for (ix, created) in (0..1000 * each).zip(2000..) {
        tell(&mut world, [fact(job(&format!("wait-{ix:07}"), ix % 1000, (0, created), 1))]);
    }
    for _ in 0..2 {
        let plan = round(&mut world, &Policy::default());
        world.commit(&plan);
    }
    world
}

/// 99th percentile, in microseconds, of a decision after one workload has ended: what is timed is the snapshot, the
/// round and taking its plan over, not the fact.
fn decisions(world: &mut World, count: usize) -> f64 {
    let mut times = Vec::new();
    for ix in 0..count {
        tell(world, [Fact::WorkloadGone(Uid::new(format!("held-{ix:07}")))]);
        let (sample, plan) = once(|| {
            let plan = round(world, &Policy::default());
            world.commit(&plan);
            plan
        });
        assert_eq!(plan.admissions.len(), 1, "the next in line gets what the ended one held");
        times.push(sample.micros);
    }
    times.sort_by(f64::total_cmp);
    times[times.len() * 99 / 100]
}

/// 1M pending and 1M admitted workloads: resident memory, and the 99th percentile of a decision.
pub(crate) fn million() -> Vec<Row> {
    let small_world = || {
        let mut facts = shape(11, 2);
        facts.extend((0..22).map(|ix| fact(admitted(&format!("held-{ix}"), ix % 11, (0, 1000), 1))));
        facts.extend((0..22).zip(2000..).map(|(ix, at)| fact(job(&format!("w{ix}"), ix % 11, (0, at), 1))));
        facts
    };
    compare(small_world(), &Policy::default());
    let child = |each: &str| {
        let program = std::env::current_exe().ok()?;
        let output = Command::new(program).args([CHILD, each]).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        let mut figures = text.split_whitespace().map(str::parse::<f64>);
        Some((figures.next()?.ok()?, figures.next()?.ok()?))
    };
    let (Some(small), Some(full)) = (child("100"), child("1000")) else { return Vec::new() };
    let row =
        |name, value, unit, aim, small| Row { name, value, unit, aim, small: Some((small, 10)), peer: None };
    vec![row("million_rss", full.0, "GB", 1.2, small.0), row("million_p99", full.1, "us", 20.0, small.1)]
}

/// What the process of [`million`] does: prints resident gigabytes and microseconds.
pub(crate) fn child(out: &mut impl Write) -> Result<()> {
    let each = std::env::args().next_back().and_then(|it| it.parse().ok()).unwrap_or(1000);
    let mut world = full_world(each);
    let resident = resident_bytes()? / 1e9;
    let p99 = decisions(&mut world, 2000);
    writeln!(out, "{resident} {p99}")
}

/// Resident memory of this process as Linux tells it.
fn resident_bytes() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    let kib: u32 = line.trim().trim_end_matches(" kB").parse().unwrap_or_default();
    Ok(f64::from(kib) * 1024.0)
}
