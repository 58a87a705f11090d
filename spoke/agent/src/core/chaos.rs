//! A cluster in memory that is late, loses answers and is meddled with, for random walks of the core.
//!
//! What counts as running is what the kubelets here run, never what objects say. Every choice is drawn from one seed.

mod actors;
mod api;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use fairlead_model::{Epoch, Millis, Now, ObjectKey, PlacementId, RunId};
use fairlead_session::{Command, CopyState, Desired, Observation, StopCause};
use serde_json::{Value, json};

use super::copy::Stamps;
use super::harness::{intent, key, manifest};
use super::{Core, CoreConfig, Effect, Input};
use crate::ports::{CREATE_TIMEOUT_MS, Kind, Object, Op, OpId, Outcome, Request};

/// Numbers from a seed.
pub(super) struct Dice(u64);

impl Dice {
    /// A number below `bound`.
    pub(super) fn roll(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound.max(1)
    }

    fn pick(&mut self, len: usize) -> usize {
        usize::try_from(self.roll(u64::try_from(len).unwrap())).unwrap()
    }
}

/// An operation on its way.
#[derive(Debug)]
struct Flight {
    request: Request,
    sent: Millis,
    outcome: Option<Outcome>,
    /// The core was told that nobody knows.
    lost: bool,
}

/// A pod and what its kubelet runs of it.
#[derive(Clone, Debug)]
struct PodHere {
    job: String,
    placement: String,
    running: bool,
    deleting: bool,
}

/// The cluster, the hub's orders, and one core.
pub(super) struct World {
    pub(super) dice: Dice,
    core: Core,
    now: Now,
    boot: u64,
    version: u64,
    jobs: BTreeMap<ObjectKey, Value>,
    pods: BTreeMap<String, PodHere>,
    job_events: VecDeque<Input>,
    pod_events: VecDeque<Input>,
    flights: Vec<Flight>,
    observed: BTreeMap<PlacementId, Observation>,
    /// Placements, by their number, that the hub has given out: run and the last command.
    orders: Vec<(RunId, Option<Command>)>,
    revision: u64,
    /// Whether faults and meddling are still on.
    rough: bool,
    pub(super) log: Vec<String>,
}

