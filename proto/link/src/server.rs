//! The gateway's side: the accept loop, its two lanes, and the end of connections.
//!
//! Each connection is a task of its own and has a token that cancels it. A watcher cuts, within a second, the
//! connections of spokes that were revoked or whose certificate has come to its end, and tells them why.

mod accept;
mod enrolment;
mod live;
mod sessions;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fairlead_pki::tls::{GatewayTls, GatewayTrust};
use fairlead_pki::{DenyList, PkiError, TimeProvider, TrustDomain, VerifiedPeer};
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::enrol::{EnrolRefusal, EnrolRequest, Enrolled};
use crate::io::HubIo;
use accept::Acceptor;

/// How long connections may take to end when the server stops.
const DRAIN: Duration = Duration::from_secs(3);

/// What the gateway does with those who connect.
pub trait Gateway: Send + Sync + 'static {
    /// An agent without certificate redeems a join token.
    fn enrol(
        &self,
        request: EnrolRequest,
        from: SocketAddr,
    ) -> impl Future<Output = Result<Enrolled, EnrolRefusal>> + Send;

    /// A spoke is here; the session lasts until this returns or `io` ends. The peer may already have a session
    /// whose end has not been noticed: the newer one is the living one, and the gateway closes the older.
    fn session(&self, peer: VerifiedPeer, io: HubIo) -> impl Future<Output = ()> + Send;
}

/// Whom the server trusts and who it is.
#[derive(Clone, Debug)]
pub struct ServerTls {
    pub(crate) settings: GatewayTls,
    pub(crate) trust_domain: TrustDomain,
    pub(crate) deny: Arc<DenyList>,
    pub(crate) time: Arc<dyn TimeProvider>,
}

impl ServerTls {
    /// Builds the TLS settings of both lanes.
    pub fn new(trust: &GatewayTrust) -> Result<Self, PkiError> {
        Ok(Self {
            settings: GatewayTls::new(trust)?,
            trust_domain: trust.trust_domain.clone(),
            deny: Arc::clone(&trust.deny),
            time: Arc::clone(&trust.time),
        })
    }
}

/// Serves both lanes on `listener` until `stop` is cancelled, then ends all connections and returns. Failing
/// connections are their own affair; the loop itself does not fail.
pub async fn serve<G: Gateway>(
    listener: TcpListener,
    tls: ServerTls,
    gateway: Arc<G>,
    stop: CancellationToken,
) {
    let tasks = TaskTracker::new();
    let acceptor = Arc::new(Acceptor::new(tls, gateway, tasks.clone(), stop.clone()));
    tasks.spawn(live::watch(acceptor.live(), stop.clone()));
    acceptor.accept_loop(&listener).await;
    drop(listener);
    tasks.close();
    if timeout(DRAIN, tasks.wait()).await.is_err() {
        tracing::warn!(connections = tasks.len(), "connections did not end in time");
    }
}
