//! Somebody else writes into Workloads, at random. What runs never exceeds the quota, nothing is lost, and when the other
//! writer is gone everything comes to its end.

use serde_json::{Value, json};

use super::life::local_job;
use super::stress::Dice;
use crate::brain::settings::{Lifecycle, Requeuing, WaitForPodsReady};
use crate::brain::testing::{Hub, ended, job, queue_set};
use crate::jobs::status::rfc3339;
use crate::ports::Kind;
use fairlead_session::CopyState;

const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
/// Conditions that the other writer sets and removes. `Finished` is final by contract, so it is left alone.
const CONDITIONS: [&str; 7] =
    ["QuotaReserved", "Admitted", "PodsReady", "Evicted", "Preempted", "Requeued", "DeactivationTarget"];

/// A home queue and a federated one of 8 cpus each, both fed by one namespace.
fn hub() -> Hub {
    let mut hub = Hub::with_lifecycle(Lifecycle {
        pods_ready: Some(WaitForPodsReady {
            timeout_ms: 120_000,
            requeuing: Requeuing { base_ms: 5_000, max_ms: 30_000, ..Requeuing::default() },
            ..WaitForPodsReady::default()
        }),
        ..Lifecycle::default()
    });
    for object in queue_set("cq", "8", true) {
        hub.apply(object);
    }
    for (kind, mut json) in queue_set("home", "8", false) {
        if kind == Kind::LocalQueue {
            json["metadata"]["name"] = json!("home");
        }
        hub.apply((kind, json));
    }
    hub.join("east");
    hub.join("west");
    for (n, name) in NAMES.into_iter().enumerate() {
        let (kind, mut json) = if n % 2 == 0 { local_job(name, "3") } else { job(name, "3") };
        if n % 2 == 0 {
            json["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = json!("home");
        }
        hub.apply((kind, json));
    }
    hub.settle();
    hub
}

/// The Job controller of the hub's own cluster.
fn control_jobs(hub: &mut Hub, dice: &mut Dice) {
    for name in NAMES.into_iter().step_by(2) {
        let job = hub.job(name);
        if crate::jobs::JobView::of(&job).finished {
            continue;
        }
        let active = job["status"]["active"].as_i64().unwrap_or(0);
        match (job["spec"]["suspend"] == true, active) {
            (true, 1) => hub.job_status(name, json!({"active": 0})),
            (false, 0) => hub.job_status(name, json!({"active": 1, "ready": dice.roll(2)})),
            _ => {}
        }
    }
}

/// One careless write of somebody else's, as the definition's rules let it through.
fn meddle(hub: &mut Hub, dice: &mut Dice) {
    let name = *dice.pick(&NAMES);
    if hub.workload(name).is_null() {
        return;
    }
    let now = rfc3339(hub.now.wall);
    let (kind, roll) = (*dice.pick(&CONDITIONS), dice.roll(10));
    let holds = dice.roll(2) == 0;
    hub.change_workload(name, |workload| {
        let status = &mut workload["status"];
        let mut conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        match roll {
            0..=2 => conditions.retain(|condition| condition["type"] != kind),
            3..=5 => {
                let reserves = kind == "QuotaReserved" && holds && !status["admission"].is_object();
                if !reserves {
                    let status = if holds { "True" } else { "False" };
                    conditions.retain(|condition| condition["type"] != kind);
                    conditions.push(json!({"type": kind, "status": status, "reason": "Meddled",
                        "message": "", "lastTransitionTime": now}));
                }
            }
            6 => {
                conditions.retain(|condition| condition["type"] != "QuotaReserved");
                status.as_object_mut().map(|status| status.remove("admission"));
            }
            7 => status["admissionChecks"] = json!([]),
            8 => {
                status.as_object_mut().map(|status| status.remove("clusterName"));
                status["requeueState"] = json!({"count": 7});
            }
            _ => workload["spec"]["active"] = json!(holds),
        }
        workload["status"]["conditions"] = json!(conditions);
    });
}

/// Cpus of what runs: pods of home jobs, and copies on spokes.
fn check(hub: &Hub, seed: u64) {
    let active = |name: &&str| hub.job(name)["status"]["active"].as_i64().unwrap_or(0) > 0;
    let home = NAMES.into_iter().step_by(2).filter(active).count();
    assert!(home <= 2, "seed {seed}: {home} jobs of 3 cpus run in a quota of 8");
    let mut runs = Vec::new();
    for entry in hub.spokes.values().flat_map(|spoke| spoke.entries.values()) {
        let live = matches!(&entry.state, CopyState::Live(copy) if copy.terminal.is_none());
        if live || matches!(entry.state, CopyState::Stopping(_)) {
            runs.push(entry.run.clone());
        }
    }
    let copies = runs.len();
    runs.sort();
    runs.dedup();
    assert_eq!(runs.len(), copies, "seed {seed}: two copies of one run");
    assert!(copies <= 2, "seed {seed}: {copies} copies of 3 cpus run in a quota of 8");
}

/// The other writer is gone; what it left is tidied by a person: inactive workloads are set active again.
fn come_to_the_end(hub: &mut Hub, dice: &mut Dice, seed: u64) {
    for _ in 0..400 {
        control_jobs(hub, dice);
        for name in NAMES {
            if hub.workload(name)["spec"]["active"] == json!(false) {
                hub.change_workload(name, |workload| workload["spec"]["active"] = json!(true));
            }
        }
        for name in NAMES.into_iter().step_by(2) {
            let job = hub.job(name);
            let runs = job["spec"]["suspend"] == false && job["status"]["active"] == 1;
            if runs && hub.is(name, "Admitted") {
                let complete =
                    json!([{"type": "Complete", "status": "True", "reason": "CompletionsReached"}]);
                hub.job_status(name, json!({"active": 0, "succeeded": 1, "conditions": complete}));
            }
        }
        for name in ["east", "west"] {
            hub.on_spoke(name, |spoke| spoke.end_running(|_| CopyState::Live(ended(true))));
        }
        hub.advance(5_000);
        check(hub, seed);
        if NAMES.into_iter().all(|name| hub.is(name, "Finished")) {
            return;
        }
    }
    for name in NAMES {
        assert!(hub.is(name, "Finished"), "seed {seed}, {name}: {:#}", hub.workload(name));
    }
}

#[test]
fn somebody_elses_writes_are_put_right_and_nothing_is_lost_or_doubled() {
    let seeds = std::env::var("FAIRLEAD_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(6);
    for seed in 0..seeds {
        let (mut hub, mut dice) = (hub(), Dice::of(seed));
        for _ in 0..60 {
            for _ in 0..dice.roll(4) {
                meddle(&mut hub, &mut dice);
                check(&hub, seed);
            }
            control_jobs(&mut hub, &mut dice);
            check(&hub, seed);
            hub.advance(1_000);
            if dice.roll(20) == 0 {
                hub.restart();
            }
            check(&hub, seed);
        }
        come_to_the_end(&mut hub, &mut dice, seed);
        for queue in ["cq", "home"] {
            hub.advance(2_000);
            let status = hub.api.get(Kind::ClusterQueue, "", queue).unwrap()["status"].clone();
            assert_eq!(status["reservingWorkloads"], json!(0), "seed {seed}: {status:#}");
        }
    }
}

fn conditions_of(hub: &Hub, name: &str) -> Vec<(Value, Value)> {
    let list = hub.workload(name)["status"]["conditions"].as_array().cloned().unwrap_or_default();
    list.into_iter().map(|condition| (condition["type"].clone(), condition["status"].clone())).collect()
}

#[test]
fn what_a_running_workload_holds_is_said_again_when_it_was_wiped() {
    for name in ["a", "b"] {
        let mut hub = hub();
        control_jobs(&mut hub, &mut Dice::of(1));
        let (before, told) = (conditions_of(&hub, name), hub.workload(name)["status"]["admission"].clone());
        assert!(hub.is(name, "Admitted"));
        hub.change_workload(name, |workload| {
            let status = workload["status"].as_object_mut().unwrap();
            status.retain(|field, _| field == "placements");
        });
        assert!(hub.is(name, "Admitted"), "{name}: {:#}", hub.workload(name));
        assert_eq!(hub.workload(name)["status"]["admission"], told);
        let after = conditions_of(&hub, name);
        assert!(before.iter().all(|condition| after.contains(condition)), "{before:?} {after:?}");
        assert_eq!(hub.job(name)["spec"]["suspend"], false, "it was never stopped");
        assert_eq!(hub.spokes.values().map(|spoke| spoke.started.len()).sum::<usize>(), 2);
    }
}
