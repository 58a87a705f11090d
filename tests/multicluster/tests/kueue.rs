//! The rows of `docs/checklist.md`, each on a real API server: what a Kueue user relies on.
//!
//! A scenario is named after its row, `kq_017_flavor_in_use_cannot_vanish`; `cargo xtask checklist` finds it by that
//! name. Each works in a team of its own (`fairlead_multicluster::kueue`). Run one with
//! `cargo test --workspace --features fairlead-hub/crash-points,fairlead-spoke/crash-points --test kueue -- kq_017`.

#![expect(clippy::print_stdout, reason = "scenarios print what they measured")]

#[path = "kueue/fairness.rs"]
mod fairness;
#[path = "kueue/idle.rs"]
mod idle;
#[path = "kueue/jobs.rs"]
mod jobs;
#[path = "kueue/kinds.rs"]
mod kinds;
#[path = "kueue/lifecycle.rs"]
mod lifecycle;
#[path = "kueue/migration.rs"]
mod migration;
#[path = "kueue/operations.rs"]
mod operations;
#[path = "kueue/order.rs"]
mod order;
#[path = "kueue/preemption.rs"]
mod preemption;
#[path = "kueue/queueing.rs"]
mod queueing;
#[path = "kueue/queues.rs"]
mod queues;
#[path = "kueue/quota.rs"]
mod quota;
#[path = "kueue/readiness.rs"]
mod readiness;
#[path = "kueue/settings.rs"]
mod settings;
#[path = "kueue/topology.rs"]
mod topology;
#[path = "kueue/two_phase.rs"]
mod two_phase;

use std::process::ExitCode;

use fairlead_multicluster::{
    kueue::World,
    scenario::{self, Scenario},
};

#[tokio::main]
async fn main() -> ExitCode {
    let scenarios: Vec<Scenario<World>> = [
        kinds::scenarios(),
        queues::scenarios(),
        jobs::scenarios(),
        topology::scenarios(),
        idle::scenarios(),
        migration::scenarios(),
        two_phase::scenarios(),
        lifecycle::scenarios(),
        queueing::scenarios(),
        order::scenarios(),
        quota::scenarios(),
        preemption::scenarios(),
        fairness::scenarios(),
        readiness::scenarios(),
        operations::scenarios(),
    ]
    .into_iter()
    .flatten()
    .collect();
    scenario::main(
        scenarios,
        async || World::start(&operations::hub_args()?).await,
        |world, failures| {
            if failures > 0 {
                world.fleet().rig().keep_folder();
            }
        },
    )
    .await
}
