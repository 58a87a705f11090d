//! Whole TLS handshakes, over buffers.

use std::sync::Arc;

use fairlead_pki::tls::{ALPN_ENROLMENT, ALPN_SESSION, CertificateSlot, Lane, enrolment_client};
use fairlead_pki::{Ca, IdentityError, SPOKE_CERTIFICATE_LIFE, SpokeKey, VerifiedCsr, VerifiedPeer};
use rcgen::{
    CertificateParams, DistinguishedName, ExtendedKeyUsagePurpose, Issuer, KeyPair, SanType, date_time_ymd,
};
use rustls::client::Resumption;
use rustls::{AlertDescription, CertificateError, ClientConfig, Error, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::fixture::{Clock, HOUR, Hub, NOW, UID_A, UID_B, YEAR, at, connect, domain, identity};

fn clock_of(hub: &Hub) -> Arc<Clock> {
    Arc::clone(&hub.clock)
}

#[test]
fn a_session_knows_its_spoke() {
    let hub = Hub::new();
    let (key, slot) = hub.spoke(UID_A);
    let handshake = hub.connect(hub.session(slot));
    assert_eq!(handshake.lane, Some(Lane::Session));
    assert_eq!(handshake.tickets, 0);
    let peer = handshake.peer();
    assert_eq!(peer.identity(), &identity(UID_A));
    assert_eq!(peer.key(), key.fingerprint());
    assert_eq!(peer.not_after().as_secs(), NOW + 24 * HOUR);
}

#[test]
fn sessions_speak_tls_13_and_http_2() {
    let hub = Hub::new();
    let handshake = hub.connect(hub.session(hub.spoke(UID_A).1));
    let server = handshake.server.unwrap();
    assert_eq!(server.protocol_version(), Some(rustls::ProtocolVersion::TLSv1_3));
    assert_eq!(server.alpn_protocol(), Some(ALPN_SESSION));
}

/// A client config of the test's own making, for what our own never does.
fn foreign_client(hub: &Hub, versions: &[&'static rustls::SupportedProtocolVersion]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(hub.ca.certificate().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_details(provider, clock_of(hub))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN_SESSION.to_vec()];
    config
}

fn with_certificate(hub: &Hub, chain: Vec<CertificateDer<'static>>, key_pem: &str) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(hub.ca.certificate().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let key = PrivateKeyDer::from_pem_slice(key_pem.as_bytes()).unwrap();
    let mut config = ClientConfig::builder_with_details(provider, clock_of(hub))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .unwrap();
    config.alpn_protocols = vec![ALPN_SESSION.to_vec()];
    Arc::new(config)
}

#[test]
fn tls_12_is_refused_on_both_lanes() {
    let hub = Hub::new();
    for alpn in [ALPN_SESSION, ALPN_ENROLMENT] {
        let mut client = foreign_client(&hub, &[&rustls::version::TLS12]);
        client.alpn_protocols = vec![alpn.to_vec()];
        let handshake = hub.connect(Arc::new(client));
        assert!(matches!(handshake.client, Err(Error::AlertReceived(AlertDescription::ProtocolVersion))));
        assert!(matches!(handshake.server_error(), Error::PeerIncompatible(_)));
    }
}

#[test]
fn a_session_needs_a_certificate() {
    let hub = Hub::new();
    let handshake = hub.connect(Arc::new(foreign_client(&hub, &[&rustls::version::TLS13])));
    assert!(matches!(handshake.client, Err(Error::AlertReceived(AlertDescription::CertificateRequired))));
    assert_eq!(handshake.server_error(), Error::NoCertificatesPresented);
}

/// Whoever offers the enrolment lane beside the session's cannot get around the certificate, and a client that
/// names neither is refused.
#[test]
fn the_lane_without_certificates_is_only_for_those_who_ask_for_nothing_else() {
    let hub = Hub::new();
    for offers in
        [vec![ALPN_SESSION, ALPN_ENROLMENT], vec![ALPN_ENROLMENT, ALPN_SESSION], vec![], vec![b"http/1.1"]]
    {
        let mut client = foreign_client(&hub, &[&rustls::version::TLS13]);
        client.alpn_protocols = offers.iter().map(|offer| offer.to_vec()).collect();
        let handshake = hub.connect(Arc::new(client));
        assert_eq!(handshake.lane, Some(Lane::Session), "{offers:?}");
        assert!(handshake.server.is_err(), "{offers:?}");
    }
}

#[test]
fn an_expired_certificate_is_refused_at_the_handshake() {
    let hub = Hub::new();
    let (_, slot) = hub.spoke(UID_A);
    let client = hub.session(slot);
    hub.clock.set(NOW + 24 * HOUR);
    assert_eq!(hub.connect(Arc::clone(&client)).peer().identity(), &identity(UID_A), "its last second");
    hub.clock.set(NOW + 24 * HOUR + 1);
    let handshake = hub.connect(client);
    assert!(matches!(handshake.client, Err(Error::AlertReceived(AlertDescription::CertificateExpired))));
    let error = handshake.server_error();
    assert!(matches!(error, Error::InvalidCertificate(CertificateError::ExpiredContext { .. })), "{error:?}");
}

#[test]
fn a_certificate_is_valid_five_minutes_before_its_issue_and_no_sooner() {
    let hub = Hub::new();
    let client = hub.session(hub.spoke(UID_A).1);
    hub.clock.set(NOW - 300);
    hub.connect(Arc::clone(&client)).peer();
    hub.clock.set(NOW - 301);
    assert!(hub.connect(client).client.is_err());
}

#[test]
fn a_denied_key_or_cluster_is_refused_at_the_next_handshake() {
    let hub = Hub::new();
    let (key, slot) = hub.spoke(UID_A);
    let (_, other) = hub.spoke(UID_B);
    let (first, second) = (hub.session(slot), hub.session(other));
    let live = hub.connect(Arc::clone(&first)).peer();
    assert!(!hub.deny.denies(&live));

    hub.deny.deny_key(key.fingerprint());
    assert!(hub.deny.denies(&live), "the gateway cuts open connections by this");
    let refused = hub.connect(first);
    assert!(matches!(refused.client, Err(Error::AlertReceived(AlertDescription::CertificateRevoked))));
    assert_eq!(refused.server_error(), Error::InvalidCertificate(CertificateError::Revoked));

    hub.connect(Arc::clone(&second)).peer();
    hub.deny.deny_cluster(UID_B.parse().unwrap());
    assert_eq!(hub.connect(second).server_error(), Error::InvalidCertificate(CertificateError::Revoked));
}

#[test]
fn nothing_is_resumed() {
    let hub = Hub::new();
    let (key, slot) = hub.spoke(UID_A);
    let mut config = (*hub.session(slot)).clone();
    config.resumption = Resumption::in_memory_sessions(8);
    let config = Arc::new(config);
    let first = hub.connect(Arc::clone(&config));
    assert_eq!(first.tickets, 0);
    first.peer();
    hub.deny.deny_key(key.fingerprint());
    assert!(hub.connect(config).server.is_err(), "a resumed session would have skipped the deny list");
}

#[test]
fn another_ca_is_refused_by_both_sides() {
    let (hub, stranger) = (Hub::new(), Hub::new());
    let (_, theirs) = stranger.spoke(UID_A);
    let refused = hub.connect(hub.session(Arc::clone(&theirs)));
    assert!(matches!(
        refused.server_error(),
        Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature)
    ));
    let refused = hub.connect(stranger.session(theirs));
    assert!(matches!(refused.client, Err(Error::InvalidCertificate(_))));
}

#[test]
fn a_hub_under_another_name_is_refused() {
    let hub = Hub::new();
    let client = hub.session(hub.spoke(UID_A).1);
    let refused = connect(client, "hub.test.evil.org", |hello| hub.tls.for_hello(&hello));
    assert!(matches!(
        refused.client,
        Err(Error::InvalidCertificate(CertificateError::NotValidForNameContext { .. }))
    ));
}

#[test]
fn the_gateway_is_found_by_ip_address_too() {
    let hub = Hub::new();
    let client = hub.session(hub.spoke(UID_A).1);
    connect(client, "127.0.0.1", |hello| hub.tls.for_hello(&hello)).peer();
}

/// A spoke's certificate cannot pose as the gateway, nor the gateway's dial in as a spoke.
#[test]
fn certificates_serve_one_direction_only() {
    let hub = Hub::new();
    let (_, slot) = hub.spoke(UID_A);
    let wrong_way = connect(hub.session(Arc::clone(&slot)), "hub.test", |_hello| {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = rustls::ServerConfig::builder_with_details(provider, clock_of(&hub))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(slot);
        config.alpn_protocols = vec![ALPN_SESSION.to_vec()];
        (Lane::Session, Arc::new(config))
    });
    assert!(matches!(wrong_way.client, Err(Error::InvalidCertificate(_))), "{:?}", wrong_way.client);

    let (leaf, key_pem) =
        odd_leaf(&hub, vec![SanType::URI(identity(UID_A).uri().try_into().unwrap())], |params| {
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        });
    let error = hub.connect(with_certificate(&hub, vec![leaf], &key_pem)).server_error();
    assert!(matches!(error, Error::InvalidCertificate(_)), "{error:?}");
}

/// A leaf of the hub's own CA with whatever names and settings a test wants.
fn odd_leaf(
    hub: &Hub,
    names: Vec<SanType>,
    change: impl FnOnce(&mut CertificateParams),
) -> (CertificateDer<'static>, String) {
    let ca_key = KeyPair::from_pem(&hub.ca.key_pem()).unwrap();
    let issuer = Issuer::from_ca_cert_der(hub.ca.certificate(), ca_key).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.not_after = date_time_ymd(2100, 1, 1);
    params.distinguished_name = DistinguishedName::new();
    params.subject_alt_names = names;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    change(&mut params);
    (params.signed_by(&key, &issuer).unwrap().der().clone(), key.serialize_pem())
}

fn uri(text: &str) -> SanType {
    SanType::URI(text.try_into().unwrap())
}

/// The names that a CA bug or a second issuer could certify: each is refused within the handshake.
#[test]
fn only_one_name_and_only_ours_is_an_identity() {
    let hub = Hub::new();
    let good = identity(UID_A).uri();
    let (leaf, key) = odd_leaf(&hub, vec![uri(&good)], |_| {});
    assert_eq!(hub.connect(with_certificate(&hub, vec![leaf], &key)).peer().identity(), &identity(UID_A));

    let dns = |name: &str| SanType::DnsName(name.try_into().unwrap());
    for names in [
        vec![],
        vec![uri(&good), uri(&identity(UID_B).uri())],
        vec![uri(&good), uri(&good)],
        vec![uri(&good), dns("a.test")],
        vec![dns("a.test"), uri(&good)],
        vec![dns(UID_A)],
        vec![uri(&format!("{good}/"))],
        vec![uri(&format!("{good}0/x"))],
        vec![uri(&good.to_uppercase())],
        vec![uri(&format!("spiffe://fairlead.test.evil.org/cluster/{UID_A}"))],
        vec![uri(&format!("spiffe://other.test/cluster/{UID_A}"))],
        vec![uri("spiffe://fairlead.test/cluster/")],
    ] {
        let (leaf, key) = odd_leaf(&hub, names.clone(), |params| {
            params.distinguished_name.push(rcgen::DnType::CommonName, good.as_str());
        });
        let error = hub.connect(with_certificate(&hub, vec![leaf], &key)).server_error();
        assert_eq!(
            error,
            Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure),
            "{names:?}"
        );
    }
}

