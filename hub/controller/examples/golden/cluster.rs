//! What surrounds the engine in a scenario: the objects, the controllers' reactions, and the statuses that a hub would
//! write.

use std::collections::BTreeMap;

use fairlead_controller::mirror::{Mirror, topology};
use fairlead_engine::fact::PodSetAssignment;
use fairlead_engine::{Budget, Plan, Policy, World, check, decide};
use fairlead_model::{Millis, ObjectKey};
use serde_json::{Value, json};

use super::config::{self, Rules};

/// The objects of a scenario and the world that was made from them.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) world: World,
    policy: Policy,
    mirror: Mirror,
    workloads: BTreeMap<String, Value>,
    queues: BTreeMap<(String, String), Value>,
    /// Evicted workloads release their quota at once.
    immediate: bool,
    now: Millis,
    /// Evictions that actions caused since the last look.
    pub(crate) evicted: Vec<(String, String)>,
}

fn text<'j>(json: &'j Value, pointer: &str) -> &'j str {
    json.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn name_of(object: &Value) -> String {
    let (namespace, name) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

fn key_of(name: &str) -> ObjectKey {
    let (namespace, name) = name.split_once('/').unwrap_or(("", name));
    ObjectKey::new(namespace, name)
}

/// A time as the API server writes it.
fn stamp(time: Millis) -> String {
    jiff::Timestamp::from_millisecond(time.0).map(|time| time.to_string()).unwrap_or_default()
}

/// Sets one condition.
fn set_condition(object: &mut Value, (name, status, reason): (&str, &str, &str), now: Millis) {
    let condition = json!({ "type": name, "status": status, "reason": reason, "message": "",
        "lastTransitionTime": stamp(now) });
    let conditions = &mut object["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    if let Some(conditions) = conditions.as_array_mut() {
        conditions.retain(|condition| text(condition, "/type") != name);
        conditions.push(condition);
    }
}

fn is_true(object: &Value, name: &str) -> bool {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| text(condition, "/type") == name && text(condition, "/status") == "True")
}

impl Cluster {
    pub(crate) fn new(scenario: &Value, rules: Rules) -> Result<Self, String> {
        let config = scenario.get("config").unwrap_or(&Value::Null);
        let mut cluster = Self {
            world: World::new(config::settings(config, rules)?),
            policy: config::policy(config, rules),
            mirror: Mirror::default(),
            workloads: BTreeMap::new(),
            queues: BTreeMap::new(),
            immediate: text(config, "/evictionRelease") != "manual",
            now: Millis(0),
            evicted: Vec::new(),
        };
        for object in scenario.get("objects").and_then(Value::as_array).into_iter().flatten() {
            cluster.apply(object);
        }
        Ok(cluster)
    }

    pub(crate) fn set_time(&mut self, now: Millis) {
        self.now = now;
        let _changed = self.world.advance(now);
    }

    /// Samples every LocalQueue whose interval has elapsed.
    pub(crate) fn sample(&mut self) {
        self.world.sample();
    }

    /// Does one action of a step.
    pub(crate) fn act(&mut self, action: &Value) -> Result<(), String> {
        let Some((verb, value)) = action.as_object().and_then(|action| action.iter().next()) else {
            return Err(format!("no action: {action}"));
        };
        match verb.as_str() {
            "create" | "update" => self.apply(value),
            "delete" => self.delete(value),
            "finish" => self.change(value, |object, now| {
                set_condition(object, ("Finished", "True", "Succeeded"), now);
            }),
            "setActive" => self.set_active(value),
            "setPriority" => {
                let priority = value.get("priority").cloned().unwrap_or_default();
                self.change(&value["workload"], move |object, _| object["spec"]["priority"] = priority);
            }
            "reclaimablePods" => {
                let pods = value.get("podSets").cloned().unwrap_or_default();
                self.change(&value["workload"], move |object, _| set_reclaimable(object, &pods));
            }
            "release" => {
                let name = value.as_str().unwrap_or_default().to_owned();
                self.release(&name);
            }
            other => return Err(format!("unknown action {other}")),
        }
        Ok(())
    }

