//! Who may no longer connect, whatever the certificate says.

use std::collections::BTreeSet;
use std::sync::{PoisonError, RwLock};

use crate::digest::KeyFingerprint;
use crate::identity::ClusterUid;
use crate::peer::VerifiedPeer;

/// Revoked keys and clusters, shared live between the TLS verifier (new handshakes) and the gateway, which
/// asks it about open connections.
///
/// Whose entry is removed can connect again with a certificate that has not ended, so an entry stays at least as
/// long as certificates live. That short life is also the backstop should the list ever be lost.
#[derive(Debug, Default)]
pub struct DenyList {
    entries: RwLock<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    keys: BTreeSet<KeyFingerprint>,
    clusters: BTreeSet<ClusterUid>,
}

impl DenyList {
    /// Replaces the whole list, as read from the hub's API.
    pub fn replace(&self, keys: BTreeSet<KeyFingerprint>, clusters: BTreeSet<ClusterUid>) {
        *self.entries.write().unwrap_or_else(PoisonError::into_inner) = Entries { keys, clusters };
    }

    /// Refuses a key from now on.
    pub fn deny_key(&self, key: KeyFingerprint) {
        self.entries.write().unwrap_or_else(PoisonError::into_inner).keys.insert(key);
    }

    /// Refuses every key of a cluster from now on.
    pub fn deny_cluster(&self, cluster: ClusterUid) {
        self.entries.write().unwrap_or_else(PoisonError::into_inner).clusters.insert(cluster);
    }

    /// Whether this peer must be refused, or cut if it is connected.
    pub fn denies(&self, peer: &VerifiedPeer) -> bool {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.keys.contains(&peer.key()) || entries.clusters.contains(peer.identity().cluster())
    }
}
