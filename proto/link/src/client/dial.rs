//! Connecting to the hub.

use std::io;
use std::sync::Arc;

use fairlead_session::{HubFrame, SpokeFrame};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use http::Uri;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

use super::{CONNECT_TIMEOUT, KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT, backoff};
use crate::io::{CONNECTION_WINDOW, FRAMES_IN, FRAMES_OUT, STREAM_WINDOW, SpokeIo};
use crate::parts::MAX_MESSAGE;
use crate::pump;
use crate::wire::sessions_client::SessionsClient;

/// Why a session could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// The address is not `host:port`.
    #[error("{0:?} is not an address: host:port is wanted")]
    Address(String),
    /// Nothing came back in time.
    #[error("{address} did not answer within {} s", CONNECT_TIMEOUT.as_secs())]
    TimedOut {
        /// Who was dialled.
        address: String,
    },
    /// No connection, or one that the other side or its certificate forbade.
    #[error("cannot connect to {address}: {why}")]
    Connect {
        /// Who was dialled.
        address: String,
        /// The whole chain of causes.
        why: String,
    },
}

/// Dials one hub. The TLS settings (and with them the certificate in use) are looked at anew at each attempt.
#[derive(Clone, Debug)]
pub struct Dialer {
    address: String,
    host: ServerName<'static>,
    tls: Arc<ClientConfig>,
}

impl Dialer {
    /// For the hub at `address` (`host:port`; an IPv6 address in brackets), with the settings of
    /// [`fairlead_pki::tls::session_client`].
    pub fn new(address: &str, tls: Arc<ClientConfig>) -> Result<Self, DialError> {
        let bad = || DialError::Address(address.to_owned());
        let (host, port) = address.rsplit_once(':').ok_or_else(bad)?;
        if port.parse::<u16>().is_err() {
            return Err(bad());
        }
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let host = ServerName::try_from(host.to_owned()).map_err(|_not_a_name| bad())?;
        Ok(Self { address: address.to_owned(), host, tls })
    }

    /// One attempt, of at most [`CONNECT_TIMEOUT`].
    pub async fn dial(&self) -> Result<SpokeIo, DialError> {
        self.in_time(async {
            let channel = self.channel().await?;
            self.open(channel).await
        })
        .await
    }

    pub(super) async fn in_time<T>(
        &self,
        attempt: impl Future<Output = Result<T, DialError>>,
    ) -> Result<T, DialError> {
        match timeout(CONNECT_TIMEOUT, attempt).await {
            Ok(outcome) => outcome,
            Err(_elapsed) => Err(DialError::TimedOut { address: self.address.clone() }),
        }
    }

    /// A connection without a stream yet.
    pub(super) async fn channel(&self) -> Result<Channel, DialError> {
        // The scheme is only what tonic wants to see: TLS is done below, by our own connector.
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address))
            .map_err(|_not_a_uri| DialError::Address(self.address.clone()))?
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
            .keep_alive_timeout(KEEPALIVE_TIMEOUT)
            .keep_alive_while_idle(true);
        let dialer = self.clone();
        let connector = service_fn(move |_uri: Uri| {
            let dialer = dialer.clone();
            async move { dialer.handshake().await.map(TokioIo::new) }
        });
        let connected = endpoint.connect_with_connector(connector).await;
        connected.map_err(|error| self.failed(&error))
    }

    async fn handshake(&self) -> io::Result<TlsStream<TcpStream>> {
        let tcp = TcpStream::connect(&self.address).await?;
        tcp.set_nodelay(true)?;
        TlsConnector::from(Arc::clone(&self.tls)).connect(self.host.clone(), tcp).await
    }

    async fn open(&self, channel: Channel) -> Result<SpokeIo, DialError> {
        let (to_agent, frames_in) = mpsc::channel::<HubFrame>(FRAMES_IN);
        let (frames_out, from_agent) = mpsc::channel::<SpokeFrame>(FRAMES_OUT);
        let cancel = CancellationToken::new();
        let mut client = SessionsClient::new(channel).max_decoding_message_size(MAX_MESSAGE);
        let messages = pump::write(from_agent, cancel.clone());
        let stream = client.session(messages).await.map_err(|status| DialError::Connect {
            address: self.address.clone(),
            why: pump::explain(&status),
        })?;
        let reading = pump::read(stream.into_inner(), to_agent, cancel.clone());
        let address = self.address.clone();
        tokio::spawn(async move {
            let why = reading.await;
            tracing::info!(hub = %address, %why, "session over");
            // The connection lives as long as its last handle.
            drop(client);
        });
        Ok(SpokeIo { frames_in, frames_out, cancel })
    }

    pub(super) fn failed(&self, error: &dyn std::error::Error) -> DialError {
        let mut why = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            why = format!("{why}: {error}");
            cause = error.source();
        }
        DialError::Connect { address: self.address.clone(), why }
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }
}

/// At most so many attempts at once: one may hang in a dead network while the next already gets through.
const ATTEMPTS: usize = 3;

/// Tries until a session is open; `None` when cancelled before.
///
/// Attempts start [`backoff::delay`] apart, also while earlier ones still hang, so that the first second after a
/// link is back has an attempt in it.
pub async fn dial_until_up(
    dialer: &Dialer,
    mut random: impl FnMut() -> u64,
    cancel: CancellationToken,
) -> Option<SpokeIo> {
    let since = Instant::now();
    let mut attempts = FuturesUnordered::new();
    let mut count = 0_u32;
    let mut next = since;
    loop {
        tokio::select! {
            () = cancel.cancelled() => return None,
            Some(outcome) = attempts.next() => match outcome {
                Ok(io) => return Some(io),
                Err(error) => tracing::info!(%error, "the hub was not reached"),
            },
            () = sleep_until(next), if attempts.len() < ATTEMPTS => {
                attempts.push(dialer.dial());
                next = Instant::now() + backoff::delay(since.elapsed(), count, random());
                count = count.saturating_add(1);
            }
        }
    }
}
