//! The transitions.

use std::sync::Arc;

use fairlead_model::{Millis, Now};

use crate::state::{Closing, Mark, Order, Placement, Sighting, State, StopCause};

/// How long a spoke has to answer `Prepare`, in milliseconds.
pub const ANSWER_MS: i64 = 2_000;

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The first event of a new placement: prepare it.
    Begin,
    /// The spoke said what it has.
    Seen(Sighting, Mark),
    /// The spoke's inventory is complete: it does, or does not, have an entry of this placement.
    Inventory {
        /// Whether there is one.
        present: bool,
    },
    /// The commit is durable.
    Committed,
    /// The commit will not be written, or no start may follow it. Only before the first `Start`.
    Abandon,
    /// What was to be made durable is: a result, or the proof of a stop.
    Stored,
    /// The copy is to be stopped.
    Stop(StopCause),
    /// The session ended: `Prepare` and `Start` are void.
    Disconnected,
    /// The spoke has shown that it does not answer.
    Silent,
    /// Time has passed.
    Tick,
}

/// What is to be done. The order of a list is the order of doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// Set the command of this placement.
    Order(Order),
    /// Remove it.
    Withdraw,
    /// Write the commit.
    Commit,
    /// Make the result durable, then say [`Event::Stored`].
    StoreResult,
    /// The copy vanished: tell people. Its quota stays held.
    ReportVanished,
    /// Acknowledge this observation.
    Acknowledge(Mark),
    /// It is closed: quota and name are free once the hub's own objects say so; then say [`Event::Stored`].
    Release,
}

/// What a step gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The placement after the event.
    pub next: Placement,
    /// What follows from it.
    pub effects: Vec<Effect>,
}

/// Feeds one event to a placement.
///
/// Events that do not apply to its state change nothing: late answers, repeated sightings and orders that came
/// too late are all of that sort.
pub fn step(placement: Placement, event: &Event, now: Now) -> Step {
    let mut step = Step { next: placement, effects: Vec::new() };
    match event {
        Event::Begin => step.begin(now.mono),
        Event::Seen(sighting, mark) => step.seen(sighting, *mark),
        Event::Inventory { present } => step.inventory(*present),
        Event::Committed if step.next.state == State::Accepted => {
            step.next.state = State::Starting;
            step.order(Order::Start);
        }
        Event::Abandon => step.abandon(Closing::Released),
        Event::Stored => step.stored(),
        Event::Stop(cause) => step.stop(*cause),
        Event::Disconnected => step.disconnected(),
        Event::Silent if matches!(step.next.state, State::Preparing { .. }) => {
            step.abandon(Closing::NoAnswer);
        }
        Event::Tick => step.tick(now.mono),
        Event::Committed | Event::Silent => {}
    }
    step
}

impl Step {
    fn order(&mut self, order: Order) {
        self.next.order = Some(order);
        self.effects.push(Effect::Order(order));
    }

    fn withdraw(&mut self) {
        if self.next.order.take().is_some() {
            self.effects.push(Effect::Withdraw);
        }
    }

    fn close(&mut self, how: Closing) {
        self.withdraw();
        self.next.state = State::Closed(how);
        self.effects.push(Effect::Release);
    }

    fn begin(&mut self, now: Millis) {
        if matches!(self.next.state, State::Preparing { .. }) && self.next.order.is_none() {
            self.next.state = State::Preparing { deadline: now.plus(ANSWER_MS) };
            self.order(Order::Prepare);
        }
    }

    fn seen(&mut self, sighting: &Sighting, mark: Mark) {
        match sighting {
            Sighting::Accepted => {
                if matches!(self.next.state, State::Preparing { .. }) {
                    self.next.state = State::Accepted;
                    self.effects.push(Effect::Commit);
                }
                self.effects.push(Effect::Acknowledge(mark));
            }
            Sighting::Refused { reason, detail } => {
                if !self.next.state.is_closed() {
                    self.close(Closing::Refused { reason: *reason, detail: Arc::clone(detail) });
                }
                self.effects.push(Effect::Acknowledge(mark));
            }
            Sighting::Live | Sighting::Stopping => {
                self.exists();
                self.effects.push(Effect::Acknowledge(mark));
            }
            Sighting::Ended => self.ended(mark),
            Sighting::Stopped { ended } => self.stopped(*ended, mark),
            Sighting::Vanished => {
                self.vanished();
                self.effects.push(Effect::Acknowledge(mark));
            }
        }
    }

