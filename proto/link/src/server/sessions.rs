//! The lane of spokes with certificates: one session a connection.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fairlead_session::{HubFrame, SpokeFrame};
use futures::{Stream, StreamExt, stream};
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;
use tonic::{Request, Response, Status, Streaming};

use super::Gateway;
use super::live::Connection;
use crate::convert::Frame;
use crate::io::{FRAMES_IN, FRAMES_OUT, HubIo};
use crate::pump;
use crate::wire::sessions_server::Sessions;
use crate::wire::{HubMessage, SpokeMessage};

/// Opens the session of one connection.
pub(super) struct SessionsLane<G> {
    gateway: Arc<G>,
    connection: Arc<Connection>,
    tasks: TaskTracker,
    taken: AtomicBool,
}

impl<G> SessionsLane<G> {
    pub(super) const fn new(gateway: Arc<G>, connection: Arc<Connection>, tasks: TaskTracker) -> Self {
        Self { gateway, connection, tasks, taken: AtomicBool::new(false) }
    }
}

#[tonic::async_trait]
impl<G: Gateway> Sessions for SessionsLane<G> {
    type SessionStream = Pin<Box<dyn Stream<Item = Result<HubMessage, Status>> + Send>>;

    async fn session(
        &self,
        request: Request<Streaming<SpokeMessage>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        if self.taken.swap(true, Ordering::SeqCst) {
            return Err(Status::failed_precondition("a connection carries one session"));
        }
        let (to_gateway, frames_in) = mpsc::channel::<SpokeFrame>(FRAMES_IN);
        let (frames_out, from_gateway) = mpsc::channel::<HubFrame>(FRAMES_OUT);
        let cancel = self.connection.cancel.clone();
        let identity = self.connection.peer.identity().clone();
        let reading = pump::read(request.into_inner(), to_gateway, cancel.clone());
        self.tasks.spawn(async move {
            let why = reading.await;
            tracing::info!(peer = %identity, %why, "session over");
        });
        let (gateway, peer) = (Arc::clone(&self.gateway), self.connection.peer.clone());
        let io = HubIo { frames_in, frames_out, cancel: cancel.clone() };
        self.tasks.spawn(async move { gateway.session(peer, io).await });
        let messages = pump::write(from_gateway, cancel).chain(self.last_word());
        Ok(Response::new(Box::pin(messages.map(Ok))))
    }
}

impl<G: Gateway> SessionsLane<G> {
    /// What a peer whose connection was cut hears last.
    fn last_word(&self) -> impl Stream<Item = HubMessage> + Send + use<G> {
        let connection = Arc::clone(&self.connection);
        stream::once(async move { connection.verdict() })
            .filter_map(async |verdict| verdict.map(|goodbye| HubFrame::Goodbye(goodbye).encode()))
    }
}
