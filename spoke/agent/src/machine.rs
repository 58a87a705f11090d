//! The core and its end of the session protocol as one machine: still synchronous, still without a clock.
//!
//! What one of them says is input to the other; only what concerns the outside comes out.

use std::collections::VecDeque;

use fairlead_model::{Floor, Millis, Now};
use fairlead_session::{Goodbye, SpokeFrame, SpokeInput, SpokeOutput, SpokeSession};

use crate::core::{Core, Effect, Input};
use crate::ports::Request;

/// What happens to the machine.
#[derive(Clone, Debug)]
pub enum Event {
    /// To the core.
    Core(Input),
    /// To the session.
    Session(SpokeInput),
}

/// What the machine asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Send this on the present connection.
    Send(SpokeFrame),
    /// Carry this out and bring back its outcome.
    Store(Request),
    /// Make this floor durable, then say so to the session.
    StoreFloor(Floor),
    /// Close the present connection after what was to be sent before.
    Close(Goodbye),
}

/// Core and session.
#[derive(Debug)]
pub struct Machine {
    core: Core,
    session: SpokeSession,
    established: bool,
}

impl Machine {
    /// Joins the two.
    pub const fn new(core: Core, session: SpokeSession) -> Self {
        Self { core, session, established: false }
    }

    /// Takes in one event and everything that follows from it inside, and says what to do, in order.
    ///
    /// The core acts at its turns only: hand over [`Input::Turn`] when everything that was waiting is in.
    pub fn handle(&mut self, event: Event, now: Now) -> Vec<Action> {
        let mut actions = Vec::new();
        let mut queue = VecDeque::from([event]);
        while let Some(event) = queue.pop_front() {
            match event {
                Event::Core(input) => {
                    for effect in self.core.step(input, now) {
                        effect_of(effect, &mut queue, &mut actions);
                    }
                }
                Event::Session(input) => {
                    for output in self.session.handle(input, now) {
                        self.output(output, &mut queue, &mut actions);
                    }
                }
            }
        }
        actions
    }

    fn output(&mut self, output: SpokeOutput, queue: &mut VecDeque<Event>, actions: &mut Vec<Action>) {
        let input = match output {
            SpokeOutput::Send(frame) => return actions.push(Action::Send(frame)),
            SpokeOutput::StoreFloor(floor) => return actions.push(Action::StoreFloor(floor)),
            SpokeOutput::Close(goodbye) => return actions.push(Action::Close(goodbye)),
            SpokeOutput::Established(leadership) => {
                self.established = true;
                Input::Established(leadership)
            }
            SpokeOutput::Void => {
                self.established = false;
                Input::Void
            }
            SpokeOutput::Command(placement, command) => Input::Command(placement, command),
            SpokeOutput::Withdrawn(placement) => Input::Withdrawn(placement),
            SpokeOutput::Acknowledged { placement, epoch, boot, version } => {
                Input::Acknowledged { placement, epoch, boot, version }
            }
        };
        queue.push_back(Event::Core(input));
    }

    /// Whether a session may be opened: the inventory is complete.
    pub fn may_connect(&self) -> bool {
        self.core.inventory_ready()
    }

    /// Whether a session is up, with a durable floor.
    pub const fn established(&self) -> bool {
        self.established
    }

    /// When, on the monotonic clock, both ends want their `Tick` at the latest.
    pub fn next_wake(&self) -> Option<Millis> {
        self.core.next_wake().into_iter().chain(self.session.next_deadline()).min()
    }
}

/// What an effect of the core is to the session or to the outside.
fn effect_of(effect: Effect, queue: &mut VecDeque<Event>, actions: &mut Vec<Action>) {
    let input = match effect {
        Effect::Store(request) => return actions.push(Action::Store(request)),
        Effect::Observe(placement, observation) => SpokeInput::Observe(placement, observation),
        Effect::Forget(placement) => SpokeInput::Forget(placement),
        Effect::Report(report) => SpokeInput::Report(report),
    };
    queue.push_back(Event::Session(input));
}

#[cfg(test)]
mod tests {
    use fairlead_model::{Leadership, Nonce, Term};
    use fairlead_session::{HubFrame, SpokeConfig, Welcome};

    use super::*;
    use crate::core::CoreConfig;
    use crate::ports::Kind;

    fn machine() -> Machine {
        let config = CoreConfig { boot: 1, ..CoreConfig::default() };
        Machine::new(Core::new(config), SpokeSession::new(SpokeConfig::new(Floor::default(), 1)))
    }

    fn welcome() -> HubFrame {
        HubFrame::Welcome(Welcome {
            protocol: fairlead_session::PROTOCOL,
            leadership: Leadership { term: Term(3), nonce: Nonce("n".into()), ..Leadership::default() },
            versions: fairlead_session::Versions::default(),
            heartbeat_ms: 10_000,
            observations: fairlead_session::BucketHashes(vec![0; 64]),
            commands: fairlead_session::BucketHashes(vec![0; 64]),
        })
    }

    #[test]
    fn orders_count_only_once_the_floor_is_durable() {
        let mut machine = machine();
        assert!(!machine.may_connect());
        for kind in Kind::WATCHED {
            machine.handle(Event::Core(Input::Synced(kind)), Now::default());
        }
        assert!(machine.may_connect());
        machine.handle(Event::Session(SpokeInput::Connected), Now::default());
        let actions = machine.handle(Event::Session(SpokeInput::Frame(welcome())), Now::default());
        let [Action::StoreFloor(floor)] = actions.as_slice() else { panic!("{actions:?}") };
        assert!(!machine.established());
        let stored = Event::Session(SpokeInput::FloorStored(floor.clone()));
        let actions = machine.handle(stored, Now::default());
        assert!(machine.established());
        assert_eq!(actions.first(), Some(&Action::Send(SpokeFrame::Ready)));
        machine.handle(Event::Session(SpokeInput::Disconnected), Now::default());
        assert!(!machine.established());
    }

    #[test]
    fn what_the_core_reports_goes_out_by_the_session() {
        let mut machine = machine();
        for kind in Kind::WATCHED {
            machine.handle(Event::Core(Input::Synced(kind)), Now::default());
        }
        machine.handle(Event::Session(SpokeInput::Connected), Now::default());
        machine.handle(Event::Session(SpokeInput::Frame(welcome())), Now::default());
        let floor = Floor { term: Term(3), nonce: Nonce("n".into()), ..Floor::default() };
        machine.handle(Event::Session(SpokeInput::FloorStored(floor)), Now::default());
        let actions = machine.handle(Event::Core(Input::Turn), Now::default());
        assert!(matches!(actions.as_slice(), [Action::Send(SpokeFrame::Report(_))]), "{actions:?}");
    }
}
