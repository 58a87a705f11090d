//! The hub's crash points that lie in the pump. Without the feature `crash-points` all of it is empty.

use crate::brain::{Effect, Input};

#[cfg(feature = "crash-points")]
mod points {
    use std::collections::{BTreeMap, BTreeSet};

    use fairlead_model::PlacementId;
    use fairlead_runtime::{CrashPoint, crash_point};
    use fairlead_session::CopyState;

    use super::{Effect, Input};
    use crate::ports::{OpId, Outcome, SpokeEvent};

    /// Remembers which write is a commit and which observation is a result.
    #[derive(Debug)]
    pub(in super::super) struct Crashes {
        commits: BTreeSet<OpId>,
        results: BTreeMap<PlacementId, (u64, u64)>,
    }

    impl Crashes {
        /// With nothing seen.
        pub(in super::super) const fn new() -> Self {
            Self { commits: BTreeSet::new(), results: BTreeMap::new() }
        }

        /// Before the brain takes an input.
        pub(in super::super) fn before(&mut self, input: &Input) {
            match input {
                Input::Outcome(id, Outcome::Done(_)) if self.commits.remove(id) => {
                    crash_point(CrashPoint::HubAfterCommit);
                }
                Input::Spoke(_, SpokeEvent::Observed(placement, seen)) => match &seen.state {
                    CopyState::Accepted => crash_point(CrashPoint::HubAfterAcceptance),
                    CopyState::Live(status) | CopyState::Stopping(status) | CopyState::Stopped(status)
                        if status.terminal.is_some() =>
                    {
                        self.results.insert(placement.clone(), (seen.boot, seen.version));
                    }
                    CopyState::Live(_)
                    | CopyState::Stopping(_)
                    | CopyState::Stopped(_)
                    | CopyState::Refused(_)
                    | CopyState::Vanished => {}
                },
                _ => {}
            }
        }

        /// Before an effect is carried out.
        pub(in super::super) fn effect(&mut self, effect: &Effect) {
            match effect {
                Effect::Store(request) if request.commit => {
                    self.commits.insert(request.id);
                }
                Effect::Acknowledge { ack, .. }
                    if self.results.get(&ack.placement) == Some(&(ack.boot, ack.version)) =>
                {
                    crash_point(CrashPoint::HubAfterResult);
                }
                _ => {}
            }
        }
    }
}

#[cfg(not(feature = "crash-points"))]
mod points {
    use super::{Effect, Input};

    /// Nothing to remember.
    #[derive(Debug)]
    pub(in super::super) struct Crashes;

    #[expect(clippy::unused_self, reason = "the same shape as with crash points")]
    impl Crashes {
        /// With nothing seen.
        pub(in super::super) const fn new() -> Self {
            Self
        }

        /// Before the brain takes an input.
        pub(in super::super) const fn before(&mut self, _input: &Input) {}

        /// Before an effect is carried out.
        pub(in super::super) const fn effect(&mut self, _effect: &Effect) {}
    }
}

pub(super) use points::Crashes;
