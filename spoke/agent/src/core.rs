//! The agent's core: what the hub ordered, what this cluster holds, and what to do and say about it.
//!
//! One synchronous step per input: no await, no clock, no randomness. Inputs only change what is known and mark the
//! placements concerned; at [`Input::Turn`] (and [`Input::Tick`]) each marked placement is looked at once and
//! brought a step nearer to what is wanted. Whatever is done is a level, not an edge: a step that failed is taken
//! again, with growing waits, until it is no longer wanted.
//!
//! What the core relies on, and what others may rely on:
//! * A Job is touched only if it carries all our stamps (placement, run, epoch), and created only with them: the
//!   Job is the persisted intent. After a restart the inventory comes from the listed Jobs alone.
//! * A create is create-only. One whose answer was lost is settled by a read, never by assumption.
//! * *Stopped* is said only with proof (see `ledger`): the kubelet reported every container terminated, or,
//!   where pods came and went unseen, the Job counts none and every node reports.
//! * Prepare touches no object.

mod capacity;
mod constraints;
mod copy;
mod inventory;
mod ledger;
mod nodes;
mod observe;
mod pods;
mod policy;
mod prepare;
mod references;
mod report;
mod room;
mod row;
mod start;
mod stop;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairlead_model::{Epoch, Floor, Leadership, Millis, Now, ObjectKey, PlacementId, Reason, RunId, Uid};
use fairlead_session::{Command, Desired, Observation, Refusal, Report};
use serde_json::Value;

use self::capacity::Capacity;
use self::ledger::Ledgers;
use self::policy::Policy;
use self::prepare::Lookup;
use self::report::Reporter;
use self::room::Claim;
use self::row::{Attempt, Row};
use crate::ports::{Kind, Object, Op, OpId, Outcome, Request, Tenant, Version};

/// What happens to the core.
#[derive(Clone, Debug)]
pub enum Input {
    /// A command is in force: new, changed, or handed over again by a new session.
    Command(PlacementId, Command),
    /// The hub wants nothing of this placement any more.
    Withdrawn(PlacementId),
    /// The session has ended: Prepare and Start that were received and not begun are off.
    Void,
    /// The hub has stored this observation.
    Acknowledged {
        /// Whose observation.
        placement: PlacementId,
        /// Its epoch.
        epoch: Epoch,
        /// The boot in which it was observed.
        boot: u64,
        /// Version within the boot.
        version: u64,
    },
    /// A session is up under this leader, whose floor is durable here.
    Established(Leadership),
    /// A watched object exists, in this version.
    Object(Object),
    /// A watched object is gone.
    Gone {
        /// Its kind.
        kind: Kind,
        /// Namespace and name.
        key: ObjectKey,
        /// The UID that is gone.
        uid: Uid,
        /// The version at which it was gone, or was known to be.
        version: Version,
        /// Its final state, where the API server sent it; absent when it vanished while nobody watched.
        last: Option<Arc<Value>>,
    },
    /// Everything of this kind that existed when it was listed has been handed over.
    Synced(Kind),
    /// What became of an operation.
    Outcome(OpId, Outcome),
    /// All input that was waiting has been handed over: act.
    Turn,
    /// The time that [`Core::next_wake`] named has come: act.
    Tick,
}

/// What the core asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Carry this out and bring back its outcome.
    Store(Request),
    /// Tell the hub what is here of a placement.
    Observe(PlacementId, Observation),
    /// Nothing is here of this placement any more, and the hub knows.
    Forget(PlacementId),
    /// Tell the hub what is free.
    Report(Report),
}

/// What the core must be told at its start.
#[derive(Clone, Debug, Default)]
pub struct CoreConfig {
    /// The floor as it is stored.
    pub floor: Floor,
    /// Counts the agent's starts.
    pub boot: u64,
}

/// What an operation that is under way is for.
#[derive(Clone, Debug)]
enum Doing {
    /// Part of a Prepare.
    Lookup(Lookup),
    /// Part of a Start.
    Create,
    /// Settles what became of a create.
    Settle,
    /// Part of a stop.
    Delete,
    /// Takes our finalizer off.
    Release,
}

