//! What the CA issues, and how it is kept.

use std::time::Duration;

use fairlead_pki::tls::CertificateSlot;
use fairlead_pki::{Ca, PkiError, SPOKE_CERTIFICATE_LIFE, SpokeKey, VerifiedCsr};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use crate::fixture::{HOUR, Hub, NOW, UID_A, YEAR, at, identity};

fn csr(key: &SpokeKey) -> VerifiedCsr {
    VerifiedCsr::from_der(&key.signing_request().unwrap()).unwrap()
}

fn serial(pem: &str) -> Vec<u8> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    let (_, leaf) = X509Certificate::from_der(&der).unwrap();
    leaf.raw_serial().to_vec()
}

#[test]
fn a_ca_survives_its_pem_form() {
    let hub = Hub::new();
    let again = Ca::from_pem(hub.ca.certificate_pem(), &hub.ca.key_pem()).unwrap();
    assert_eq!(again.pin(), hub.ca.pin());
    assert_eq!(again.not_after(), hub.ca.not_after());
    assert_eq!(again.not_after(), at(NOW + YEAR.as_secs()));
    let key = SpokeKey::generate().unwrap();
    let issued = again.issue_spoke(&csr(&key), &identity(UID_A), at(NOW), SPOKE_CERTIFICATE_LIFE).unwrap();
    let slot = CertificateSlot::of_spoke(&issued.pem, &key).unwrap();
    hub.connect(hub.session(slot.into())).peer();
}

#[test]
fn a_ca_is_read_only_whole() {
    let (hub, other) = (Hub::new(), Hub::new());
    let mismatch = Ca::from_pem(hub.ca.certificate_pem(), &other.ca.key_pem());
    assert!(matches!(mismatch, Err(PkiError::KeyMismatch)));
    assert!(matches!(Ca::from_pem("", &hub.ca.key_pem()), Err(PkiError::Malformed { .. })));
    assert!(matches!(Ca::from_pem(hub.ca.certificate_pem(), ""), Err(PkiError::Malformed { .. })));
    let key = SpokeKey::generate().unwrap();
    let leaf = hub.ca.issue_spoke(&csr(&key), &identity(UID_A), at(NOW), SPOKE_CERTIFICATE_LIFE).unwrap();
    assert!(matches!(Ca::from_pem(&leaf.pem, &key.to_pem()), Err(PkiError::NotACa)));
}

#[test]
fn a_leaf_never_outlives_its_ca() {
    let ca = Ca::generate("short", at(NOW), Duration::from_hours(2)).unwrap();
    let key = SpokeKey::generate().unwrap();
    let issue = |now| ca.issue_spoke(&csr(&key), &identity(UID_A), at(now), SPOKE_CERTIFICATE_LIFE);
    assert_eq!(issue(NOW).unwrap().not_after, at(NOW + 2 * HOUR));
    assert_eq!(issue(NOW + HOUR).unwrap().not_after, at(NOW + 2 * HOUR));
    assert!(matches!(issue(NOW + 2 * HOUR), Err(PkiError::CaExpired)));
    assert!(matches!(issue(NOW + 9 * HOUR), Err(PkiError::CaExpired)));
    let server = ca.issue_server(&["hub.test".to_owned()], at(NOW), YEAR).unwrap();
    assert_eq!(server.not_after(), at(NOW + 2 * HOUR));
}

#[test]
fn serial_numbers_differ_even_for_one_key() {
    let hub = Hub::new();
    let key = SpokeKey::generate().unwrap();
    let issue = || hub.ca.issue_spoke(&csr(&key), &identity(UID_A), at(NOW), SPOKE_CERTIFICATE_LIFE).unwrap();
    assert_ne!(serial(&issue().pem), serial(&issue().pem));
}

#[test]
fn times_beyond_the_form_are_refused_not_wrapped() {
    for now in [u64::MAX, 253_402_300_800] {
        assert!(matches!(Ca::generate("late", at(now), YEAR), Err(PkiError::TimeOutOfRange { .. })));
    }
    assert!(Ca::generate("early", at(0), YEAR).is_ok());
}

#[test]
fn debug_output_shows_no_secret() {
    let hub = Hub::new();
    let key = SpokeKey::generate().unwrap();
    let server = hub.ca.issue_server(&["hub.test".to_owned()], at(NOW), YEAR).unwrap();
    let text = format!("{:?} {key:?} {server:?} {:?}", hub.ca, hub.slot);
    let key_line = |pem: &str| pem.lines().nth(1).unwrap().to_owned();
    for pem in [hub.ca.key_pem(), key.to_pem()] {
        assert!(!text.contains(&key_line(&pem)));
    }
    assert!(!text.contains("PRIVATE") && text.len() < 800, "{text}");
}
