//! The Kubernetes API of Fairlead: kinds, labels, conditions, generated manifests.
//!
//! * [`kueue`] holds the ten kinds of `kueue.x-k8s.io/v1beta2` that users already know, slim where a full schema
//!   would cost the API server too much.
//! * [`fairlead`] holds our own kinds, `fairlead.dev/v1alpha1`.
//! * [`labels`] and [`conditions`] name every label, annotation, finalizer, condition type and reason in use.
//! * [`convert`] rewrites objects of Kueue's older API version.
//! * [`manifests`] turns all of it into the files under `charts/`: custom resource definitions, admission
//!   policies and RBAC. Doc comments become the descriptions that `kubectl explain` shows.
//!
//! Optional fields are absent or present, never `null`: the generated schemas have no `nullable`.

pub mod conditions;
pub mod convert;
pub mod fairlead;
pub mod kueue;
pub mod labels;
pub mod manifests;
mod quantity;
mod schema;

pub use quantity::{CPU, Quantity, QuantityError};

/// The version of the schemas in this crate, as it stands in the label
/// [`labels::SCHEMA`] of every generated definition. The hub refuses to run on definitions without it, because
/// an older schema would prune fields that a promise rests on.
pub const SCHEMA_VERSION: &str = "1";
