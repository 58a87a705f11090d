//! The other end of a connection, as far as TLS has proved it.

use std::time::Duration;

use rustls::ServerConnection;
use rustls_pki_types::{CertificateDer, UnixTime};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use crate::digest::KeyFingerprint;
use crate::identity::{IdentityError, SpokeIdentity, TrustDomain};

/// A spoke whose certificate chain, times, revocation and possession of the key were checked by the handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedPeer {
    identity: SpokeIdentity,
    key: KeyFingerprint,
    not_after: UnixTime,
}

impl VerifiedPeer {
    /// Who is at the other end. Fails before the handshake is complete and where the client showed no
    /// certificate (the enrolment lane).
    pub fn of(connection: &ServerConnection, trust_domain: &TrustDomain) -> Result<Self, IdentityError> {
        if connection.is_handshaking() {
            return Err(IdentityError::NoPeer);
        }
        let leaf = connection.peer_certificates().and_then(<[_]>::first).ok_or(IdentityError::NoPeer)?;
        Self::from_certificate(leaf, trust_domain)
    }

    /// For the verifier, which calls it on the certificate whose chain it has just checked.
    pub(crate) fn from_certificate(
        leaf: &CertificateDer<'_>,
        trust_domain: &TrustDomain,
    ) -> Result<Self, IdentityError> {
        let (rest, parsed) = X509Certificate::from_der(leaf).map_err(|_why| IdentityError::Unreadable)?;
        if !rest.is_empty() {
            return Err(IdentityError::Unreadable);
        }
        let identity = SpokeIdentity::from_certificate(&parsed, trust_domain)?;
        let end = u64::try_from(parsed.validity().not_after.timestamp()).unwrap_or(0);
        Ok(Self {
            identity,
            key: KeyFingerprint::of_spki(parsed.public_key().raw),
            not_after: UnixTime::since_unix_epoch(Duration::from_secs(end)),
        })
    }

    /// The spoke.
    pub const fn identity(&self) -> &SpokeIdentity {
        &self.identity
    }

    /// Fingerprint of its key.
    pub const fn key(&self) -> KeyFingerprint {
        self.key
    }

    /// When its certificate ends; the hub closes the connection then.
    pub const fn not_after(&self) -> UnixTime {
        self.not_after
    }
}
