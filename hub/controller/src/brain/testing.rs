//! A hub in memory: an API server that behaves as far as the brain can tell, spokes that answer or don't, and a clock
//! that stands still until a test moves it.

mod api;
mod objects;
mod spokes;

use std::collections::{BTreeMap, VecDeque};

use fairlead_model::{Incarnation, Leadership, Millis, Nonce, Now, ObjectKey, SpokeId, Term};
use fairlead_session::Desired;
use serde_json::Value;

pub(crate) use api::{Api, Fault};
pub(crate) use objects::{cluster, job, queue_set};
pub(crate) use spokes::{Manner, SpokeSim, ended};

use super::settings::Lifecycle;
use super::{Brain, BrainConfig, Effect, Input};
use crate::ports::{Kind, Op, SpokeEvent};

/// Picks an effect.
type Point = fn(&Effect) -> bool;

/// The hub, its API server and its spokes.
pub(crate) struct Hub {
    pub(crate) brain: Brain,
    pub(crate) api: Api,
    pub(crate) spokes: BTreeMap<SpokeId, SpokeSim>,
    pub(crate) now: Now,
    /// Everything that the brain asked for, in order.
    pub(crate) log: Vec<Effect>,
    pub(crate) inbox: VecDeque<Input>,
    term: u64,
    lifecycle: Lifecycle,
    /// Where the process dies: the effect, and whether it is still carried out.
    dies_at: Option<(Point, bool)>,
    dead: bool,
}

impl Hub {
    /// A hub with one federated queue `team/q` → `cq` of 8 cpus, and these spokes, all ready.
    pub(crate) fn with_spokes(names: &[&str]) -> Self {
        let mut hub = Self::empty();
        for object in queue_set("cq", "8", true) {
            hub.apply(object);
        }
        for name in names {
            hub.join(name);
        }
        hub.settle();
        hub
    }

    /// A hub without objects whose lists are complete.
    pub(crate) fn empty() -> Self {
        Self::with_lifecycle(Lifecycle::default())
    }

    /// The same, with these settings.
    pub(crate) fn with_lifecycle(lifecycle: Lifecycle) -> Self {
        let now = Now { wall: Millis(1_800_000_000_000), mono: Millis(1_000_000) };
        let mut hub = Self {
            brain: Brain::new(config(1, &lifecycle)),
            lifecycle,
            api: Api::default(),
            spokes: BTreeMap::new(),
            now,
            log: Vec::new(),
            inbox: VecDeque::new(),
            term: 1,
            dies_at: None,
            dead: false,
        };
        hub.sync();
        hub
    }

    fn sync(&mut self) {
        self.inbox.extend(self.api.list());
        self.inbox.extend(Kind::WATCHED.map(Input::Synced));
        self.settle();
    }

    /// Creates or replaces an object, as a user does.
    pub(crate) fn apply(&mut self, (kind, json): (Kind, Value)) {
        self.api.apply(kind, json, self.now.wall);
    }

    /// Registers a cluster and brings up its session, with 8 cpus free on one node.
    pub(crate) fn join(&mut self, name: &str) {
        self.apply(cluster(name));
        let id = SpokeId::new(format!("uid-{name}"));
        self.spokes.insert(id, SpokeSim::new(name));
        self.connect(name);
    }

    /// The spoke's session comes up: its inventory, then its capacity.
    pub(crate) fn connect(&mut self, name: &str) {
        let id = SpokeId::new(format!("uid-{name}"));
        let events = self.spokes.get_mut(&id).unwrap().connect();
        self.inbox.extend(events.into_iter().map(|event| Input::Spoke(id.clone(), event)));
        self.settle();
    }

    pub(crate) fn disconnect(&mut self, name: &str) {
        let id = SpokeId::new(format!("uid-{name}"));
        self.spokes.get_mut(&id).unwrap().connected = false;
        self.inbox.push_back(Input::Spoke(id, SpokeEvent::Disconnected));
        self.settle();
    }

    pub(crate) fn spoke(&mut self, name: &str) -> &mut SpokeSim {
        self.spokes.get_mut(&SpokeId::new(format!("uid-{name}"))).unwrap()
    }

    /// Lets something happen on a spoke, and everything that follows.
    pub(crate) fn on_spoke(&mut self, name: &str, act: impl FnOnce(&mut SpokeSim)) {
        act(self.spoke(name));
        self.settle();
    }

    /// Submits a one-pod Job of these cpus to `team/q` and lets everything happen that follows at once.
    pub(crate) fn submit(&mut self, name: &str, cpus: &str) {
        self.apply(job(name, cpus));
        self.settle();
    }

    /// The same, with a fault that meets the first status write of the Workload: the commit.
    pub(crate) fn submit_but(&mut self, name: &str, cpus: &str, fault: Option<Fault>) {
        self.api.commit_fault = fault;
        self.submit(name, cpus);
    }

