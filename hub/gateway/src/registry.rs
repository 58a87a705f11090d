//! Which spokes exist: the Clusters of the hub, by UID.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use fairlead_model::{SpokeId, Uid};
use fairlead_pki::DenyList;
use fairlead_runtime::TaskError;
use fairlead_runtime::watch::{self, Event, Target};
use kube::Client;
use tokio::sync::{mpsc, watch as signal};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::objects::CLUSTERS;
use crate::spokes::SpokeTable;

/// How long a spoke that connects right after the hub's start waits for the list of Clusters.
const PATIENCE: Duration = Duration::from_secs(5);

/// The Clusters, kept by a watch. Whoever is not in it is no spoke, whatever its certificate says.
#[derive(Debug)]
pub struct Registry {
    names: RwLock<BTreeMap<Uid, Arc<str>>>,
    complete: signal::Sender<bool>,
    deny: Arc<DenyList>,
}

/// What is known of a spoke's Cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It exists and has this name.
    Exists(Arc<str>),
    /// There is none with this UID.
    Missing,
    /// The Clusters could not be listed yet.
    NotListed,
}

impl Registry {
    /// An empty registry that puts the UIDs of deleted Clusters on `deny`.
    pub fn new(deny: Arc<DenyList>) -> Self {
        Self { names: RwLock::default(), complete: signal::Sender::new(false), deny }
    }

    /// Whether a Cluster with this UID exists. Waits a little when the list is not there yet.
    pub async fn look_up(&self, spoke: &SpokeId) -> Standing {
        let uid = Uid::new(spoke.as_str());
        if let Some(name) = self.known(&uid) {
            return Standing::Exists(name);
        }
        let mut complete = self.complete.subscribe();
        let listed = tokio::time::timeout(PATIENCE, complete.wait_for(|listed| *listed)).await;
        match (listed.is_ok(), self.known(&uid)) {
            (_, Some(name)) => Standing::Exists(name),
            (true, None) => Standing::Missing,
            (false, None) => Standing::NotListed,
        }
    }

    /// A Cluster that was just read: it may enrol before the watch has seen it.
    pub fn insert(&self, uid: Uid, name: Arc<str>) {
        self.names.write().unwrap_or_else(PoisonError::into_inner).insert(uid, name);
    }

    fn known(&self, uid: &Uid) -> Option<Arc<str>> {
        self.names.read().unwrap_or_else(PoisonError::into_inner).get(uid).cloned()
    }

    fn remove(&self, uid: &Uid) {
        self.names.write().unwrap_or_else(PoisonError::into_inner).remove(uid);
        match uid.as_str().parse() {
            Ok(cluster) => self.deny.deny_cluster(cluster),
            Err(why) => warn!(%uid, %why, "a Cluster's UID cannot be denied"),
        }
    }

    /// Follows the Clusters until cancelled, and cuts the connections of those that are deleted.
    pub async fn follow(
        self: Arc<Self>,
        client: Client,
        spokes: Arc<SpokeTable>,
        cancel: CancellationToken,
    ) -> Result<(), TaskError> {
        let (sender, mut events) = mpsc::channel(64);
        let watching = watch::run(client, Target::all(CLUSTERS), sender, |event| event, cancel);
        let taking = async {
            while let Some(event) = events.recv().await {
                self.take(event, &spokes);
            }
        };
        tokio::join!(watching, taking);
        Ok(())
    }

    fn take(&self, event: Event, spokes: &SpokeTable) {
        match event {
            Event::Upsert(cluster) => self.insert(cluster.uid, cluster.key.name),
            Event::Gone { uid, key, .. } => {
                warn!(cluster = %key, %uid, "the Cluster was deleted; its identity is refused from now on");
                self.remove(&uid);
                spokes.cut(&SpokeId::new(uid.as_str()));
            }
            Event::Synced => {
                self.complete.send_replace(true);
            }
        }
    }
}
