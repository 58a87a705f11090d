//! TLS settings of the hub's gateway and of the agents.
//!
//! **One port, two lanes.** An agent without a certificate must be able to enrol, and everyone else should meet
//! mutual TLS before a single byte of theirs is parsed. Both hold on one address (one Service, one firewall
//! rule, one thing to print in the join command) because the client's hello names its lane by ALPN, and the
//! gateway picks the settings from that before it answers ([`GatewayTls::for_hello`]):
//!
//! * `h2`: sessions. A valid client certificate is part of the handshake.
//! * `fairlead-enrol/1`: enrolment. Server authentication only; the link allows one small request on it.
//!
//! The alternative, optional client certificates on one set of settings, would leave it to each RPC to refuse
//! strangers, after HTTP/2 has read what they sent.

mod client;
mod server;
mod slot;

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::server::ClientHello;

pub use client::{enrolment_client, session_client};
pub use server::{GatewayTls, GatewayTrust};
pub use slot::CertificateSlot;

/// ALPN of sessions: HTTP/2.
pub const ALPN_SESSION: &[u8] = b"h2";

/// ALPN of enrolment: HTTP/2 as well, under a name that selects the lane without client certificates.
pub const ALPN_ENROLMENT: &[u8] = b"fairlead-enrol/1";

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// A spoke with a certificate.
    Session,
    /// An agent that wants one.
    Enrolment,
}

impl Lane {
    /// The lane a client asks for. Everything that is not exactly the offer of enrolment is a session, so a
    /// client that offers both must show a certificate.
    pub fn of_hello(hello: &ClientHello<'_>) -> Self {
        let offers: Vec<&[u8]> = hello.alpn().map(Iterator::collect).unwrap_or_default();
        if offers == [ALPN_ENROLMENT] { Self::Enrolment } else { Self::Session }
    }
}

/// The one TLS provider of all our binaries.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}