    /// Runs until nothing more happens at this instant.
    pub(crate) fn settle(&mut self) {
        for _ in 0..200_000 {
            self.inbox.extend(self.api.drain());
            for (id, spoke) in &mut self.spokes {
                self.inbox.extend(spoke.drain().map(|event| Input::Spoke(id.clone(), event)));
            }
            let input = self.inbox.pop_front();
            let last = input.is_none();
            let effects = self.brain.step(input.unwrap_or(Input::Turn), self.now);
            let quiet = effects.is_empty();
            for effect in effects {
                self.carry_out(effect);
            }
            if last && quiet && self.inbox.is_empty() && !self.api.has_news() {
                return;
            }
        }
        panic!("the hub does not come to rest");
    }

    /// The process dies right after the first such effect was carried out.
    pub(crate) fn stop_after(&mut self, point: Point) {
        self.dies_at = Some((point, true));
    }

    /// The process dies right before the first such effect.
    pub(crate) fn stop_before(&mut self, point: Point) {
        self.dies_at = Some((point, false));
    }

    /// Effects are carried out again.
    pub(crate) fn go_on(&mut self) {
        assert!(self.dead, "the point was never reached");
        self.dies_at = None;
        self.dead = false;
    }

    pub(crate) fn carry_out(&mut self, effect: Effect) {
        if self.dead {
            return;
        }
        if let Some((point, carried_out)) = self.dies_at
            && point(&effect)
        {
            self.dead = true;
            if !carried_out {
                return;
            }
        }
        self.log.push(effect.clone());
        match effect {
            Effect::Store(request) => {
                let outcome = self.api.execute(&request, self.now.wall);
                if request.kind != Kind::Event && !self.dead {
                    self.inbox.push_back(Input::Outcome(request.id, outcome));
                }
            }
            Effect::Command { spoke, placement, command } => {
                if let Some(spoke) = self.spokes.get_mut(&spoke) {
                    spoke.command(placement, command);
                }
            }
            Effect::Withdraw { spoke, placement } => {
                if let Some(spoke) = self.spokes.get_mut(&spoke) {
                    spoke.withdraw(&placement);
                }
            }
            Effect::Acknowledge { spoke, ack } => {
                if let Some(spoke) = self.spokes.get_mut(&spoke) {
                    spoke.acknowledged(&ack);
                }
            }
            Effect::Measure(_) | Effect::Record { .. } | Effect::Warn(_) | Effect::Fatal(_) => {}
        }
    }

    /// Moves the clock, with heartbeats of connected spokes every 10 s and a tick whenever one is due.
    pub(crate) fn advance(&mut self, ms: i64) {
        let end = self.now.mono.plus(ms);
        let mut beat = Millis((self.now.mono.0 / 10_000 + 1) * 10_000);
        while self.now.mono < end {
            let wake = self.brain.next_wake().filter(|wake| *wake > self.now.mono).unwrap_or(end);
            let next = wake.min(beat).min(end);
            let step = next.since(self.now.mono);
            self.now = Now { wall: self.now.wall.plus(step), mono: next };
            if next >= beat {
                beat = beat.plus(10_000);
                let alive =
                    self.spokes.iter().filter(|(_, spoke)| spoke.connected && spoke.manner != Manner::Hung);
                self.inbox.extend(alive.map(|(id, _)| Input::Spoke(id.clone(), SpokeEvent::Heartbeat)));
            }
            self.inbox.push_back(Input::Tick);
            self.settle();
        }
    }

    /// The process dies, and another takes over: a new term, nothing in memory, sessions anew.
    pub(crate) fn restart(&mut self) {
        self.crash();
        self.recover();
    }

    /// The process dies. What it had asked for and was not carried out is lost.
    pub(crate) fn crash(&mut self) {
        self.inbox.clear();
        self.api.drain().for_each(drop);
        for spoke in self.spokes.values_mut() {
            spoke.drain().for_each(drop);
            spoke.connected = false;
        }
    }

    /// A new process takes over, and no spoke has found it yet.
    pub(crate) fn restart_without_connecting(&mut self) {
        self.crash();
        self.term += 1;
        self.brain = Brain::new(config(self.term, &self.lifecycle));
        self.api.drain().for_each(drop);
        self.sync();
    }

    /// A new process takes over and gets every list but one.
    pub(crate) fn recover_partly(&mut self, but: Kind) {
        self.term += 1;
        self.brain = Brain::new(config(self.term, &self.lifecycle));
        self.api.drain().for_each(drop);
        self.inbox.extend(self.api.list());
        self.inbox.extend(Kind::WATCHED.into_iter().filter(|kind| *kind != but).map(Input::Synced));
        self.settle();
    }

