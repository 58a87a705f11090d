//! The agent on a spoke: commands to objects, observations to inventory.
//!
//! ```text
//!  watches ─┐                  ┌─ operations ─→ the spoke's API server, as the tenant
//!           ├→ machine = core + session ─┤
//!  the hub ─┘                  └─ frames ─────→ the hub
//! ```
//!
//! [`core`] decides, synchronously and without a clock; [`ports`] is all it sees of its cluster. [`machine`] joins it
//! with its end of the session protocol. [`shell`] is everything that waits, reads clocks or opens connections.

pub mod core;
pub mod machine;
pub mod ports;
pub mod shell;
