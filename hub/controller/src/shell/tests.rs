//! The pump with a scripted core, a store that answers when told, and spokes that take notes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use fairlead_model::{Epoch, Millis, Now, ObjectKey, PlacementId, SpokeId, Uid};
use fairlead_runtime::health::Readiness;
use fairlead_session::Command;
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::lanes::IN_FLIGHT;
use super::pump::{Core, Pump, PumpError};
use crate::brain::{Effect, Input};
use crate::ports::{Acknowledgement, Kind, Op, OpId, Outcome, Request, Spokes, Store};

/// Answers each input, in short, with the next effects of the script; tells the test what it got.
struct Scripted {
    script: VecDeque<(&'static str, Vec<Effect>)>,
    got: mpsc::UnboundedSender<String>,
}

fn short(input: &Input) -> String {
    match input {
        Input::Object(object) => format!("object {}", object.key),
        Input::Gone { key, .. } => format!("gone {key}"),
        Input::Synced(kind) => format!("synced {kind:?}"),
        Input::Outcome(id, outcome) => format!("outcome {} {outcome:?}", id.0),
        Input::Spoke(spoke, _) => format!("spoke {spoke}"),
        Input::Turn => "turn".to_owned(),
        Input::Tick => "tick".to_owned(),
    }
}

impl Core for Scripted {
    fn step(&mut self, input: Input, _now: Now) -> Vec<Effect> {
        let input = short(&input);
        let effects = match self.script.front() {
            Some((on, _)) if *on == input => self.script.pop_front().map(|(_, effects)| effects),
            Some(_) | None => None,
        };
        self.got.send(input).unwrap();
        effects.unwrap_or_default()
    }

    fn next_wake(&self) -> Option<Millis> {
        None
    }
}

/// Answers `Conflict` as often as there are permits, and says when an operation begins.
struct Gated {
    gate: Semaphore,
    begun: mpsc::UnboundedSender<OpId>,
}

impl Store for Gated {
    async fn execute(&self, request: &Request) -> Outcome {
        self.begun.send(request.id).unwrap();
        self.gate.acquire().await.unwrap().forget();
        Outcome::Conflict
    }
}

#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Spokes for Notes {
    fn command(&self, spoke: &SpokeId, placement: PlacementId, _command: Command) {
        self.0.lock().unwrap().push(format!("command {spoke} {placement}"));
    }

    fn withdraw(&self, spoke: &SpokeId, placement: PlacementId) {
        self.0.lock().unwrap().push(format!("withdraw {spoke} {placement}"));
    }

    fn acknowledge(&self, spoke: &SpokeId, ack: Acknowledgement) {
        self.0.lock().unwrap().push(format!("acknowledge {spoke} {}", ack.placement));
    }
}

struct World {
    input: mpsc::Sender<Input>,
    got: mpsc::UnboundedReceiver<String>,
    store: Arc<Gated>,
    begun: mpsc::UnboundedReceiver<OpId>,
    spokes: Arc<Notes>,
    readiness: Readiness,
    cancel: CancellationToken,
    pump: tokio::task::JoinHandle<Result<(), PumpError>>,
}

