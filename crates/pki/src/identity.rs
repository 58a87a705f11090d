//! Who a spoke is: one URI, compared whole.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;

/// Why a name is not a spoke's identity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// A trust domain is 1–255 of `a-z 0-9 - .`, without empty labels.
    #[error("{0:?} is not a trust domain: 1 to 255 lower-case letters, digits, '-' and single '.'")]
    TrustDomain(String),
    /// A cluster UID is 1–63 of `a-z 0-9 -`.
    #[error("{0:?} is not a cluster UID: 1 to 63 lower-case letters, digits and '-'")]
    ClusterUid(String),
    /// The certificate names nothing, or more than one thing, or something that is not a URI.
    #[error("the certificate must carry exactly one subject alternative name, a URI; it has {found}")]
    NotOneUri {
        /// What it has instead, in words.
        found: String,
    },
    /// The URI is not exactly `spiffe://<our trust domain>/cluster/<uid>`.
    #[error("{uri:?} is not spiffe://{trust_domain}/cluster/<uid>")]
    NotASpoke {
        /// What the certificate says.
        uri: String,
        /// The trust domain of this hub.
        trust_domain: String,
    },
    /// The connection is not far enough, or has no peer certificate.
    #[error("the connection has no verified peer certificate")]
    NoPeer,
    /// The certificate does not parse.
    #[error("the peer's certificate cannot be read")]
    Unreadable,
}

/// The name space of one hub's identities, such as `fairlead.example.com`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TrustDomain(String);

impl TrustDomain {
    /// The domain as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TrustDomain {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        let chars = text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.'));
        let labels = text.split('.').all(|label| !label.is_empty());
        if text.len() <= 255 && chars && labels {
            Ok(Self(text.to_owned()))
        } else {
            Err(IdentityError::TrustDomain(text.to_owned()))
        }
    }
}

/// The UID of the hub's `Cluster` object. The hub sets it; the spoke's own idea of its UID is never one.
///
/// Kubernetes makes UIDs as lower-case UUIDs; the type admits any name of that alphabet, so that simulations
/// can use readable ones, and nothing (case, dots, slashes, escapes) that could make two spellings of one name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ClusterUid(String);

impl ClusterUid {
    /// The UID as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ClusterUid {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        let chars = text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        if (1..=63).contains(&text.len()) && chars {
            Ok(Self(text.to_owned()))
        } else {
            Err(IdentityError::ClusterUid(text.to_owned()))
        }
    }
}

macro_rules! text_conversions {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdentityError;

            fn try_from(text: String) -> Result<Self, IdentityError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.0
            }
        }
    };
}

text_conversions!(TrustDomain);
text_conversions!(ClusterUid);

/// A spoke as its certificate names it: `spiffe://<trust domain>/cluster/<uid>`.
///
/// There is no way from text to this type outside of the crate: a value comes from a certificate that TLS has
/// verified ([`crate::VerifiedPeer`]) or from the hub, which names the cluster it issues for ([`Self::issue`]).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpokeIdentity {
    trust_domain: TrustDomain,
    cluster: ClusterUid,
}

impl SpokeIdentity {
    /// The identity that the hub gives the cluster whose `Cluster` object has this UID.
    pub const fn issue(trust_domain: TrustDomain, cluster: ClusterUid) -> Self {
        Self { trust_domain, cluster }
    }

    /// The UID of the hub's `Cluster` object.
    pub const fn cluster(&self) -> &ClusterUid {
        &self.cluster
    }

    /// The trust domain.
    pub const fn trust_domain(&self) -> &TrustDomain {
        &self.trust_domain
    }

    /// The URI as it stands in the certificate.
    pub fn uri(&self) -> String {
        format!("spiffe://{}/cluster/{}", self.trust_domain, self.cluster)
    }

    /// Reads a URI. The text must be, byte for byte, what [`Self::uri`] writes for the result.
    pub(crate) fn from_uri(uri: &str, trust_domain: &TrustDomain) -> Result<Self, IdentityError> {
        let refuse = || IdentityError::NotASpoke {
            uri: uri.to_owned(),
            trust_domain: trust_domain.as_str().to_owned(),
        };
        let uid = uri.rsplit('/').next().unwrap_or_default();
        let cluster = ClusterUid::from_str(uid).map_err(|_same_refusal| refuse())?;
        let identity = Self::issue(trust_domain.clone(), cluster);
        // The comparison of the whole, and nothing else, decides; the split above only finds a candidate.
        if identity.uri() == uri { Ok(identity) } else { Err(refuse()) }
    }

    /// Reads the identity from a certificate, which must carry it as its one and only name.
    pub(crate) fn from_certificate(
        certificate: &X509Certificate<'_>,
        trust_domain: &TrustDomain,
    ) -> Result<Self, IdentityError> {
        let extension = certificate.subject_alternative_name().map_err(|_why| IdentityError::Unreadable)?;
        let names = extension.map_or(&[][..], |san| san.value.general_names.as_slice());
        match names {
            [GeneralName::URI(uri)] => Self::from_uri(uri, trust_domain),
            [] => Err(IdentityError::NotOneUri { found: "none".to_owned() }),
            [_other] => Err(IdentityError::NotOneUri { found: "one that is not a URI".to_owned() }),
            more => Err(IdentityError::NotOneUri { found: more.len().to_string() }),
        }
    }
}

impl fmt::Display for SpokeIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "spiffe://{}/cluster/{}", self.trust_domain, self.cluster)
    }
}

#[cfg(test)]
#[path = "identity_tests.rs"]
mod tests;
