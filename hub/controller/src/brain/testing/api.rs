//! An API server in memory: versions, UIDs, merge patches, preconditions, finalizers, status subresources.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use fairlead_model::{Millis, ObjectKey, Uid};
use serde_json::{Value, json};

use crate::brain::Input;
use crate::jobs::json;
use crate::jobs::status::rfc3339;
use crate::ports::{Kind, Object, Op, Outcome, Request};

/// What goes wrong with the next write of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It happens, and the answer is lost.
    LostAnswer,
    /// It does not happen, and nobody can tell.
    LostRequest,
    /// Nothing was sent.
    NotSent,
}

#[derive(Default)]
pub(crate) struct Api {
    objects: BTreeMap<(Kind, ObjectKey), Value>,
    version: u64,
    news: VecDeque<Input>,
    /// Faults of the next writes of a kind.
    pub(crate) faults: VecDeque<(Kind, Fault)>,
    /// Fault of the next commit.
    pub(crate) commit_fault: Option<Fault>,
    /// While it is set, watches bring nothing.
    pub(crate) watch_is_slow: bool,
}

impl Api {
    pub(crate) fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<Value> {
        self.objects.get(&(kind, ObjectKey::new(namespace, name))).cloned()
    }

    pub(crate) fn all(&self, kind: Kind) -> Vec<Value> {
        self.objects.iter().filter(|((of, _), _)| *of == kind).map(|(_, json)| json.clone()).collect()
    }

    /// The first object of a kind that is wanted.
    pub(crate) fn find(&self, kind: Kind, wanted: impl Fn(&Value) -> bool) -> Option<Value> {
        let mut objects = self.objects.iter().filter(|((of, _), _)| *of == kind);
        objects.find(|(_, json)| wanted(json)).map(|(_, json)| json.clone())
    }

    /// Everything there is, as a first listing gives it.
    pub(crate) fn list(&self) -> Vec<Input> {
        let objects = self.objects.iter().filter(|((kind, _), _)| *kind != Kind::Event);
        objects.map(|((kind, key), json)| Input::Object(object(*kind, key, json))).collect()
    }

