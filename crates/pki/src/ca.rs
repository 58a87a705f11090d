//! The hub's certificate authority: it issues spokes' certificates and the gateway's own.

use std::fmt;
use std::time::Duration;

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SanType, SerialNumber,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use crate::csr::VerifiedCsr;
use crate::digest::CaPin;
use crate::error::PkiError;
use crate::identity::SpokeIdentity;

/// How far a certificate's start lies before its issue, so that a spoke whose clock is behind can use it at once.
pub const BACKDATE: Duration = Duration::from_mins(5);

/// How long a spoke's certificate lives, counted from its issue.
pub const SPOKE_CERTIFICATE_LIFE: Duration = Duration::from_hours(24);

/// The last second that a certificate can name (end of the year 9999).
const LAST_SECOND: u64 = 253_402_300_799;

/// A certificate authority: certificate, key, and what is allowed with them.
pub struct Ca {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    certificate_pem: String,
    validity: Validity,
}

#[derive(Debug, Clone, Copy)]
struct Validity {
    from: u64,
    to: u64,
}

/// A spoke's certificate as issued: public, and kept with the join token so that a lost reply can be repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpokeCertificate {
    /// The leaf, PEM. The chain is this and [`Ca::certificate_pem`].
    pub pem: String,
    /// The last second at which it is valid.
    pub not_after: UnixTime,
}

/// The gateway's own certificate with its key.
pub struct ServerCertificate {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
    not_after: UnixTime,
}

impl Ca {
    /// Makes a new self-signed P-256 CA that is valid for `life` from `now` and signs leaves only.
    pub fn generate(common_name: &str, now: UnixTime, life: Duration) -> Result<Self, PkiError> {
        let key = KeyPair::generate()?;
        let from = now.as_secs().saturating_sub(BACKDATE.as_secs());
        let to = now.as_secs().saturating_add(life.as_secs());
        let mut params = leaf_params(Validity { from, to })?;
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key)?;
        Self::from_parts(certificate.der().clone(), certificate.pem(), key)
    }

    /// Reads the CA from its certificate and private key (PKCS #8), both PEM, and checks that they belong
    /// together and that the certificate is a CA's.
    pub fn from_pem(certificate_pem: &str, key_pem: &str) -> Result<Self, PkiError> {
        let certificate = read_certificate(certificate_pem)?;
        let key =
            KeyPair::from_pem(key_pem).map_err(|why| PkiError::malformed("the CA's private key", &why))?;
        Self::from_parts(certificate, certificate_pem.to_owned(), key)
    }

    fn from_parts(
        certificate: CertificateDer<'static>,
        certificate_pem: String,
        key: KeyPair,
    ) -> Result<Self, PkiError> {
        let (parsed_key, validity) = {
            let parsed = parse_ca(&certificate)?;
            (parsed.public_key().raw.to_vec(), validity_of(&parsed))
        };
        if parsed_key != key.subject_public_key_info() {
            return Err(PkiError::KeyMismatch);
        }
        let issuer = Issuer::from_ca_cert_der(&certificate, key)?;
        Ok(Self { issuer, certificate, certificate_pem, validity })
    }

    /// The CA's certificate, PEM. Public.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The CA's certificate, DER. Public.
    pub const fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// The private key as PKCS #8 PEM, for the Secret that only the gateway's service account reads.
    pub fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// What a spoke pins before it has the certificate.
    pub fn pin(&self) -> CaPin {
        CaPin::of(&self.certificate)
    }

    /// The last second at which the CA is valid.
    pub const fn not_after(&self) -> UnixTime {
        UnixTime::since_unix_epoch(Duration::from_secs(self.validity.to))
    }

    /// Issues a spoke's certificate: the key of `csr`, the name `identity`, client use only, valid for `life`
    /// ([`SPOKE_CERTIFICATE_LIFE`]) but never longer than the CA.
    pub fn issue_spoke(
        &self,
        csr: &VerifiedCsr,
        identity: &SpokeIdentity,
        now: UnixTime,
        life: Duration,
    ) -> Result<SpokeCertificate, PkiError> {
        let uri = SanType::URI(identity.uri().try_into()?);
        let validity = self.leaf_validity(now, life)?;
        let certificate = self.issue(csr.key(), vec![uri], ExtendedKeyUsagePurpose::ClientAuth, validity)?;
        Ok(SpokeCertificate { pem: certificate.pem(), not_after: unix(validity.to) })
    }

    /// Issues a certificate with a fresh key for the gateway, which is reached under `names` (DNS names and IP
    /// addresses). Server use only.
    pub fn issue_server(
        &self,
        names: &[String],
        now: UnixTime,
        life: Duration,
    ) -> Result<ServerCertificate, PkiError> {
        let names = CertificateParams::new(names)?.subject_alt_names;
        let key = KeyPair::generate()?;
        let validity = self.leaf_validity(now, life)?;
        let leaf = self.issue(&key, names, ExtendedKeyUsagePurpose::ServerAuth, validity)?;
        Ok(ServerCertificate {
            chain: vec![leaf.der().clone(), self.certificate.clone()],
            key: PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
            not_after: unix(validity.to),
        })
    }

    fn issue(
        &self,
        key: &impl PublicKeyData,
        names: Vec<SanType>,
        usage: ExtendedKeyUsagePurpose,
        validity: Validity,
    ) -> Result<Certificate, PkiError> {
        let mut params = leaf_params(validity)?;
        params.subject_alt_names = names;
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        params.use_authority_key_identifier_extension = true;
        Ok(params.signed_by(key, &self.issuer)?)
    }

    fn leaf_validity(&self, now: UnixTime, life: Duration) -> Result<Validity, PkiError> {
        if now.as_secs() >= self.validity.to {
            return Err(PkiError::CaExpired);
        }
        let from = now.as_secs().saturating_sub(BACKDATE.as_secs()).max(self.validity.from);
        let to = now.as_secs().saturating_add(life.as_secs()).min(self.validity.to);
        Ok(Validity { from, to })
    }
}

