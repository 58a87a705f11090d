//! The shell around the brain: watches in, writes out, and one task that owns the brain.
//!
//! ```text
//! watches ──┐                       ┌── lanes ── KubeStore ── API server
//! gateway ──┼─ inbox ─ pump(brain) ─┤
//! outcomes ─┘                       ├── Spokes (gateway)
//!                                   └── Records (files, where decisions are recorded)
//! ```
//!
//! Nothing here decides anything. Whoever fills the [`Inbox`] waits when it is full; nothing is dropped.

mod crash;
mod inbox;
mod kinds;
mod lanes;
mod leadership;
mod migration;
mod preflight;
mod pump;
mod questions;
mod replay;
mod ring;
mod store;
mod watches;

pub use inbox::{INBOX_CAPACITY, Inbox, inbox};
pub use kinds::resource;
pub use lanes::{EVENT_LANES, IN_FLIGHT};
pub use leadership::{Lead, LeadError, lead};
pub use migration::{MigrationError, Obstacle, migrate, obstacles};
pub use preflight::{PreflightError, preflight};
pub use pump::{Core, Pump, PumpError};
pub use questions::{Asker, Questions, Stopping, questions};
pub use replay::{ReplayError, replay};
pub use ring::{Records, Ring, records};
pub use store::KubeStore;
pub use watches::{readiness_name, watch};

#[cfg(test)]
mod tests;
