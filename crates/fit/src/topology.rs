//! Topology-aware scheduling: which domains of a tree of nodes take the pods of a workload [TAS-1] to [TAS-8].
//!
//! [`Topologies`] holds the domain trees of all flavors that have a topology, their nodes, the pods that take room
//! outside of any assignment, and what workloads hold. [`Topologies::place`] finds room for all pod sets of a workload,
//! under the assumptions of a [`WhatIf`]; [`Topologies::replace`] mends an assignment after a node failed;
//! [`Assignment::ungate`] says which pod goes where.
//!
//! A tree keeps how many pods of a kind fit in each domain, for the kinds that were placed lately, and brings that up to
//! date leaf by leaf. So a placement costs what it uses and what changed since the last one, not what there is. The
//! numbers are derived from the tree alone: with or without them the result is the same.

mod assignment;
mod balanced;
mod build;
mod cache;
mod changes;
mod choose;
mod counter;
mod counts;
mod descend;
mod field;
mod optimal;
mod place;
mod replace;
mod request;
mod tree;
mod ungate;
mod view;
mod what_if;

pub use assignment::{Assignment, Compressed, CompressedSlice, DecodeError, LevelValues, PodCounts};
pub use field::Topologies;
pub use place::{Exclusions, Placed};
pub use request::{Level, Misfit, Options, Request, Slice, Why};
pub use tree::{FlavorSpec, Node};
pub use ungate::{Gated, rank};
pub use what_if::{Held, WhatIf};
