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
use crate::registry::Registry;
use crate::spokes::{Arrival, SpokeTable};

/// How long a connection may wait with its hello.
const HELLO_PATIENCE: Duration = Duration::from_secs(10);

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

    /// Says goodbye to a spoke that has no Cluster (any more).
    async fn dismiss(&self, spoke: &SpokeId, io: HubIo) {
        warn!(%spoke, "a spoke without a Cluster was dismissed");
        let goodbye = Goodbye {
            reason: Reason::ClusterNotFound,
            detail: "the hub has no Cluster of this identity; join again".into(),
            retry_after_ms: 60_000,
            incarnation: self.incarnation,
        };
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
        let Some(name) = self.registry.name_of(&spoke).await else {
            self.dismiss(&spoke, io).await;
            return;
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
