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

pub mod fact;
pub mod memory;
pub mod plan;
pub mod policy;
mod world;

pub use fact::Fact;
pub use plan::{Admission, Head, Outcome, Plan, Preempted};
pub use policy::{Budget, Policy, Settings};
pub use world::{Changed, Snapshot, World};

use fairlead_model::Millis;

/// Decides what the heads of all queues get, in up to `budget.rounds` rounds.
pub fn decide(snapshot: &Snapshot<'_>, policy: &Policy, now: Millis, budget: Budget) -> Plan {
    let _ = (snapshot, policy, budget);
    Plan {
        at: now,
        quiet: true,
        ..Plan::default()
    }
}
