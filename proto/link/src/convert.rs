//! Between the protocol's values and what goes over the wire.
//!
//! Encoding cannot fail. Decoding treats the peer as a stranger: what is missing or impossible is an error that
//! ends the session, never a default that means something. Only where a newer peer may know more than we do,
//! and every answer to it is the same, an unknown value becomes the safe one.

mod common;
mod hub;
mod report;
mod spoke;
#[cfg(test)]
mod tests;

use fairlead_session::BucketHashes;

use crate::wire;

/// Why a message is not a frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// Something that every such message has is not there.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// It is not protobuf.
    #[error("a message cannot be read: {0}")]
    Malformed(String),
    /// It is larger than the limit.
    #[error("{what} has {bytes} bytes, more than the {limit} allowed")]
    TooLarge {
        /// What.
        what: &'static str,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Something else came between the parts of a frame.
    #[error("a frame came in parts, and something else between them")]
    Interleaved,
    /// A shape refers to a node class that is not there.
    #[error("shape refers to node class {index}, of {count}")]
    NoSuchClass {
        /// The position it names.
        index: u32,
        /// How many there are.
        count: usize,
    },
}

/// A frame of one direction, with its message.
pub(crate) trait Frame: Sized + Send + 'static {
    /// The generated type.
    type Message: prost::Message + Default + Send + 'static;

    /// For errors.
    fn name(&self) -> &'static str;
    /// To the wire.
    fn encode(self) -> Self::Message;
    /// From the wire; the message is not a part.
    fn decode(message: Self::Message) -> Result<Self, WireError>;
    /// A message that carries a part of a frame.
    fn part(part: wire::Part) -> Self::Message;
    /// The part that a message carries, or the message back.
    fn as_part(message: Self::Message) -> Result<wire::Part, Self::Message>;
}

/// The most bucket hashes that are read. The present protocol has 64.
const MAX_BUCKETS: usize = 4096;

fn hashes(wire: Vec<u64>) -> Result<BucketHashes, WireError> {
    if wire.len() > MAX_BUCKETS {
        return Err(WireError::TooLarge { what: "bucket hashes", bytes: wire.len(), limit: MAX_BUCKETS });
    }
    Ok(BucketHashes(wire))
}

fn present<T>(value: Option<T>, what: &'static str) -> Result<T, WireError> {
    value.ok_or(WireError::Missing(what))
}
