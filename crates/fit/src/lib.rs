//! Geometry: which pods fit into which free shapes.
//!
//! A [`Shape`](fairlead_model::Shape) is a number of interchangeable nodes with the same free vector; a [`Pod`] is what
//! one pod demands. Everything here is a function of its arguments.

#![deny(
    clippy::iter_over_hash_type,
    clippy::float_arithmetic,
    clippy::float_cmp,
    clippy::disallowed_types,
    clippy::wildcard_enum_match_arm
)]

mod constraints;
mod shapes;
pub mod topology;

pub use constraints::{Pod, meets, tolerated};
pub use shapes::{Room, capacity, place, room};
