//! A hash of map entries that both ends compute alike: FNV-1a over a canonical encoding.
//!
//! It is not a defence against forgery (the peer is authenticated, and would only deceive itself); it tells
//! which entries have changed. Numbers are hashed as eight little-endian bytes, texts and byte strings after
//! their length, variants after their number, so that no two values share an encoding.

use crate::message::{Command, CopyState, CopyStatus, Desired, Intent, Observation, StopCause, Terminal};
use fairlead_model::PlacementId;

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// A value with a canonical encoding.
pub(crate) trait Canonical {
    /// Feeds the encoding to the hash.
    fn digest(&self, hash: &mut Digest);
}

/// FNV-1a, 64 bits.
#[derive(Debug)]
pub(crate) struct Digest(u64);

impl Digest {
    /// Hash of an entry of a map.
    pub(crate) fn of_entry(key: &PlacementId, value: &impl Canonical) -> u64 {
        let mut hash = Self(OFFSET);
        hash.text(key.as_str());
        value.digest(&mut hash);
        hash.finish()
    }

    /// Hash of a key alone, from which its bucket is taken.
    pub(crate) fn of_key(key: &PlacementId) -> u64 {
        let mut hash = Self(OFFSET);
        hash.text(key.as_str());
        hash.finish()
    }

    fn number(&mut self, value: u64) {
        self.raw(&value.to_le_bytes());
    }

    fn signed(&mut self, value: i64) {
        self.raw(&value.to_le_bytes());
    }

    fn text(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }

    fn bytes(&mut self, value: &[u8]) {
        // A length that no memory can hold would be cut, which only makes two such entries look alike.
        self.number(u64::try_from(value.len()).unwrap_or(u64::MAX));
        self.raw(value);
    }

    fn optional<T>(&mut self, value: Option<&T>, each: impl FnOnce(&mut Self, &T)) {
        self.number(u64::from(value.is_some()));
        if let Some(value) = value {
            each(self, value);
        }
    }

    fn raw(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
    }

    /// Spreads the low entropy of short inputs over all bits, so that XOR over entries keeps it.
    const fn finish(self) -> u64 {
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }
}

impl Canonical for Command {
    fn digest(&self, hash: &mut Digest) {
        hash.text(self.run.as_str());
        hash.number(self.epoch.term.0);
        hash.number(self.epoch.seq);
        hash.number(self.revision);
        match &self.desired {
            Desired::Prepare(intent) => {
                hash.number(1);
                intent.digest(hash);
            }
            Desired::Start(intent) => {
                hash.number(2);
                intent.digest(hash);
            }
            Desired::Keep => hash.number(3),
            Desired::Stop(cause) => {
                hash.number(4);
                hash.number(match cause {
                    StopCause::Deleted => 1,
                    StopCause::Evicted => 2,
                    StopCause::Retired => 3,
                    StopCause::Superseded => 4,
                });
            }
        }
    }
}

impl Canonical for Intent {
    fn digest(&self, hash: &mut Digest) {
        hash.text(&self.kind);
        hash.text(&self.namespace);
        hash.text(&self.name);
        hash.bytes(&self.manifest);
        hash.number(u64::try_from(self.demand.len()).unwrap_or(u64::MAX));
        for demand in &self.demand {
            hash.number(u64::from(demand.count));
            for (name, amount) in demand.requests.iter() {
                hash.text(name);
                hash.signed(amount);
            }
            // Ends the list of resources: no resource has an empty name.
            hash.text("");
        }
    }
}

impl Canonical for Observation {
    fn digest(&self, hash: &mut Digest) {
        hash.text(self.run.as_str());
        hash.number(self.epoch.term.0);
        hash.number(self.epoch.seq);
        hash.number(self.boot);
        hash.number(self.version);
        hash.text(&self.namespace);
        hash.text(&self.name);
        match &self.state {
            CopyState::Accepted => hash.number(1),
            CopyState::Refused(refusal) => {
                hash.number(2);
                hash.text(refusal.reason.token());
                hash.text(&refusal.detail);
            }
            CopyState::Live(status) => {
                hash.number(3);
                status.digest(hash);
            }
            CopyState::Stopping(status) => {
                hash.number(4);
                status.digest(hash);
            }
            CopyState::Stopped(status) => {
                hash.number(5);
                status.digest(hash);
            }
            CopyState::Vanished => hash.number(6),
        }
    }
}

impl Canonical for CopyStatus {
    fn digest(&self, hash: &mut Digest) {
        for count in [self.active, self.ready, self.terminating, self.succeeded, self.failed] {
            hash.number(u64::from(count));
        }
        hash.text(&self.completed_indexes);
        hash.text(&self.failed_indexes);
        hash.optional(self.start_time.as_ref(), |hash, time| hash.signed(time.0));
        hash.optional(self.terminal.as_ref(), |hash, terminal| terminal.digest(hash));
    }
}

impl Canonical for Terminal {
    fn digest(&self, hash: &mut Digest) {
        hash.number(u64::from(self.succeeded));
        hash.text(&self.reason);
        hash.text(&self.message);
        hash.optional(self.completion_time.as_ref(), |hash, time| hash.signed(time.0));
    }
}
