//! Who else acts on the cluster of the walks: controllers, kubelets, people.

use std::sync::Arc;

use serde_json::json;

use super::{NAMES, PodHere, World, pod_json, text};
use crate::core::Input;
use crate::core::copy::Stamps;
use crate::core::harness::key;
use crate::ports::Kind;

impl World {
    /// The Job controller makes pods and counts them; the garbage collector deletes and lets go.
    pub(super) fn controller(&mut self) {
        let Some((key, mut job)) = self.any_job() else { return };
        let uid = text(&job, "uid");
        let mine: Vec<String> =
            self.pods.iter().filter(|(_, pod)| pod.job == uid).map(|(name, _)| name.clone()).collect();
        if job["metadata"].get("deletionTimestamp").is_some() {
            // Our finalizer alone does not have the pods deleted; the foreground's does.
            let finalizers = job["metadata"]["finalizers"].as_array_mut().unwrap();
            let foreground = finalizers.iter().any(|finalizer| finalizer == "foregroundDeletion");
            for pod in mine.iter().filter(|_| foreground) {
                self.pods.get_mut(pod).unwrap().deleting = true;
            }
            if mine.is_empty() {
                finalizers.retain(|finalizer| finalizer != "foregroundDeletion");
            }
            let active = mine.iter().filter(|pod| self.pods[*pod].running).count();
            if job["status"].get("conditions").is_none() {
                job["status"] =
                    json!({"active": active, "failed": u8::from(!mine.is_empty() && active == 0)});
            }
        } else if job["spec"]["suspend"] == true || job["status"].get("conditions").is_some() {
            return;
        } else if mine.is_empty() {
            let placement = job["metadata"]["labels"]["fairlead.dev/placement"].as_str().unwrap().to_owned();
            let name = format!("pod-{}", self.version);
            let pod = PodHere { job: uid, placement, running: true, deleting: false };
            self.pods.insert(name.clone(), pod);
            self.pod_event(&name);
            job["status"] = json!({"active": 1, "ready": 1});
        } else if mine.iter().all(|pod| !self.pods[pod].running) {
            job["status"] = json!({"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]});
        } else {
            return;
        }
        self.put(&key, job);
    }

    /// A kubelet ends a pod, or lets go of one that has ended and is being deleted.
    pub(super) fn kubelet(&mut self) {
        if self.pods.is_empty() {
            return;
        }
        let at = self.dice.pick(self.pods.len());
        let Some((name, pod)) = self.pods.iter().nth(at).map(|(name, pod)| (name.clone(), pod.clone()))
        else {
            return;
        };
        if pod.running {
            self.pods.get_mut(&name).unwrap().running = false;
            self.pod_event(&name);
        } else if pod.deleting {
            self.version += 1;
            let last = Some(Arc::new(pod_json(&name, &pod)));
            let (kind, version) = (Kind::Pod, self.version);
            self.pods.remove(&name);
            let gone = Input::Gone { kind, key: key(&name), uid: name.as_str().into(), version, last };
            self.pod_events.push_back(gone);
        }
    }

    /// Somebody on this cluster deletes, suspends, or takes a name.
    pub(super) fn meddle(&mut self) {
        let choice = self.dice.roll(3);
        let name = key(NAMES[self.dice.pick(NAMES.len())]);
        if choice == 0 && !self.jobs.contains_key(&name) {
            self.version += 1;
            let metadata =
                json!({"uid": format!("foreign-{}", self.version), "finalizers": ["someone/else"]});
            let job = json!({"metadata": metadata, "spec": {"suspend": true}, "status": {}});
            self.put(&name, job);
            return;
        }
        let Some((key, mut job)) = self.any_job() else { return };
        self.note(&format!("meddle {choice} {key}"));
        match choice {
            1 => job["spec"]["suspend"] = json!(true),
            2 => job["metadata"]["deletionTimestamp"] = json!("t"),
            // A foreign Job that stands in the way goes at last.
            _ => {
                self.jobs.retain(|_, job| Stamps::read(job).is_some());
                return;
            }
        }
        self.put(&key, job);
    }
}
