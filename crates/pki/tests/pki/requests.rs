//! Signing requests that try something (threats T1 and T5).

use fairlead_pki::{PkiError, SPOKE_CERTIFICATE_LIFE, SpokeKey, VerifiedCsr};
use proptest::prelude::*;
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

use crate::fixture::{Hub, NOW, UID_A, UID_B, at, identity};

fn request(params: &CertificateParams, key: &KeyPair) -> Vec<u8> {
    params.serialize_request(key).unwrap().der().to_vec()
}

/// Issues for A from any request and checks that the result is A's plain leaf, whatever was asked.
fn assert_plain_leaf(hub: &Hub, csr: &[u8]) {
    let csr = VerifiedCsr::from_der(csr).unwrap();
    let issued = hub.ca.issue_spoke(&csr, &identity(UID_A), at(NOW), SPOKE_CERTIFICATE_LIFE).unwrap();
    let der = CertificateDer::from_pem_slice(issued.pem.as_bytes()).unwrap();
    let (_, leaf) = X509Certificate::from_der(&der).unwrap();
    let names = leaf.subject_alternative_name().unwrap().unwrap().value.general_names.clone();
    assert_eq!(names, vec![GeneralName::URI(&identity(UID_A).uri())]);
    assert_eq!(leaf.subject().iter_attributes().count(), 0);
    assert!(!leaf.is_ca());
    let usage = leaf.extended_key_usage().unwrap().unwrap().value.clone();
    assert!(usage.client_auth && !usage.server_auth && !usage.any && usage.other.is_empty());
    let key_usage = *leaf.key_usage().unwrap().unwrap().value;
    assert!(key_usage.digital_signature() && !key_usage.key_cert_sign());
    assert_eq!(leaf.validity().not_before.timestamp(), i64::try_from(NOW - 300).unwrap());
    assert_eq!(leaf.validity().not_after.timestamp(), i64::try_from(NOW + 86_400).unwrap());
    let oids: Vec<String> = leaf.extensions().iter().map(|extension| extension.oid.to_id_string()).collect();
    assert!(oids.iter().all(|oid| oid.starts_with("2.5.29.")), "{oids:?}");
}

#[test]
fn our_own_request_gives_a_plain_leaf_and_names_nothing() {
    let key = SpokeKey::generate().unwrap();
    let der = key.signing_request().unwrap();
    assert!(der.len() < 300, "{} bytes", der.len());
    assert_plain_leaf(&Hub::new(), &der);
    assert_eq!(VerifiedCsr::from_der(&der).unwrap().fingerprint(), key.fingerprint());
    let reread = SpokeKey::from_pem(&key.to_pem()).unwrap();
    assert_eq!(reread.fingerprint(), key.fingerprint());
}

#[test]
fn wishes_in_a_request_are_ignored() {
    let hub = Hub::new();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, identity(UID_B).uri());
    params.distinguished_name.push(DnType::OrganizationName, "system:masters");
    params.subject_alt_names = vec![
        SanType::URI(identity(UID_B).uri().try_into().unwrap()),
        SanType::DnsName("hub.test".try_into().unwrap()),
        SanType::IpAddress("127.0.0.1".parse().unwrap()),
    ];
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::Any, ExtendedKeyUsagePurpose::ServerAuth];
    assert_plain_leaf(&hub, &request(&params, &key));

    let mut params = CertificateParams::default();
    let mut odd = CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 99_999, 1], vec![4, 2, 1, 2]);
    odd.set_criticality(true);
    params.custom_extensions = vec![odd];
    assert_plain_leaf(&hub, &request(&params, &key));
}

#[test]
fn only_p256_is_certified() {
    for kind in [&rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_ED25519] {
        let key = KeyPair::generate_for(kind).unwrap();
        let der = request(&CertificateParams::default(), &key);
        assert!(matches!(VerifiedCsr::from_der(&der), Err(PkiError::KeyKind)));
    }
}

/// Somebody else's public key in a request signed with one's own.
#[test]
fn a_request_must_be_signed_by_the_key_it_carries() {
    let (mine, theirs) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let mut der = request(&CertificateParams::default(), &mine);
    let at = der.windows(65).position(|w| w == mine.public_key_raw()).unwrap();
    der[at..at + 65].copy_from_slice(theirs.public_key_raw());
    assert!(matches!(VerifiedCsr::from_der(&der), Err(PkiError::CsrSignature)));
}

#[test]
fn size_and_tail_are_checked() {
    let der = SpokeKey::generate().unwrap().signing_request().unwrap();
    let mut tail = der.clone();
    tail.push(0);
    assert!(matches!(VerifiedCsr::from_der(&tail), Err(PkiError::Malformed { .. })));
    assert!(matches!(VerifiedCsr::from_der(&vec![0x30; 5000]), Err(PkiError::CsrTooLarge { .. })));
    assert!(VerifiedCsr::from_der(&[]).is_err());
    for cut in 0..der.len() {
        assert!(VerifiedCsr::from_der(&der[..cut]).is_err());
    }
}

/// Every bit of a request is covered by its signature or by the parser: no flipped one passes as another key.
#[test]
fn no_flipped_bit_gives_another_key() {
    let key = SpokeKey::generate().unwrap();
    let der = key.signing_request().unwrap();
    for at in 0..der.len() {
        for bit in 0..8 {
            let mut flipped = der.clone();
            flipped[at] ^= 1 << bit;
            if let Ok(csr) = VerifiedCsr::from_der(&flipped) {
                assert_eq!(csr.fingerprint(), key.fingerprint(), "byte {at} bit {bit}");
            }
        }
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_pass_or_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        prop_assert!(VerifiedCsr::from_der(&bytes).is_err());
    }
}
