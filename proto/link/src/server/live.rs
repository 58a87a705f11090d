//! The open sessions, and the watcher that ends those that are no longer entitled.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use fairlead_model::{Incarnation, Reason};
use fairlead_pki::{DenyList, TimeProvider, UnixTime, VerifiedPeer};
use fairlead_session::Goodbye;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// How often entitlement is checked. Revocation is to cut within 5 s.
const EVERY: Duration = Duration::from_secs(1);

/// The connections that have a peer, by number.
#[derive(Debug)]
pub(super) struct Live {
    deny: Arc<DenyList>,
    time: Arc<dyn TimeProvider>,
    next: AtomicU64,
    entries: Mutex<BTreeMap<u64, Arc<Connection>>>,
}

/// A connection with its peer.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) peer: VerifiedPeer,
    pub(super) cancel: CancellationToken,
    /// Why it was cut, if it was.
    verdict: OnceLock<Goodbye>,
}

/// Takes the connection off the list when dropped.
#[derive(Debug)]
pub(super) struct Entry {
    live: Arc<Live>,
    number: u64,
    pub(super) connection: Arc<Connection>,
}

impl Live {
    pub(super) const fn new(deny: Arc<DenyList>, time: Arc<dyn TimeProvider>) -> Self {
        Self { deny, time, next: AtomicU64::new(0), entries: Mutex::new(BTreeMap::new()) }
    }

    pub(super) fn enter(self: &Arc<Self>, peer: VerifiedPeer, cancel: CancellationToken) -> Entry {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let connection = Arc::new(Connection { peer, cancel, verdict: OnceLock::new() });
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.insert(number, Arc::clone(&connection));
        drop(entries);
        Entry { live: Arc::clone(self), number, connection }
    }

    /// Cuts every connection whose peer is denied or whose certificate has ended.
    fn sweep(&self) {
        let now = self.time.current_time();
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        for connection in entries.values() {
            if let Some((reason, detail)) = self.objection(&connection.peer, now) {
                tracing::info!(peer = %connection.peer.identity(), %reason, "connection cut");
                connection.cut(reason, detail);
            }
        }
    }

    fn objection(&self, peer: &VerifiedPeer, now: Option<UnixTime>) -> Option<(Reason, &'static str)> {
        if self.deny.denies(peer) {
            return Some((Reason::IdentityRevoked, "this spoke's identity was revoked on the hub"));
        }
        let ended = now.is_some_and(|now| now.as_secs() > peer.not_after().as_secs());
        ended.then_some((Reason::CertificateExpired, "the certificate of this connection has ended"))
    }
}

impl Connection {
    fn cut(&self, reason: Reason, detail: &str) {
        let goodbye =
            Goodbye { reason, detail: detail.into(), retry_after_ms: 0, incarnation: Incarnation::default() };
        self.verdict.get_or_init(|| goodbye);
        self.cancel.cancel();
    }

    /// What to say to the peer of a connection that was cut.
    pub(super) fn verdict(&self) -> Option<Goodbye> {
        self.verdict.get().cloned()
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.live.entries.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
    }
}

/// Sweeps until `stop`.
pub(super) async fn watch(live: Arc<Live>, stop: CancellationToken) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while stop.run_until_cancelled(ticks.tick()).await.is_some() {
        live.sweep();
    }
}
