//! Geometry: which pods fit into which free shapes.

#![deny(
    clippy::iter_over_hash_type,
    clippy::float_arithmetic,
    clippy::float_cmp,
    clippy::disallowed_types,
    clippy::wildcard_enum_match_arm
)]
