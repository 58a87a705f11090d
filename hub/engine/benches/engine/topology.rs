//! Rows about topology: a gang of 1,024 pods of one GPU each on 10,240 empty nodes of eight.
//!
//! The reference has no topology. What it would say of these shapes is plain, and is checked instead: every pod has a
//! place, no node holds more than eight, and a required block is one block; a gang that no rack can hold is refused.

use std::collections::BTreeSet;
use std::sync::Arc;

use fairlead_engine::fact::{
    Flavor, Node, PodSet, Preemption, Topology, TopologyLevel, TopologyRequest, Workload,
};
use fairlead_engine::{Fact, Outcome, Plan, Policy};
use fairlead_model::Labels;

use crate::measure::{median, once};
use crate::row::Row;
use crate::shape::{Shape, fact, job, round, told};

const RUNS: usize = 15;
const HOSTNAME: &str = "kubernetes.io/hostname";

/// What the gang asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    /// One block.
    Required,
    /// Anywhere.
    Free,
    /// One rack, which is too small.
    NoFit,
}

/// Blocks of 32 racks of 32 nodes, a queue over all of them, and the gang.
fn facts(blocks: usize, case: Case) -> Vec<Fact> {
    let shape = Shape { queues: 1, nominal: 1_000_000, cohorts: false, preemption: Preemption::default() };
    let levels = ["block", "rack", HOSTNAME].map(Arc::from).to_vec();
    let mut facts = vec![Fact::Topology(Topology { name: "racks".into(), levels })];
    facts.extend(shape.facts().into_iter().map(|fact| match fact {
        Fact::Flavor(flavor) => Fact::Flavor(Flavor { topology: Some("racks".into()), ..flavor }),
        other => other,
    }));
    for ix in 0..blocks * 1024 {
        let label = |key: &str, value: String| (Arc::from(key), Arc::from(value));
        let (block, rack, host) =
            (format!("b{:02}", ix / 1024), format!("r{:03}", ix / 32), format!("n{ix:05}"));
        let labels =
            Labels::from([label("block", block), label("rack", rack), label(HOSTNAME, host.clone())]);
        let allocatable = [("cpu", 64), ("memory", 64), ("nvidia.com/gpu", 8), ("pods", 110)];
        facts.push(Fact::Node(Node {
            name: host.into(),
            labels,
            taints: Vec::new(),
            allocatable: allocatable.into_iter().map(|(name, amount)| (Arc::from(name), amount)).collect(),
            usable: true,
        }));
    }
    facts.push(gang_of(case));
    facts
}

fn gang_of(case: Case) -> Fact {
    let base = job("gang", 0, (0, 1000), 1);
    let level = match case {
        Case::Required => TopologyLevel::Required("block".into()),
        Case::Free => TopologyLevel::Unconstrained,
        Case::NoFit => TopologyLevel::Required("rack".into()),
    };
    let topology = Some(TopologyRequest { level, slices: Vec::new(), group: None });
    let pod_set = PodSet { count: 1024, topology, ..base.pod_sets[0].clone() };
    fact(Workload { pod_sets: Arc::from([pod_set]), ..base })
}

/// Whether the plan is what the shape allows; none when the engine gave no place at all.
fn is_right(plan: &Plan, case: Case) -> Option<bool> {
    if case == Case::NoFit {
        let refused = plan.heads.iter().any(|head| matches!(head.outcome, Outcome::NoFit));
        return Some(refused && plan.admissions.is_empty());
    }
    let placed = plan.admissions.first()?.pod_sets.first()?.topology.as_ref()?;
    let pods: u32 = placed.domains.iter().map(|(_, count)| count).sum();
    let crowded = placed.domains.iter().any(|(_, count)| *count > 8);
    let number =
        |values: &[Arc<str>]| values.last().and_then(|host| host[1..].parse::<u32>().ok()).unwrap_or(0);
    let blocks: BTreeSet<u32> = placed.domains.iter().map(|(values, _)| number(values) / 1024).collect();
    Some(pods == 1024 && !crowded && (case == Case::Free || blocks.len() == 1))
}

/// One row: a round with the gang as its only head, not taken over.
pub(crate) fn gang(case: Case) -> Vec<Row> {
    let measured = |blocks: usize| {
        let mut world = told(facts(blocks, case));
        let mut times = Vec::new();
        for _ in 0..RUNS {
            let (sample, plan) = once(|| round(&mut world, &Policy::default()));
            assert!(is_right(&plan, case)?, "{case:?}: {:?}", plan.heads);
            times.push(sample.micros);
        }
        Some(median(times))
    };
    let (Some(small), Some(value)) = (measured(1), measured(10)) else { return Vec::new() };
    let (name, aim, peer) = match case {
        Case::Required => ("tas_required", 100.0, 6600.0),
        Case::Free => ("tas_free", 200.0, 14_500.0),
        Case::NoFit => ("tas_nofit", 5.0, 6000.0),
    };
    vec![Row { name, value, unit: "us", aim, small: Some((small, 10)), peer: Some(peer) }]
}
