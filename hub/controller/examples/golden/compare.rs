//! Compares what happened with what a scenario expects.

use std::collections::{BTreeMap, BTreeSet};

use fairlead_api::Quantity;
use fairlead_engine::fact::PodSetAssignment;
use fairlead_engine::{Outcome, Plan, World};
use serde_json::Value;

/// Compares one round; an error names the first difference.
pub(crate) fn round(expected: &Value, plan: &Plan) -> Result<(), String> {
    heads(expected, plan)?;
    order(expected, plan)?;
    admitted(expected, plan)?;
    evicted(expected, plan)
}

fn object<'j>(json: &'j Value, key: &str) -> impl Iterator<Item = (&'j String, &'j Value)> {
    json.get(key).and_then(Value::as_object).into_iter().flatten()
}

fn differ<T: PartialEq + std::fmt::Debug>(what: &str, expected: &T, found: &T) -> Result<(), String> {
    if expected == found { Ok(()) } else { Err(format!("{what}: expected {expected:?}, found {found:?}")) }
}

/// Which workloads were looked at; Admitted and PendingPreemption must agree, other outcomes show in the queues.
fn heads(expected: &Value, plan: &Plan) -> Result<(), String> {
    let settled = |outcome: &str| {
        if matches!(outcome, "Admitted" | "PendingPreemption") {
            outcome.to_owned()
        } else {
            "waits".to_owned()
        }
    };
    let wanted: BTreeMap<String, String> = object(expected, "heads")
        .map(|(name, outcome)| (name.clone(), settled(outcome.as_str().unwrap_or_default())))
        .collect();
    let heads = plan.heads.iter().filter(|head| head.outcome != Outcome::Outside);
    let found = heads.map(|head| (head.key.to_string(), settled(&format!("{:?}", head.outcome)))).collect();
    differ("heads", &wanted, &found)
}

fn order(expected: &Value, plan: &Plan) -> Result<(), String> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for head in plan.heads.iter().filter(|head| head.entered) {
        let tree = if head.root == head.cluster_queue { "clusterQueue" } else { "cohort" };
        found.entry(format!("{tree}:{}", head.root)).or_default().push(head.key.to_string());
    }
    found.retain(|_, heads| heads.len() > 1);
    let names = |list: &Value| {
        let names = list.as_array().into_iter().flatten().filter_map(Value::as_str);
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    let wanted = object(expected, "order").map(|(tree, list)| (tree.clone(), names(list))).collect();
    differ("order", &wanted, &found)
}

/// Resource amounts in their smallest units.
fn amounts(json: Option<&Value>) -> BTreeMap<String, i64> {
    let map = json.and_then(Value::as_object).into_iter().flatten();
    map.map(|(name, value)| (name.clone(), amount(name, value))).collect()
}

fn amount(resource: &str, value: &Value) -> i64 {
    Quantity(value.as_str().unwrap_or_default().to_owned()).parse(resource).unwrap_or(i64::MIN)
}

type PodSet =
    (String, u64, BTreeMap<String, String>, BTreeMap<String, i64>, Vec<(Vec<String>, u64)>, Vec<String>);

fn expected_pod_set(json: &Value) -> PodSet {
    let texts = |json: Option<&Value>| {
        let texts = json.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect::<Vec<_>>()
    };
    let flavors = object(json, "flavors")
        .map(|(name, flavor)| (name.clone(), flavor.as_str().unwrap_or_default().to_owned()));
    let domains = json.pointer("/topologyAssignment/domains").and_then(Value::as_array).into_iter().flatten();
    (
        json.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
        json.get("count").and_then(Value::as_u64).unwrap_or(0),
        flavors.collect(),
        amounts(json.get("usage")),
        domains
            .map(|domain| {
                (texts(domain.get("values")), domain.get("count").and_then(Value::as_u64).unwrap_or(0))
            })
            .collect(),
        texts(json.pointer("/topologyAssignment/levels")),
    )
}

fn found_pod_set(assignment: &PodSetAssignment) -> PodSet {
    let domains = assignment.topology.iter().flat_map(|topology| &topology.domains);
    let texts = |values: &[std::sync::Arc<str>]| values.iter().map(ToString::to_string).collect::<Vec<_>>();
    (
        assignment.name.to_string(),
        u64::from(assignment.count),
        assignment.flavors.iter().map(|(name, flavor)| (name.to_string(), flavor.to_string())).collect(),
        assignment.usage.iter().map(|(name, amount)| (name.to_string(), amount)).collect(),
        domains.map(|(values, pods)| (texts(values), u64::from(*pods))).collect(),
        assignment.topology.as_ref().map(|topology| texts(&topology.levels)).unwrap_or_default(),
    )
}