/// The agent's core. See the [module](self).
#[derive(Debug)]
pub struct Core {
    boot: u64,
    floor: Floor,
    synced: BTreeSet<Kind>,
    policy: Policy,
    /// Namespaces that exist and are not being deleted.
    namespaces: BTreeSet<Arc<str>>,
    capacity: Capacity,
    ledgers: Ledgers,
    rows: BTreeMap<PlacementId, Row>,
    by_run: BTreeMap<RunId, BTreeSet<PlacementId>>,
    by_key: BTreeMap<ObjectKey, BTreeSet<PlacementId>>,
    by_job: BTreeMap<Uid, PlacementId>,
    /// Jobs without our label, by name.
    foreign: BTreeMap<ObjectKey, Uid>,
    /// What is promised or running: its pods need room that may not be bound yet.
    claims: BTreeMap<PlacementId, Claim>,
    /// Copies whose stop waits for nodes to report.
    awaiting_nodes: BTreeSet<PlacementId>,
    /// References that were found to exist, and until when that is believed.
    found: BTreeMap<(Kind, ObjectKey), Millis>,
    operations: BTreeMap<OpId, (PlacementId, Doing)>,
    next_operation: u64,
    next_version: u64,
    dirty: BTreeSet<PlacementId>,
    timers: BTreeSet<(Millis, PlacementId)>,
    reporter: Reporter,
    effects: Vec<Effect>,
}

/// A refusal from its parts.
fn refusal(reason: Reason, detail: impl Into<Arc<str>>) -> Refusal {
    Refusal { reason, detail: detail.into() }
}

impl Core {
    /// A core that knows nothing of its cluster yet.
    pub fn new(config: CoreConfig) -> Self {
        Self {
            boot: config.boot,
            floor: config.floor,
            synced: BTreeSet::new(),
            policy: Policy::default(),
            namespaces: BTreeSet::new(),
            capacity: Capacity::default(),
            ledgers: Ledgers::default(),
            rows: BTreeMap::new(),
            by_run: BTreeMap::new(),
            by_key: BTreeMap::new(),
            by_job: BTreeMap::new(),
            foreign: BTreeMap::new(),
            claims: BTreeMap::new(),
            awaiting_nodes: BTreeSet::new(),
            found: BTreeMap::new(),
            operations: BTreeMap::new(),
            next_operation: 1,
            next_version: 1,
            dirty: BTreeSet::new(),
            timers: BTreeSet::new(),
            reporter: Reporter::default(),
            effects: Vec::new(),
        }
    }

    /// Takes in one input and says what to do, in order.
    pub fn step(&mut self, input: Input, now: Now) -> Vec<Effect> {
        match input {
            Input::Command(placement, command) => self.command(placement, command),
            Input::Withdrawn(placement) => {
                self.change(&placement, Row::withdraw);
            }
            Input::Void => self.void(),
            Input::Acknowledged { placement, epoch, boot, version } => {
                self.acknowledged(&placement, epoch, (boot, version));
            }
            Input::Established(leadership) => self.floor = Floor::from(&leadership),
            Input::Object(object) => self.object(&object),
            Input::Gone { kind, key, uid, last, .. } => self.gone(kind, &key, &uid, last.as_deref()),
            Input::Synced(kind) => self.listed(kind),
            Input::Outcome(id, outcome) => self.outcome(id, outcome, now),
            Input::Turn | Input::Tick => self.act(now),
        }
        std::mem::take(&mut self.effects)
    }

    /// Whether every watched kind has been listed, so that what the core has observed is the whole inventory. No
    /// session may be opened before.
    pub fn inventory_ready(&self) -> bool {
        Kind::WATCHED.iter().all(|kind| self.synced.contains(kind))
    }

    /// When to send [`Input::Tick`] at the latest, on the monotonic clock.
    pub fn next_wake(&self) -> Option<Millis> {
        let timer = self.timers.first().map(|(at, _)| *at);
        timer.into_iter().chain(self.reporter.due()).min()
    }

    fn command(&mut self, placement: PlacementId, command: Command) {
        let known = self.rows.get(&placement).and_then(|row| row.command.as_ref());
        if known.is_some_and(|known| known.revision > command.revision) {
            return;
        }
        if let Some(row) = self.rows.get_mut(&placement) {
            if row.copy.is_none()
                && (row.key != row::key_of(&command) && row::intent(&command.desired).is_some())
            {
                let old = std::mem::replace(&mut row.key, row::key_of(&command));
                unlist(&mut self.by_key, &old, &placement);
                self.by_key.entry(row.key.clone()).or_default().insert(placement.clone());
            }
            row.order(command);
        } else {
            let mut row = Row::of_command(&command);
            row.order(command);
            self.add(placement.clone(), row);
        }
        self.dirty.insert(placement);
    }

    fn void(&mut self) {
        for (placement, row) in &mut self.rows {
            row.void();
            self.dirty.insert(placement.clone());
        }
    }

    fn acknowledged(&mut self, placement: &PlacementId, epoch: Epoch, (boot, version): (u64, u64)) {
        if boot != self.boot {
            return;
        }
        self.change(placement, |row| {
            if row.epoch == epoch && row.shown.version == version {
                row.shown.acknowledged = true;
            }
        });
    }

