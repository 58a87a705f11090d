//! Carries out the brain's writes: many at once, but not without bound.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tracing::{debug, warn};

use crate::brain::Input;
use crate::ports::{Kind, Outcome, Request, Store};

/// How many operations are under way at once, Events aside.
pub const IN_FLIGHT: usize = 64;
/// How many Events are written at once.
pub const EVENT_LANES: usize = 4;
/// How many Events may wait. More are dropped: they explain, and nothing rests on them.
const EVENTS_WAITING: usize = 1024;

/// The lanes to one store.
#[derive(Debug)]
pub(super) struct Lanes<S> {
    store: Arc<S>,
    slots: Arc<Semaphore>,
    running: JoinSet<()>,
    outcomes: mpsc::Sender<Input>,
    events: mpsc::Sender<Request>,
    dropped: Arc<AtomicU64>,
}

impl<S: Store> Lanes<S> {
    /// Lanes whose outcomes go to `outcomes`.
    pub(super) fn new(store: Arc<S>, outcomes: mpsc::Sender<Input>) -> Self {
        let (events, waiting) = mpsc::channel(EVENTS_WAITING);
        let mut running = JoinSet::new();
        running.spawn(write_events(Arc::clone(&store), waiting));
        Self {
            store,
            slots: Arc::new(Semaphore::new(IN_FLIGHT)),
            running,
            outcomes,
            events,
            dropped: Arc::default(),
        }
    }

    /// Starts an operation. Its outcome comes back as [`Input::Outcome`], except for Events, which have none.
    pub(super) fn start(&mut self, request: Request) {
        // Reap what has ended; the outcome went its own way.
        while self.running.try_join_next().is_some() {}
        if request.kind == Kind::Event {
            self.start_event(request);
            return;
        }
        let (store, slots, outcomes) =
            (Arc::clone(&self.store), Arc::clone(&self.slots), self.outcomes.clone());
        self.running.spawn(async move {
            // The semaphore is never closed.
            let Ok(_slot) = slots.acquire_owned().await else { return };
            let outcome = store.execute(&request).await;
            debug!(kind = ?request.kind, key = %request.key, commit = request.commit, outcome = label(&outcome), "write");
            if outcomes.send(Input::Outcome(request.id, outcome)).await.is_err() {
                debug!("the brain has stopped; an outcome is left to the next leader");
            }
        });
    }

    fn start_event(&self, request: Request) {
        if let Err(unsent) = self.events.try_send(request) {
            let dropped = self.dropped.fetch_add(1, Ordering::Relaxed).saturating_add(1);
            warn!(dropped, why = %unsent, "dropped an Event");
        }
    }

    /// Waits until every operation that was started has ended.
    pub(super) async fn close(self) {
        let Self { mut running, events, outcomes, .. } = self;
        drop((events, outcomes));
        while running.join_next().await.is_some() {}
    }
}

async fn write_events<S: Store>(store: Arc<S>, mut waiting: mpsc::Receiver<Request>) {
    let mut running = JoinSet::new();
    while let Some(event) = waiting.recv().await {
        if running.len() >= EVENT_LANES {
            running.join_next().await;
        }
        let store = Arc::clone(&store);
        running.spawn(async move {
            let outcome = store.execute(&event).await;
            if !matches!(outcome, Outcome::Done(_) | Outcome::AlreadyExists) {
                debug!(key = %event.key, outcome = label(&outcome), "an Event was not written");
            }
        });
    }
    while running.join_next().await.is_some() {}
}

fn label(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done(object) => format!("done at {}", object.version),
        Outcome::Conflict => "conflict".to_owned(),
        Outcome::AlreadyExists => "already exists".to_owned(),
        Outcome::NotFound => "not found".to_owned(),
        Outcome::Refused(why) => format!("refused: {why}"),
        Outcome::NotSent => "not sent".to_owned(),
        Outcome::Unknown(why) => format!("unknown: {why}"),
    }
}
