//! The API server of the walks.

use std::sync::Arc;

use fairlead_model::ObjectKey;
use serde_json::{Value, json};

use super::{World, object};
use crate::core::Input;
use crate::core::copy::Stamps;
use crate::ports::{Kind, Object, Op, Outcome, Request};

impl World {
    /// Stores a version of a Job, or removes it when nothing holds it; watchers hear of it later.
    pub(super) fn put(&mut self, key: &ObjectKey, mut job: Value) -> Object {
        self.version += 1;
        job["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let held = job["metadata"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
        let object = object(key, &job);
        let ours = Stamps::read(&job).is_some();
        let event = if job["metadata"].get("deletionTimestamp").is_some() && !held {
            self.jobs.remove(key);
            let (key, uid, version) = (key.clone(), object.uid.clone(), self.version);
            Input::Gone { kind: Kind::Job, key, uid, version, last: Some(Arc::clone(&object.json)) }
        } else {
            self.jobs.insert(key.clone(), job);
            Input::Object(object.clone())
        };
        if ours {
            self.job_events.push_back(event);
        }
        object
    }

    pub(super) fn execute(&mut self, request: &Request) -> Outcome {
        let key = &request.key;
        let stored = self.jobs.get(key).cloned();
        match (&request.op, stored) {
            (Op::Get | Op::GetMetadata, _) if request.kind != Kind::Job => {
                Outcome::Done(object(key, &json!({"metadata": {}})))
            }
            (Op::Get | Op::GetMetadata, Some(job)) => Outcome::Done(object(key, &job)),
            (Op::Create(_), Some(_)) => Outcome::AlreadyExists,
            (Op::Create(_), None) if self.rough && self.dice.roll(8) == 0 => {
                Outcome::Refused("quota".to_owned())
            }
            (Op::Create(job), None) => {
                let mut job = job.clone();
                job["metadata"]["uid"] = json!(format!("uid-{}", self.version));
                job["status"] = json!({});
                if self.rough && self.dice.roll(8) == 0 {
                    job["spec"]["suspend"] = json!(true);
                }
                Outcome::Done(self.put(key, job))
            }
            (_, None) => Outcome::NotFound,
            (Op::Patch(patch), Some(mut job)) => {
                if patch["metadata"]["resourceVersion"] != job["metadata"]["resourceVersion"] {
                    return Outcome::Conflict;
                }
                assert!(Stamps::read(&job).is_some(), "a foreign Job was patched");
                job["metadata"]["finalizers"] = patch["metadata"]["finalizers"].clone();
                Outcome::Done(self.put(key, job))
            }
            (Op::Delete(uid), Some(mut job)) => {
                if job["metadata"]["uid"] != uid.as_str() {
                    return Outcome::Conflict;
                }
                assert!(Stamps::read(&job).is_some(), "a foreign Job was deleted");
                job["metadata"]["deletionTimestamp"] = json!("t");
                let finalizers = job["metadata"]["finalizers"].as_array_mut().unwrap();
                if !finalizers.iter().any(|finalizer| finalizer == "foregroundDeletion") {
                    finalizers.push(json!("foregroundDeletion"));
                }
                Outcome::Done(self.put(key, job))
            }
        }
    }
}
