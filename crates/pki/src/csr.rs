//! The spoke's key and its signing request; on the hub, the request reduced to the one thing it proves.

use std::fmt;

use rcgen::{CertificateParams, DistinguishedName, KeyPair, PublicKeyData, SubjectPublicKeyInfo};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer;

use crate::digest::KeyFingerprint;
use crate::error::PkiError;

/// The most bytes of a signing request that the hub reads. Ours have about 200.
const CSR_LIMIT: usize = 4096;

/// The first byte and the length of an uncompressed point on P-256.
const UNCOMPRESSED_P256: (u8, usize) = (4, 65);

/// A spoke's private key (P-256). It never leaves the spoke.
pub struct SpokeKey {
    pair: KeyPair,
}

impl SpokeKey {
    /// A new key from the TLS provider's random source.
    pub fn generate() -> Result<Self, PkiError> {
        Ok(Self { pair: KeyPair::generate()? })
    }

    /// Reads what [`Self::to_pem`] wrote (PKCS #8).
    pub fn from_pem(pem: &str) -> Result<Self, PkiError> {
        let pair =
            KeyPair::from_pem(pem).map_err(|why| PkiError::malformed("the spoke's private key", &why))?;
        if pair.is_compatible(&rcgen::PKCS_ECDSA_P256_SHA256) {
            Ok(Self { pair })
        } else {
            Err(PkiError::KeyKind)
        }
    }

    /// The key as PKCS #8 PEM, for the Secret that only the agent reads.
    pub fn to_pem(&self) -> String {
        self.pair.serialize_pem()
    }

    /// A signing request (DER) with this key and no name: names are the hub's to give.
    pub fn signing_request(&self) -> Result<Vec<u8>, PkiError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        Ok(params.serialize_request(&self.pair)?.der().to_vec())
    }

    /// Fingerprint of the public half.
    pub fn fingerprint(&self) -> KeyFingerprint {
        KeyFingerprint::of_spki(&self.pair.subject_public_key_info())
    }

    pub(crate) fn to_der(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.pair.serialize_der()).into()
    }
}

impl fmt::Debug for SpokeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpokeKey").field("fingerprint", &self.fingerprint()).finish_non_exhaustive()
    }
}

/// A signing request whose sender has shown that it holds the key. Only the key is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedCsr {
    key: SubjectPublicKeyInfo,
    fingerprint: KeyFingerprint,
}

impl VerifiedCsr {
    /// Checks size, form, key kind (P-256, uncompressed) and the request's own signature.
    ///
    /// Subject, alternative names and every other wish in it are dropped unread: the certificate is made from
    /// the key here and from what the hub knows, so there is nothing that a request could smuggle in.
    pub fn from_der(der: &[u8]) -> Result<Self, PkiError> {
        if der.len() > CSR_LIMIT {
            return Err(PkiError::CsrTooLarge { bytes: der.len(), limit: CSR_LIMIT });
        }
        let malformed = |why: &dyn ToString| PkiError::malformed("the signing request", &why.to_string());
        let (rest, request) = X509CertificationRequest::from_der(der).map_err(|why| malformed(&why))?;
        if !rest.is_empty() {
            return Err(malformed(&"bytes follow it"));
        }
        let spki = request.certification_request_info.subject_pki.raw;
        let key = SubjectPublicKeyInfo::from_der(spki).map_err(|_unknown_kind| PkiError::KeyKind)?;
        let point = key.der_bytes();
        let uncompressed = (point.first().copied().unwrap_or_default(), point.len()) == UNCOMPRESSED_P256;
        if key.algorithm() != &rcgen::PKCS_ECDSA_P256_SHA256 || !uncompressed {
            return Err(PkiError::KeyKind);
        }
        request.verify_signature().map_err(|_no_detail| PkiError::CsrSignature)?;
        let fingerprint = KeyFingerprint::of_spki(&key.subject_public_key_info());
        Ok(Self { key, fingerprint })
    }

    /// Fingerprint of the key that asks.
    pub const fn fingerprint(&self) -> KeyFingerprint {
        self.fingerprint
    }

    pub(crate) const fn key(&self) -> &SubjectPublicKeyInfo {
        &self.key
    }
}
