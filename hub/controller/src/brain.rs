//! The brain: the hub's one deciding loop.
//!
//! [`Brain::step`] takes one [`Input`] and the time, and returns the [`Effect`]s that follow. It never waits, reads
//! no clock and keeps no locks, so a pump drives it in production and the simulation drives the very same code.
//!
//! It keeps one record per run (a Job, its Workload, the promise made for it) and works by levels: an input changes
//! a record, the record is *reconciled*, and reconciling compares what is with what should be and writes the
//! difference. Its rules (design §4):
//!
//! * a. facts are keyed by kind and UID; a version at or below one seen or written by us is dropped (`ledger`);
//! * b. assumed usage replaces the engine's row of the workload; an unknown outcome is settled by a consistent read;
//! * c. nothing is decided before every kind has been listed once;
//! * d. one operation in flight per Workload and per Job; whatever becomes true meanwhile merges into the next;
//! * e. only levels coalesce: every observation, outcome and deletion is an input of its own, keyed by UID;
//! * f. quota is held from the grant to the proof of stop, through deletion too;
//! * g. capacity is deducted by the engine as `demand − bound`, from the facts given here; nothing is counted here.
//!
//! The process's crash points lie around these effects and inputs, and are raised by those who carry them out:
//!
//! | point | where |
//! |---|---|
//! | `hub.after-prepare` | the spoke has received a [`Effect::Command`] whose desired state is `Prepare` |
//! | `hub.after-acceptance` | its acceptance has arrived and has not been fed in yet; no commit was asked for |
//! | `hub.after-commit` | a [`Effect::Store`] with `commit` set is done and its outcome has not been fed in yet |
//! | `hub.after-start` | the spoke has received a [`Effect::Command`] whose desired state is `Start` |
//! | `hub.after-result` | the result is stored, and the [`Effect::Acknowledge`] for it is about to go |

mod catalog;
mod checks;
mod clusters;
mod decide;
mod deletion;
mod dispatch;
mod events;
mod evict;
mod facts;
mod gauges;
mod intake;
mod ledger;
mod nodes;
mod outcomes;
mod pods;
mod prebuilt;
mod queues;
mod reconcile;
mod restore;
mod run;
mod runs;
mod sessions;
pub mod settings;
mod spoke;
mod sync;
mod tally;
mod tape;
mod transitions;
mod upkeep;
mod wakes;
mod wanted;
mod writes;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use fairlead_engine::{Policy, Settings, World};
use fairlead_model::{Leadership, Millis, Now, ObjectKey, PlacementId, RunId, SpokeId, Uid};
use fairlead_session::Command;

pub use catalog::is_dispatch_controller;

use crate::measure::Measurement;
use crate::mirror::Mirror;
use crate::ports::{Acknowledgement, Kind, Object, OpId, Outcome, Request, SpokeEvent, Version};
use catalog::Catalog;
use ledger::Ledger;
use nodes::Nodes;
use pods::Pods;
use prebuilt::Prebuilt;
use queues::Sums;
use runs::Runs;
use settings::Lifecycle;
use spoke::Spoke;
use tape::Tape;
use wakes::Wakes;

/// The shortest time to the next look for the engine's sake, in milliseconds.
const MIN_WAKE_MS: i64 = 100;

/// What the operator of the hub sets, and who leads.
#[derive(Clone, Debug)]
pub struct BrainConfig {
    /// The leadership under which every promise is made. Epochs carry its term.
    pub leadership: Leadership,
    /// How the engine computes requests.
    pub settings: Settings,
    /// How the engine decides.
    pub policy: Policy,
    /// After how many milliseconds without a heartbeat a spoke is suspect.
    pub suspect_ms: i64,
    /// How long a finished copy is kept on its spoke, in milliseconds, so that its logs stay readable.
    pub retain_finished_ms: i64,
    /// After how many milliseconds a deletion that no spoke confirmed is carried on by a Tombstone.
    pub tombstone_ms: i64,
    /// How workloads live: readiness, retention.
    pub lifecycle: Lifecycle,
    /// Decisions are recorded in pieces of about this many bytes; none records nothing.
    pub record: Option<u64>,
}

impl BrainConfig {
    /// The defaults of the design under this leadership.
    pub fn new(leadership: Leadership) -> Self {
        Self {
            leadership,
            settings: Settings::default(),
            policy: Policy::default(),
            suspect_ms: 30_000,
            retain_finished_ms: 3_600_000,
            tombstone_ms: 300_000,
            lifecycle: Lifecycle::default(),
            record: None,
        }
    }
}

