//! The hub-spoke protocol as a sans-IO machine over two keyed maps.

#![deny(
    clippy::iter_over_hash_type,
    clippy::float_arithmetic,
    clippy::float_cmp,
    clippy::disallowed_types,
    clippy::wildcard_enum_match_arm
)]

mod message;

pub use message::{
    BucketHashes, Command, CopyState, CopyStatus, Desired, Goodbye, Hello, HubFrame, Intent, Observation,
    PROTOCOL, Refusal, Report, SpokeFrame, StopCause, Terminal, Versions, Welcome,
};
