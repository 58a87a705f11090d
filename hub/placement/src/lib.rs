//! One state machine per placement: the promise that one run runs on one spoke at one epoch.
//!
//! [`step`] is a pure function: a [`Placement`] and an [`Event`] give the next placement and the [`Effect`]s that
//! follow. It knows neither queues nor Kubernetes; the hub's brain feeds it and carries its effects out.
//!
//! ```text
//!  Preparing ──accepted──▶ Accepted ──committed──▶ Starting ──seen──▶ Running ──ended──▶ Finished
//!      │ refused, silent,      │ abandoned             │ refused         │ gone unordered     │
//!      │ abandoned             │                       │                 ▼                    │
//!      │                       │                       │              Vanished                │
//!      ▼                       ▼                       ▼                 │   stop             │
//!    Closed ◀──────────────────┴───────────────────────┘   Stopping ◀────┴────────────────────┘
//!      ▲                                                       │ proof
//!      └───────────────────────────────────────────────────────┘
//! ```
//!
//! What the machine guarantees, whatever is fed to it:
//! * `Start` is ordered only after the commit is durable, never after a stop was asked for, and never again once
//!   the copy has been seen: a copy that vanished is not made anew.
//! * After the commit it closes only on a *proof*: the spoke refused the start, or says that the copy stopped.
//! * An observation that carries a result, or the proof of a stop, is acknowledged only after the hub has made
//!   it durable; all others at once.

#![deny(
    clippy::iter_over_hash_type,
    clippy::float_arithmetic,
    clippy::float_cmp,
    clippy::disallowed_types,
    clippy::wildcard_enum_match_arm
)]

mod presence;
mod state;
mod step;

pub use presence::{Heartbeats, Presence};
pub use state::{Closing, Mark, Order, Placement, Promise, Restored, Sighting, State, StopCause};
pub use step::{ANSWER_MS, Effect, Event, Step, step};
