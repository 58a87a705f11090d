//! The core against a cluster in memory.

mod preparing;
mod reporting;
mod restarting;
mod starting;
mod stopping;
mod walking;
