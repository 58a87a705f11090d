//! Random clusters, queues and workloads, and a stage on which the engine and the reference play them side by side.

mod generate;
mod make;
mod stage;

pub(crate) use generate::{Scenario, Scope, Step, scenario};
pub(crate) use make::{lone_queue, preempting, workload};
pub(crate) use stage::{Stage, told, usage};