    /// A new process takes over.
    pub(crate) fn recover(&mut self) {
        self.restart_without_connecting();
        let names: Vec<String> = self.spokes.values().map(|spoke| spoke.name.clone()).collect();
        for name in names {
            self.connect(&name);
        }
    }

    /// The last finalizer of an object that is being deleted goes, and with it the object.
    pub(crate) fn take_finalizers(&mut self, kind: Kind, name: &str) {
        let key = ObjectKey::new("team", name);
        let op = Op::Patch(serde_json::json!({"metadata": {"finalizers": []}}));
        let request = crate::ports::Request { id: crate::ports::OpId(0), kind, key, op, commit: false };
        self.api.execute(&request, self.now.wall);
        self.settle();
    }

    /// What the Job controller of the hub's own cluster writes.
    pub(crate) fn job_status(&mut self, name: &str, status: Value) {
        self.api.set_status(Kind::Job, "team", name, status);
        self.settle();
    }

    /// Another writer changes the Workload of a job.
    pub(crate) fn change_workload(&mut self, job: &str, change: impl FnOnce(&mut Value)) {
        let mut workload = self.workload(job);
        change(&mut workload);
        let name = workload["metadata"]["name"].as_str().unwrap().to_owned();
        let status = workload["status"].clone();
        if workload["spec"] != self.workload(job)["spec"] {
            self.apply((Kind::Workload, workload));
        }
        self.api.set_status(Kind::Workload, "team", &name, status);
        self.settle();
    }

    pub(crate) fn job(&self, name: &str) -> Value {
        self.api.get(Kind::Job, "team", name).unwrap_or(Value::Null)
    }

    /// The Workload of a job that still exists.
    pub(crate) fn workload(&self, job: &str) -> Value {
        self.api.find(Kind::Workload, |workload| owner(workload) == job).unwrap_or(Value::Null)
    }

    /// Status of a condition, or an empty text.
    pub(crate) fn condition(object: &Value, kind: &str) -> (String, String) {
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.into_iter().find(|c| c["type"] == kind).unwrap_or_default();
        let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
        (text("status"), text("reason"))
    }

    pub(crate) fn is(&self, job: &str, kind: &str) -> bool {
        Self::condition(&self.workload(job), kind).0 == "True"
    }

    /// The reason why a job waits: the condition's and our own token.
    pub(crate) fn why(&self, job: &str) -> (String, String) {
        let workload = self.workload(job);
        let token = workload["status"]["verdict"]["code"].as_str().unwrap_or_default().to_owned();
        (Self::condition(&workload, "QuotaReserved").1, token)
    }

    pub(crate) fn cluster_of(&self, job: &str) -> String {
        self.workload(job)["status"]["clusterName"].as_str().unwrap_or_default().to_owned()
    }

    /// Reasons of Events about a job, in order.
    pub(crate) fn events(&self, job: &str) -> Vec<String> {
        let about = |event: &Value| event["regarding"]["name"] == job;
        let events = self.api.all(Kind::Event);
        let mut events: Vec<Value> = events.into_iter().filter(about).collect();
        events.sort_by_key(|event| {
            event["metadata"]["resourceVersion"].as_str().and_then(|version| version.parse::<u64>().ok())
        });
        events.iter().map(|event| event["reason"].as_str().unwrap().to_owned()).collect()
    }

    /// How many writes of this kind the brain made since `from`.
    pub(crate) fn writes(&self, from: usize, kind: Kind) -> usize {
        let write = |effect: &&Effect| matches!(effect, Effect::Store(request) if request.kind == kind && request.op != Op::Get);
        self.log.iter().skip(from).filter(write).count()
    }

    /// Commands sent to a spoke, by what they wanted.
    pub(crate) fn commands(&self, spoke: &str) -> Vec<&'static str> {
        let id = SpokeId::new(format!("uid-{spoke}"));
        let name = |effect: &Effect| match effect {
            Effect::Command { spoke, command, .. } if *spoke == id => Some(match command.desired {
                Desired::Prepare(_) => "Prepare",
                Desired::Start(_) => "Start",
                Desired::Keep => "Keep",
                Desired::Stop(_) => "Stop",
            }),
            _ => None,
        };
        self.log.iter().filter_map(name).collect()
    }

    pub(crate) fn delete(&mut self, kind: Kind, namespace: &str, name: &str) {
        self.api.delete(kind, &ObjectKey::new(namespace, name), self.now.wall);
    }
}

fn owner(workload: &Value) -> &str {
    workload["metadata"]["ownerReferences"][0]["name"].as_str().unwrap_or_default()
}

fn config(term: u64, lifecycle: &Lifecycle) -> BrainConfig {
    let leadership = Leadership {
        incarnation: Incarnation(1),
        term: Term(term),
        nonce: Nonce(format!("nonce-{term}").into()),
    };
    BrainConfig { lifecycle: lifecycle.clone(), ..BrainConfig::new(leadership) }
}
