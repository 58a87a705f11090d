//! The line to the hub: down, being dialled, or up.

use std::time::Duration;

use fairlead_link::SpokeIo;
use fairlead_link::client::{Dialer, after_goodbye, delay, dial_until_up};
use fairlead_runtime::entropy;
use fairlead_session::{HubFrame, SpokeFrame};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

/// How long the line may refuse to take a frame before it counts as broken. It has room for more than both
/// windows, so it is full only when nothing gets through.
const SEND_PATIENCE: Duration = Duration::from_secs(5);
/// How many frames are taken at once.
const BATCH: usize = 256;

/// What the line brings.
#[derive(Debug)]
pub(super) enum Word {
    /// It is up.
    Connected,
    /// These frames have come.
    Frames(Vec<HubFrame>),
    /// It is down.
    Ended,
}

/// The line.
#[derive(Debug)]
pub(super) struct Line {
    dialer: Dialer,
    state: State,
    /// Sessions in a row that ended before they were established, and since when.
    failures: Option<(Instant, u32)>,
}

#[derive(Debug)]
enum State {
    Down,
    Dialling(JoinHandle<Option<SpokeIo>>, DropGuard),
    Up(SpokeIo),
}

impl Line {
    /// A line that is down.
    pub(super) const fn new(dialer: Dialer) -> Self {
        Self { dialer, state: State::Down, failures: None }
    }

    /// Whether nobody is dialling yet.
    pub(super) const fn is_down(&self) -> bool {
        matches!(self.state, State::Down)
    }

    /// Starts to dial, no sooner than the last failures allow.
    pub(super) fn dial(&mut self) {
        let wait = self
            .failures
            .map_or(Duration::ZERO, |(since, count)| delay(since.elapsed(), count, entropy::below(u64::MAX)));
        self.dial_after(wait);
    }

    fn dial_after(&mut self, wait: Duration) {
        let stop = CancellationToken::new();
        let (dialer, stopping) = (self.dialer.clone(), stop.clone());
        let dialling = tokio::spawn(async move {
            sleep(wait).await;
            dial_until_up(&dialer, || entropy::below(u64::MAX), stopping).await
        });
        self.state = State::Dialling(dialling, stop.drop_guard());
    }

    /// Waits for what comes next; for ever while the line is down. May be dropped while it waits.
    pub(super) async fn next(&mut self) -> Word {
        match &mut self.state {
            State::Down => std::future::pending().await,
            State::Dialling(dialling, _guard) => {
                if let Ok(Some(io)) = dialling.await {
                    self.state = State::Up(io);
                    Word::Connected
                } else {
                    self.state = State::Down;
                    Word::Ended
                }
            }
            State::Up(io) => {
                let mut frames = Vec::new();
                if io.frames_in.recv_many(&mut frames, BATCH).await == 0 {
                    Word::Ended
                } else {
                    Word::Frames(frames)
                }
            }
        }
    }

    /// Sends frames in order. False: the line is broken.
    pub(super) async fn send(&self, frames: Vec<SpokeFrame>) -> bool {
        let State::Up(io) = &self.state else { return true };
        for frame in frames {
            if !matches!(timeout(SEND_PATIENCE, io.frames_out.send(frame)).await, Ok(Ok(()))) {
                return false;
            }
        }
        true
    }

    /// Sends what there is room for, without waiting: the last words of a session.
    pub(super) fn send_now(&self, frames: Vec<SpokeFrame>) {
        let State::Up(io) = &self.state else { return };
        for frame in frames {
            if io.frames_out.try_send(frame).is_err() {
                return;
            }
        }
    }

    /// The session is up: failures before it no longer count.
    pub(super) const fn succeeded(&mut self) {
        self.failures = None;
    }

    /// Drops the line; the next one is dialled later.
    pub(super) fn drop_line(&mut self, established: bool) {
        self.failures = match self.failures {
            _ if established => None,
            None => Some((Instant::now(), 0)),
            Some((since, count)) => Some((since, count.saturating_add(1))),
        };
        if let State::Up(io) = std::mem::replace(&mut self.state, State::Down) {
            io.cancel.cancel();
        }
    }

    /// Closes the line when what was sent has been taken, and comes back when the hub said.
    pub(super) fn close(&mut self, retry_after_ms: u32) {
        if let State::Up(io) = std::mem::replace(&mut self.state, State::Down) {
            tokio::spawn(io.close());
        }
        let count = self.failures.map_or(0, |(_, count)| count.saturating_add(1));
        let since = self.failures.map_or_else(Instant::now, |(since, _)| since);
        self.failures = Some((since, count));
        let own = delay(since.elapsed(), count, entropy::below(u64::MAX));
        let asked = after_goodbye(Duration::from_millis(retry_after_ms.into()), entropy::below(u64::MAX));
        self.dial_after(own.max(asked));
    }

    /// Ends the line for good, after what was sent has been taken.
    pub(super) async fn end(self) {
        if let State::Up(io) = self.state {
            io.close().await;
        }
    }
}
