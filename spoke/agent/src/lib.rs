//! The agent on a spoke: commands to objects, observations to inventory.
//!
//! [`core`] decides, synchronously and without a clock; [`ports`] is all it sees of its cluster.

pub mod core;
pub mod ports;
