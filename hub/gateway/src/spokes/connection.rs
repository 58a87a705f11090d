//! One connection of a spoke, as channels.

use std::collections::VecDeque;

use fairlead_link::HubIo;
use fairlead_session::{HubFrame, SpokeFrame};
use tokio::sync::mpsc;

/// A connection whose first frame has arrived.
#[derive(Debug)]
pub(crate) struct Arrival {
    /// The first frame: a hello, if the spoke keeps to the protocol.
    pub(crate) first: SpokeFrame,
    /// The rest of it.
    pub(crate) io: HubIo,
    /// Last second at which the spoke's certificate is valid.
    pub(crate) certificate_expires: i64,
}

/// What happened on a connection.
#[derive(Debug)]
pub(super) enum Turn {
    /// A frame came.
    Frame(Box<SpokeFrame>),
    /// A waiting frame went out.
    Sent,
    /// It has ended.
    Ended,
}

/// The present connection. Frames wait here when the spoke is slow to take them, so that its task never blocks:
/// there are never more than the protocol's window allows, plus one answer for each frame it sent.
#[derive(Debug)]
pub(super) struct Connection {
    io: HubIo,
    waiting: VecDeque<HubFrame>,
    pub(super) certificate_expires: i64,
}

impl Connection {
    pub(super) const fn new(io: HubIo, certificate_expires: i64) -> Self {
        Self { io, waiting: VecDeque::new(), certificate_expires }
    }

    /// Sends a frame after those that wait.
    pub(super) fn send(&mut self, frame: HubFrame) {
        if !self.waiting.is_empty() {
            self.waiting.push_back(frame);
            return;
        }
        // A closed channel is noticed by `turn`.
        if let Err(mpsc::error::TrySendError::Full(frame)) = self.io.frames_out.try_send(frame) {
            self.waiting.push_back(frame);
        }
    }

    /// Waits for the next thing to happen. May be dropped while it waits: nothing is lost then.
    pub(super) async fn turn(&mut self) -> Turn {
        tokio::select! {
            frame = self.io.frames_in.recv() => frame.map_or(Turn::Ended, |frame| Turn::Frame(Box::new(frame))),
            permit = self.io.frames_out.reserve(), if !self.waiting.is_empty() => match permit {
                Ok(permit) => {
                    if let Some(frame) = self.waiting.pop_front() {
                        permit.send(frame);
                    }
                    Turn::Sent
                }
                Err(_closed) => Turn::Ended,
            },
        }
    }

    /// Ends the connection once what waits has been sent; a spoke that does not take it is not waited for.
    pub(super) fn close(self) {
        let Self { io, waiting, .. } = self;
        for frame in waiting {
            if io.frames_out.try_send(frame).is_err() {
                break;
            }
        }
        tokio::spawn(io.close());
    }

    /// Ends the connection now.
    pub(super) fn cut(self) {
        self.io.cancel.cancel();
    }
}
