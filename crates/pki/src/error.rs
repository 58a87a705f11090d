//! What can go wrong when keys and certificates are made, read or checked.

use crate::identity::IdentityError;

/// Why a key, a certificate or a signing request could not be made or accepted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PkiError {
    /// The text is not the PEM (or the bytes not the DER) of the thing expected.
    #[error("{what} cannot be read: {why}")]
    Malformed {
        /// What was expected, such as `CA certificate`.
        what: &'static str,
        /// What the parser said.
        why: String,
    },
    /// The signing request's own signature does not fit its key.
    #[error("the signing request is not signed by the key it carries")]
    CsrSignature,
    /// Only P-256 keys in uncompressed form are certified.
    #[error("the signing request carries a key that is not P-256")]
    KeyKind,
    /// A signing request above the size limit, refused before it is parsed.
    #[error("the signing request has {bytes} bytes, more than the {limit} allowed")]
    CsrTooLarge {
        /// Its size.
        bytes: usize,
        /// The most that is read.
        limit: usize,
    },
    /// The CA certificate lacks `CA:TRUE` or the right to sign certificates.
    #[error("the certificate is not one of a certificate authority")]
    NotACa,
    /// Certificate and private key are not a pair.
    #[error("the private key does not belong to the certificate")]
    KeyMismatch,
    /// The CA is past its end (or too near to it to issue anything useful).
    #[error("the CA certificate has expired, so nothing can be issued with it")]
    CaExpired,
    /// The CA presented or received is not the one pinned.
    #[error("the CA is not the pinned one: expected {expected}, got {got}")]
    WrongCa {
        /// The pin the caller trusts.
        expected: String,
        /// The pin of what it was given.
        got: String,
    },
    /// A moment or a life outside what a certificate can express.
    #[error("the time {seconds} s after 1970 is outside of what a certificate can say")]
    TimeOutOfRange {
        /// The moment.
        seconds: u64,
    },
    /// A pin or fingerprint is not `sha256:` and 64 lower-case hex digits.
    #[error("a fingerprint is `sha256:` followed by 64 lower-case hex digits")]
    Fingerprint,
    /// The peer's certificate names no acceptable identity.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The certificate library refused.
    #[error("cannot make the certificate: {0}")]
    Issue(#[from] rcgen::Error),
    /// The TLS library refused.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// The operating system gave no random bytes.
    #[error("no random bytes from the operating system")]
    Random,
}

impl PkiError {
    pub(crate) fn malformed(what: &'static str, why: &impl ToString) -> Self {
        Self::Malformed { what, why: why.to_string() }
    }
}