    fn apply(&mut self, object: &Value) {
        let (kind, name) = (text(object, "/kind").to_owned(), name_of(object));
        if kind == "Workload" {
            let mut object = object.clone();
            if let Some(status) = self.workloads.get(&name).and_then(|known| known.get("status")) {
                object["status"] = status.clone();
            }
            self.workloads.insert(name.clone(), object);
            self.tell(&name);
            return;
        }
        for fact in self.mirror.upsert_json(&kind, object) {
            let _changed = self.world.absorb(fact, self.now);
        }
        if kind == "ClusterQueue" || kind == "LocalQueue" {
            let before = self.queues.insert((kind.clone(), name.clone()), object.clone());
            let policy = |object: &Value| text(object, "/spec/stopPolicy").to_owned();
            let before = before.map_or_else(|| "None".to_owned(), |before| policy(&before));
            self.stop_policy_changed((&kind, &name), &before, &policy(object));
        }
    }

    fn delete(&mut self, value: &Value) {
        let (kind, name) = match value.as_str() {
            Some(name) => ("Workload", name.to_owned()),
            None => (text(value, "/kind"), text(value, "/name").to_owned()),
        };
        if kind == "Workload" {
            if let Some(object) = self.workloads.remove(&name) {
                let uid = text(&object, "/metadata/uid").into();
                let _changed = self.world.absorb(fairlead_engine::Fact::WorkloadGone(uid), self.now);
            }
            return;
        }
        for fact in self.mirror.gone_json(kind, &key_of(&name)) {
            let _changed = self.world.absorb(fact, self.now);
        }
    }

    /// Tells the engine how a workload is now.
    fn tell(&mut self, name: &str) {
        let Some(object) = self.workloads.get(name) else { return };
        for fact in self.mirror.upsert_json("Workload", object) {
            let _changed = self.world.absorb(fact, self.now);
        }
    }

    fn change(&mut self, name: &Value, change: impl FnOnce(&mut Value, Millis)) {
        let name = name.as_str().unwrap_or_default().to_owned();
        if let Some(object) = self.workloads.get_mut(&name) {
            change(object, self.now);
            self.tell(&name);
        }
    }

    fn set_active(&mut self, value: &Value) {
        let active = value.get("active").and_then(Value::as_bool).unwrap_or(true);
        let name = text(value, "/workload").to_owned();
        let now = self.now;
        let Some(object) = self.workloads.get_mut(&name) else { return };
        object["spec"]["active"] = json!(active);
        if active {
            set_condition(object, ("Requeued", "True", "Reactivated"), now);
            self.tell(&name);
        } else if is_true(object, "QuotaReserved") {
            self.evict(&name, "Deactivated", false);
        } else {
            self.tell(&name);
        }
    }

    /// What the queue controllers do when a stop policy changes.
    fn stop_policy_changed(&mut self, (kind, queue): (&str, &str), before: &str, after: &str) {
        let (stopped, restarted) = if kind == "ClusterQueue" {
            ("ClusterQueueStopped", "ClusterQueueRestarted")
        } else {
            ("LocalQueueStopped", "LocalQueueRestarted")
        };
        let members: Vec<String> =
            self.workloads.keys().filter(|name| self.leads(name, kind, queue)).cloned().collect();
        for name in members {
            let Some(object) = self.workloads.get_mut(&name) else { continue };
            if after == "HoldAndDrain" && before != after && is_true(object, "QuotaReserved") {
                if !is_true(object, "Finished") {
                    self.evict(&name, stopped, false);
                }
            } else if after == "None" && before != after && is_blocked_by(object, stopped) {
                set_condition(object, ("Requeued", "True", restarted), self.now);
                self.tell(&name);
            }
        }
    }

    /// Whether a workload belongs to a queue.
    fn leads(&self, workload: &str, kind: &str, queue: &str) -> bool {
        let Some(object) = self.workloads.get(workload) else { return false };
        let local = format!("{}/{}", text(object, "/metadata/namespace"), text(object, "/spec/queueName"));
        if kind == "LocalQueue" {
            return local == queue;
        }
        let local = self.queues.get(&("LocalQueue".to_owned(), local));
        local.is_some_and(|local| text(local, "/spec/clusterQueue") == queue)
    }

