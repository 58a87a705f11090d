//! Seeded disorder: jobs come, end and are deleted while answers are lost, watches lag, links are cut, spokes hang or
//! refuse, and the hub dies at any point. What must hold at every instant is checked at every instant; after healing
//! everything must come to its end.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fairlead_model::{PlacementId, Reason, SpokeId};
use fairlead_session::{Command, CopyState};
use serde_json::Value;

use crate::brain::testing::{Fault, Hub, Manner, job};
use crate::brain::{Effect, Input};
use crate::ports::{Acknowledgement, Kind, SpokeEvent};

const SPOKES: [&str; 3] = ["east", "north", "west"];
const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// A small generator of numbers that look random and are the same for the same seed.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn of(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5DEE_CE66)
    }

    pub(super) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    pub(super) fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.roll(list.len())]
    }
}

/// What travels to a spoke, in the order in which the hub said it.
enum Order {
    Command(PlacementId, Command),
    Withdraw(PlacementId),
    Acknowledge(Acknowledgement),
}

struct Storm {
    hub: Hub,
    dice: Dice,
    /// What is on its way to the brain, by where it comes from. Each way keeps its order; the ways mix.
    ways: BTreeMap<String, VecDeque<Input>>,
    /// What is on its way to a spoke.
    orders: BTreeMap<SpokeId, VecDeque<Order>>,
}

impl Storm {
    fn new(seed: u64) -> Self {
        let hub = Hub::with_spokes(&SPOKES);
        Self { hub, dice: Dice::of(seed), ways: BTreeMap::new(), orders: BTreeMap::new() }
    }

    fn gather(&mut self) {
        let mut arrived: Vec<(String, Input)> = Vec::new();
        for input in self.hub.api.drain() {
            let way = match &input {
                Input::Object(object) => format!("watch {:?}", object.kind),
                Input::Gone { kind, .. } => format!("watch {kind:?}"),
                _ => "other".to_owned(),
            };
            arrived.push((way, input));
        }
        for (id, spoke) in &mut self.hub.spokes {
            arrived
                .extend(spoke.drain().map(|event| (format!("spoke {id}"), Input::Spoke(id.clone(), event))));
        }
        while let Some(input) = self.hub.inbox.pop_front() {
            // Outcomes of different operations overtake each other.
            let way = match &input {
                Input::Outcome(id, _) => format!("outcome {}", id.0 % 4),
                Input::Spoke(id, _) => format!("spoke {id}"),
                _ => "other".to_owned(),
            };
            arrived.push((way, input));
        }
        for (way, input) in arrived {
            self.ways.entry(way).or_default().push_back(input);
        }
        self.ways.retain(|_, inputs| !inputs.is_empty());
        self.orders.retain(|_, orders| !orders.is_empty());
    }

    /// Lets one thing happen; false when nothing is on its way.
    fn happen(&mut self) -> bool {
        self.gather();
        let ways: Vec<String> = self.ways.keys().cloned().collect();
        let spokes: Vec<SpokeId> = self.orders.keys().cloned().collect();
        if ways.is_empty() && spokes.is_empty() {
            return self.feed(Input::Turn);
        }
        let choice = self.dice.roll(ways.len() + spokes.len() + 1);
        if let Some(way) = ways.get(choice) {
            let input = self.ways.get_mut(way).and_then(VecDeque::pop_front).unwrap();
            self.feed(input);
        } else if let Some(id) = spokes.get(choice - ways.len()) {
            let order = self.orders.get_mut(id).and_then(VecDeque::pop_front).unwrap();
            let spoke = self.hub.spokes.get_mut(id).unwrap();
            match order {
                Order::Command(placement, command) => spoke.command(placement, command),
                Order::Withdraw(placement) => spoke.withdraw(&placement),
                Order::Acknowledge(ack) => spoke.acknowledged(&ack),
            }
        } else {
            self.feed(Input::Turn);
        }
        self.check();
        true
    }

    fn feed(&mut self, input: Input) -> bool {
        let effects = self.hub.brain.step(input, self.hub.now);
        let some = !effects.is_empty();
        for effect in effects {
            match effect {
                Effect::Command { spoke, placement, command } => {
                    self.orders.entry(spoke).or_default().push_back(Order::Command(placement, command));
                }
                Effect::Withdraw { spoke, placement } => {
                    self.orders.entry(spoke).or_default().push_back(Order::Withdraw(placement));
                }
                Effect::Acknowledge { spoke, ack } => {
                    self.orders.entry(spoke).or_default().push_back(Order::Acknowledge(ack));
                }
                other => self.hub.carry_out(other),
            }
        }
        some
    }

