//! What every Fairlead process needs around its core: tasks, settings, telemetry, watches, writes, leadership.
//!
//! The cores of hub and agent are synchronous and know neither clock nor network. This crate is the other half:
//! it reads the clocks ([`clock`]), turns watches into plain objects ([`watch`]), carries out writes on raw JSON
//! ([`store`]), holds the leader lease ([`lease`]) and runs tasks so that none of them can die unseen
//! ([`Supervisor`]).
//!
//! Objects are kept as JSON here, never as Rust types: a field that is newer than our types survives.

pub mod client;
pub mod clock;
mod crash;
pub mod entropy;
pub mod health;
pub mod lease;
mod object;
mod resource;
pub mod settings;
pub mod store;
mod supervisor;
pub mod telemetry;
pub mod watch;

pub use crash::{CrashPoint, crash_point};
pub use object::{Malformed, Object};
pub use resource::Resource;
pub use supervisor::{Stopped, Supervisor, TaskError, stop_signal};
