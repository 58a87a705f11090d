//! What the engine was told and what it decided, as bytes that can be played again.
//!
//! A [`Recorder`] begins with a checkpoint of the world and writes down every fact, decision and commit after it.
//! [`replay`] makes the world again, decides again and compares: the same engine on the same record gives the same
//! plans. What rounds remember is part of the checkpoint, so a record may begin anywhere, and older ones can be dropped.
//!
//! # Format, version 1
//!
//! ```text
//! record = "FLRR" version entry*            version: number
//! entry  = length payload checksum          length: number, of the payload in bytes
//! ```
//!
//! * A *number* is written in groups of seven bits, the lowest first; the high bit of a byte says that more follow.
//!   Signed ones have their sign in the lowest bit.
//! * A *text* is 0, its length and its UTF-8 where it first occurs in the record, and its position among those (from 1)
//!   afterwards.
//! * A struct is its fields in order, a list or map its length and its items, an option 0 or 1 and the value, an enum
//!   the number of the variant and what it holds. `record/facts.rs` and `record/plans.rs` list them.
//! * The *checksum* is FNV-1a, 64 bits, lowest byte first, over everything in the record before it.
//! * The first payload is 0 (begin): number of the first decision, settings, checkpoint. Then 1 time fact; 2 time
//!   (time passed); 3 (use was sampled); 4 policy time budget hash (decided); 5 (the last decision was committed).
//!
//! Any change of this, or of what a fact says, is a new version.

use std::fmt;

use fairlead_model::Millis;

use crate::{Budget, Fact, Plan, Policy, Snapshot};

mod facts;
mod hash;
mod plans;
mod play;
pub(crate) mod wire;

pub use plans::plan_hash;
pub use play::{Decided, Player, Report, replay};

use hash::Checksum;
use wire::{Put, Writer};

/// What every record begins with.
const MAGIC: &[u8] = b"FLRR";
/// The version that is written and read.
pub const VERSION: u64 = 1;

/// Why a record cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It does not begin as a record does.
    NotARecord,
    /// It has a version that this program does not know.
    Version(u64),
    /// It ends within an entry: the writer was interrupted, or the end is lost.
    Truncated,
    /// An entry is not what was written.
    Checksum,
    /// An entry makes no sense.
    Malformed,
    /// An entry stands where it must not: nothing has begun, or nothing was decided.
    OutOfOrder,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotARecord => f.write_str("this is no record of decisions"),
            Self::Version(version) => {
                write!(f, "the record has version {version}; this program reads {VERSION}")
            }
            Self::Truncated => f.write_str("the record ends within an entry"),
            Self::Checksum => f.write_str("the record is damaged"),
            Self::Malformed => f.write_str("an entry of the record makes no sense"),
            Self::OutOfOrder => f.write_str("an entry of the record stands where it must not"),
        }
    }
}

impl std::error::Error for Fault {}

/// The kinds of entries.
mod kind {
    pub(super) const BEGIN: u128 = 0;
    pub(super) const FACT: u128 = 1;
    pub(super) const ADVANCE: u128 = 2;
    pub(super) const SAMPLE: u128 = 3;
    pub(super) const DECIDE: u128 = 4;
    pub(super) const COMMIT: u128 = 5;
}

/// Writes a record. Bytes are handed out with [`Recorder::take`]; nothing is kept but the texts that were written.
#[derive(Clone, Debug)]
pub struct Recorder {
    out: Writer,
    sum: Checksum,
    ready: Vec<u8>,
    written: u64,
    decisions: u64,
}

impl Recorder {
    /// Begins a record with everything that the world knows, where a decision on this very snapshot comes next.
    /// `decisions` is its number.
    pub fn begin(snapshot: &Snapshot<'_>, decisions: u64) -> Self {
        let mut head = Writer::default();
        head.number(u128::from(VERSION));
        let mut recorder = Self {
            out: Writer::default(),
            sum: Checksum::default(),
            ready: Vec::new(),
            written: 0,
            decisions,
        };
        recorder.append(MAGIC);
        recorder.append(&head.bytes);
        recorder.entry(kind::BEGIN, |out| {
            decisions.put(out);
            snapshot.world.settings.put(out);
            snapshot.world.checkpoint().put(out);
        });
        recorder
    }

    /// A fact was absorbed.
    pub fn fact(&mut self, fact: &Fact, now: Millis) {
        self.entry(kind::FACT, |out| {
            now.put(out);
            fact.put(out);
        });
    }

    /// Time has passed.
    pub fn advanced(&mut self, now: Millis) {
        self.entry(kind::ADVANCE, |out| now.put(out));
    }

    /// The use of LocalQueues was sampled.
    pub fn sampled(&mut self) {
        self.entry(kind::SAMPLE, |_| {});
    }

    /// A plan was decided.
    pub fn decided(&mut self, policy: &Policy, budget: Budget, plan: &Plan) {
        self.decisions = self.decisions.saturating_add(1);
        self.entry(kind::DECIDE, |out| {
            policy.put(out);
            plan.at.put(out);
            budget.put(out);
            plan_hash(plan).put(out);
        });
    }

    /// The plan that was decided last was taken over.
    pub fn committed(&mut self) {
        self.entry(kind::COMMIT, |_| {});
    }

    /// Bytes that were not handed out yet.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.ready)
    }

    /// Bytes that the record has so far, those handed out included.
    pub const fn len(&self) -> u64 {
        self.written
    }

    /// Never: a record begins with a checkpoint.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// The number of the next decision.
    pub const fn decisions(&self) -> u64 {
        self.decisions
    }

    fn entry(&mut self, kind: u128, body: impl FnOnce(&mut Writer)) {
        self.out.number(kind);
        body(&mut self.out);
        let payload = std::mem::take(&mut self.out.bytes);
        let mut length = Writer::default();
        length.count(payload.len());
        self.append(&length.bytes);
        self.append(&payload);
        let sum = self.sum.bytes();
        self.append(&sum);
        // The buffer is used again.
        self.out.bytes = payload;
        self.out.bytes.clear();
    }

    fn append(&mut self, bytes: &[u8]) {
        self.sum.add(bytes);
        self.ready.extend_from_slice(bytes);
        self.written = self.written.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    }
}
