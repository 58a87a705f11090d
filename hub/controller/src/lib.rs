//! The hub's kube shell: objects to facts, plans to commits, job kinds.
//!
//! * [`ports`] are the traits through which everything here touches the world.
//! * [`jobs`] are pure functions on raw JSON: a Job to its Workload, its copy, its mirrored status.
//! * [`mirror`] turns objects into the engine's facts.
//! * [`measure`] is what is measured, as plain values.
//! * [`shell`] is what surrounds it: watches, writes, the pump.
//! * [`brain`] is the hub's one deciding loop: synchronous, without clock and await.

pub mod brain;
pub mod jobs;
pub mod measure;
pub mod mirror;
pub mod ports;
pub mod shell;