    /// What must hold at every instant.
    fn check(&self) {
        let mut runs = BTreeSet::new();
        for spoke in self.hub.spokes.values() {
            for entry in spoke.entries.values() {
                if matches!(&entry.state, CopyState::Live(copy) if copy.terminal.is_none())
                    || matches!(entry.state, CopyState::Stopping(_))
                {
                    assert!(runs.insert(entry.run.clone()), "two live copies of {}", entry.run);
                }
            }
        }
        let used: i64 = self.hub.api.all(Kind::Workload).iter().filter(|w| !over(w)).map(cpus).sum();
        assert!(used <= 8, "{used} of 8 cpus are reserved");
    }

    fn cut(&mut self, name: &str) {
        let id = SpokeId::new(format!("uid-{name}"));
        if self.hub.spoke(name).connected {
            self.hub.spoke(name).connected = false;
            self.orders.remove(&id);
            let way = self.ways.entry(format!("spoke {id}")).or_default();
            way.push_back(Input::Spoke(id, SpokeEvent::Disconnected));
        }
    }

    fn link(&mut self, name: &str) {
        let id = SpokeId::new(format!("uid-{name}"));
        if !self.hub.spoke(name).connected {
            let events = self.hub.spoke(name).connect();
            let way = self.ways.entry(format!("spoke {id}")).or_default();
            way.extend(events.into_iter().map(|event| Input::Spoke(id.clone(), event)));
        }
    }

    fn die(&mut self) {
        self.ways.clear();
        self.orders.clear();
        self.hub.restart_without_connecting();
        for name in SPOKES {
            self.link(name);
        }
    }

    fn pass(&mut self, ms: i64) {
        self.hub.now.mono = self.hub.now.mono.plus(ms);
        self.hub.now.wall = self.hub.now.wall.plus(ms);
        for (id, spoke) in &self.hub.spokes {
            if spoke.connected && spoke.manner != Manner::Hung {
                let way = self.ways.entry(format!("spoke {id}")).or_default();
                way.push_back(Input::Spoke(id.clone(), SpokeEvent::Heartbeat));
            }
        }
        self.feed(Input::Tick);
    }

    /// Something happens to a copy on a spoke.
    fn touch_copy(&mut self, name: &str) {
        let die = self.dice.roll(5);
        let spoke = self.hub.spoke(name);
        let live = spoke
            .entries
            .values()
            .filter(|entry| matches!(&entry.state, CopyState::Live(copy) if copy.terminal.is_none()));
        let stopping = spoke.entries.values().any(|entry| matches!(entry.state, CopyState::Stopping(_)));
        if live.count() == 0 && !stopping || spoke.copies() == 0 {
            return;
        }
        let first_is_stopping = spoke
            .entries
            .values()
            .find(|entry| matches!(entry.state, CopyState::Live(_) | CopyState::Stopping(_)))
            .is_some_and(|entry| matches!(entry.state, CopyState::Stopping(_)));
        match (first_is_stopping, die) {
            (true, _) | (false, 4) => spoke.prove_stop(),
            (false, 0 | 1) => spoke.ready(),
            (false, _) => spoke.finish(die == 2),
        }
    }

    fn disturb(&mut self) {
        let name = *self.dice.pick(&SPOKES);
        match self.dice.roll(24) {
            0..=5 => {
                let (kind, json) = job(NAMES[self.dice.roll(6)], ["1", "3", "5"][self.dice.roll(3)]);
                if self.hub.api.get(kind, "team", json["metadata"]["name"].as_str().unwrap()).is_none() {
                    self.hub.apply((kind, json));
                }
            }
            6 | 7 => {
                let job = NAMES[self.dice.roll(6)];
                self.hub.delete(Kind::Job, "team", job);
            }
            8 => self.cut(name),
            9 | 10 => self.link(name),
            11 => {
                let manners = [
                    Manner::Hung,
                    Manner::Refuses(Reason::NoRoom),
                    Manner::RefusesStart(Reason::SuspendedByLocalQueueing),
                    Manner::ChangesItsMind(Reason::NoRoom),
                ];
                self.hub.spoke(name).manner = self.dice.pick(&manners).clone();
            }
            12 | 13 => self.hub.spoke(name).manner = Manner::Willing,
            14 => self.hub.spoke(name).stops_at_once = self.dice.roll(2) == 0,
            15 => {
                let fault = *self.dice.pick(&[Fault::LostAnswer, Fault::LostRequest, Fault::NotSent]);
                let kind = *self.dice.pick(&[Kind::Workload, Kind::Job]);
                self.hub.api.faults.push_back((kind, fault));
            }
            16 => self.die(),
            17 => {
                let ms = [100, 2_100, 40_000][self.dice.roll(3)];
                self.pass(ms);
            }
            _ => self.touch_copy(name),
        }
    }

