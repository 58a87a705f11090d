//! The hub-spoke protocol as a sans-IO machine over two keyed maps.
//!
//! Hub and spoke keep two maps in step: *commands* (placement → what the hub wants) and *observations*
//! (placement → what the spoke has). [`HubSession`] and [`SpokeSession`] are the two ends. Each lives for the
//! whole life of its process, across connections: it is told of connections coming and going, of frames and of
//! changes to its own map, and answers with frames to send and news to pass on. No I/O, no clock.
//!
//! ```text
//!  spoke                                          hub
//!    │ Hello (floor, boot, hashes of both maps) ──▶ │  refuses: protocol, or a floor above its own term
//!    │ ◀── Welcome (leadership, hashes of both)     │
//!    │  judges the leadership, stores its floor     │
//!    │ Ready ─────────────────────────────────────▶ │  only now: Connected, and commands flow
//!    │ Observe*, InventoryComplete ───────────────▶ │  of buckets whose hashes differ
//!    │ ◀───────────── Command*, CommandsComplete    │  of buckets whose hashes differ
//!    │ Heartbeat ─────────────────────────────────▶ │  every `heartbeat_ms`, the first at once
//! ```
//!
//! What it promises:
//! * **No log.** What waits to be sent is one newest value per key; a broken connection loses nothing but
//!   frames, since the hashes exchanged at the next start tell which entries differ. A new leader inherits
//!   nothing.
//! * **Bounded.** At most `window` keys (and [`WINDOW_BYTES`]) are under way in each direction, each until its
//!   receipt comes back.
//! * **Authority is the session's.** A spoke obeys a session only after its floor (the highest leadership it has
//!   obeyed) is durable. A leadership below the floor is refused ([`Reason::StaleTerm`]); two with one term are
//!   both refused ([`Reason::SplitBrain`]) until a higher term comes. Within a session, commands may carry
//!   epochs of earlier terms: the present leader vouches for promises that it found committed.
//! * **Orders end with their session** ([`SpokeOutput::Void`]); the ones still wanted are handed over again in
//!   the next.
//!
//! Timers: [`HubSession::next_deadline`] and [`SpokeSession::next_deadline`] say when to send a `Tick`.
//!
//! [`Reason::StaleTerm`]: fairlead_model::Reason::StaleTerm
//! [`Reason::SplitBrain`]: fairlead_model::Reason::SplitBrain

#![deny(
    clippy::iter_over_hash_type,
    clippy::float_arithmetic,
    clippy::float_cmp,
    clippy::disallowed_types,
    clippy::wildcard_enum_match_arm
)]

mod digest;
mod hub;
mod keyed;
mod message;
mod outbox;
mod spoke;

pub use hub::{HubConfig, HubInput, HubOutput, HubSession, SessionEvent};
pub use message::{
    BucketHashes, Command, CopyState, CopyStatus, Desired, Goodbye, Hello, HubFrame, Intent, Observation,
    PROTOCOL, Refusal, Report, SpokeFrame, StopCause, Terminal, Versions, Welcome,
};
pub use outbox::{DEFAULT_WINDOW, WINDOW_BYTES};
pub use spoke::{SpokeConfig, SpokeInput, SpokeOutput, SpokeSession};

/// How often a spoke sends a heartbeat unless the hub says otherwise, in milliseconds.
pub const DEFAULT_HEARTBEAT_MS: u32 = 10_000;

/// How many heartbeats may stay unanswered, or fail to come, before a side gives up the connection.
pub const MISSED_HEARTBEATS: u32 = 3;

/// How long a spoke waits for the hub's answer to its `Hello`, in milliseconds.
pub const HANDSHAKE_MS: i64 = 10_000;

/// Whether a hub of version `hub` talks to a spoke of version `spoke`: the same, or the one before.
const fn speaks(hub: u32, spoke: u32) -> bool {
    spoke >= 1 && (spoke == hub || spoke.saturating_add(1) == hub)
}
