//! Benchmarks: rows with a figure, its unit, our aim and the peer's figure.
//!
//! The suite `e2e` runs on a [`Fleet`](crate::fleet::Fleet) of release builds. Figures go to `docs/benchmarks.md`.

mod cpu;
mod e2e;
mod load;
mod row;

pub use e2e::{burst, run as e2e};
pub use row::{Row, print_json, print_table};
