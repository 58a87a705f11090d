//! HTTP over TLS, with certificates that can be exchanged and settings that an operator chooses.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use fairlead_pki::tls::{CertificateSlot, provider};
use fairlead_runtime::TaskError;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls_pki_types::CertificateDer;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tracing::debug;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Handshakes side by side, and connections that wait to be served.
const AT_ONCE: usize = 64;

/// What an operator chooses of TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsChoice {
    /// Speak TLS 1.3 only; else 1.2 too.
    pub only_13: bool,
    /// Suites of TLS 1.2 by their IANA names; all when empty.
    pub suites: Vec<String>,
    /// Groups for the key exchange by number, in order; all when empty.
    pub groups: Vec<u16>,
}

/// Nothing is left to agree on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("TLS cannot be spoken like this: {0}")]
pub struct Impossible(String);

/// TLS as chosen, presenting what is in `slot`. `clients` verifies certificates of clients, where some are wanted.
///
/// # Errors
///
/// [`Impossible`] when the choice leaves nothing.
pub fn server_config(
    choice: &TlsChoice,
    slot: Arc<CertificateSlot>,
    clients: Option<Arc<dyn ClientCertVerifier>>,
) -> Result<ServerConfig, Impossible> {
    let versions: &[&rustls::SupportedProtocolVersion] =
        if choice.only_13 { &[&TLS13] } else { &[&TLS13, &TLS12] };
    let builder = ServerConfig::builder_with_provider(Arc::new(chosen(choice)))
        .with_protocol_versions(versions)
        .map_err(|why| Impossible(why.to_string()))?;
    let clients = clients.unwrap_or_else(WebPkiClientVerifier::no_client_auth);
    let mut config = builder.with_client_cert_verifier(clients).with_cert_resolver(slot);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    // A resumed session would skip the look at the client's certificate.
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(config)
}

fn chosen(choice: &TlsChoice) -> CryptoProvider {
    let mut provider = CryptoProvider::clone(&provider());
    if !choice.suites.is_empty() {
        provider.cipher_suites.retain(|suite| {
            let name = format!("{:?}", suite.suite());
            suite.tls13().is_some() || choice.suites.contains(&name)
        });
    }
    if !choice.groups.is_empty() {
        let all = provider.kx_groups.clone();
        let of = |number: &u16| all.iter().find(|group| u16::from(group.name()) == *number).copied();
        provider.kx_groups = choice.groups.iter().filter_map(of).collect();
    }
    provider
}

/// Who is at the other end.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its address.
    pub address: SocketAddr,
    /// The certificate that it showed, verified.
    pub certificate: Option<CertificateDer<'static>>,
}

impl Connected<IncomingStream<'_, Tls>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Tls>) -> Self {
        stream.remote_addr().clone()
    }
}

/// Serves until cancelled. Handshakes run beside each other, so a slow one holds up nobody.
///
/// # Errors
///
/// When the listener fails.
pub async fn serve(
    listener: TcpListener,
    config: ServerConfig,
    router: Router,
    cancel: CancellationToken,
) -> Result<(), TaskError> {
    let tls = Tls::start(listener, config, cancel.clone())?;
    let service = router.into_make_service_with_connect_info::<Peer>();
    axum::serve(tls, service).with_graceful_shutdown(cancel.cancelled_owned()).await?;
    Ok(())
}

/// A listener whose connections have made their handshake.
#[derive(Debug)]
pub struct Tls {
    address: SocketAddr,
    ready: mpsc::Receiver<(TlsStream<TcpStream>, Peer)>,
}

impl Tls {
    fn start(listener: TcpListener, config: ServerConfig, cancel: CancellationToken) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let (sender, ready) = mpsc::channel(AT_ONCE);
        tokio::spawn(async move {
            tokio::select! {
                () = cancel.cancelled() => {}
                () = accept(listener, TlsAcceptor::from(Arc::new(config)), sender) => {}
            }
        });
        Ok(Self { address, ready })
    }
}

impl Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = Peer;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.ready.recv().await {
            Some(connection) => connection,
            // Being cancelled: whoever drives this ends it.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        Ok(Peer { address: self.address, certificate: None })
    }
}

async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    ready: mpsc::Sender<(TlsStream<TcpStream>, Peer)>,
) {
    let room = Arc::new(tokio::sync::Semaphore::new(AT_ONCE));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(why) => {
                // Out of file descriptors, say: others must end first.
                debug!(%why, "no connection can be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (acceptor, ready) = (acceptor.clone(), ready.clone());
        tokio::spawn(async move {
            let _permit = permit;
            match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => {
                    let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
                    let certificate = shown.map(|leaf| leaf.clone().into_owned());
                    // Nobody serves any more: the connection ends with this.
                    drop(ready.send((stream, Peer { address, certificate })).await);
                }
                Ok(Err(why)) => debug!(%address, %why, "a handshake failed"),
                Err(_elapsed) => debug!(%address, "a handshake took too long"),
            }
        });
    }
}

#[cfg(test)]
mod tests;
