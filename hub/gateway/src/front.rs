//! What the link calls: enrolment and sessions.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fairlead_link::server::Gateway;
use fairlead_link::{EnrolRefusal, EnrolRequest, Enrolled, HubIo};
use fairlead_model::{Incarnation, Reason, SpokeId, Uid};
use fairlead_pki::VerifiedPeer;
use fairlead_runtime::store::Store;
use fairlead_session::{Goodbye, HubFrame};
use tracing::{info, warn};

use crate::enrol::Enrolment;
use crate::refusals::Refusals;
use crate::registry::{Registry, Standing};
use crate::spokes::{Arrival, SpokeTable};

/// How long a connection may wait with its hello.
const HELLO_PATIENCE: Duration = Duration::from_secs(10);

/// Reason, detail and milliseconds to wait, for a spoke that has no Cluster (any more).
const NO_CLUSTER: (Reason, &str, u32) =
    (Reason::ClusterNotFound, "the hub has no Cluster of this identity; join again", 60_000);
/// The same, for one that comes before the hub knows its Clusters.
const NOT_YET: (Reason, &str, u32) = (Reason::HubUnavailable, "the hub cannot list its Clusters yet", 1_000);

/// The hub's side of the link.
#[derive(Debug)]
pub struct Front {
    enrolment: Enrolment,
    refusals: Refusals,
    registry: Arc<Registry>,
    spokes: Arc<SpokeTable>,
    incarnation: Incarnation,
}

impl Front {
    /// A front that enrols with `enrolment` and hands sessions to `spokes`. `incarnation` is the present leader's.
    pub const fn new(
        store: Store,
        enrolment: Enrolment,
        registry: Arc<Registry>,
        spokes: Arc<SpokeTable>,
        incarnation: Incarnation,
    ) -> Self {
        Self { enrolment, refusals: Refusals::new(store), registry, spokes, incarnation }
    }

    /// Says goodbye to a spoke.
    async fn dismiss(
        &self,
        spoke: &SpokeId,
        io: HubIo,
        (reason, detail, retry_after_ms): (Reason, &str, u32),
    ) {
        warn!(%spoke, %reason, detail, "a spoke was dismissed");
        let goodbye =
            Goodbye { reason, detail: detail.into(), retry_after_ms, incarnation: self.incarnation };
        if io.frames_out.send(HubFrame::Goodbye(goodbye)).await.is_ok() {
            io.close().await;
        }
    }
}

impl Gateway for Front {
    async fn enrol(&self, request: EnrolRequest, from: SocketAddr) -> Result<Enrolled, EnrolRefusal> {
        let answer = self.enrolment.enrol(&request).await;
        match &answer {
            Ok(enrolled) => {
                self.registry
                    .insert(Uid::new(enrolled.cluster_uid.as_str()), request.cluster.as_str().into());
            }
            Err(why) => self.refusals.join_refused(&request.cluster, from, why).await,
        }
        answer
    }

    async fn session(&self, peer: VerifiedPeer, mut io: HubIo) {
        let spoke = SpokeId::new(peer.identity().cluster().as_str());
        let name = match self.registry.look_up(&spoke).await {
            Standing::Exists(name) => name,
            Standing::Missing => return self.dismiss(&spoke, io, NO_CLUSTER).await,
            Standing::NotListed => return self.dismiss(&spoke, io, NOT_YET).await,
        };
        let first = tokio::time::timeout(HELLO_PATIENCE, io.frames_in.recv()).await;
        let Ok(Some(first)) = first else {
            info!(%spoke, cluster = &*name, "a connection had no hello");
            return;
        };
        let ended = io.cancel.clone();
        let certificate_expires = i64::try_from(peer.not_after().as_secs()).unwrap_or(i64::MAX);
        self.spokes.arrive(&spoke, Arrival { first, io, certificate_expires });
        ended.cancelled().await;
    }
}
