//! Everything the engine knows.

use fairlead_model::Millis;

use crate::{Fact, Plan, Settings};

/// Whether a fact changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Changed {
    /// It repeated what was known.
    No,
    /// It changed something; a round may decide differently now.
    Yes,
}

/// Everything the engine knows: the facts, what is assumed on top of them, and the queues.
#[derive(Clone, Debug, Default)]
pub struct World {
    settings: Settings,
}

/// An unchanging view of a [`World`] for one decision. It borrows, so it costs nothing and cannot go stale.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'w> {
    #[expect(dead_code, reason = "read by the first working decide")]
    world: &'w World,
}

impl World {
    /// A world that knows nothing yet.
    pub fn new(settings: Settings) -> Self {
        Self { settings }
    }

    /// Takes in one fact. `now` is the wall clock: backoffs and admission fair sharing depend on it.
    pub fn absorb(&mut self, fact: Fact, now: Millis) -> Changed {
        let _ = (fact, now, &self.settings);
        Changed::No
    }

    /// Takes over a plan: what it admits counts as reserved, what it evicts as evicted, and what it remembers is kept.
    pub fn commit(&mut self, plan: &Plan) {
        let _ = plan;
    }

    /// A view for one decision. Settles what earlier facts left to be computed, hence `&mut`.
    pub fn snapshot(&mut self) -> Snapshot<'_> {
        Snapshot { world: self }
    }

    /// When the next backoff ends: a round is due then even if no fact arrives.
    pub fn next_wake(&self) -> Option<Millis> {
        None
    }
}