    fn outcome(&mut self, id: OpId, outcome: Outcome, now: Now) {
        let Some((placement, doing)) = self.operations.remove(&id) else { return };
        self.dirty.insert(placement.clone());
        match doing {
            Doing::Lookup(lookup) => self.looked_up(&placement, id, &lookup, (&outcome, now)),
            Doing::Create => self.created(&placement, outcome, now),
            Doing::Settle => self.settled(&placement, outcome, now),
            Doing::Delete | Doing::Release => self.written(&placement, id, outcome, now),
        }
    }

    /// Looks once at every placement about which something is new.
    fn act(&mut self, now: Now) {
        while let Some((at, placement)) = self.timers.first().cloned() {
            if at > now.mono {
                break;
            }
            self.timers.pop_first();
            self.change(&placement, |row| row.timer = None);
        }
        for placement in std::mem::take(&mut self.dirty) {
            self.advance(&placement, now);
        }
        self.report(now);
    }

    /// Brings one placement a step nearer to what is wanted, and says what has become of it.
    fn advance(&mut self, placement: &PlacementId, now: Now) {
        // Taken out, so that the row and the rest of the core can be used side by side.
        let Some(mut row) = self.rows.remove(placement) else { return };
        match row.command.as_ref().map(|command| (command.desired.clone(), command.revision)) {
            Some((Desired::Prepare(intent), revision)) => {
                self.prepare(placement, &mut row, (&intent, revision), now);
            }
            Some((Desired::Start(intent), revision)) => {
                self.start(placement, &mut row, (&intent, revision), now);
            }
            Some((Desired::Stop(_) | Desired::Keep, _)) | None => {}
        }
        self.settle(placement, &mut row, now);
        self.tend(placement, &mut row, now);
        self.show(placement, &mut row, now);
        self.account(placement, &row);
        if row.over() {
            self.drop_row(placement, &row);
            return;
        }
        self.set_timer(placement, &mut row, now);
        self.rows.insert(placement.clone(), row);
    }

    fn set_timer(&mut self, placement: &PlacementId, row: &mut Row, now: Now) {
        let next = row.wake(now.mono);
        if row.timer != next {
            if let Some(old) = row.timer {
                self.timers.remove(&(old, placement.clone()));
            }
            self.timers.extend(next.map(|at| (at, placement.clone())));
            row.timer = next;
        }
    }

    /// Keeps the claim on room in step with the row: from the hold of a Prepare to the end of the last pod.
    fn account(&mut self, placement: &PlacementId, row: &Row) {
        let running = row.copy.as_ref().is_some_and(|copy| {
            !copy.gone && copy.status.terminal.is_none() && !(copy.deleting && self.proven(copy))
        });
        let promised =
            row.creating() || matches!(row.attempt, Attempt::Checking { .. } | Attempt::Held { .. });
        if !running && !promised && self.claims.remove(placement).is_some() {
            self.reporter.changed();
        }
    }

    fn add(&mut self, placement: PlacementId, row: Row) {
        self.by_run.entry(row.run.clone()).or_default().insert(placement.clone());
        self.by_key.entry(row.key.clone()).or_default().insert(placement.clone());
        self.rows.insert(placement, row);
    }

    fn drop_row(&mut self, placement: &PlacementId, row: &Row) {
        unlist(&mut self.by_run, &row.run, placement);
        unlist(&mut self.by_key, &row.key, placement);
        self.claims.remove(placement);
        self.awaiting_nodes.remove(placement);
        if let Some(at) = row.timer {
            self.timers.remove(&(at, placement.clone()));
        }
        if let Some(copy) = &row.copy {
            self.by_job.remove(&copy.uid);
            self.ledgers.forget(&copy.uid);
        }
    }

    /// Changes a row, if it is known, and marks it.
    fn change(&mut self, placement: &PlacementId, change: impl FnOnce(&mut Row)) {
        if let Some(row) = self.rows.get_mut(placement) {
            change(row);
            self.dirty.insert(placement.clone());
        }
    }

    /// Asks for an operation on an object.
    fn operate(
        &mut self,
        placement: &PlacementId,
        doing: Doing,
        request: (Kind, ObjectKey, Op, Option<Tenant>),
    ) -> OpId {
        let id = OpId(self.next_operation);
        self.next_operation = self.next_operation.saturating_add(1);
        let (kind, key, op, tenant) = request;
        self.operations.insert(id, (placement.clone(), doing));
        self.effects.push(Effect::Store(Request { id, kind, key, op, tenant }));
        id
    }
}

fn unlist<K: Ord>(index: &mut BTreeMap<K, BTreeSet<PlacementId>>, key: &K, placement: &PlacementId) {
    if let Some(placements) = index.get_mut(key) {
        placements.remove(placement);
        if placements.is_empty() {
            index.remove(key);
        }
    }
}

#[cfg(test)]
mod chaos;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod tests;