/// What the brain is told.
#[derive(Clone, Debug)]
pub enum Input {
    /// An object is as given.
    Object(Object),
    /// An object is gone.
    Gone {
        /// Its kind.
        kind: Kind,
        /// Namespace and name.
        key: ObjectKey,
        /// Its UID.
        uid: Uid,
        /// Its last version.
        version: Version,
    },
    /// Every object of this kind has been given.
    Synced(Kind),
    /// What became of an operation.
    Outcome(OpId, Outcome),
    /// Something came from a spoke.
    Spoke(SpokeId, SpokeEvent),
    /// The inbox is drained: decide, and flush statuses that were held back.
    Turn,
    /// Time has passed.
    Tick,
}

/// What the brain wants done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Carry out an operation and feed its outcome back. Events need no outcome.
    Store(Request),
    /// Set the command of a placement.
    Command {
        /// The spoke.
        spoke: SpokeId,
        /// The placement.
        placement: PlacementId,
        /// The command.
        command: Command,
    },
    /// Remove the command of a placement.
    Withdraw {
        /// The spoke.
        spoke: SpokeId,
        /// The placement.
        placement: PlacementId,
    },
    /// Say that an observation is durable here.
    Acknowledge {
        /// The spoke.
        spoke: SpokeId,
        /// The observation.
        ack: Acknowledgement,
    },
    /// Something happened that is counted or timed.
    Measure(Measurement),
    /// Write down more of the record of decisions.
    Record {
        /// A record begins here; what came before stands for itself.
        begins: bool,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Something that an operator should see: log it.
    Warn(String),
    /// The hub must not go on: end the process.
    Fatal(String),
}

/// The hub's deciding state.
#[derive(Debug)]
pub struct Brain {
    config: BrainConfig,
    now: Now,
    synced: BTreeSet<Kind>,
    ledger: Ledger,
    runs: Runs,
    pods: Pods,
    nodes: Nodes,
    prebuilt: Prebuilt,
    spokes: BTreeMap<SpokeId, Spoke>,
    catalog: Catalog,
    mirror: Mirror,
    world: World,
    tape: Option<Tape>,
    undecided: bool,
    dirty: BTreeSet<RunId>,
    sums: Sums,
    wakes: Wakes,
    epochs: u64,
    out: Vec<Effect>,
}

impl Brain {
    /// A brain that knows nothing yet. It decides nothing before every kind of [`Kind::WATCHED`] is synced.
    pub fn new(config: BrainConfig) -> Self {
        let mut config = config;
        let rules = config.lifecycle.pods_ready.as_ref();
        config.settings.block_admission = rules.is_some_and(|rules| rules.block_admission);
        let world = World::new(config.settings.clone());
        let tape = config.record.map(Tape::new);
        Self {
            config,
            now: Now::default(),
            synced: BTreeSet::new(),
            ledger: Ledger::default(),
            runs: Runs::default(),
            pods: Pods::default(),
            nodes: Nodes::default(),
            prebuilt: Prebuilt::default(),
            spokes: BTreeMap::new(),
            catalog: Catalog::default(),
            mirror: Mirror::default(),
            world,
            tape,
            undecided: false,
            dirty: BTreeSet::new(),
            sums: Sums::default(),
            wakes: Wakes::default(),
            epochs: 0,
            out: Vec::new(),
        }
    }

    /// Takes in one input and says what follows from it.
    ///
    /// Cost follows what the input changed. Inputs other than [`Input::Turn`] make no decisions, so that a batch of
    /// them is decided on together.
    pub fn step(&mut self, input: Input, now: Now) -> Vec<Effect> {
        self.now = now;
        self.advance_engine();
        match input {
            Input::Object(object) => self.object(&object),
            Input::Gone { kind, key, uid, version } => self.gone(kind, &key, &uid, version),
            Input::Synced(kind) => self.kind_synced(kind),
            Input::Outcome(id, outcome) => self.outcome(id, &outcome),
            Input::Spoke(spoke, event) => self.spoke_event(&spoke, event),
            Input::Tick => self.fire_wakes(),
            Input::Turn => {
                self.fire_wakes();
                self.settle();
                self.decide();
                self.flush_statuses();
            }
        }
        self.settle();
        std::mem::take(&mut self.out)
    }

    /// The monotonic time at which a [`Input::Tick`] is due even if nothing else happens.
    pub fn next_wake(&self) -> Option<Millis> {
        // A wake of the engine's that the last turn has not used up is no reason to spin.
        let engine =
            self.world.next_wake().map(|wall| self.now.mono.plus(wall.since(self.now.wall).max(MIN_WAKE_MS)));
        [self.wakes.first(), engine].into_iter().flatten().min()
    }

    /// Rule c: whether every kind has been listed once.
    fn is_ready(&self) -> bool {
        self.synced.len() == Kind::WATCHED.len()
    }

    /// Reconciles every run that something changed for.
    fn settle(&mut self) {
        if !self.is_ready() {
            return;
        }
        while let Some(id) = self.dirty.pop_first() {
            let over = self.with_run(&id, |brain, run| {
                brain.reconcile(run);
                run.is_over()
            });
            if over == Some(true) {
                self.forget_run(&id);
            }
        }
    }
}
