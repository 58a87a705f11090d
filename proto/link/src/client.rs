//! The agent's side: enrolment, dialling, and how often to try.

mod backoff;
mod dial;
mod enrol;

use std::time::Duration;

pub use backoff::{after_goodbye, delay};
pub use dial::{DialError, Dialer, dial_until_up};
pub use enrol::{EnrolError, enrol};

/// HTTP/2 pings go this often, so that a dropped link is noticed although nobody says anything.
pub const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// A ping that is not answered within this time ends the connection.
pub const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long one attempt to connect may take, from TCP to the open stream.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
