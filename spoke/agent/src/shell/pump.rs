//! The one task that owns the machine.

use std::sync::Arc;
use std::time::Duration;

use fairlead_link::client::Dialer;
use fairlead_model::Millis;
use fairlead_runtime::clock;
use fairlead_session::{SpokeFrame, SpokeInput};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::crash;
use super::floor::Floors;
use super::inbox::{Arrival, Inbox};
use super::lanes::Lanes;
use super::line::{Line, Word};
use crate::core::Input;
use crate::machine::{Action, Event, Machine};
use crate::ports::Store;

/// Nobody can bring any input.
#[derive(Debug, thiserror::Error)]
#[error("every source of input is gone")]
pub(super) struct Deserted;

/// Drives the machine: input in, its turn when that is drained, actions out.
#[derive(Debug)]
pub(super) struct Pump<S> {
    machine: Machine,
    inbox: Inbox,
    lanes: Lanes<S>,
    line: Line,
    /// Frames of this round, sent together at its end.
    frames: Vec<SpokeFrame>,
}

impl<S: Store> Pump<S> {
    /// A pump. `inbox` comes with its other end, for the outcomes of operations.
    pub(super) fn new(
        machine: Machine,
        inbox: (mpsc::Sender<Arrival>, Inbox),
        store: Arc<S>,
        floors: Arc<Floors>,
        dialer: Dialer,
    ) -> Self {
        let (sender, inbox) = inbox;
        let lanes = Lanes::new(store, floors, sender);
        Self { machine, inbox, lanes, line: Line::new(dialer), frames: Vec::new() }
    }

    /// Runs until cancelled; then waits for the operations that are under way.
    pub(super) async fn run(mut self, stop: CancellationToken) -> Result<(), Deserted> {
        let end = loop {
            let wake = self.machine.next_wake();
            tokio::select! {
                () = stop.cancelled() => break Ok(()),
                batch = self.inbox.take() => {
                    if batch.is_empty() {
                        break Err(Deserted);
                    }
                    for arrival in batch {
                        self.arrival(arrival);
                    }
                }
                word = self.line.next() => self.word(word),
                () = until(wake) => self.tick(),
            }
            self.handle(Event::Core(Input::Turn));
            self.flush().await;
            if self.line.is_down() && self.machine.may_connect() {
                self.line.dial();
            }
        };
        let Self { line, lanes, inbox, .. } = self;
        drop(inbox);
        line.end().await;
        lanes.close().await;
        end
    }

    fn arrival(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Input(input) => self.handle(Event::Core(input)),
            Arrival::Floor(floor, Ok(())) => self.handle(Event::Session(SpokeInput::FloorStored(floor))),
            Arrival::Floor(floor, Err(why)) => {
                tracing::error!(term = floor.term.0, %why, "the floor could not be stored; the session ends");
                self.hang_up();
            }
        }
    }

    fn word(&mut self, word: Word) {
        match word {
            Word::Connected => self.handle(Event::Session(SpokeInput::Connected)),
            Word::Frames(frames) => {
                for frame in frames {
                    crash::received(&frame);
                    self.handle(Event::Session(SpokeInput::Frame(frame)));
                }
            }
            Word::Ended => self.hang_up(),
        }
    }

    fn tick(&mut self) {
        self.handle(Event::Session(SpokeInput::Tick));
        self.handle(Event::Core(Input::Tick));
    }

    fn hang_up(&mut self) {
        self.frames.clear();
        self.line.drop_line(self.machine.established());
        self.handle(Event::Session(SpokeInput::Disconnected));
    }

    fn handle(&mut self, event: Event) {
        for action in self.machine.handle(event, clock::now()) {
            match action {
                Action::Send(frame) => {
                    crash::about_to_send(&frame);
                    self.frames.push(frame);
                }
                Action::Store(request) => self.lanes.start(request),
                Action::StoreFloor(floor) => self.lanes.store_floor(floor),
                Action::Close(goodbye) => {
                    tracing::warn!(reason = %goodbye.reason, detail = %goodbye.detail, "session closed");
                    self.close_after(goodbye.retry_after_ms);
                }
            }
        }
        if self.machine.established() {
            self.line.succeeded();
        }
    }

    /// Closes the line behind the frames of this round.
    fn close_after(&mut self, retry_after_ms: u32) {
        let frames = std::mem::take(&mut self.frames);
        self.line.send_now(frames);
        self.line.close(retry_after_ms);
    }

    async fn flush(&mut self) {
        let frames = std::mem::take(&mut self.frames);
        if !frames.is_empty() && !self.line.send(frames).await {
            tracing::warn!("the line to the hub takes no more frames; hanging up");
            self.hang_up();
        }
    }
}

/// Waits until the monotonic clock shows `wake`; for ever without one.
async fn until(wake: Option<Millis>) {
    match wake {
        Some(wake) => {
            let left = u64::try_from(wake.since(clock::now().mono)).unwrap_or(0);
            tokio::time::sleep(Duration::from_millis(left)).await;
        }
        None => std::future::pending().await,
    }
}