const RUNS: u64 = 2;
const NAMES: [&str; 2] = ["a", "b"];

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut world = Self {
            dice: Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            core: Core::new(CoreConfig::default()),
            now: Now { wall: Millis(0), mono: Millis(0) },
            boot: 0,
            version: 100,
            jobs: BTreeMap::new(),
            pods: BTreeMap::new(),
            job_events: VecDeque::new(),
            pod_events: VecDeque::new(),
            flights: Vec::new(),
            observed: BTreeMap::new(),
            orders: Vec::new(),
            revision: 0,
            rough: true,
            log: Vec::new(),
        };
        world.restart();
        world
    }

    /// One random event.
    pub(super) fn step(&mut self) {
        match self.dice.roll(if self.rough { 19 } else { 9 }) {
            0 | 1 => self.deliver_watch(true),
            2 => self.deliver_watch(false),
            3 | 4 => self.carry_out(),
            6 => self.controller(),
            7 => self.kubelet(),
            8 => self.pass(),
            9..=11 => self.order(),
            12 => self.acknowledge(),
            13 => self.void(),
            14 => self.lose_answer(),
            15 => self.meddle(),
            16 => self.gap(),
            17 if self.dice.roll(4) == 0 => self.restart(),
            _ => self.feed(Input::Turn),
        }
        self.check();
    }

    /// Everything works again, and the hub wants all of it gone.
    pub(super) fn heal(&mut self) {
        self.rough = false;
        for number in 0..self.orders.len() {
            self.command(number, Desired::Stop(StopCause::Deleted));
        }
        for _ in 0..6_000 {
            self.step();
            self.acknowledge();
            let copies = self.jobs.values().any(|job| Stamps::read(job).is_some());
            let settling = self.core.rows.values().any(super::row::Row::creating);
            if !copies && !settling && self.flights.is_empty() {
                break;
            }
        }
        for _ in 0..200 {
            self.step();
            self.acknowledge();
        }
    }

    /// What must hold when the world has come to rest.
    pub(super) fn check_rest(&mut self) {
        let left: Vec<_> = self.jobs.values().filter(|job| Stamps::read(job).is_some()).collect();
        assert!(left.is_empty(), "copies are left: {left:?}");
        assert!(!self.pods.values().any(|pod| pod.running), "pods are left: {:?}", self.pods);
        for number in 0..self.orders.len() {
            let placement = placement(number);
            let said = self.observed.get(&placement).map(|seen| &seen.state);
            assert!(
                !matches!(said, Some(CopyState::Live(_) | CopyState::Stopping(_) | CopyState::Accepted)),
                "{placement}: {said:?}"
            );
            self.feed(Input::Withdrawn(placement));
        }
        self.feed(Input::Turn);
        assert!(self.core.rows.is_empty(), "rows are left: {:?}", self.core.rows);
        assert!(self.core.claims.is_empty() && self.core.by_key.is_empty() && self.core.by_run.is_empty());
    }

    /// What must hold at every moment.
    fn check(&self) {
        let mut live: BTreeMap<String, usize> = BTreeMap::new();
        for job in self.jobs.values() {
            let done = job["status"].get("conditions").is_some();
            if let Some(stamps) = Stamps::read(job).filter(|_| !done) {
                *live.entry(stamps.run.to_string()).or_default() += 1;
            }
        }
        assert!(live.values().all(|count| *count <= 1), "two live copies of one run: {live:?}");
        for (placement, seen) in &self.observed {
            let proof = matches!(seen.state, CopyState::Stopped(_) | CopyState::Refused(_));
            let runs = self.pods.values().any(|pod| pod.running && pod.placement == placement.as_str());
            assert!(!(proof && runs), "{placement} is said to be {:?} while it runs", seen.state);
        }
    }

    fn feed(&mut self, input: Input) {
        for effect in self.core.step(input, self.now) {
            match effect {
                Effect::Store(request) => {
                    self.note(&format!("ask {:?} {} {}", request.id, request.key, sort(&request.op)));
                    self.flights.push(Flight { request, sent: self.now.mono, outcome: None, lost: false });
                }
                Effect::Observe(placement, observation) => {
                    let state = format!("{:?}", observation.state);
                    self.note(&format!("say {placement} {}", state.get(..40).unwrap_or(&state)));
                    self.observed.insert(placement, observation);
                }
                Effect::Forget(placement) => {
                    self.note(&format!("forget {placement}"));
                    self.observed.remove(&placement);
                }
                Effect::Report(_) => {}
            }
        }
    }

    fn note(&mut self, what: &str) {
        self.log.push(format!("{} {what}", self.now.mono.0));
    }

    fn deliver_watch(&mut self, jobs: bool) {
        let queue = if jobs { &mut self.job_events } else { &mut self.pod_events };
        if let Some(event) = queue.pop_front() {
            self.note(&match &event {
                Input::Object(object) => format!("see {} {}", object.uid, object.version),
                Input::Gone { uid, .. } => format!("see {uid} gone"),
                _ => "see".to_owned(),
            });
            self.feed(event);
        }
    }

    /// The API server does one of the operations on their way, or answers one that it has done.
    fn carry_out(&mut self) {
        if self.flights.is_empty() {
            return;
        }
        let at = self.dice.pick(self.flights.len());
        let flight = &self.flights[at];
        let late = self.now.mono.since(flight.sent) > CREATE_TIMEOUT_MS;
        if flight.outcome.is_none() && !late {
            let request = flight.request.clone();
            let outcome = self.execute(&request);
            self.note(&format!("done {:?} {}", request.id, outcome_name(&outcome)));
            self.flights[at].outcome = Some(outcome);
            if self.flights[at].lost {
                self.flights.remove(at);
            }
            return;
        }
        let flight = self.flights.remove(at);
        let outcome = flight.outcome.unwrap_or_else(|| Outcome::Unknown("timed out".to_owned()));
        if !flight.lost {
            self.feed(Input::Outcome(flight.request.id, outcome));
        }
    }

    /// An answer is lost; what was asked may still happen while the API server has not given up on it.
    fn lose_answer(&mut self) {
        if self.flights.is_empty() {
            return;
        }
        let at = self.dice.pick(self.flights.len());
        if self.flights[at].lost {
            return;
        }
        let id: OpId = self.flights[at].request.id;
        self.note(&format!("lose {id:?}"));
        if self.flights[at].outcome.is_some() {
            self.flights.remove(at);
        } else {
            self.flights[at].lost = true;
        }
        self.feed(Input::Outcome(id, Outcome::Unknown("lost".to_owned())));
    }

    fn pass(&mut self) {
        let ms = [1, 60, 700, 4_000, 13_000][self.dice.pick(5)];
        self.now = Now { wall: self.now.wall.plus(ms), mono: self.now.mono.plus(ms) };
        self.feed(Input::Tick);
    }

    fn order(&mut self) {
        let fresh = self.orders.is_empty() || (self.orders.len() < 6 && self.dice.roll(3) == 0);
        if fresh {
            let run = format!("run-{}", self.dice.roll(RUNS));
            self.orders.push((run.as_str().into(), None));
        }
        let number = if fresh { self.orders.len() - 1 } else { self.dice.pick(self.orders.len()) };
        let name = NAMES[self.dice.pick(NAMES.len())];
        let known = self.orders[number].1.as_ref().and_then(|command| match &command.desired {
            Desired::Prepare(intent) | Desired::Start(intent) => Some(intent.clone()),
            Desired::Keep | Desired::Stop(_) => None,
        });
        let stopped =
            matches!(&self.orders[number].1, Some(last) if matches!(last.desired, Desired::Stop(_)));
        let intent = known.unwrap_or_else(|| intent(name, &manifest()));
        let desired = match self.dice.roll(4) {
            // A hub never starts again what it has ordered to stop.
            _ if stopped => Desired::Stop(StopCause::Deleted),
            0 => Desired::Prepare(intent),
            1 | 2 => Desired::Start(intent),
            _ => Desired::Stop(StopCause::Evicted),
        };
        self.command(number, desired);
    }

    fn command(&mut self, number: usize, desired: Desired) {
        self.revision += 1;
        let epoch = Epoch::new(1, u64::try_from(number).unwrap() + 1);
        let command = Command { run: self.orders[number].0.clone(), epoch, revision: self.revision, desired };
        self.note(&format!("order {} {}", placement(number), wish(&command.desired)));
        self.orders[number].1 = Some(command.clone());
        self.feed(Input::Command(placement(number), command));
    }

    fn acknowledge(&mut self) {
        if self.observed.is_empty() {
            return;
        }
        let at = self.dice.pick(self.observed.len());
        let Some((placement, seen)) = self.observed.iter().nth(at) else { return };
        let (placement, epoch, boot, version) = (placement.clone(), seen.epoch, seen.boot, seen.version);
        self.feed(Input::Acknowledged { placement, epoch, boot, version });
    }

    /// The session ends and another begins, which hands over again what is still in force.
    fn void(&mut self) {
        self.feed(Input::Void);
        let still = self.dice.roll(2) == 0;
        for number in 0..self.orders.len() {
            let command = self.orders[number].1.clone();
            if let Some(command) = command.filter(|_| still) {
                self.feed(Input::Command(placement(number), command));
            }
        }
    }

    /// The watches break; what happened meanwhile shows only as a difference between lists.
    fn gap(&mut self) {
        self.note("gap");
        let seen: Vec<String> = self
            .pod_events
            .drain(..)
            .filter_map(
                |event| if let Input::Gone { uid, .. } = event { Some(uid.to_string()) } else { None },
            )
            .collect();
        for uid in seen {
            self.version += 1;
            let version = self.version;
            self.feed(Input::Gone { kind: Kind::Pod, key: key(&uid), uid: uid.into(), version, last: None });
        }
        self.list_pods();
    }

    fn list_pods(&mut self) {
        for name in self.pods.keys().cloned().collect::<Vec<_>>() {
            self.pod_event(&name);
        }
        for event in std::mem::take(&mut self.pod_events) {
            self.feed(event);
        }
        self.feed(Input::Synced(Kind::Pod));
    }

    /// The agent dies; what had not reached the API server never will.
    fn restart(&mut self) {
        self.note("restart");
        self.boot += 1;
        self.core = Core::new(CoreConfig { boot: self.boot, ..CoreConfig::default() });
        self.flights.clear();
        self.observed.clear();
        self.job_events.clear();
        self.pod_events.clear();
        let node = json!({"status": {"allocatable": {"cpu": "64", "pods": "110"},
                                     "conditions": [{"type": "Ready", "status": "True"}]}});
        let policy = json!({"spec": {"namespaces": [{"name": "team-a", "serviceAccount": "t",
                            "kinds": ["batch/v1/Job"], "serviceAccounts": ["default"]}]}});
        for (kind, name, json) in [
            (Kind::Node, "n1", node),
            (Kind::Namespace, "team-a", json!({})),
            (Kind::SpokePolicy, "fairlead", policy),
        ] {
            let (key, version) = (ObjectKey::new("", name), self.version);
            self.feed(Input::Object(Object { kind, key, uid: name.into(), version, json: Arc::new(json) }));
            self.feed(Input::Synced(kind));
        }
        for (key, job) in self.jobs.clone() {
            self.feed(Input::Object(object(&key, &job)));
        }
        self.feed(Input::Synced(Kind::Job));
        self.feed(Input::Synced(Kind::ForeignJob));
        self.list_pods();
        for number in 0..self.orders.len() {
            if let Some(command) = self.orders[number].1.clone() {
                self.feed(Input::Command(placement(number), command));
            }
        }
    }

    fn any_job(&mut self) -> Option<(ObjectKey, Value)> {
        let ours: Vec<_> = self.jobs.iter().filter(|(_, job)| Stamps::read(job).is_some()).collect();
        if ours.is_empty() {
            return None;
        }
        let at = self.dice.pick(ours.len());
        let jobs: Vec<_> = self.jobs.iter().filter(|(_, job)| Stamps::read(job).is_some()).collect();
        jobs.get(at).map(|(key, job)| ((*key).clone(), (*job).clone()))
    }

    fn pod_event(&mut self, name: &str) {
        self.version += 1;
        let json = Arc::new(pod_json(name, &self.pods[name]));
        let (kind, version) = (Kind::Pod, self.version);
        self.pod_events.push_back(Input::Object(Object {
            kind,
            key: key(name),
            uid: name.into(),
            version,
            json,
        }));
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let from = self.log.len().saturating_sub(100);
            println!("the last of what happened:\n{}", self.log[from..].join("\n"));
        }
    }
}

