//! The brain against a hub in memory.

mod checks;
mod deletion;
mod failure;
mod flow;
mod jobs;
mod life;
mod many;
mod preemption;
mod queues;
mod readiness;
mod record;
mod restart;
mod rules;
mod stress;
mod topology;
mod writers;
