//! One end of an open session, as channels.

use std::time::Duration;

use fairlead_session::{HubFrame, SpokeFrame};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How many received frames may wait to be taken; beyond it the peer is slowed by HTTP/2's own flow control.
pub(crate) const FRAMES_IN: usize = 64;

/// How many frames may wait to be sent. More than both windows of the session protocol together, so two ends
/// that both only send cannot block each other.
pub(crate) const FRAMES_OUT: usize = 1024;

/// HTTP/2 flow control: a spoke 200 ms away still gets 5 MiB/s.
pub(crate) const STREAM_WINDOW: u32 = 1 << 20;
pub(crate) const CONNECTION_WINDOW: u32 = 2 << 20;

/// How long [`SessionIo::close`] waits for the peer to take what was sent.
const FLUSH: Duration = Duration::from_secs(1);

/// An open session. When it ends for whatever reason, `frames_in` ends and `cancel` is cancelled.
#[derive(Debug)]
pub struct SessionIo<In, Out> {
    /// Frames from the peer, in order. `None`: the session is over.
    pub frames_in: mpsc::Receiver<In>,
    /// Frames to the peer, in order.
    pub frames_out: mpsc::Sender<Out>,
    /// Cancels the connection at once.
    pub cancel: CancellationToken,
}

/// The gateway's end.
pub type HubIo = SessionIo<SpokeFrame, HubFrame>;

/// The agent's end.
pub type SpokeIo = SessionIo<HubFrame, SpokeFrame>;

impl<In, Out> SessionIo<In, Out> {
    /// Ends the session after what was sent before (such as a `Goodbye`) has been taken by the peer, or after a
    /// second.
    pub async fn close(self) {
        let Self { mut frames_in, frames_out, cancel } = self;
        drop(frames_out);
        let drained = async { while frames_in.recv().await.is_some() {} };
        // Out of time or not: either way the end follows.
        if timeout(FLUSH, drained).await.is_err() {
            tracing::debug!("the peer did not end the session in time");
        }
        cancel.cancel();
    }
}
