//! Timers: when to look at something again. They carry no meaning of their own; what is due is worked out from the
//! record then.

use std::collections::BTreeSet;

use fairlead_model::{Millis, ObjectKey, RunId, SpokeId};

use super::Brain;
use crate::ports::Kind;

/// What is to be looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wake {
    Run(RunId),
    Spoke(SpokeId),
    Upkeep(Kind, ObjectKey),
}

/// Timers in order of time, on the monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct Wakes(BTreeSet<(Millis, Wake)>);

impl Wakes {
    /// Moves the timer of one thing from `old` to `new`.
    pub(crate) fn reset(&mut self, what: &Wake, old: Option<Millis>, new: Option<Millis>) {
        if old == new {
            return;
        }
        if let Some(old) = old {
            self.0.remove(&(old, what.clone()));
        }
        if let Some(new) = new {
            self.0.insert((new, what.clone()));
        }
    }

    pub(crate) fn first(&self) -> Option<Millis> {
        self.0.first().map(|(at, _)| *at)
    }

    fn pop_due(&mut self, now: Millis) -> Option<Wake> {
        if self.first()? > now {
            return None;
        }
        self.0.pop_first().map(|(_, what)| what)
    }
}

impl Brain {
    /// Lets the engine see the time, before it is told anything new: backoffs end by it.
    pub(crate) fn advance_engine(&mut self) {
        if self.world.next_wake().is_none_or(|wall| wall > self.now.wall) {
            return;
        }
        if let Some(tape) = &mut self.tape {
            tape.advanced(self.now.wall);
        }
        if self.world.advance(self.now.wall) == fairlead_engine::Changed::Yes {
            self.undecided = true;
        }
    }

    /// Looks at everything whose time has come.
    pub(crate) fn fire_wakes(&mut self) {
        while let Some(wake) = self.wakes.pop_due(self.now.mono) {
            match wake {
                Wake::Run(id) => {
                    self.with_run(&id, |_, run| run.wake = None);
                    self.dirty.insert(id);
                }
                Wake::Spoke(id) => {
                    if let Some(spoke) = self.spokes.get_mut(&id) {
                        spoke.wake = None;
                    }
                    self.spoke_changed(&id);
                }
                Wake::Upkeep(kind, key) => self.sums.touch(kind, key),
            }
        }
    }
}
