//! What the engine is told and what it decides, as a record that can be played again.

use fairlead_engine::record::Recorder;
use fairlead_engine::{Budget, Fact, Plan, Policy, Snapshot};
use fairlead_model::Millis;

use super::Effect;

/// Records one piece after the other. A piece begins with a checkpoint, so that older pieces can be dropped.
#[derive(Debug)]
pub(super) struct Tape {
    /// A piece that has this many bytes is the last but one.
    limit: u64,
    piece: Option<Piece>,
    decisions: u64,
}

#[derive(Debug)]
struct Piece {
    recorder: Recorder,
    /// Nothing of it was handed out yet.
    is_new: bool,
    /// It ends before the next decision when it has this many bytes.
    limit: u64,
}

impl Tape {
    /// A tape in pieces of about this many bytes.
    pub(super) const fn new(limit: u64) -> Self {
        Self { limit, piece: None, decisions: 0 }
    }

    /// Notes a fact. What is absorbed before the first decision is in the first checkpoint.
    pub(super) fn fact(&mut self, fact: &Fact, now: Millis) {
        if let Some(piece) = &mut self.piece {
            piece.recorder.fact(fact, now);
        }
    }

    /// Notes that time has passed.
    pub(super) fn advanced(&mut self, now: Millis) {
        if let Some(piece) = &mut self.piece {
            piece.recorder.advanced(now);
        }
    }

    /// Begins a piece where there is none or the last one is full. What is left of that one is handed out first.
    pub(super) fn before(&mut self, snapshot: Snapshot<'_>, out: &mut Vec<Effect>) {
        if self.piece.as_ref().is_some_and(|piece| piece.recorder.len() < piece.limit) {
            return;
        }
        out.extend(self.take());
        let recorder = Recorder::begin(&snapshot, self.decisions);
        // A checkpoint as large as a piece would leave no room for what follows it.
        let limit = self.limit.max(recorder.len().saturating_mul(2));
        self.piece = Some(Piece { recorder, is_new: true, limit });
    }

    /// Notes a decision that was taken over.
    pub(super) fn decided(&mut self, policy: &Policy, budget: Budget, plan: &Plan) {
        self.decisions = self.decisions.saturating_add(1);
        if let Some(piece) = &mut self.piece {
            piece.recorder.decided(policy, budget, plan);
            piece.recorder.committed();
        }
    }

    /// What was not handed out yet, to be written.
    pub(super) fn take(&mut self) -> Option<Effect> {
        let piece = self.piece.as_mut()?;
        let bytes = piece.recorder.take();
        let begins = std::mem::take(&mut piece.is_new);
        (!bytes.is_empty()).then_some(Effect::Record { begins, bytes })
    }
}
