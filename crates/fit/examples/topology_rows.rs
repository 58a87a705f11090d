//! Times topology placement on two sizes of cluster: `cargo run --release -p fairlead-fit --example topology_rows`.
//!
//! Half of the nodes hold a seeded number of GPUs. `cold` is the first placement of its kind in a tree, `warm` a repeated
//! one, `after change` one after a gang of 1,024 pods came or went, and `named` adds the full assignment.

#![expect(clippy::print_stdout, clippy::disallowed_types, reason = "a bench prints and reads the clock")]

use std::sync::Arc;
use std::time::Instant;

use fairlead_fit::topology::{
    Assignment, FlavorSpec, Held, Level, Node, Options, Request, Topologies, WhatIf,
};
use fairlead_model::{Labels, NodeConstraints, Resources};

const BLOCK: &str = "cloud.example.com/block";
const RACK: &str = "cloud.example.com/rack";
const HOST: &str = "kubernetes.io/hostname";

fn resources(cpu: i64, gpu: i64) -> Resources {
    [("cpu", cpu), ("memory", cpu.saturating_mul(1 << 20)), ("nvidia.com/gpu", gpu)]
        .into_iter()
        .map(|(name, amount)| (name.into(), amount))
        .collect()
}

/// `blocks` blocks of 16 racks of 64 nodes of 8 GPUs.
fn cluster(blocks: u32) -> Topologies {
    let mut topologies = Topologies::new();
    let levels = [BLOCK, RACK, HOST].map(Arc::from).to_vec();
    topologies.set_flavor("gpu".into(), FlavorSpec { levels, ..FlavorSpec::default() });
    let mut seed = 1_u64;
    let mut held = Assignment { levels: vec![HOST.into()], domains: Vec::new() };
    for ix in 0..blocks.saturating_mul(1024) {
        let name: Arc<str> = format!("node-{ix:06}").into();
        let labels = Labels::from([
            (BLOCK.into(), format!("block-{:03}", ix / 1024).into()),
            (RACK.into(), format!("rack-{:04}", ix / 64).into()),
            (HOST.into(), Arc::clone(&name)),
        ]);
        let mut allocatable = resources(128_000, 8);
        allocatable.set("pods", 110);
        topologies.set_node(Node {
            name: Arc::clone(&name),
            labels,
            taints: Vec::new(),
            allocatable,
            usable: true,
        });
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let gpus = u32::try_from((seed >> 33) % 16).unwrap_or(0);
        if (1..8).contains(&gpus) {
            held.domains.push((vec![name], gpus));
        }
    }
    topologies.settle();
    topologies.hold("gpu", &held, &resources(1000, 1));
    topologies
}

/// Nanoseconds of one call, the median of several.
fn median(times: u32, mut call: impl FnMut()) -> u128 {
    let mut all: Vec<u128> = Vec::new();
    for _ in 0..times {
        let start = Instant::now();
        call();
        all.push(start.elapsed().as_nanos());
    }
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or(0)
}

fn row(name: &str, topologies: &mut Topologies, request: Request<'_>) {
    let requests = [("gpu", request)];
    let place = |topologies: &Topologies| topologies.place(&WhatIf::new(), &requests, Options::default());
    let cold = median(1, || drop(place(topologies)));
    let warm = median(2001, || drop(std::hint::black_box(place(topologies))));
    let named = |topologies: &Topologies| {
        place(topologies).map(|placed| placed.first().map(|placed| topologies.assignment("gpu", placed)))
    };
    let full = median(501, || drop(std::hint::black_box(named(topologies))));
    let mut changed = 0;
    if let Ok(Some(assignment)) = named(topologies) {
        let held = Held { flavor: "gpu", assignment: &assignment, per_pod: request.requests };
        let mut assumed = WhatIf::new();
        assumed.take(topologies, held);
        let what_if = median(501, || drop(topologies.place(&assumed, &requests, Options::default())));
        let mut all = Vec::new();
        for _ in 0..200 {
            topologies.hold("gpu", &assignment, request.requests);
            all.push(median(1, || drop(place(topologies))));
            topologies.release("gpu", &assignment, request.requests);
            drop(place(topologies));
        }
        all.sort_unstable();
        changed = all.get(all.len() / 2).copied().unwrap_or(0);
        let fits = median(501, || assert!(WhatIf::new().fits(topologies, &[held])));
        let take = median(501, || WhatIf::new().take(topologies, held));
        let mut committed = Vec::new();
        for _ in 0..200 {
            committed.push(median(1, || topologies.hold("gpu", &assignment, request.requests)));
            topologies.release("gpu", &assignment, request.requests);
        }
        committed.sort_unstable();
        println!(
            "{name}: {} domains: what-if with the gang placed {:.1} us, second look {:.1} us, assumed {:.1} us, held {:.1} us",
            assignment.domains.len(),
            micros(what_if),
            micros(fits),
            micros(take),
            micros(committed.get(100).copied().unwrap_or(0))
        );
    }
    println!(
        "{name}: warm {:.1} us, named {:.1} us, after change {:.1} us, cold {:.1} us",
        micros(warm),
        micros(full),
        micros(changed),
        micros(cold)
    );
}

#[expect(
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    clippy::as_conversions,
    reason = "for printing"
)]
fn micros(nanos: u128) -> f64 {
    nanos as f64 / 1000.0
}

fn main() {
    let nodes = NodeConstraints::default();
    for blocks in [10, 100] {
        let mut topologies = cluster(blocks);
        println!("{} nodes", blocks * 1024);
        let pod = resources(1000, 1);
        let big = resources(1000, 9);
        let request = |requests, level| Request {
            requests,
            nodes: &nodes,
            count: 1024,
            level,
            slices: &[],
            group: None,
        };
        row("tas_required", &mut topologies, request(&pod, Level::Required(BLOCK)));
        row("tas_preferred", &mut topologies, request(&pod, Level::Preferred(RACK)));
        row("tas_free", &mut topologies, request(&pod, Level::Unconstrained));
        row("tas_nofit", &mut topologies, request(&big, Level::Required(BLOCK)));
        let full = Request { count: 8193, ..request(&pod, Level::Required(BLOCK)) };
        row("tas_nofit (too many)", &mut topologies, full);
    }
}
