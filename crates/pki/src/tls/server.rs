//! The gateway's side.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, NoServerSessionStorage, WebPkiClientVerifier};
use rustls::time_provider::TimeProvider;
use rustls::version::TLS13;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme,
};
use rustls_pki_types::{CertificateDer, UnixTime};

use super::{ALPN_ENROLMENT, ALPN_SESSION, CertificateSlot, Lane, provider};
use crate::deny::DenyList;
use crate::error::PkiError;
use crate::identity::TrustDomain;
use crate::peer::VerifiedPeer;

/// What the gateway needs to know whom to trust, and who it is itself.
#[derive(Debug, Clone)]
pub struct GatewayTrust {
    /// The CA whose certificates spokes show.
    pub ca: CertificateDer<'static>,
    /// The trust domain of their identities.
    pub trust_domain: TrustDomain,
    /// The gateway's own certificate.
    pub certificate: Arc<CertificateSlot>,
    /// Who is refused nevertheless.
    pub deny: Arc<DenyList>,
    /// The clock for the times in certificates.
    pub time: Arc<dyn TimeProvider>,
}

/// The gateway's TLS settings, one per lane.
#[derive(Debug, Clone)]
pub struct GatewayTls {
    session: Arc<ServerConfig>,
    enrolment: Arc<ServerConfig>,
}

impl GatewayTls {
    /// Builds the settings of both lanes.
    pub fn new(trust: &GatewayTrust) -> Result<Self, PkiError> {
        let mut roots = RootCertStore::empty();
        roots.add(trust.ca.clone())?;
        let chain = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
            .build()
            .map_err(|why| PkiError::malformed("the CA certificate", &why))?;
        let verifier = Arc::new(SpokeVerifier {
            chain,
            trust_domain: trust.trust_domain.clone(),
            deny: Arc::clone(&trust.deny),
        });
        Ok(Self {
            session: Arc::new(config(trust, verifier, ALPN_SESSION)?),
            enrolment: Arc::new(config(trust, WebPkiClientVerifier::no_client_auth(), ALPN_ENROLMENT)?),
        })
    }

    /// The settings for the lane that a client's hello asks for.
    pub fn for_hello(&self, hello: &ClientHello<'_>) -> (Lane, Arc<ServerConfig>) {
        let lane = Lane::of_hello(hello);
        (lane, self.of_lane(lane))
    }

    /// The settings of a lane.
    pub fn of_lane(&self, lane: Lane) -> Arc<ServerConfig> {
        match lane {
            Lane::Session => Arc::clone(&self.session),
            Lane::Enrolment => Arc::clone(&self.enrolment),
        }
    }
}

fn config(
    trust: &GatewayTrust,
    verifier: Arc<dyn ClientCertVerifier>,
    alpn: &[u8],
) -> Result<ServerConfig, PkiError> {
    let certificate: Arc<CertificateSlot> = Arc::clone(&trust.certificate);
    let mut config = ServerConfig::builder_with_details(provider(), Arc::clone(&trust.time))
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(certificate);
    config.alpn_protocols = vec![alpn.to_vec()];
    // A resumed session would skip the checks of chain and revocation, so there are none.
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.max_early_data_size = 0;
    Ok(config)
}

/// Chain and times by webpki, then the identity, whole, then the deny list: all within the handshake.
#[derive(Debug)]
struct SpokeVerifier {
    chain: Arc<dyn ClientCertVerifier>,
    trust_domain: TrustDomain,
    deny: Arc<DenyList>,
}

impl ClientCertVerifier for SpokeVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.chain.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let verified = self.chain.verify_client_cert(leaf, intermediates, now)?;
        let peer = VerifiedPeer::from_certificate(leaf, &self.trust_domain)
            .map_err(|_told_by_the_alert| CertificateError::ApplicationVerificationFailure)?;
        if self.deny.denies(&peer) {
            return Err(CertificateError::Revoked.into());
        }
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chain.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chain.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}
