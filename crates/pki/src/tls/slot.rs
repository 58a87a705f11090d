//! A certificate with its key that can be exchanged while connections run.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::provider;
use crate::ca::ServerCertificate;
use crate::csr::SpokeKey;
use crate::error::PkiError;

/// What this side presents. The next handshake uses what was put in last; open connections keep theirs.
pub struct CertificateSlot {
    current: RwLock<Arc<CertifiedKey>>,
}

impl CertificateSlot {
    /// A slot with the gateway's certificate.
    pub fn of_server(certificate: ServerCertificate) -> Result<Self, PkiError> {
        Self::new(certificate.chain, certificate.key)
    }

    /// A slot with a spoke's certificate (PEM, leaf first) and its key.
    pub fn of_spoke(certificate_pem: &str, key: &SpokeKey) -> Result<Self, PkiError> {
        Self::new(read_chain(certificate_pem)?, key.to_der())
    }

    /// A slot with a server's certificate (PEM, leaf first) and its key (PEM), made by somebody else.
    pub fn of_pem(certificate_pem: &str, key_pem: &str) -> Result<Self, PkiError> {
        Self::new(read_chain(certificate_pem)?, read_key(key_pem)?)
    }

    /// Exchanges a certificate and key that somebody else made.
    pub fn replace_pem(&self, certificate_pem: &str, key_pem: &str) -> Result<(), PkiError> {
        self.put(certified(read_chain(certificate_pem)?, read_key(key_pem)?)?);
        Ok(())
    }

    fn new(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<Self, PkiError> {
        Ok(Self { current: RwLock::new(certified(chain, key)?) })
    }

    /// Exchanges the gateway's certificate.
    pub fn replace_server(&self, certificate: ServerCertificate) -> Result<(), PkiError> {
        self.put(certified(certificate.chain, certificate.key)?);
        Ok(())
    }

    /// Exchanges a spoke's certificate and key.
    pub fn replace_spoke(&self, certificate_pem: &str, key: &SpokeKey) -> Result<(), PkiError> {
        self.put(certified(read_chain(certificate_pem)?, key.to_der())?);
        Ok(())
    }

    fn put(&self, key: Arc<CertifiedKey>) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = key;
    }

    fn get(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn certified(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<CertifiedKey>, PkiError> {
    match CertifiedKey::from_der(chain, key, &provider()) {
        Ok(certified) => Ok(Arc::new(certified)),
        Err(rustls::Error::InconsistentKeys(_)) => Err(PkiError::KeyMismatch),
        Err(other) => Err(other.into()),
    }
}

fn read_key(pem: &str) -> Result<PrivateKeyDer<'static>, PkiError> {
    PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|why| PkiError::malformed("the private key", &why))
}

fn read_chain(pem: &str) -> Result<Vec<CertificateDer<'static>>, PkiError> {
    let malformed = |why: &dyn ToString| PkiError::malformed("the certificate", &why.to_string());
    let chain: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|why| malformed(&why))?;
    if chain.is_empty() { Err(malformed(&"no certificate in it")) } else { Ok(chain) }
}

impl fmt::Debug for CertificateSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateSlot")
            .field("chain_length", &self.get().cert.len())
            .finish_non_exhaustive()
    }
}

impl ResolvesServerCert for CertificateSlot {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.get())
    }
}

impl ResolvesClientCert for CertificateSlot {
    fn resolve(&self, _hints: &[&[u8]], _schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        // The hub's CA hint is not consulted: there is one certificate, and the hub says what is wrong with it.
        Some(self.get())
    }

    fn has_certs(&self) -> bool {
        true
    }
}