/// Admissions with everything they were given, in their order within a tree.
fn admitted(expected: &Value, plan: &Plan) -> Result<(), String> {
    type One = (String, Vec<PodSet>);
    let mut wanted: BTreeMap<String, Vec<One>> = BTreeMap::new();
    let root_of = |name: &str| {
        let head = plan.heads.iter().find(|head| head.key.to_string() == name);
        head.map_or_else(String::new, |head| head.root.to_string())
    };
    for one in expected.get("admitted").and_then(Value::as_array).into_iter().flatten() {
        let name = one.get("workload").and_then(Value::as_str).unwrap_or_default().to_owned();
        let pod_sets = one
            .get("podSets")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(expected_pod_set)
            .collect();
        wanted.entry(root_of(&name)).or_default().push((name, pod_sets));
    }
    let mut found: BTreeMap<String, Vec<One>> = BTreeMap::new();
    for admission in &plan.admissions {
        let name = admission.key.to_string();
        let pod_sets = admission.pod_sets.iter().map(found_pod_set).collect();
        found.entry(root_of(&name)).or_default().push((name, pod_sets));
    }
    differ("admitted", &wanted, &found)
}

fn evicted(expected: &Value, plan: &Plan) -> Result<(), String> {
    let text = |json: &Value, key: &str| json.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let all = expected.get("evicted").and_then(Value::as_array).into_iter().flatten();
    let wanted: BTreeSet<_> = all
        .map(|one| {
            (text(one, "workload"), text(one, "clusterQueue"), text(one, "preemptionReason"), text(one, "by"))
        })
        .collect();
    let found = plan
        .evictions
        .iter()
        .map(|one| {
            (
                one.key.to_string(),
                one.cluster_queue.to_string(),
                one.cause.token().to_owned(),
                one.by_key.to_string(),
            )
        })
        .collect();
    differ("evicted", &wanted, &found)
}

/// Compares the state after a step.
pub(crate) fn after(expected: &Value, world: &World, fair: bool) -> Result<(), String> {
    usage(expected, world)?;
    pending(expected, world)?;
    if fair { shares(expected, world) } else { Ok(()) }
}

type Usage = BTreeMap<(String, String, String), (i64, i64)>;

fn usage(expected: &Value, world: &World) -> Result<(), String> {
    let (queues, cohorts) = world.usage();
    let mut wanted = Usage::new();
    for (queue, flavors) in object(expected, "usage") {
        for (flavor, resources) in flavors.as_object().into_iter().flatten() {
            for (resource, cell) in resources.as_object().into_iter().flatten() {
                let part = |key: &str| cell.get(key).map_or(0, |value| amount(resource, value));
                wanted.insert(
                    (queue.clone(), flavor.clone(), resource.clone()),
                    (part("total"), part("borrowed")),
                );
            }
        }
    }
    differ("usage", &wanted, &flat(&queues))?;
    let mut wanted = Usage::new();
    for (cohort, flavors) in object(expected, "cohortUsage") {
        for (flavor, resources) in flavors.as_object().into_iter().flatten() {
            for (resource, value) in amounts(Some(resources)) {
                wanted.insert((cohort.clone(), flavor.clone(), resource), (value, 0));
            }
        }
    }
    let found = flat(&cohorts).into_iter().map(|(key, (total, _))| (key, (total, 0))).collect();
    differ("cohortUsage", &wanted, &found)
}

fn flat(usage: &BTreeMap<std::sync::Arc<str>, fairlead_engine::QueueUsage>) -> Usage {
    let mut flat = Usage::new();
    for (name, usage) in usage {
        for (flavor, resources) in &usage.by_flavor {
            for (resource, cell) in resources {
                flat.insert((name.to_string(), flavor.to_string(), resource.to_string()), *cell);
            }
        }
    }
    flat
}

fn pending(expected: &Value, world: &World) -> Result<(), String> {
    let names = |json: Option<&Value>| {
        let names = json.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    let wanted: BTreeMap<String, (Vec<String>, Vec<String>)> = object(expected, "pending")
        .map(|(queue, lists)| (queue.clone(), (names(lists.get("active")), names(lists.get("inadmissible")))))
        .collect();
    let texts = |keys: &[fairlead_model::ObjectKey]| keys.iter().map(ToString::to_string).collect::<Vec<_>>();
    let found = world
        .pending()
        .iter()
        .map(|(queue, lists)| (queue.to_string(), (texts(&lists.active), texts(&lists.parked))))
        .collect();
    differ("pending", &wanted, &found)
}

fn shares(expected: &Value, world: &World) -> Result<(), String> {
    let mut wanted: BTreeMap<String, String> = BTreeMap::new();
    for kind in ["clusterQueues", "cohorts"] {
        let shares = expected.pointer(&format!("/weightedShare/{kind}")).and_then(Value::as_object);
        for (name, share) in shares.into_iter().flatten() {
            let share = share.as_str().map_or_else(|| share.to_string(), str::to_owned);
            wanted.insert(format!("{kind}/{name}"), share);
        }
    }
    let found: BTreeMap<String, String> = world
        .weighted_shares()
        .into_iter()
        .map(|(is_cohort, name, share)| {
            let kind = if is_cohort { "cohorts" } else { "clusterQueues" };
            (format!("{kind}/{name}"), share.map_or_else(|| "inf".to_owned(), |share| share.to_string()))
        })
        .filter(|(name, _)| wanted.contains_key(name))
        .collect();
    differ("weightedShare", &wanted, &found)
}