fn placement(number: usize) -> PlacementId {
    PlacementId::of(Epoch::new(1, u64::try_from(number).unwrap() + 1))
}

fn text(job: &Value, field: &str) -> String {
    job["metadata"][field].as_str().unwrap_or_default().to_owned()
}

fn object(key: &ObjectKey, json: &Value) -> Object {
    let version = text(json, "resourceVersion").parse().unwrap_or(0);
    Object {
        kind: Kind::Job,
        key: key.clone(),
        uid: text(json, "uid").into(),
        version,
        json: Arc::new(json.clone()),
    }
}

fn pod_json(name: &str, pod: &PodHere) -> Value {
    let state = if pod.running { "running" } else { "terminated" };
    json!({
        "metadata": {"name": name, "labels": {
            "fairlead.dev/placement": pod.placement, "batch.kubernetes.io/controller-uid": pod.job,
        }},
        "spec": {"nodeName": "n1", "containers": [{}]},
        "status": {"phase": if pod.running { "Running" } else { "Succeeded" }, "containerStatuses": [{"state": {state: {}}}]},
    })
}

fn wish(desired: &Desired) -> &'static str {
    match desired {
        Desired::Prepare(_) => "prepare",
        Desired::Start(_) => "start",
        Desired::Keep => "keep",
        Desired::Stop(_) => "stop",
    }
}

fn sort(op: &Op) -> &'static str {
    match op {
        Op::Create(_) => "create",
        Op::Patch(_) => "patch",
        Op::Delete(_) => "delete",
        Op::Get => "get",
        Op::GetMetadata => "look-up",
    }
}

fn outcome_name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done(_) => "done",
        Outcome::Conflict => "conflict",
        Outcome::AlreadyExists => "exists",
        Outcome::NotFound => "not found",
        Outcome::Refused(_) => "refused",
        Outcome::Unknown(_) => "unknown",
    }
}
