//! What a placement is.

use std::sync::Arc;

use fairlead_model::{Epoch, Millis, PlacementId, Reason, RunId, SpokeId};

/// Who promised what to whom.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Promise {
    /// The run that is promised a place.
    pub run: RunId,
    /// The spoke that is to run it.
    pub spoke: SpokeId,
    /// When the promise was made.
    pub epoch: Epoch,
}

impl Promise {
    /// The placement's id, made from its epoch.
    pub fn id(&self) -> PlacementId {
        PlacementId::of(self.epoch)
    }
}

/// Why a copy is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopCause {
    /// The user's job was deleted.
    Deleted,
    /// The workload was evicted or its queue stopped.
    Evicted,
    /// The result is durable and its retention is over.
    Retired,
}

/// How a placement ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closing {
    /// Given up before anything was started.
    Released,
    /// The spoke did not answer `Prepare` in time; nothing was started.
    NoAnswer,
    /// The spoke refused and holds nothing of it.
    Refused {
        /// The token.
        reason: Reason,
        /// What the spoke said.
        detail: Arc<str>,
    },
    /// The spoke proved that nothing of it runs any more.
    Stopped,
}

/// Where a placement stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// `Prepare` is in force; nothing has happened anywhere.
    Preparing {
        /// Monotonic time at which the spoke counts as silent.
        deadline: Millis,
    },
    /// The spoke holds room; the commit is due or being written.
    Accepted,
    /// The commit is durable; `Start` is in force, or due once the spoke's inventory is known.
    Starting,
    /// The copy exists.
    Running,
    /// The copy has ended.
    Finished {
        /// Whether its result is durable on the hub.
        stored: bool,
    },
    /// The copy went away without our order, and nothing proves that its containers stopped.
    Vanished,
    /// A stop is ordered and not proven yet.
    Stopping(StopCause),
    /// Over. Nothing of it can run.
    Closed(Closing),
}

impl State {
    /// Whether the hub has promised, durably, that the run may run there.
    pub const fn is_committed(&self) -> bool {
        match self {
            Self::Starting | Self::Running | Self::Finished { .. } | Self::Vanished | Self::Stopping(_) => {
                true
            }
            Self::Preparing { .. } | Self::Accepted | Self::Closed(_) => false,
        }
    }

    /// Whether it is over.
    pub const fn is_closed(&self) -> bool {
        matches!(self, Self::Closed(_))
    }
}

/// What the hub orders. Each replaces the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    /// Hold room, without effect.
    Prepare,
    /// Create the copy.
    Start,
    /// Leave the copy as it is.
    Keep,
    /// Delete the copy and prove that it stopped.
    Stop(StopCause),
}

/// Which observation of the spoke this was, so that it can be acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// The agent's boot count.
    pub boot: u64,
    /// Grows with each change within a boot.
    pub version: u64,
}

/// What the spoke says it has of this placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sighting {
    /// Room is held.
    Accepted,
    /// `Prepare` or `Start` was refused and nothing of it exists.
    Refused {
        /// The token.
        reason: Reason,
        /// What the spoke said.
        detail: Arc<str>,
    },
    /// The copy exists and has not ended.
    Live,
    /// The copy exists and has ended.
    Ended,
    /// The copy is being deleted.
    Stopping,
    /// No copy exists and its containers have terminated.
    Stopped {
        /// Whether it had ended by itself before.
        ended: bool,
    },
    /// No copy exists, and nothing proves that its containers terminated.
    Vanished,
}

/// What a new leader knows of a placement from the hub's own objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restored {
    /// The commit is durable; whether it was started is not known.
    Committed,
    /// A copy has been seen.
    Seen,
    /// The result is durable.
    Finished,
    /// The run's job is gone: it is to be stopped.
    Deleted,
}

/// One promise and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    pub(crate) promise: Promise,
    pub(crate) state: State,
    pub(crate) order: Option<Order>,
    pub(crate) owed: Option<Mark>,
}

impl Placement {
    /// A new promise. Nothing is ordered before the first [`step`](crate::step) with
    /// [`Event::Begin`](crate::Event::Begin).
    pub const fn new(promise: Promise) -> Self {
        let state = State::Preparing { deadline: Millis(i64::MAX) };
        Self { promise, state, order: None, owed: None }
    }

    /// A promise that an earlier leader made. Nothing is ordered until the spoke's inventory is known.
    pub const fn restored(promise: Promise, known: Restored) -> Self {
        let state = match known {
            Restored::Committed => State::Starting,
            Restored::Seen => State::Running,
            Restored::Finished => State::Finished { stored: true },
            Restored::Deleted => State::Stopping(StopCause::Deleted),
        };
        Self { promise, state, order: None, owed: None }
    }

    /// The promise.
    pub const fn promise(&self) -> &Promise {
        &self.promise
    }

    /// Where it stands.
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// The order in force.
    pub const fn order(&self) -> Option<Order> {
        self.order
    }
}
