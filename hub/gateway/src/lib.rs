//! Spoke sessions and enrolment on the hub.
//!
//! One task per spoke ([`spokes`]) holds the hub's end of the session protocol, across connections; the brain
//! reaches it through [`controller::ports::Spokes`](fairlead_controller::ports::Spokes), which never blocks, and
//! hears from it through its inbox. [`enrol`] turns a join token and a signing request into a certificate.
//! [`authority`] keeps the CA in a Secret, [`publish()`] tells `kubectl fairlead join` where the gateway is, and
//! the [`Registry`] knows which identities still exist.
//!
//! The brain, the objects of users and what spokes may do are none of this crate's business.

pub mod authority;
pub mod enrol;
mod front;
mod objects;
mod publish;
mod refusals;
mod registry;
pub mod spokes;

pub use front::Front;
pub use publish::{PublishError, publish};
pub use registry::Registry;
