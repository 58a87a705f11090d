//! Watches of one kind as a stream of plain events.
//!
//! [`run`] lists consistently (never from a cache that may lag), then watches from there. Connections that end
//! are resumed where they stopped; when the API server has forgotten that point (410), the kind is listed again,
//! and what vanished during the gap is reported as [`Event::Gone`]. So the receiver sees, per object, a growing
//! version, and never misses a disappearance.

mod http;
mod mirror;

use std::time::Duration;

use fairlead_model::{ObjectKey, Uid};
use kube::Client;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::entropy;
use crate::object::Object;
use crate::resource::Resource;

use self::http::{Line, WatchError, Watching};
use self::mirror::Mirror;

pub use self::http::{Listing, list};

/// What to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The kind.
    pub resource: Resource,
    /// Only this namespace; all of them when absent.
    pub namespace: Option<String>,
    /// Only objects that match. One whose labels stop matching is reported as gone.
    pub label_selector: Option<String>,
    /// Only the objects' metadata, where nothing else is needed.
    pub metadata_only: bool,
}

impl Target {
    /// Every object of a kind.
    pub const fn all(resource: Resource) -> Self {
        Self { resource, namespace: None, label_selector: None, metadata_only: false }
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The object exists, in this version.
    Upsert(Object),
    /// The object no longer exists (or no longer matches the selector).
    Gone {
        /// Namespace and name.
        key: ObjectKey,
        /// The UID that is gone; another object may have the name by now.
        uid: Uid,
        /// The version at which it was gone, or one at which it was known to be.
        version: u64,
        /// Its last state, when the API server sent it. Absent when it vanished during a gap.
        last: Option<Object>,
    },
    /// Everything that existed when the kind was listed has been reported. Sent after every listing.
    Synced,
}

/// How often a point of resumption is tried in vain before the kind is listed anew.
const RESUME_ATTEMPTS: u32 = 3;
/// A silent watch is given up after this; the API server sends a bookmark about once a minute.
const SILENCE: Duration = Duration::from_secs(150);

/// Watches `target` and sends every event, wrapped, to `out`, waiting where that is full. Returns when `cancel`
/// is cancelled or the receiver is gone. Failures are logged and retried with jitter, without end.
pub async fn run<T, F>(
    client: Client,
    target: Target,
    out: mpsc::Sender<T>,
    wrap: F,
    cancel: CancellationToken,
) where
    T: Send,
    F: Fn(Event) -> T + Send,
{
    let mut follower = Follower { client, target, out, wrap, mirror: Mirror::default(), failures: 0 };
    tokio::select! {
        () = cancel.cancelled() => {}
        Closed = follower.follow() => {}
    }
}

/// The receiver is gone.
struct Closed;

/// Why one connection ended, and what to do about it.
enum End {
    /// Resume at the same point.
    Resume,
    /// List again: the point is forgotten or doubtful.
    Relist,
}

struct Follower<T, F> {
    client: Client,
    target: Target,
    out: mpsc::Sender<T>,
    wrap: F,
    mirror: Mirror,
    failures: u32,
}

impl<T: Send, F: Fn(Event) -> T + Send> Follower<T, F> {
    async fn follow(&mut self) -> Closed {
        loop {
            let listing = match list(&self.client, &self.target).await {
                Ok(listing) => listing,
                Err(why) => {
                    self.failed("list", &why).await;
                    continue;
                }
            };
            self.failures = 0;
            let mut point = listing.version;
            let events = self.mirror.relist(listing);
            if self.send_all(events).await.is_err() || self.send(Event::Synced).await.is_err() {
                return Closed;
            }
            if self.watch_from(&mut point).await.is_err() {
                return Closed;
            }
            // However soon a listing expires, the API server is not asked without pause.
            pause(200).await;
        }
    }

    /// Watches from `point` on until the kind must be listed again.
    async fn watch_from(&mut self, point: &mut u64) -> Result<(), Closed> {
        loop {
            let end = match Watching::open(&self.client, &self.target, *point).await {
                Ok(watching) => self.read(watching, point).await?,
                Err(why @ WatchError::Expired) => {
                    debug!(kind = %self.target.resource, %why, "listing again");
                    End::Relist
                }
                Err(why) => {
                    self.failed("watch", &why).await;
                    if self.failures >= RESUME_ATTEMPTS { End::Relist } else { End::Resume }
                }
            };
            if matches!(end, End::Relist) {
                return Ok(());
            }
        }
    }

    /// Reads one connection to its end.
    async fn read(&mut self, mut watching: Watching, point: &mut u64) -> Result<End, Closed> {
        loop {
            let line = match tokio::time::timeout(SILENCE, watching.next()).await {
                Ok(Ok(Some(line))) => line,
                // The API server ends watches after a while, and proxies sooner.
                Ok(Ok(None)) => return Ok(End::Resume),
                Ok(Err(WatchError::Expired)) => return Ok(End::Relist),
                Ok(Err(why)) => {
                    self.failed("watch", &why).await;
                    return Ok(if why.resumable() { End::Resume } else { End::Relist });
                }
                Err(_elapsed) => {
                    warn!(kind = %self.target.resource, "the watch went silent; resuming it");
                    return Ok(End::Resume);
                }
            };
            self.failures = 0;
            let events = match line {
                Line::Bookmark(version) => {
                    *point = version;
                    continue;
                }
                Line::Upsert(object) => {
                    *point = object.version;
                    self.mirror.upsert(object)
                }
                Line::Delete(object) => {
                    *point = object.version;
                    self.mirror.delete(object)
                }
            };
            self.send_all(events).await?;
        }
    }

    async fn send_all(&self, events: Vec<Event>) -> Result<(), Closed> {
        for event in events {
            self.send(event).await?;
        }
        Ok(())
    }

    async fn send(&self, event: Event) -> Result<(), Closed> {
        self.out.send((self.wrap)(event)).await.map_err(|_receiver_gone| Closed)
    }

    /// Logs a failure and waits: up to 0.2 s at first, doubling to 5 s, a random part of it.
    async fn failed(&mut self, what: &'static str, why: &WatchError) {
        self.failures = self.failures.saturating_add(1);
        warn!(kind = %self.target.resource, %why, failures = self.failures, "{what} failed");
        let ceiling = 200_u64.saturating_mul(1 << self.failures.saturating_sub(1).min(5)).min(5_000);
        pause(ceiling).await;
    }
}

/// Waits 50 ms and a random part of `ceiling_ms`.
async fn pause(ceiling_ms: u64) {
    tokio::time::sleep(Duration::from_millis(50 + entropy::below(ceiling_ms))).await;
}

/// Reads a resource version.
fn version_of(metadata: &Value) -> Option<u64> {
    metadata.get("resourceVersion")?.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests;
