//! The admission engine: which workload runs where, with what quota, and why.
//!
//! ```text
//! facts → World::absorb → World::snapshot → decide → Plan → World::commit → …
//!                                              └→ check (the plan linter)
//! ```
//!
//! Facts and plans are plain values; nothing here does I/O, reads a clock or depends on hash order. The same facts in
//! the same order, the same policy and the same `now` give the same plan, byte for byte.
//!
//! A plan is taken over with [`World::commit`]: admitted workloads count as reserved at once (assumed usage), victims
//! as evicted, heads as requeued. A later [`fact::Workload`] of the same uid *replaces* what was assumed, so nothing
//! is ever counted twice; a promise that came to nothing is taken back by absorbing the workload's fact again without
//! a reservation.

#![deny(
    clippy::iter_over_hash_type,
    clippy::float_arithmetic,
    clippy::float_cmp,
    clippy::disallowed_types,
    clippy::wildcard_enum_match_arm
)]

mod check;
pub mod fact;
pub mod memory;
mod names;
pub mod plan;
pub mod policy;
mod quota;
pub mod record;
mod requests;
mod round;
mod world;

pub use check::{Finding, Rule, check};
pub use fact::Fact;
pub use plan::{Admission, Displaced, Head, Outcome, Plan, Preempted};
pub use policy::{Budget, Policy, Settings};
pub use world::{CellView, Changed, InLine, Line, NodeView, PendingQueue, QueueUsage, Snapshot, World};

use fairlead_model::Millis;

/// Decides what the heads of all queues get, in up to `budget.rounds` rounds.
///
/// Rounds after the first are played on a copy that took over what was decided so far, so that n rounds in one call
/// decide what n calls would with each plan committed in between; a caller that owns the world saves the copy by
/// calling with one round at a time.
pub fn decide(snapshot: &Snapshot<'_>, policy: &Policy, now: Millis, budget: Budget) -> Plan {
    let mut plan = Plan { at: now, ..Plan::default() };
    round::run(snapshot.world, policy, budget, &mut plan);
    if plan.quiet || budget.rounds <= 1 {
        return plan;
    }
    let mut copy = snapshot.world.clone();
    let mut part = plan.clone();
    while !plan.quiet && plan.rounds < budget.rounds {
        copy.commit(&part);
        let spent = names::next(plan.heads.len());
        let rest = Budget {
            heads: budget.heads.saturating_sub(spent),
            what_ifs: budget.what_ifs.saturating_sub(plan.spent.what_ifs),
            ..budget
        };
        part = Plan { at: now, ..Plan::default() };
        round::run(copy.snapshot().world, policy, rest, &mut part);
        plan.append(part.clone());
    }
    plan
}

/// Kubernetes' effective request of one pod [F-1], as it stands: without defaults from LimitRanges or RuntimeClasses.
pub fn effective_requests(template: &fact::PodTemplate) -> fairlead_model::Resources {
    requests::effective(template)
}
