//! Moves frames between a session's channels and a gRPC stream.

use futures::{Stream, StreamExt};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use crate::convert::Frame;
use crate::parts::{Joiner, cut};

/// Reads messages, joins and decodes them, and hands the frames over, until the stream ends, the taker is gone,
/// or the session is cancelled. Cancels the session at its end, and says why it ended.
pub(crate) async fn read<F: Frame>(
    mut stream: Streaming<F::Message>,
    frames: mpsc::Sender<F>,
    cancel: CancellationToken,
) -> String {
    let mut joiner = Joiner::default();
    let ended = cancel.clone().drop_guard();
    loop {
        let message = tokio::select! {
            () = cancel.cancelled() => return "cancelled".to_owned(),
            message = stream.message() => message,
        };
        let frame = match message {
            Ok(Some(message)) => joiner.take::<F>(message),
            Ok(None) => return "ended by the peer".to_owned(),
            Err(status) => return format!("lost: {}", explain(&status)),
        };
        match frame {
            Ok(None) => {}
            Err(why) => return format!("ended, since the peer broke the rules: {why}"),
            Ok(Some(frame)) => {
                let taken = tokio::select! {
                    () = cancel.cancelled() => false,
                    sent = frames.send(frame) => sent.is_ok(),
                };
                if !taken {
                    drop(ended);
                    return "ended on this side".to_owned();
                }
            }
        }
    }
}

/// The messages of the frames that are put in, until the channel closes or the session is cancelled. A frame
/// that is too large cancels the session.
pub(crate) fn write<F: Frame>(
    frames: mpsc::Receiver<F>,
    cancel: CancellationToken,
) -> impl Stream<Item = F::Message> + Send {
    let on_error = cancel.clone();
    ReceiverStream::new(frames).take_until(cancel.cancelled_owned()).flat_map(move |frame| {
        let messages = cut(frame).unwrap_or_else(|why| {
            tracing::error!(%why, "a frame cannot be sent; the session ends");
            on_error.cancel();
            Vec::new()
        });
        futures::stream::iter(messages)
    })
}

/// A status with the causes below it, which say what really happened.
pub(crate) fn explain(status: &Status) -> String {
    let mut text = match status.message() {
        "" => status.code().to_string(),
        message => format!("{} ({:?})", message, status.code()),
    };
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
