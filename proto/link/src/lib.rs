//! The hub-spoke wire: protobuf conversions, tonic client and server, mutual TLS.
//!
//! [`server::serve`] owns the gateway's accept loop, [`client`] dials it. Both give a [`SessionIo`]: two bounded
//! channels of plain frames (`fairlead-session`) and a token that cancels the connection. What the frames mean
//! is none of this crate's business; what they look like on the wire is nobody else's.
//!
//! ```text
//!  agent ── SpokeIo ── client ══ TLS 1.3, HTTP/2, one gRPC stream ══ server ── HubIo ── gateway
//! ```
//!
//! Limits, all checked before memory is taken: a message has at most [`MAX_MESSAGE`] bytes; a larger frame
//! travels in parts, up to [`MAX_FRAME`]; a handshake may take 5 s; so many handshakes and enrolments may be
//! under way; an enrolment is one request of at most 16 KiB.

#![forbid(unsafe_code)]

pub mod client;
mod convert;
mod enrol;
mod io;
mod parts;
mod pump;
pub mod server;
mod wire;

pub use convert::WireError;
pub use enrol::{EnrolRefusal, EnrolRequest, Enrolled};
pub use io::{HubIo, SessionIo, SpokeIo};
pub use parts::{MAX_FRAME, MAX_MESSAGE};
