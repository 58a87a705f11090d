//! Identities of hub and spokes: the CA, signing requests, certificates, join tokens, TLS settings.
//!
//! The hub has its own [`Ca`]. `kubectl fairlead join` makes a [`JoinToken`] and prints it together with the
//! CA's [`CaPin`]; the agent connects with [`tls::enrolment_client`], sends a signing request made by
//! [`SpokeKey`], and gets a certificate whose only name is its [`SpokeIdentity`]. From then on it connects with
//! [`tls::session_client`], and the hub reads who is there with [`VerifiedPeer::of`].
//!
//! Nothing here reads a clock or opens a socket: time is an argument ([`UnixTime`]) or the [`TimeProvider`] that
//! the caller passes in ([`SystemTime`] in a process, a fake in tests). Keys and serial numbers come from the
//! random source of the TLS provider (aws-lc-rs); token entropy is the caller's.
//!
//! What holds, whoever asks (each has a test in `tests/`):
//! * an identity is compared whole, byte for byte, and is the certificate's only name;
//! * no name in a signing request reaches a certificate;
//! * a certificate never outlives its CA, a spoke's cannot serve, the gateway's cannot dial in;
//! * TLS 1.3 only, no tickets, no resumption, no early data.

mod ca;
mod csr;
mod deny;
mod digest;
mod error;
mod identity;
mod peer;
pub mod tls;
mod token;

pub use ca::{BACKDATE, Ca, SPOKE_CERTIFICATE_LIFE, ServerCertificate, SpokeCertificate};
pub use csr::{SpokeKey, VerifiedCsr};
pub use deny::DenyList;
pub use digest::{CaPin, KeyFingerprint};
pub use error::PkiError;
pub use identity::{ClusterUid, IdentityError, SpokeIdentity, TrustDomain};
pub use peer::VerifiedPeer;
pub use rustls::time_provider::{DefaultTimeProvider as SystemTime, TimeProvider};
pub use rustls_pki_types::{CertificateDer, UnixTime};
pub use token::{
    JOIN_TOKEN_LIFE, JoinRefusal, JoinToken, JoinTokenRecord, Redeem, Redemption, TokenHash, redeem,
};