    /// Marks a workload as evicted and, where jobs stop at once, releases it.
    fn evict(&mut self, name: &str, reason: &str, preempted: bool) {
        let now = self.now;
        let Some(object) = self.workloads.get_mut(name) else { return };
        set_condition(object, ("Evicted", "True", reason), now);
        if !preempted {
            self.evicted.push((name.to_owned(), reason.to_owned()));
        }
        if self.immediate {
            self.release(name);
        } else {
            self.tell(name);
        }
    }

    /// The job of an evicted workload has stopped: quota is free, and it is queued again if its reason allows.
    fn release(&mut self, name: &str) {
        let now = self.now;
        let Some(object) = self.workloads.get_mut(name) else { return };
        let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
        let evicted = conditions.into_iter().flatten().find(|it| text(it, "/type") == "Evicted");
        let reason = evicted.map(|condition| text(condition, "/reason").to_owned()).unwrap_or_default();
        let requeued = if reason == "Preempted" { "True" } else { "False" };
        set_condition(object, ("QuotaReserved", "False", "Pending"), now);
        set_condition(object, ("Admitted", "False", "NoReservation"), now);
        set_condition(object, ("Requeued", requeued, &reason), now);
        if let Some(status) = object["status"].as_object_mut() {
            status.remove("admission");
        }
        self.tell(name);
    }

    /// Runs one round and carries out what it decided.
    pub(crate) fn cycle(&mut self) -> Result<Plan, String> {
        let snapshot = self.world.snapshot();
        let plan = decide(&snapshot, &self.policy, self.now, Budget::default());
        if let Some(finding) = check(&snapshot, &plan).first() {
            return Err(format!("the plan linter says {finding:?}"));
        }
        self.world.commit(&plan);
        for admission in &plan.admissions {
            let name = admission.key.to_string();
            let Some(object) = self.workloads.get_mut(&name) else { continue };
            let assignments: Vec<Value> = admission.pod_sets.iter().map(assignment_json).collect();
            object["status"]["admission"] =
                json!({ "clusterQueue": &*admission.cluster_queue, "podSetAssignments": assignments });
            set_condition(object, ("QuotaReserved", "True", "QuotaReserved"), self.now);
            set_condition(object, ("Admitted", "True", "Admitted"), self.now);
            set_condition(object, ("Evicted", "False", "QuotaReserved"), self.now);
            self.tell(&name);
        }
        for eviction in &plan.evictions {
            self.evict(&eviction.key.to_string(), "Preempted", true);
        }
        Ok(plan)
    }
}

fn is_blocked_by(object: &Value, reason: &str) -> bool {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        text(condition, "/type") == "Requeued"
            && text(condition, "/status") == "False"
            && text(condition, "/reason") == reason
    })
}

fn set_reclaimable(object: &mut Value, pods: &Value) {
    object["status"]["reclaimablePods"] = match pods {
        Value::Object(map) => {
            map.iter().map(|(name, count)| json!({ "name": name, "count": count })).collect()
        }
        other => other.clone(),
    };
}

/// An assignment as the hub writes it.
fn assignment_json(assignment: &PodSetAssignment) -> Value {
    let usage: serde_json::Map<String, Value> = assignment
        .usage
        .iter()
        .map(|(name, amount)| (name.to_string(), json!(fairlead_api::Quantity::of(name, amount).0)))
        .collect();
    let flavors: serde_json::Map<String, Value> =
        assignment.flavors.iter().map(|(name, flavor)| (name.to_string(), json!(&**flavor))).collect();
    let mut json = json!({ "name": &*assignment.name, "count": assignment.count, "flavors": flavors,
        "resourceUsage": usage });
    if let Some(assigned) = &assignment.topology {
        json["topologyAssignment"] = topology::encode(assigned);
    }
    json
}
