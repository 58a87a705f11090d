//! Frames that are too large for one message travel in parts.
//!
//! One stream carries everything, so a large entry must not hold up a heartbeat for long, and a reader must know
//! before it takes memory how much it may be asked to hold.

use prost::Message;

use crate::convert::{Frame, WireError};
use crate::wire;

/// The most bytes of a frame that travel in one message; larger ones are cut.
pub(crate) const PART: usize = 256 << 10;

/// The most bytes of one message that a reader accepts.
pub const MAX_MESSAGE: usize = PART + (64 << 10);

/// The most bytes of one frame. Objects above etcd's 1.5 MiB do not exist in a cluster.
pub const MAX_FRAME: usize = 4 << 20;

/// The messages that carry a frame: one, or as many parts as it takes.
pub(crate) fn cut<F: Frame>(frame: F) -> Result<Vec<F::Message>, WireError> {
    let name = frame.name();
    let message = frame.encode();
    let bytes = message.encoded_len();
    if bytes <= PART {
        return Ok(vec![message]);
    }
    if bytes > MAX_FRAME {
        return Err(WireError::TooLarge { what: name, bytes, limit: MAX_FRAME });
    }
    let encoded = message.encode_to_vec();
    let count = encoded.len().div_ceil(PART);
    let parts = encoded.chunks(PART).enumerate();
    Ok(parts.map(|(i, data)| F::part(wire::Part { data: data.to_vec(), last: i + 1 == count })).collect())
}

/// Joins parts into frames.
#[derive(Debug, Default)]
pub(crate) struct Joiner {
    buffer: Vec<u8>,
}

impl Joiner {
    /// Takes in a message; gives the frame that it completes, if any.
    pub(crate) fn take<F: Frame>(&mut self, message: F::Message) -> Result<Option<F>, WireError> {
        match F::as_part(message) {
            Ok(part) => self.part::<F>(&part),
            Err(_) if !self.buffer.is_empty() => Err(WireError::Interleaved),
            Err(whole) => F::decode(whole).map(Some),
        }
    }

    fn part<F: Frame>(&mut self, part: &wire::Part) -> Result<Option<F>, WireError> {
        let bytes = self.buffer.len().saturating_add(part.data.len());
        if bytes > MAX_FRAME {
            return Err(WireError::TooLarge { what: "a frame in parts", bytes, limit: MAX_FRAME });
        }
        if part.data.is_empty() {
            return Err(WireError::Missing("the data of a part"));
        }
        self.buffer.extend_from_slice(&part.data);
        if !part.last {
            return Ok(None);
        }
        let whole = std::mem::take(&mut self.buffer);
        let message =
            F::Message::decode(whole.as_slice()).map_err(|why| WireError::Malformed(why.to_string()))?;
        match F::as_part(message) {
            Ok(_) => Err(WireError::Interleaved),
            Err(message) => F::decode(message).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use fairlead_model::PlacementId;
    use fairlead_session::HubFrame;

    use super::*;

    fn message(data: Vec<u8>, last: bool) -> wire::HubMessage {
        HubFrame::part(wire::Part { data, last })
    }

    fn join(joiner: &mut Joiner, message: wire::HubMessage) -> Result<Option<HubFrame>, WireError> {
        joiner.take::<HubFrame>(message)
    }

    #[test]
    fn parts_are_bounded_before_they_are_joined() {
        let mut joiner = Joiner::default();
        let steps = MAX_FRAME / PART;
        for _ in 0..steps {
            assert_eq!(join(&mut joiner, message(vec![0; PART], false)), Ok(None));
        }
        assert!(matches!(join(&mut joiner, message(vec![0], true)), Err(WireError::TooLarge { .. })));
    }

    #[test]
    fn nothing_comes_between_parts_and_nothing_is_empty() {
        let whole = || HubFrame::Withdraw(PlacementId::new("p1-1")).encode();
        let mut joiner = Joiner::default();
        assert_eq!(join(&mut joiner, message(vec![1], false)), Ok(None));
        assert_eq!(join(&mut joiner, whole()), Err(WireError::Interleaved));
        let mut joiner = Joiner::default();
        assert!(matches!(join(&mut joiner, message(Vec::new(), false)), Err(WireError::Missing(_))));
        assert!(matches!(join(&mut joiner, message(vec![0xff; 9], true)), Err(WireError::Malformed(_))));
        let nested = message(whole().encode_to_vec(), true).encode_to_vec();
        assert_eq!(join(&mut joiner, message(nested, true)), Err(WireError::Interleaved));
        assert!(join(&mut joiner, whole()).unwrap().is_some(), "a new frame starts afresh");
    }
}