/// A spoke that signs certificates itself gains nothing: leaves cannot issue.
#[test]
fn a_leaf_cannot_issue_another_identity() {
    let hub = Hub::new();
    let key = SpokeKey::generate().unwrap();
    let csr = VerifiedCsr::from_der(&key.signing_request().unwrap()).unwrap();
    let ours = hub.ca.issue_spoke(&csr, &identity(UID_A), at(NOW), SPOKE_CERTIFICATE_LIFE).unwrap();
    let leaf = CertificateDer::from_pem_slice(ours.pem.as_bytes()).unwrap();
    let issuer = Issuer::from_ca_cert_der(&leaf, KeyPair::from_pem(&key.to_pem()).unwrap()).unwrap();
    let forged_key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.subject_alt_names = vec![uri(&identity(UID_B).uri())];
    let forged = params.signed_by(&forged_key, &issuer).unwrap().der().clone();
    let chain = vec![forged, leaf];
    let error = hub.connect(with_certificate(&hub, chain, &forged_key.serialize_pem())).server_error();
    assert!(matches!(error, Error::InvalidCertificate(_)), "{error:?}");
}

#[test]
fn enrolment_needs_no_certificate_but_the_pinned_ca() {
    let hub = Hub::new();
    let handshake = hub.connect(enrolment_client(hub.ca.pin(), clock_of(&hub)).unwrap());
    assert_eq!(handshake.lane, Some(Lane::Enrolment));
    handshake.client.unwrap();
    let server = handshake.server.unwrap();
    assert_eq!(server.alpn_protocol(), Some(ALPN_ENROLMENT));
    assert_eq!(VerifiedPeer::of(&server, &domain()).unwrap_err(), IdentityError::NoPeer);
}

