//! A cluster in memory around one core: enough of an API server to create, patch and delete Jobs as the real one
//! does, with the test playing the Job controller, the kubelets and the garbage collector.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairlead_model::{Epoch, Incarnation, Leadership, Millis, Nonce, Now, ObjectKey, PlacementId, Term, Uid};
use fairlead_session::{Command, CopyState, Desired, Intent, Observation, Report, StopCause};
use serde_json::{Value, json};

use super::{Core, CoreConfig, Effect, Input};
use crate::ports::{Kind, Object, Op, Outcome, Request};

/// What goes wrong with the next operation of a sort.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fault {
    /// It happens, but the answer is lost.
    AnswerLost,
    /// It does not happen, and the answer is lost.
    NeverArrived,
    /// The API server refuses.
    Refused(&'static str),
    /// Somebody else has written meanwhile.
    Conflict,
}

/// One cluster with one agent.
pub(super) struct Spoke {
    pub(super) core: Core,
    pub(super) now: Now,
    pub(super) jobs: BTreeMap<ObjectKey, Value>,
    pub(super) exists: BTreeSet<(Kind, &'static str)>,
    pub(super) observed: BTreeMap<PlacementId, Observation>,
    pub(super) forgotten: Vec<PlacementId>,
    pub(super) reports: Vec<Report>,
    pub(super) requests: Vec<Request>,
    pub(super) faults: Vec<(&'static str, Fault)>,
    /// Something on this cluster suspends new Jobs.
    pub(super) suspends: bool,
    pub(super) revision: u64,
    waiting: Vec<Request>,
    version: u64,
    boot: u64,
}

pub(super) fn key(name: &str) -> ObjectKey {
    ObjectKey::new("team-a", name)
}

pub(super) fn manifest() -> Value {
    json!({
        "metadata": {"name": "train"},
        "spec": {"parallelism": 1, "template": {"spec": {"containers": [
            {"name": "c", "resources": {"requests": {"cpu": "1"}}},
        ]}}},
    })
}

pub(super) fn intent(name: &str, manifest: &Value) -> Intent {
    Intent {
        kind: "batch/v1/Job".into(),
        namespace: "team-a".into(),
        name: name.into(),
        manifest: serde_json::to_vec(manifest).unwrap().into(),
        demand: Vec::new(),
    }
}

pub(super) fn placement(seq: u64) -> PlacementId {
    PlacementId::of(Epoch::new(1, seq))
}

impl Spoke {
    /// A cluster with one node of 8 CPUs, namespace and policy for team-a, and a core that has listed all of it.
    pub(super) fn new() -> Self {
        let mut spoke = Self::unlisted();
        spoke.list();
        spoke
    }

    /// The same, with nothing handed to the core yet.
    pub(super) fn unlisted() -> Self {
        Self {
            core: Core::new(CoreConfig { boot: 1, ..CoreConfig::default() }),
            now: Now { wall: Millis(1_700_000_000_000), mono: Millis(1_000) },
            jobs: BTreeMap::new(),
            exists: BTreeSet::from([(Kind::ServiceAccount, "default")]),
            observed: BTreeMap::new(),
            forgotten: Vec::new(),
            reports: Vec::new(),
            requests: Vec::new(),
            faults: Vec::new(),
            suspends: false,
            revision: 0,
            waiting: Vec::new(),
            version: 100,
            boot: 1,
        }
    }

    /// The agent dies and starts again: a new core that knows only what is listed.
    pub(super) fn restart(&mut self) {
        self.boot += 1;
        self.core = Core::new(CoreConfig { boot: self.boot, ..CoreConfig::default() });
        self.waiting.clear();
        self.observed.clear();
        self.list();
    }

    /// Lists everything but pods, which tests add themselves before this.
    pub(super) fn list(&mut self) {
        self.establish(1);
        self.node("n1", "8", true);
        let labels = json!({"metadata": {"name": "team-a"}});
        self.upsert(Kind::Namespace, &ObjectKey::new("", "team-a"), "ns", labels);
        let policy = json!({"spec": {"namespaces": [{
            "name": "team-a", "serviceAccount": "fairlead-tenant", "kinds": ["batch/v1/Job"],
            "secrets": ["pull"], "serviceAccounts": ["default"],
        }]}});
        self.upsert(Kind::SpokePolicy, &ObjectKey::new("", "fairlead"), "policy", policy);
        for (key, job) in self.jobs.clone() {
            self.job_event(&key, &job);
        }
        for kind in Kind::WATCHED {
            self.feed(Input::Synced(kind));
        }
        self.run();
    }

    pub(super) fn establish(&mut self, term: u64) {
        let nonce = Nonce("n".into());
        self.feed(Input::Established(Leadership { incarnation: Incarnation(1), term: Term(term), nonce }));
    }

    pub(super) fn feed(&mut self, input: Input) {
        for effect in self.core.step(input, self.now) {
            match effect {
                Effect::Store(request) => {
                    self.requests.push(request.clone());
                    self.waiting.push(request);
                }
                Effect::Observe(placement, observation) => {
                    self.observed.insert(placement, observation);
                }
                Effect::Forget(placement) => {
                    self.observed.remove(&placement);
                    self.forgotten.push(placement);
                }
                Effect::Report(report) => self.reports.push(report),
            }
        }
    }

    /// Turns and carries out operations until nothing more happens.
    pub(super) fn run(&mut self) {
        for _ in 0..100 {
            self.feed(Input::Turn);
            if self.waiting.is_empty() {
                return;
            }
            for request in std::mem::take(&mut self.waiting) {
                let outcome = self.execute(&request);
                self.feed(Input::Outcome(request.id, outcome));
            }
        }
        panic!("the core does not come to rest: {:?}", self.requests.last());
    }

    /// One turn, whose operations are not carried out yet.
    pub(super) fn turn_only(&mut self) {
        self.feed(Input::Turn);
    }

    /// Lets time pass, waking the core whenever it asks to be.
    pub(super) fn pass(&mut self, ms: i64) {
        let end = self.now.mono.plus(ms);
        for _ in 0..1000 {
            let Some(at) = self.core.next_wake().filter(|at| *at <= end) else { break };
            let step = at.since(self.now.mono).max(0);
            self.now = Now { wall: self.now.wall.plus(step), mono: self.now.mono.plus(step) };
            self.feed(Input::Tick);
            self.run();
        }
        let rest = end.since(self.now.mono);
        self.now = Now { wall: self.now.wall.plus(rest), mono: end };
        self.feed(Input::Tick);
        self.run();
    }

    pub(super) fn command(&mut self, seq: u64, run: &str, desired: Desired) {
        self.revision += 1;
        let command =
            Command { run: run.into(), epoch: Epoch::new(1, seq), revision: self.revision, desired };
        self.feed(Input::Command(placement(seq), command));
        self.run();
    }

    pub(super) fn prepare(&mut self, seq: u64, run: &str, name: &str) {
        self.command(seq, run, Desired::Prepare(intent(name, &manifest())));
    }

    pub(super) fn start(&mut self, seq: u64, run: &str, name: &str) {
        self.command(seq, run, Desired::Start(intent(name, &manifest())));
    }

    pub(super) fn stop(&mut self, seq: u64, run: &str) {
        self.command(seq, run, Desired::Stop(StopCause::Deleted));
    }

    pub(super) fn acknowledge(&mut self, seq: u64) {
        let placement = placement(seq);
        let seen = self.observed[&placement].clone();
        let (epoch, boot, version) = (seen.epoch, seen.boot, seen.version);
        self.feed(Input::Acknowledged { placement, epoch, boot, version });
        self.run();
    }

    pub(super) fn state(&self, seq: u64) -> Option<CopyState> {
        self.observed.get(&placement(seq)).map(|observation| observation.state.clone())
    }

    /// How many operations of this sort have been asked for.
    pub(super) fn count(&self, sort: &str) -> usize {
        self.requests.iter().filter(|request| sort_of(request) == sort).count()
    }

    pub(super) fn upsert(&mut self, kind: Kind, key: &ObjectKey, uid: &str, json: Value) {
        self.version += 1;
        let object =
            Object { kind, key: key.clone(), uid: uid.into(), version: self.version, json: Arc::new(json) };
        self.feed(Input::Object(object));
    }

    /// The watch brings this Job in this version, whatever the cluster holds.
    pub(super) fn upsert_job(&mut self, name: &str, uid: &str, version: u64, json: Value) {
        let json = Arc::new(json);
        self.feed(Input::Object(Object { kind: Kind::Job, key: key(name), uid: uid.into(), version, json }));
    }

    pub(super) fn gone(&mut self, kind: Kind, key: &ObjectKey, uid: &str, last: Option<Value>) {
        self.version += 1;
        let (key, version, last) = (key.clone(), self.version, last.map(Arc::new));
        self.feed(Input::Gone { kind, key, uid: uid.into(), version, last });
        self.run();
    }

    pub(super) fn node(&mut self, name: &str, cpu: &str, ready: bool) {
        let status = if ready { "True" } else { "Unknown" };
        let json = json!({"metadata": {"name": name}, "status": {
            "allocatable": {"cpu": cpu, "pods": "110"}, "conditions": [{"type": "Ready", "status": status}],
        }});
        self.upsert(Kind::Node, &ObjectKey::new("", name), name, json);
        self.run();
    }

    /// A pod of a copy: `running` on node n1, or terminated there.
    pub(super) fn pod(&mut self, uid: &str, job: &str, seq: u64, running: bool) -> Value {
        let state = if running { "running" } else { "terminated" };
        let json = json!({
            "metadata": {"name": uid, "labels": {
                "fairlead.dev/placement": placement(seq).as_str(), "batch.kubernetes.io/controller-uid": job,
            }},
            "spec": {"nodeName": "n1", "containers": [{"resources": {"requests": {"cpu": "1"}}}]},
            "status": {"phase": if running { "Running" } else { "Failed" }, "containerStatuses": [{"state": {state: {}}}]},
        });
        self.upsert(Kind::Pod, &key(uid), uid, json.clone());
        self.run();
        json
    }

    /// The Job's UID.
    pub(super) fn uid(&self, name: &str) -> String {
        self.jobs[&key(name)]["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    /// The Job controller writes a status.
    pub(super) fn status(&mut self, name: &str, status: Value) {
        self.edit(name, |job| job["status"] = status);
    }

    /// The garbage collector has seen the last pod go.
    pub(super) fn collected(&mut self, name: &str) {
        self.edit(name, |job| {
            let finalizers = job["metadata"]["finalizers"].as_array_mut().unwrap();
            finalizers.retain(|finalizer| finalizer != "foregroundDeletion");
        });
    }

    /// Somebody changes the Job.
    pub(super) fn edit(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        let key = key(name);
        let mut job = self.jobs[&key].clone();
        change(&mut job);
        self.put(&key, job);
        self.run();
    }

    /// Stores a new version of a Job, or removes it when nothing holds it any more.
    fn put(&mut self, key: &ObjectKey, mut job: Value) -> Value {
        self.version += 1;
        job["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let deleting = job["metadata"].get("deletionTimestamp").is_some();
        let held = job["metadata"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
        if deleting && !held {
            self.jobs.remove(key);
            let uid = job["metadata"]["uid"].as_str().unwrap().to_owned();
            let last = Some(Arc::new(job.clone()));
            let (kind, key, version) = (Kind::Job, key.clone(), self.version);
            self.feed(Input::Gone { kind, key, uid: Uid::from(uid), version, last });
        } else {
            self.jobs.insert(key.clone(), job.clone());
            self.job_event(key, &job);
        }
        job
    }

    fn job_event(&mut self, key: &ObjectKey, job: &Value) {
        if job["metadata"]["labels"].get("fairlead.dev/placement").is_some() {
            self.feed(Input::Object(object(key, job)));
        }
    }

    fn execute(&mut self, request: &Request) -> Outcome {
        let sort = sort_of(request);
        let fault = self.faults.iter().position(|(of, _)| *of == sort).map(|at| self.faults.remove(at).1);
        match fault {
            Some(Fault::Refused(message)) => return Outcome::Refused(message.to_owned()),
            Some(Fault::Conflict) => return Outcome::Conflict,
            Some(Fault::NeverArrived) => return Outcome::Unknown("no answer".to_owned()),
            Some(Fault::AnswerLost) => {
                self.carry_out(request);
                return Outcome::Unknown("no answer".to_owned());
            }
            None => {}
        }
        self.carry_out(request)
    }

    fn carry_out(&mut self, request: &Request) -> Outcome {
        let key = &request.key;
        match &request.op {
            Op::Create(_) if self.jobs.contains_key(key) => Outcome::AlreadyExists,
            Op::Create(json) => {
                let mut job = json.clone();
                self.version += 1;
                job["metadata"]["uid"] = json!(format!("uid-{}", self.version));
                if self.suspends {
                    job["spec"]["suspend"] = json!(true);
                }
                let job = self.put(key, job);
                Outcome::Done(object(key, &job))
            }
            Op::Get | Op::GetMetadata if request.kind != Kind::Job => {
                let there =
                    self.exists.iter().any(|(kind, name)| *kind == request.kind && **name == *key.name);
                if there { Outcome::Done(object(key, &json!({"metadata": {}}))) } else { Outcome::NotFound }
            }
            Op::Get | Op::GetMetadata => match self.jobs.get(key) {
                Some(job) => Outcome::Done(object(key, job)),
                None => Outcome::NotFound,
            },
            Op::Patch(patch) => {
                let Some(mut job) = self.jobs.get(key).cloned() else { return Outcome::NotFound };
                let wanted = &patch["metadata"]["resourceVersion"];
                if !wanted.is_null() && *wanted != job["metadata"]["resourceVersion"] {
                    return Outcome::Conflict;
                }
                job["metadata"]["finalizers"] = patch["metadata"]["finalizers"].clone();
                let job = self.put(key, job);
                Outcome::Done(object(key, &job))
            }
            Op::Delete(uid) => {
                let Some(mut job) = self.jobs.get(key).cloned() else { return Outcome::NotFound };
                if job["metadata"]["uid"] != uid.as_str() {
                    return Outcome::Conflict;
                }
                job["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
                if let Some(finalizers) = job["metadata"]["finalizers"].as_array_mut() {
                    finalizers.push(json!("foregroundDeletion"));
                }
                let job = self.put(key, job);
                Outcome::Done(object(key, &job))
            }
        }
    }
}

fn sort_of(request: &Request) -> &'static str {
    match request.op {
        Op::Create(_) => "create",
        Op::Patch(_) => "patch",
        Op::Delete(_) => "delete",
        Op::Get => "get",
        Op::GetMetadata => "look-up",
    }
}

fn object(key: &ObjectKey, json: &Value) -> Object {
    let text = |field: &str| json["metadata"][field].as_str().unwrap_or_default().to_owned();
    Object {
        kind: Kind::Job,
        key: key.clone(),
        uid: Uid::from(text("uid")),
        version: text("resourceVersion").parse().unwrap_or(0),
        json: Arc::new(json.clone()),
    }
}