fn start(script: Vec<(&'static str, Vec<Effect>)>) -> World {
    let (got_sender, got) = mpsc::unbounded_channel();
    let core = Scripted { script: script.into(), got: got_sender };
    let (input, inbox) = super::inbox();
    let (begun_sender, begun) = mpsc::unbounded_channel();
    let store = Arc::new(Gated { gate: Semaphore::new(0), begun: begun_sender });
    let spokes = Arc::<Notes>::default();
    let readiness = Readiness::waiting_for([super::readiness_name(Kind::Job).as_str()]);
    let pump =
        Pump::new(core, (input.clone(), inbox), Arc::clone(&store), Arc::clone(&spokes), readiness.clone());
    let cancel = CancellationToken::new();
    let pump = tokio::spawn(pump.run(cancel.clone()));
    World { input, got, store, begun, spokes, readiness, cancel, pump }
}

fn write(id: u64, kind: Kind) -> Effect {
    let key = ObjectKey::new("ns", "o");
    Effect::Store(Request { id: OpId(id), kind, key, op: Op::Create(Value::Null), commit: false })
}

fn gone() -> Input {
    Input::Gone { kind: Kind::Job, key: ObjectKey::new("ns", "j"), uid: Uid::new("u"), version: 1 }
}

impl World {
    /// What the core gets until it gets `last`.
    async fn until(&mut self, last: &str) -> Vec<String> {
        let mut got = Vec::new();
        loop {
            let input = self.got.recv().await.unwrap();
            got.push(input);
            if got.last().is_some_and(|input| input == last) {
                return got;
            }
        }
    }
}

#[tokio::test]
async fn every_batch_is_followed_by_a_turn_and_every_write_by_its_outcome() {
    let mut world = start(vec![("gone ns/j", vec![write(7, Kind::Workload)])]);
    world.input.send(gone()).await.unwrap();
    assert_eq!(world.until("turn").await, ["gone ns/j", "turn"]);
    world.store.gate.add_permits(1);
    assert_eq!(world.until("turn").await, ["outcome 7 Conflict", "turn"]);
    world.cancel.cancel();
    assert!(world.pump.await.unwrap().is_ok());
}

#[tokio::test]
async fn no_more_writes_than_allowed_are_under_way_and_none_is_lost() {
    let count = 2 * IN_FLIGHT;
    let writes = (0..count).map(|id| write(u64::try_from(id).unwrap(), Kind::Workload)).collect();
    let mut world = start(vec![("gone ns/j", writes)]);
    world.input.send(gone()).await.unwrap();
    for _ in 0..IN_FLIGHT {
        world.begun.recv().await.unwrap();
    }
    // One thread: whatever could begin now would begin within these.
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert!(world.begun.try_recv().is_err(), "more than {IN_FLIGHT} are under way");
    world.store.gate.add_permits(count);
    let mut outcomes = 0;
    while outcomes < count {
        outcomes += usize::from(world.got.recv().await.unwrap().starts_with("outcome"));
    }
    world.cancel.cancel();
    assert!(world.pump.await.unwrap().is_ok());
}

#[tokio::test]
async fn stopping_waits_for_the_writes_under_way_and_events_have_no_outcome() {
    let mut world = start(vec![("gone ns/j", vec![write(1, Kind::Workload), write(2, Kind::Event)])]);
    world.input.send(gone()).await.unwrap();
    world.until("turn").await;
    world.cancel.cancel();
    world.store.gate.add_permits(2);
    assert!(world.pump.await.unwrap().is_ok());
    assert_eq!(world.store.gate.available_permits(), 0, "a write was left behind");
    assert!(world.got.recv().await.is_none(), "the core got more after the stop");
}

#[tokio::test]
async fn spokes_get_what_is_theirs_and_a_listed_kind_makes_ready() {
    let (spoke, placement) = (SpokeId::new("s"), PlacementId::new("p"));
    let ack = Acknowledgement { placement: placement.clone(), epoch: Epoch::new(1, 1), boot: 1, version: 1 };
    let effects =
        vec![Effect::Withdraw { spoke: spoke.clone(), placement }, Effect::Acknowledge { spoke, ack }];
    let mut world = start(vec![("synced Job", effects)]);
    assert!(!world.readiness.missing().is_empty());
    world.input.send(Input::Synced(Kind::Job)).await.unwrap();
    world.until("turn").await;
    assert!(world.readiness.missing().is_empty());
    assert_eq!(*world.spokes.0.lock().unwrap(), ["withdraw s p", "acknowledge s p"]);
    world.cancel.cancel();
    assert!(world.pump.await.unwrap().is_ok());
}

#[tokio::test]
async fn a_brain_that_gives_up_ends_the_pump_with_its_reason() {
    let world = start(vec![("turn", vec![Effect::Fatal("the schema is foreign".to_owned())])]);
    world.input.send(gone()).await.unwrap();
    let end = world.pump.await.unwrap().unwrap_err();
    assert_eq!(end.to_string(), "the schema is foreign");
}

#[tokio::test]
async fn a_question_is_answered_from_the_core_and_after_the_end_by_an_error() {
    let (got, _kept) = mpsc::unbounded_channel();
    let core = Scripted { script: VecDeque::from([("never", Vec::new())]), got };
    let (asker, questions) = super::questions();
    let (begun, _begun) = mpsc::unbounded_channel();
    let store = Arc::new(Gated { gate: Semaphore::new(0), begun });
    let pump = Pump::new(core, super::inbox(), store, Arc::<Notes>::default(), Readiness::default());
    let cancel = CancellationToken::new();
    let pump = tokio::spawn(pump.answering(questions).run(cancel.clone()));
    assert_eq!(asker.ask(|core: &Scripted| core.script.len()).await, Ok(1));
    cancel.cancel();
    assert!(pump.await.unwrap().is_ok());
    assert_eq!(asker.ask(|core: &Scripted| core.script.len()).await, Err(super::Stopping));
}