    /// The copy is there: it was started by us, or by an earlier leader.
    fn exists(&mut self) {
        match self.next.state {
            State::Starting | State::Vanished => self.next.state = State::Running,
            State::Preparing { .. }
            | State::Accepted
            | State::Running
            | State::Finished { .. }
            | State::Stopping(_)
            | State::Closed(_) => {}
        }
    }

    fn ended(&mut self, mark: Mark) {
        self.exists();
        match self.next.state {
            State::Running | State::Finished { stored: false } => {
                self.next.state = State::Finished { stored: false };
                self.next.owed = Some(mark);
                self.effects.push(Effect::StoreResult);
            }
            State::Finished { stored: true } | State::Stopping(_) => {
                self.effects.push(Effect::Acknowledge(mark));
            }
            State::Preparing { .. }
            | State::Accepted
            | State::Starting
            | State::Vanished
            | State::Closed(_) => {}
        }
    }

    fn stopped(&mut self, ended: bool, mark: Mark) {
        match self.next.state {
            State::Running | State::Starting | State::Vanished | State::Finished { stored: false }
                if ended =>
            {
                self.next.state = State::Finished { stored: false };
                self.next.owed = Some(mark);
                self.effects.push(Effect::StoreResult);
            }
            State::Preparing { .. } | State::Accepted => {}
            State::Closed(_) => self.effects.push(Effect::Acknowledge(mark)),
            State::Starting
            | State::Running
            | State::Finished { .. }
            | State::Vanished
            | State::Stopping(_) => {
                self.next.owed = Some(mark);
                self.close(Closing::Stopped);
            }
        }
    }

    fn vanished(&mut self) {
        match self.next.state {
            State::Starting | State::Running | State::Finished { stored: false } => {
                self.next.state = State::Vanished;
                self.withdraw();
                self.effects.push(Effect::ReportVanished);
            }
            // A finished copy has nothing that could still run.
            State::Finished { stored: true } => self.close(Closing::Stopped),
            State::Preparing { .. }
            | State::Accepted
            | State::Vanished
            | State::Stopping(_)
            | State::Closed(_) => {}
        }
    }

    fn inventory(&mut self, present: bool) {
        match (&self.next.state, present) {
            // Present without having been seen live: room is still held from the `Prepare` of an earlier session.
            (State::Starting, false) => self.order(Order::Start),
            (State::Starting, true) if self.next.order.is_none() => self.order(Order::Start),
            (State::Running | State::Finished { .. }, true) => {
                if self.next.order != Some(Order::Keep) {
                    self.order(Order::Keep);
                }
            }
            (State::Running | State::Finished { .. }, false) => self.vanished(),
            (State::Stopping(cause), _) => self.order(Order::Stop(*cause)),
            (State::Preparing { .. } | State::Accepted | State::Vanished | State::Closed(_), _)
            | (State::Starting, true) => {}
        }
    }

    fn abandon(&mut self, how: Closing) {
        match self.next.state {
            State::Preparing { .. } | State::Accepted => self.close(how),
            State::Starting
            | State::Running
            | State::Finished { .. }
            | State::Vanished
            | State::Stopping(_)
            | State::Closed(_) => {}
        }
    }

    fn stored(&mut self) {
        if let State::Finished { stored } = &mut self.next.state {
            *stored = true;
        } else if !self.next.state.is_closed() {
            return;
        }
        if let Some(mark) = self.next.owed.take() {
            self.effects.push(Effect::Acknowledge(mark));
        }
    }

    fn stop(&mut self, cause: StopCause) {
        match self.next.state {
            State::Preparing { .. } | State::Accepted => self.close(Closing::Released),
            State::Starting | State::Running | State::Finished { .. } | State::Vanished => {
                self.next.state = State::Stopping(cause);
                self.order(Order::Stop(cause));
                // Whatever ended is about to be deleted for good: nothing is owed any more.
                if let Some(mark) = self.next.owed.take() {
                    self.effects.push(Effect::Acknowledge(mark));
                }
            }
            State::Stopping(_) | State::Closed(_) => {}
        }
    }

    fn disconnected(&mut self) {
        match self.next.state {
            State::Preparing { .. } => self.close(Closing::Released),
            State::Starting => self.withdraw(),
            State::Running | State::Finished { .. } if self.next.order == Some(Order::Start) => {
                self.order(Order::Keep);
            }
            State::Accepted
            | State::Running
            | State::Finished { .. }
            | State::Vanished
            | State::Stopping(_)
            | State::Closed(_) => {}
        }
    }

    fn tick(&mut self, now: Millis) {
        if let State::Preparing { deadline } = self.next.state
            && now >= deadline
        {
            self.abandon(Closing::NoAnswer);
        }
    }
}

#[cfg(test)]
#[path = "step_tests.rs"]
mod tests;
