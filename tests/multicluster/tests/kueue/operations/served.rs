//! What the hub serves, as whoever asks sees it.

use std::{fs, net::SocketAddr, path::Path, sync::Arc};

use anyhow::{Context, Result};
use fairlead_multicluster::{fleet::apply_all, kueue::World};
use rustls::{
    ClientConfig, DigitallySignedStruct, SignatureScheme, SupportedProtocolVersion,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

/// A token of a new service account, which may read metrics or not.
pub(super) async fn token(world: &World, namespace: &str, name: &str, may: bool) -> Result<String> {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace},
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": format!("{namespace}-{name}")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kueue-metrics-reader"},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    });
    let objects = if may { vec![account, binding] } else { vec![account] };
    apply_all(world.cluster()?, &objects).await?;
    let token = world.cluster()?.kubectl(&["create", "token", name, "-n", namespace]).await?;
    Ok(token.trim().to_owned())
}

/// What `GET /metrics` gives to the owner of a token.
pub(super) async fn scrape(world: &World, token: Option<&str>) -> Result<String> {
    let mut stream = connect(world.fleet().metrics_address(), rustls::ALL_VERSIONS).await?;
    let auth = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let request = format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{auth}\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer without a head")?;
    anyhow::ensure!(head.starts_with("HTTP/1.1 200"), "{}", head.lines().next().unwrap_or_default());
    Ok(body.to_owned())
}

/// The answer to a probe, head and body.
pub(super) async fn probe(world: &World, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(world.fleet().health_address()).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// The certificate that a server presents.
pub(super) struct Presented {
    /// The DNS names in it.
    pub(super) names: Vec<String>,
}

impl Presented {
    pub(super) async fn at(address: SocketAddr) -> Result<Self> {
        let stream = connect(address, rustls::ALL_VERSIONS).await?;
        let chain = stream.get_ref().1.peer_certificates().context("no certificate")?;
        let leaf = chain.first().context("an empty chain")?;
        let (_, parsed) = X509Certificate::from_der(leaf)?;
        let names = parsed.subject_alternative_name()?.context("a certificate without names")?;
        let dns = |name: &GeneralName<'_>| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            _ => None,
        };
        Ok(Self { names: names.value.general_names.iter().filter_map(dns).collect() })
    }

    /// Whether TLS 1.2 is spoken.
    pub(super) async fn speaks_12(address: SocketAddr) -> bool {
        connect(address, &[&rustls::version::TLS12]).await.is_ok()
    }
}

/// Writes a self-signed certificate as cert-manager's mounted Secret has it.
pub(super) fn put_certificate(folder: &Path, name: &str) -> Result<()> {
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()])?;
    fs::write(folder.join("tls.key"), made.signing_key.serialize_pem())?;
    fs::write(folder.join("tls.crt"), made.cert.pem())?;
    Ok(())
}

async fn connect(
    address: SocketAddr,
    versions: &[&'static SupportedProtocolVersion],
) -> Result<tokio_rustls::client::TlsStream<TcpStream>> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost")?;
    Ok(TlsConnector::from(Arc::new(config)).connect(name, stream).await?)
}

/// Takes any certificate: these tests look at it themselves.
#[derive(Debug)]
struct Anybody(Arc<rustls::crypto::CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _leaf: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(
            message,
            certificate,
            signed,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(
            message,
            certificate,
            signed,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
