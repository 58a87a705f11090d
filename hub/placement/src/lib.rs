//! One state machine per placement: the promise that one run runs on one spoke.

#![deny(
    clippy::iter_over_hash_type,
    clippy::float_arithmetic,
    clippy::float_cmp,
    clippy::disallowed_types,
    clippy::wildcard_enum_match_arm
)]
