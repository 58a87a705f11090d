//! From a TCP connection to a served lane.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fairlead_pki::VerifiedPeer;
use fairlead_pki::tls::Lane;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::body::Body;
use tower::Service;

use super::enrolment::EnrolmentLane;
use super::live::Live;
use super::sessions::SessionsLane;
use super::{Gateway, ServerTls};
use crate::client::{KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT};
use crate::io::{CONNECTION_WINDOW, STREAM_WINDOW};
use crate::parts::MAX_MESSAGE;
use crate::wire::enrolment_server::EnrolmentServer;
use crate::wire::sessions_server::SessionsServer;

/// A handshake that takes longer is given up.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Handshakes under way; who comes beyond it is turned away and tries again.
const HANDSHAKES: usize = 256;
/// Enrolments under way.
const ENROLMENTS: usize = 32;
/// A connection of the enrolment lane lives no longer.
const ENROLMENT_LIFE: Duration = Duration::from_secs(15);
/// The most bytes of an enrolment request.
const ENROLMENT_REQUEST: usize = 16 << 10;
/// After a failed accept (such as out of file descriptors) the loop rests.
const ACCEPT_REST: Duration = Duration::from_millis(50);
/// How long a connection may take to end after it was told to.
const LINGER: Duration = Duration::from_secs(1);
/// Request headers are few and short here.
const HEADERS: u32 = 8 << 10;

/// Accepts connections and serves them.
pub(super) struct Acceptor<G> {
    tls: ServerTls,
    gateway: Arc<G>,
    live: Arc<Live>,
    tasks: TaskTracker,
    stop: CancellationToken,
    handshakes: Arc<Semaphore>,
    enrolments: Arc<Semaphore>,
}

impl<G: Gateway> Acceptor<G> {
    pub(super) fn new(tls: ServerTls, gateway: Arc<G>, tasks: TaskTracker, stop: CancellationToken) -> Self {
        let live = Arc::new(Live::new(Arc::clone(&tls.deny), Arc::clone(&tls.time)));
        Self {
            tls,
            gateway,
            live,
            tasks,
            stop,
            handshakes: Arc::new(Semaphore::new(HANDSHAKES)),
            enrolments: Arc::new(Semaphore::new(ENROLMENTS)),
        }
    }

    pub(super) fn live(&self) -> Arc<Live> {
        Arc::clone(&self.live)
    }

    pub(super) async fn accept_loop(self: &Arc<Self>, listener: &TcpListener) {
        while let Some(accepted) = self.stop.run_until_cancelled(listener.accept()).await {
            match accepted {
                Ok((tcp, from)) => {
                    self.tasks.spawn(Arc::clone(self).connection(tcp, from));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(ACCEPT_REST).await;
                }
            }
        }
    }

    async fn connection(self: Arc<Self>, tcp: TcpStream, from: SocketAddr) {
        let handshake = {
            let Ok(_permit) = Arc::clone(&self.handshakes).try_acquire_owned() else {
                tracing::debug!(%from, "too many handshakes under way");
                return;
            };
            timeout(HANDSHAKE, self.handshake(tcp)).await
        };
        match handshake {
            Err(_elapsed) => tracing::debug!(%from, "handshake took too long"),
            Ok(Err(error)) => tracing::info!(%from, %error, "handshake failed"),
            Ok(Ok((Lane::Session, stream))) => self.session_lane(stream, from).await,
            Ok(Ok((Lane::Enrolment, stream))) => self.enrolment_lane(stream, from).await,
        }
    }

    async fn handshake(&self, tcp: TcpStream) -> io::Result<(Lane, TlsStream<TcpStream>)> {
        tcp.set_nodelay(true)?;
        let start = LazyConfigAcceptor::new(rustls::server::Acceptor::default(), tcp).await?;
        let (lane, config) = self.tls.settings.for_hello(&start.client_hello());
        Ok((lane, start.into_stream(config).await?))
    }

    async fn session_lane(&self, stream: TlsStream<TcpStream>, from: SocketAddr) {
        let peer = match VerifiedPeer::of(stream.get_ref().1, &self.tls.trust_domain) {
            Ok(peer) => peer,
            Err(error) => return tracing::warn!(%from, %error, "a session without identity"),
        };
        let entry = self.live.enter(peer, self.stop.child_token());
        let connection = Arc::clone(&entry.connection);
        let lane = SessionsLane::new(Arc::clone(&self.gateway), Arc::clone(&connection), self.tasks.clone());
        let service = SessionsServer::new(lane).max_decoding_message_size(MAX_MESSAGE);
        serve_http2(stream, service, &connection.cancel).await;
    }

    async fn enrolment_lane(&self, stream: TlsStream<TcpStream>, from: SocketAddr) {
        let Ok(_permit) = Arc::clone(&self.enrolments).try_acquire_owned() else {
            return tracing::info!(%from, "too many enrolments under way");
        };
        let cancel = self.stop.child_token();
        let lane = EnrolmentLane::new(Arc::clone(&self.gateway), from);
        let service = EnrolmentServer::new(lane).max_decoding_message_size(ENROLMENT_REQUEST);
        let serving = serve_http2(stream, service, &cancel);
        if timeout(ENROLMENT_LIFE, serving).await.is_err() {
            tracing::info!(%from, "enrolment took too long");
        }
    }
}

/// Serves one connection until it ends; once cancelled, it may finish what it is at for a moment.
async fn serve_http2<S>(stream: TlsStream<TcpStream>, service: S, cancel: &CancellationToken)
where
    S: Service<http::Request<Incoming>, Response = http::Response<Body>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .max_concurrent_streams(4)
        .max_header_list_size(HEADERS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = cancel.cancelled() => {
            connection.as_mut().graceful_shutdown();
            timeout(LINGER, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}
