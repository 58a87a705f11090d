//! Real handshakes over loopback.

use axum::extract::ConnectInfo;
use axum::routing::get;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsConnector;

use super::*;
use crate::front_proxy::FrontProxy;
use crate::front_proxy::testing::Authority;

/// A self-signed certificate for `localhost` and its key, both PEM.
fn pair() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

struct Server {
    address: SocketAddr,
    slot: Arc<CertificateSlot>,
    cancel: CancellationToken,
}

async fn start(choice: &TlsChoice, pem: &(String, String), front: Option<FrontProxy>) -> Server {
    let slot = Arc::new(CertificateSlot::of_pem(&pem.0, &pem.1).unwrap());
    let clients = front.map(|front| -> Arc<dyn ClientCertVerifier> { Arc::new(front) });
    let config = server_config(choice, Arc::clone(&slot), clients).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route(
        "/",
        get(
            async |ConnectInfo(peer): ConnectInfo<Peer>| {
                if peer.certificate.is_some() { "known" } else { "unknown" }
            },
        ),
    );
    let cancel = CancellationToken::new();
    tokio::spawn(serve(listener, config, router, cancel.clone()));
    Server { address, slot, cancel }
}

fn client(
    trusted: &str,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted.as_bytes()).unwrap()).unwrap();
    ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
}

/// The body of `GET /`.
async fn fetch(server: &Server, config: ClientConfig) -> io::Result<String> {
    let stream = TcpStream::connect(server.address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    let mut tls = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    tls.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await?;
    let mut text = String::new();
    tls.read_to_string(&mut text).await?;
    Ok(text.rsplit("\r\n").next().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn the_lowest_version_is_enforced() {
    let pem = pair();
    let strict = start(&TlsChoice { only_13: true, ..TlsChoice::default() }, &pem, None).await;
    let old = || client(&pem.0, &[&TLS12]).with_no_client_auth();
    let new = || client(&pem.0, &[&TLS13]).with_no_client_auth();
    assert!(fetch(&strict, old()).await.is_err());
    assert_eq!(fetch(&strict, new()).await.unwrap(), "unknown");
    let lax = start(&TlsChoice::default(), &pem, None).await;
    assert_eq!(fetch(&lax, old()).await.unwrap(), "unknown");
    strict.cancel.cancel();
    lax.cancel.cancel();
}

#[tokio::test]
async fn suites_and_groups_are_as_chosen() {
    let pem = pair();
    let choice = TlsChoice {
        suites: vec!["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384".to_owned()],
        groups: vec![24],
        ..TlsChoice::default()
    };
    let server = start(&choice, &pem, None).await;
    let offering = |suite: rustls::CipherSuite, group: rustls::NamedGroup| {
        let mut only = CryptoProvider::clone(&provider());
        only.cipher_suites.retain(|one| one.suite() == suite);
        only.kx_groups.retain(|one| one.name() == group);
        let builder =
            ClientConfig::builder_with_provider(Arc::new(only)).with_protocol_versions(&[&TLS12]).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(pem.0.as_bytes()).unwrap()).unwrap();
        builder.with_root_certificates(roots).with_no_client_auth()
    };
    let (aes256, aes128) = (
        rustls::CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        rustls::CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    );
    let (p384, p256) = (rustls::NamedGroup::secp384r1, rustls::NamedGroup::secp256r1);
    assert!(fetch(&server, offering(aes256, p384)).await.is_ok());
    assert!(fetch(&server, offering(aes128, p384)).await.is_err(), "another suite");
    assert!(fetch(&server, offering(aes256, p256)).await.is_err(), "another group");
    server.cancel.cancel();
}

#[tokio::test]
async fn an_exchanged_certificate_is_presented_without_a_restart() {
    let (one, two) = (pair(), pair());
    let server = start(&TlsChoice::default(), &one, None).await;
    let trusting = |pem: &(String, String)| client(&pem.0, &[&TLS13]).with_no_client_auth();
    assert!(fetch(&server, trusting(&one)).await.is_ok());
    server.slot.replace_pem(&two.0, &two.1).unwrap();
    assert!(fetch(&server, trusting(&one)).await.is_err(), "the old one is not presented any more");
    assert!(fetch(&server, trusting(&two)).await.is_ok());
    server.cancel.cancel();
}

#[tokio::test]
async fn a_client_certificate_is_asked_for_and_must_be_the_front_proxys() {
    let pem = pair();
    let (ours, other) = (Authority::new(), Authority::new());
    let front = FrontProxy::default();
    front.set(crate::front_proxy::Proxy::of(&ours.data(&["front"])).unwrap());
    let server = start(&TlsChoice::default(), &pem, Some(front)).await;
    let with = |authority: &Authority| {
        let (leaf, key) = authority.client("front");
        let key = rustls_pki_types::PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        client(&pem.0, &[&TLS13]).with_client_auth_cert(vec![leaf], key).unwrap()
    };
    assert_eq!(fetch(&server, with(&ours)).await.unwrap(), "known");
    assert_eq!(fetch(&server, client(&pem.0, &[&TLS13]).with_no_client_auth()).await.unwrap(), "unknown");
    assert!(fetch(&server, with(&other)).await.is_err());
    server.cancel.cancel();
}