    /// Everything works again, and every copy ends in time.
    fn heal(&mut self) {
        self.hub.api.faults.clear();
        for name in SPOKES {
            let spoke = self.hub.spoke(name);
            spoke.manner = Manner::Willing;
            spoke.stops_at_once = true;
            // A new session, so that nothing that was said to a deaf spoke is missed.
            self.cut(name);
            self.link(name);
        }
        for _ in 0..400 {
            for _ in 0..200_000 {
                if !self.happen() {
                    break;
                }
            }
            for name in SPOKES {
                let spoke = self.hub.spoke(name);
                let entry = spoke.entries.values().find(|entry| {
                    matches!(entry.state, CopyState::Stopping(_))
                        || matches!(&entry.state, CopyState::Live(copy) if copy.terminal.is_none())
                });
                match entry.map(|entry| matches!(entry.state, CopyState::Stopping(_))) {
                    Some(true) => {
                        spoke.end_running(|_| CopyState::Stopped(super::super::testing::ended(true)));
                    }
                    Some(false) => spoke.end_running(|_| CopyState::Live(super::super::testing::ended(true))),
                    None => {}
                }
            }
            if self.is_done() {
                return;
            }
            self.pass(5_000);
        }
    }

    /// Whether every job has ended and nothing is being deleted any more.
    fn is_done(&self) -> bool {
        let workloads = self.hub.api.all(Kind::Workload);
        let jobs = self.hub.api.all(Kind::Job);
        let ended = |job: &Value| crate::jobs::JobView::of(job).finished;
        jobs.iter().all(ended)
            && workloads.len() == jobs.len()
            && self.hub.api.all(Kind::Tombstone).is_empty()
    }

    /// What must hold in the end.
    fn check_end(&self) {
        for job in self.hub.api.all(Kind::Job) {
            assert_eq!(
                Hub::condition(&job, "Complete").0.len() + Hub::condition(&job, "Failed").0.len(),
                4,
                "{job:#}"
            );
        }
        let workloads = self.hub.api.all(Kind::Workload);
        for workload in &workloads {
            assert!(over(workload), "{workload:#}");
            assert!(workload["metadata"].get("deletionTimestamp").is_none(), "{workload:#}");
        }
        assert_eq!(workloads.len(), self.hub.api.all(Kind::Job).len());
        assert!(self.hub.api.all(Kind::Tombstone).is_empty());
        let copies: usize = self.hub.spokes.values().map(super::super::testing::SpokeSim::copies).sum();
        assert!(copies <= workloads.len(), "copies of jobs that are gone");
    }
}

fn over(workload: &Value) -> bool {
    Hub::condition(workload, "Finished").0 == "True"
}

fn cpus(workload: &Value) -> i64 {
    let usage = &workload["status"]["admission"]["podSetAssignments"][0]["resourceUsage"]["cpu"];
    usage.as_str().map_or(0, |text| text.parse().unwrap())
}

fn play(seed: u64) -> usize {
    let mut storm = Storm::new(seed);
    for _ in 0..400 {
        storm.disturb();
        for _ in 0..storm.dice.roll(12) {
            storm.happen();
        }
        storm.check();
    }
    storm.heal();
    storm.check_end();
    if std::env::var("FAIRLEAD_FIRST_SEED").is_ok() {
        let started: usize = storm.hub.spokes.values().map(|spoke| spoke.started.len()).sum();
        eprintln!(
            "seed {seed}: {} effects, {started} starts, {} events",
            storm.hub.log.len(),
            storm.hub.api.all(Kind::Event).len()
        );
    }
    storm.hub.log.len()
}

#[test]
fn promises_hold_in_any_weather() {
    let seeds = std::env::var("FAIRLEAD_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(12);
    let first: u64 =
        std::env::var("FAIRLEAD_FIRST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    for seed in first..first + seeds {
        let outcome = std::panic::catch_unwind(|| play(seed));
        assert!(outcome.is_ok(), "seed {seed}: run with FAIRLEAD_FIRST_SEED={seed} FAIRLEAD_SEEDS=1");
    }
}

#[test]
fn the_same_seed_gives_the_same_course() {
    assert_eq!(play(7), play(7));
}