#[test]
fn a_wrong_pin_is_refused() {
    let (hub, stranger) = (Hub::new(), Hub::new());
    let refused = hub.connect(enrolment_client(stranger.ca.pin(), clock_of(&hub)).unwrap());
    assert_eq!(refused.client, Err(Error::InvalidCertificate(CertificateError::UnknownIssuer)));
    assert!(stranger.ca.pin().check_pem(hub.ca.certificate_pem()).is_err());
    hub.ca.pin().check_pem(hub.ca.certificate_pem()).unwrap();
}

/// Sending the pinned CA along proves nothing; the leaf must be signed by it, for this name and this use.
#[test]
fn the_pin_vouches_for_the_ca_not_for_whoever_sends_it() {
    let hub = Hub::new();
    let impostor = Ca::generate("Fairlead test CA", at(NOW), YEAR).unwrap();
    let theirs = impostor.issue_server(&["hub.test".to_owned()], at(NOW), YEAR).unwrap();
    let mixed = CertificateSlot::of_server(theirs).unwrap();
    let pinned = hub.ca.certificate().clone();
    let refused = connect(enrolment_client(hub.ca.pin(), clock_of(&hub)).unwrap(), "hub.test", |hello| {
        let served = rustls::server::ResolvesServerCert::resolve(&mixed, hello).unwrap();
        let mut chain = (*served).clone();
        chain.cert = vec![chain.cert[0].clone(), pinned];
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = rustls::ServerConfig::builder_with_details(provider, clock_of(&hub))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(chain)));
        config.alpn_protocols = vec![ALPN_ENROLMENT.to_vec()];
        (Lane::Enrolment, Arc::new(config))
    });
    assert!(matches!(refused.client, Err(Error::InvalidCertificate(_))), "{:?}", refused.client);

    let other_name =
        connect(enrolment_client(hub.ca.pin(), clock_of(&hub)).unwrap(), "other.test", |hello| {
            hub.tls.for_hello(&hello)
        });
    assert!(matches!(other_name.client, Err(Error::InvalidCertificate(_))));

    hub.clock.set(NOW + YEAR.as_secs() + 1);
    let late = hub.connect(enrolment_client(hub.ca.pin(), clock_of(&hub)).unwrap());
    assert!(matches!(late.client, Err(Error::InvalidCertificate(CertificateError::ExpiredContext { .. }))));
}

/// Certificates are exchanged without touching settings or open connections.
#[test]
fn a_replaced_certificate_is_used_by_the_next_handshake() {
    let hub = Hub::new();
    let (_, slot) = hub.spoke(UID_A);
    let client = hub.session(Arc::clone(&slot));
    let before = hub.connect(Arc::clone(&client)).peer();

    let key = SpokeKey::generate().unwrap();
    let csr = VerifiedCsr::from_der(&key.signing_request().unwrap()).unwrap();
    let later = at(NOW + 12 * HOUR);
    let renewed = hub.ca.issue_spoke(&csr, &identity(UID_A), later, SPOKE_CERTIFICATE_LIFE).unwrap();
    slot.replace_spoke(&renewed.pem, &key).unwrap();
    hub.slot.replace_server(hub.ca.issue_server(&["hub.test".to_owned()], later, YEAR).unwrap()).unwrap();
    hub.clock.set(NOW + 30 * HOUR);
    let after = hub.connect(client).peer();
    assert_eq!(after.identity(), before.identity());
    assert_eq!(after.key(), key.fingerprint());
    assert!(
        slot.replace_spoke(&renewed.pem, &SpokeKey::generate().unwrap()).is_err(),
        "key and certificate differ"
    );
}
