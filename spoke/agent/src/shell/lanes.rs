//! Carries out operations: many at once, but not without bound.

use std::sync::Arc;

use fairlead_model::Floor;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use super::floor::Floors;
use super::inbox::Arrival;
use crate::core::Input;
use crate::ports::{Request, Store};

/// How many operations are under way at once.
const IN_FLIGHT: usize = 64;

/// The lanes to one store.
#[derive(Debug)]
pub(super) struct Lanes<S> {
    store: Arc<S>,
    floors: Arc<Floors>,
    slots: Arc<Semaphore>,
    running: JoinSet<()>,
    arrivals: mpsc::Sender<Arrival>,
}

impl<S: Store> Lanes<S> {
    /// Lanes whose outcomes go to `arrivals`.
    pub(super) fn new(store: Arc<S>, floors: Arc<Floors>, arrivals: mpsc::Sender<Arrival>) -> Self {
        Self { store, floors, slots: Arc::new(Semaphore::new(IN_FLIGHT)), running: JoinSet::new(), arrivals }
    }

    /// Starts an operation. Its outcome arrives in the inbox.
    pub(super) fn start(&mut self, request: Request) {
        self.reap();
        let (store, slots, arrivals) =
            (Arc::clone(&self.store), Arc::clone(&self.slots), self.arrivals.clone());
        self.running.spawn(async move {
            // The semaphore is never closed.
            let Ok(_slot) = slots.acquire_owned().await else { return };
            let outcome = store.execute(&request).await;
            tracing::debug!(key = %request.key, kind = request.kind.name(), ?outcome, "operation");
            tell(&arrivals, Arrival::Input(Input::Outcome(request.id, outcome))).await;
        });
    }

    /// Starts making a floor durable.
    pub(super) fn store_floor(&mut self, floor: Floor) {
        self.reap();
        let (floors, arrivals) = (Arc::clone(&self.floors), self.arrivals.clone());
        self.running.spawn(async move {
            let stored = floors.store(&floor).await.map_err(|error| error.to_string());
            tell(&arrivals, Arrival::Floor(floor, stored)).await;
        });
    }

    /// Waits until every operation that was started has ended.
    pub(super) async fn close(self) {
        let Self { mut running, arrivals, .. } = self;
        drop(arrivals);
        while running.join_next().await.is_some() {}
    }

    fn reap(&mut self) {
        while self.running.try_join_next().is_some() {}
    }
}

async fn tell(arrivals: &mpsc::Sender<Arrival>, arrival: Arrival) {
    if arrivals.send(arrival).await.is_err() {
        tracing::debug!("the agent is stopping; an outcome is left to its next start");
    }
}