impl fmt::Debug for Ca {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ca")
            .field("pin", &self.pin())
            .field("validity", &self.validity)
            .finish_non_exhaustive()
    }
}

impl ServerCertificate {
    /// The last second at which it is valid.
    pub const fn not_after(&self) -> UnixTime {
        self.not_after
    }
}

impl fmt::Debug for ServerCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerCertificate")
            .field("not_after", &self.not_after.as_secs())
            .finish_non_exhaustive()
    }
}

/// Parameters without a name, with a random 127-bit serial number.
fn leaf_params(validity: Validity) -> Result<CertificateParams, PkiError> {
    let mut serial = [0; 16];
    aws_lc_rs::rand::fill(&mut serial).map_err(|_no_detail| PkiError::Random)?;
    // Positive and of full length, as RFC 5280 §4.1.2.2 wants it.
    serial[0] = (serial[0] & 0x7f) | 0x40;
    let mut params = CertificateParams::default();
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    params.distinguished_name = DistinguishedName::new();
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + Duration::from_secs(in_range(validity.from)?);
    params.not_after = epoch + Duration::from_secs(in_range(validity.to)?);
    Ok(params)
}

const fn in_range(seconds: u64) -> Result<u64, PkiError> {
    if seconds <= LAST_SECOND { Ok(seconds) } else { Err(PkiError::TimeOutOfRange { seconds }) }
}

const fn unix(seconds: u64) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(seconds))
}

/// Reads one certificate from PEM.
pub(crate) fn read_certificate(pem: &str) -> Result<CertificateDer<'static>, PkiError> {
    CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|why| PkiError::malformed("the certificate", &why))
}

fn parse_ca<'a>(der: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, PkiError> {
    let malformed = |why: &dyn ToString| PkiError::malformed("the CA certificate", &why.to_string());
    let (rest, parsed) = X509Certificate::from_der(der).map_err(|why| malformed(&why))?;
    if !rest.is_empty() {
        return Err(malformed(&"bytes follow it"));
    }
    let constraints = parsed.basic_constraints().map_err(|why| malformed(&why))?;
    let usage = parsed.key_usage().map_err(|why| malformed(&why))?;
    let signs = usage.is_none_or(|usage| usage.value.key_cert_sign());
    if constraints.is_some_and(|c| c.value.ca) && signs { Ok(parsed) } else { Err(PkiError::NotACa) }
}

fn validity_of(certificate: &X509Certificate<'_>) -> Validity {
    let seconds = |at: i64| u64::try_from(at).unwrap_or(0);
    let validity = certificate.validity();
    Validity { from: seconds(validity.not_before.timestamp()), to: seconds(validity.not_after.timestamp()) }
}
