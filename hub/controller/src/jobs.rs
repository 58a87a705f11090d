//! The job kind `batch/v1` Job: what the hub reads of it, the Workload made from it, the copy sent to a spoke, and
//! the status mirrored back. Everything here is a pure function on JSON: fields newer than our types survive.

pub mod affinity;
pub mod copy;
pub mod home;
pub mod json;
pub mod naming;
pub mod pods;
pub mod status;
pub mod topology;
pub mod updates;
pub mod view;
pub mod workload;

pub use view::{JobView, ManagedBy};
