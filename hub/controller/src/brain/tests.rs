//! The brain against a hub in memory.

mod deletion;
mod failure;
mod flow;
mod preemption;
mod queues;
mod restart;
mod rules;
mod stress;
