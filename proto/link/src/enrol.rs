//! Enrolment as plain values.

use std::fmt;

use fairlead_model::Reason;
use fairlead_pki::UnixTime;

/// An agent asks for a certificate.
#[derive(Clone, PartialEq, Eq)]
pub struct EnrolRequest {
    /// Name of the cluster that the token is bound to.
    pub cluster: String,
    /// The join token as it was typed.
    pub token: String,
    /// PKCS #10 signing request, DER.
    pub csr_der: Vec<u8>,
}

impl fmt::Debug for EnrolRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnrolRequest").field("cluster", &self.cluster).finish_non_exhaustive()
    }
}

/// The hub's yes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enrolled {
    /// The spoke's certificate, PEM, leaf only.
    pub certificate_pem: String,
    /// The hub's CA, PEM. The client has checked it against the pin.
    pub ca_pem: String,
    /// UID of the hub's `Cluster` object: the spoke's identity.
    pub cluster_uid: String,
    /// Last second of the certificate.
    pub expires: UnixTime,
}

/// The hub's no.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {detail}")]
pub struct EnrolRefusal {
    /// The token.
    pub reason: Reason,
    /// For the person at the spoke.
    pub detail: String,
}
