//! The agent's side.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::time_provider::TimeProvider;
use rustls::version::TLS13;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::{ALPN_ENROLMENT, ALPN_SESSION, CertificateSlot, provider};
use crate::ca::read_certificate;
use crate::digest::CaPin;
use crate::error::PkiError;

/// Settings for the first connection, when the agent knows the hub by the pin of its CA only.
pub fn enrolment_client(pin: CaPin, time: Arc<dyn TimeProvider>) -> Result<Arc<ClientConfig>, PkiError> {
    let provider = provider();
    let verifier = Arc::new(PinnedCaVerifier { pin, provider: Arc::clone(&provider) });
    let mut config = ClientConfig::builder_with_details(provider, time)
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    harden(&mut config, ALPN_ENROLMENT);
    Ok(Arc::new(config))
}

/// Settings for sessions: trusts the hub's CA (PEM, as enrolment returned it) and shows the certificate in the
/// slot.
pub fn session_client(
    ca_pem: &str,
    certificate: Arc<CertificateSlot>,
    time: Arc<dyn TimeProvider>,
) -> Result<Arc<ClientConfig>, PkiError> {
    let mut roots = RootCertStore::empty();
    roots.add(read_certificate(ca_pem)?)?;
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
        .build()
        .map_err(|why| PkiError::malformed("the CA certificate", &why))?;
    let mut config = ClientConfig::builder_with_details(provider(), time)
        .with_protocol_versions(&[&TLS13])?
        .with_webpki_verifier(verifier)
        .with_client_cert_resolver(certificate);
    harden(&mut config, ALPN_SESSION);
    Ok(Arc::new(config))
}

impl CaPin {
    /// Checks a CA certificate (PEM) that was received against the pin.
    pub fn check_pem(&self, ca_pem: &str) -> Result<(), PkiError> {
        let got = Self::of(&read_certificate(ca_pem)?);
        if got == *self {
            Ok(())
        } else {
            Err(PkiError::WrongCa { expected: self.to_string(), got: got.to_string() })
        }
    }
}

fn harden(config: &mut ClientConfig, alpn: &[u8]) {
    config.alpn_protocols = vec![alpn.to_vec()];
    config.resumption = Resumption::disabled();
    config.enable_early_data = false;
}

/// Trusts the one CA that has the pin, if the server sends it along; everything else is the usual check of a
/// server certificate (chain, times, server use, name).
#[derive(Debug)]
struct PinnedCaVerifier {
    pin: CaPin,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinnedCaVerifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let pinned = intermediates
            .iter()
            .find(|certificate| CaPin::of(certificate) == self.pin)
            .ok_or(CertificateError::UnknownIssuer)?;
        let mut roots = RootCertStore::empty();
        roots.add(pinned.clone().into_owned())?;
        let webpki = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&self.provider))
            .build()
            .map_err(|why| rustls::Error::General(why.to_string()))?;
        webpki.verify_server_cert(leaf, intermediates, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