    pub(crate) fn has_news(&self) -> bool {
        !self.news.is_empty() && !self.watch_is_slow
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Input> + use<> {
        let news = if self.watch_is_slow { VecDeque::new() } else { std::mem::take(&mut self.news) };
        news.into_iter()
    }

    /// What a user does: create, or replace all but the status.
    pub(crate) fn apply(&mut self, kind: Kind, mut json: Value, now: Millis) {
        let key = key_of(&json);
        let id = (kind, key.clone());
        let uid = json["metadata"]["uid"].as_str().map(str::to_owned);
        let (uid, generation, status, created) = if let Some(old) = self.objects.get(&id) {
            (
                old["metadata"]["uid"].as_str().unwrap().to_owned(),
                old["metadata"]["generation"].as_i64().unwrap_or(1) + 1,
                old.get("status").cloned(),
                old["metadata"]["creationTimestamp"].clone(),
            )
        } else {
            let uid = uid.unwrap_or_else(|| format!("uid-{:05}", self.version + 1));
            (uid, 1, json.get("status").cloned(), rfc3339(now).into())
        };
        json["metadata"]["uid"] = uid.into();
        json["metadata"]["generation"] = generation.into();
        json["metadata"]["creationTimestamp"] = created;
        if let Some(status) = status {
            json["status"] = status;
        }
        self.store(kind, key, json);
    }

    /// What another controller writes.
    pub(crate) fn set_status(&mut self, kind: Kind, namespace: &str, name: &str, status: Value) {
        let key = ObjectKey::new(namespace, name);
        let mut json = self.objects[&(kind, key.clone())].clone();
        json["status"] = status;
        self.store(kind, key, json);
    }

    /// Every object of a kind is lost, as when a backup is restored.
    pub(crate) fn forget_all(&mut self, kind: Kind) {
        self.objects.retain(|(of, _), _| *of != kind);
    }

    pub(crate) fn delete(&mut self, kind: Kind, key: &ObjectKey, now: Millis) -> Option<Object> {
        let mut json = self.objects.get(&(kind, key.clone()))?.clone();
        if json::list(&json, &["metadata", "finalizers"]).is_empty() {
            return Some(self.remove(kind, key, &json));
        }
        if json["metadata"].get("deletionTimestamp").is_none() {
            json["metadata"]["deletionTimestamp"] = rfc3339(now).into();
        }
        Some(self.store(kind, key.clone(), json))
    }

    pub(crate) fn execute(&mut self, request: &Request, now: Millis) -> Outcome {
        let fault = match self.faults.front() {
            Some((kind, fault)) if *kind == request.kind && request.op != Op::Get => Some(*fault),
            _ => None,
        };
        if fault.is_some() {
            self.faults.pop_front();
        }
        let fault = if request.commit { self.commit_fault.take().or(fault) } else { fault };
        match fault {
            Some(Fault::LostRequest) => return Outcome::Unknown("timed out".into()),
            Some(Fault::NotSent) => return Outcome::NotSent,
            Some(Fault::LostAnswer) | None => {}
        }
        let outcome = self.carry_out(request, now);
        if fault == Some(Fault::LostAnswer) { Outcome::Unknown("timed out".into()) } else { outcome }
    }

    fn carry_out(&mut self, request: &Request, now: Millis) -> Outcome {
        let (kind, key) = (request.kind, &request.key);
        let stored = self.objects.get(&(kind, key.clone())).cloned();
        match (&request.op, stored) {
            (Op::Create(_), Some(_)) => Outcome::AlreadyExists,
            (Op::Create(json), None) => {
                assert_no_nulls(json);
                self.apply(kind, json.clone(), now);
                let json = self.objects.get(&(kind, key.clone())).unwrap();
                Outcome::Done(object(kind, key, json))
            }
            (_, None) => Outcome::NotFound,
            (Op::Get, Some(json)) => Outcome::Done(object(kind, key, &json)),
            (Op::Delete(uid), Some(json)) => {
                if json["metadata"]["uid"] != uid.as_str() {
                    return Outcome::Conflict;
                }
                Outcome::Done(self.delete(kind, key, now).unwrap())
            }
            (Op::Patch(patch), Some(json)) => self.patch(request, &json, patch, false),
            (Op::PatchStatus(patch), Some(json)) => self.patch(request, &json, patch, true),
            (Op::PutStatus(next), Some(json)) => {
                assert!(next["metadata"]["resourceVersion"].is_string(), "an unconditional replacement");
                assert_no_nulls(next);
                let status = json::merge_patch(&json["status"], &next["status"]).unwrap_or_else(|| json!({}));
                let patch = json!({"metadata": next["metadata"], "status": status});
                self.patch(request, &json, &patch, true)
            }
        }
    }

    fn patch(&mut self, request: &Request, json: &Value, patch: &Value, status: bool) -> Outcome {
        let meant = |field: &str| patch["metadata"][field].as_str();
        let differs = |field: &str| meant(field).is_some_and(|meant| json["metadata"][field] != meant);
        if differs("uid") || differs("resourceVersion") {
            return Outcome::Conflict;
        }
        let mut next = json.clone();
        if status {
            json::apply_merge_patch(&mut next, &json!({"status": patch["status"]}));
            if request.kind == Kind::Job {
                assert_job_status(json, &next);
            }
            if request.kind == Kind::Workload {
                assert_workload_status(json, &next);
            }
        } else {
            json::apply_merge_patch(&mut next, patch);
            next["status"] = json["status"].clone();
            if next["spec"] != json["spec"] {
                next["metadata"]["generation"] =
                    (json["metadata"]["generation"].as_i64().unwrap() + 1).into();
            }
        }
        let deleting = next["metadata"].get("deletionTimestamp").is_some();
        if deleting && json::list(&next, &["metadata", "finalizers"]).is_empty() {
            return Outcome::Done(self.remove(request.kind, &request.key, &next));
        }
        Outcome::Done(self.store(request.kind, request.key.clone(), next))
    }

    fn store(&mut self, kind: Kind, key: ObjectKey, mut json: Value) -> Object {
        self.version += 1;
        json["metadata"]["resourceVersion"] = self.version.to_string().into();
        let object = object(kind, &key, &json);
        self.objects.insert((kind, key), json);
        if kind != Kind::Event {
            self.news.push_back(Input::Object(object.clone()));
        }
        object
    }

    fn remove(&mut self, kind: Kind, key: &ObjectKey, last: &Value) -> Object {
        self.version += 1;
        self.objects.remove(&(kind, key.clone()));
        let mut last = object(kind, key, last);
        last.version = self.version;
        let (uid, version) = (last.uid.clone(), last.version);
        self.news.push_back(Input::Gone { kind, key: key.clone(), uid, version });
        last
    }
}

fn object(kind: Kind, key: &ObjectKey, json: &Value) -> Object {
    let version =
        json["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or(0);
    let uid = Uid::new(json["metadata"]["uid"].as_str().unwrap_or_default());
    Object { kind, key: key.clone(), uid, version, json: Arc::new(json.clone()) }
}

fn key_of(json: &Value) -> ObjectKey {
    let text = |field: &str| json["metadata"][field].as_str().unwrap_or_default();
    ObjectKey::new(text("namespace"), text("name"))
}

/// The schemas are not nullable.
fn assert_no_nulls(json: &Value) {
    match json {
        Value::Null => panic!("a null in an object to be created"),
        Value::Array(list) => list.iter().for_each(assert_no_nulls),
        Value::Object(map) => map.values().for_each(assert_no_nulls),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The rules of the API server for the status of Jobs, as far as the hub could break them.
fn assert_job_status(old: &Value, new: &Value) {
    let is = |job: &Value, kind: &str| crate::jobs::view::condition_is_true(job, kind);
    let count = |job: &Value, field: &str| job["status"][field].as_i64().unwrap_or(0);
    let over = is(new, "Complete") || is(new, "Failed");
    assert!(count(new, "succeeded") >= count(old, "succeeded"), "succeeded fell");
    assert!(count(new, "failed") >= count(old, "failed"), "failed fell");
    assert!(count(new, "ready") <= count(new, "active"), "more ready than active");
    assert!(!over || count(new, "active") + count(new, "terminating") == 0, "over with pods");
    assert!(!over || new["status"]["startTime"].is_string(), "over without start");
    assert!(!is(new, "Complete") || is(new, "SuccessCriteriaMet"), "complete without its precursor");
    assert!(!is(new, "Failed") || is(new, "FailureTarget"), "failed without its precursor");
    assert!(!is(old, "Complete") || is(new, "Complete"), "not complete any more");
    assert_eq!(is(new, "Complete"), new["status"]["completionTime"].is_string(), "completion time");
    let started = old["status"]["startTime"].is_string() && new["spec"]["suspend"] != true;
    assert!(!started || old["status"]["startTime"] == new["status"]["startTime"], "start moved");
}

/// The transition rules of the Workload's definition: no promise disappears open, and one is open at most.
fn assert_workload_status(old: &Value, new: &Value) {
    let list = |json: &Value| json::list(json, &["status", "placements"]).to_vec();
    let open = |placement: &&Value| placement["state"] != "Closed";
    let placements = list(new);
    assert!(placements.iter().filter(open).count() <= 1, "two open placements");
    for placement in list(old).iter().filter(open) {
        assert!(placements.iter().any(|new| new["id"] == placement["id"]), "an open placement disappeared");
    }
    let reserved = new["status"]["conditions"].as_array().into_iter().flatten();
    let reserved = reserved.clone().any(|c| c["type"] == "QuotaReserved" && c["status"] == "True");
    assert!(!reserved || new["status"]["admission"].is_object(), "quota without admission");
}
