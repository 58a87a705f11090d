//! A restart with 2,000 workloads in all states.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::life::local_job;
use crate::brain::settings::{Lifecycle, Requeuing, WaitForPodsReady};
use crate::brain::testing::{Hub, job, queue_set};
use crate::brain::{Effect, Input};
use crate::ports::{Kind, Op};
use fairlead_session::Desired;

const FEDERATED: usize = 200;
const ALL: usize = 2_000;

fn hub() -> Hub {
    let requeuing = Requeuing { base_ms: 3_600_000, ..Requeuing::default() };
    let rules = WaitForPodsReady { timeout_ms: 600_000, requeuing, ..WaitForPodsReady::default() };
    let mut hub = Hub::with_lifecycle(Lifecycle { pods_ready: Some(rules), ..Lifecycle::default() });
    for object in queue_set("cq", "2000", true) {
        hub.apply(object);
    }
    let check = json!({"metadata": {"name": "prov"}, "spec": {"controllerName": "example.com/prov"}});
    hub.apply((Kind::AdmissionCheck, check));
    for (name, cpus, checks) in [("home", "1000", json!([])), ("checked", "1000", json!([{"name": "prov"}]))]
    {
        for (kind, mut json) in queue_set(name, cpus, false) {
            if kind == Kind::LocalQueue {
                json["metadata"]["name"] = json!(name);
            }
            if kind == Kind::ClusterQueue {
                json["spec"]["admissionChecksStrategy"] = json!({"admissionChecks": checks});
            }
            hub.apply((kind, json));
        }
    }
    hub.join("east");
    hub.join("west");
    hub
}

fn name(n: usize) -> String {
    format!("job-{n:04}")
}

/// Jobs on spokes, at home, behind checks and in line, from the oldest to the newest.
fn submit(hub: &mut Hub) {
    for n in 0..ALL {
        let (kind, mut json) = if n < FEDERATED { job(&name(n), "10m") } else { local_job(&name(n), "1") };
        if n >= FEDERATED {
            let queue = if n % 10 == 9 { "checked" } else { "home" };
            json["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = json!(queue);
        }
        hub.apply((kind, json));
        if n % 50 == 49 {
            hub.settle();
        }
    }
}

/// Every tenth of those at home has pods that are not ready, has ended, is inactive, or is being evicted.
fn age(hub: &mut Hub) {
    for n in FEDERATED..ALL {
        if hub.job(&name(n))["spec"]["suspend"] == true {
            continue;
        }
        let complete = json!([{"type": "Complete", "status": "True", "reason": "CompletionsReached"}]);
        let status = match n % 10 {
            0 => json!({"active": 1, "ready": 0}),
            1 => json!({"active": 0, "succeeded": 1, "conditions": complete}),
            _ => json!({"active": 1, "ready": 1}),
        };
        hub.api.set_status(Kind::Job, "team", &name(n), status);
        if n % 10 == 2 {
            let mut workload = hub.workload(&name(n));
            workload["spec"]["active"] = json!(false);
            hub.apply((Kind::Workload, workload));
        }
        if n % 50 == 49 {
            hub.settle();
        }
    }
    hub.settle();
}

fn decisions(hub: &Hub) -> Vec<(Value, Value, Value, Value)> {
    let all = hub.api.all(Kind::Workload);
    let field = |workload: &Value, field: &str| workload["status"][field].clone();
    all.iter()
        .map(|workload| {
            let fields = ["admission", "placements", "conditions"].map(|name| field(workload, name));
            let [admission, placements, conditions] = fields;
            (workload["metadata"]["name"].clone(), admission, placements, conditions)
        })
        .collect()
}

#[test]
fn a_restart_with_2000_workloads_in_all_states_decides_and_writes_nothing_new() {
    let mut hub = hub();
    submit(&mut hub);
    age(&mut hub);
    for spoke in ["east", "west"] {
        hub.on_spoke(spoke, crate::brain::testing::SpokeSim::all_ready);
    }
    hub.advance(610_000);
    let states = ["Admitted", "Finished", "Evicted", "QuotaReserved", "PodsReady"];
    for state in states {
        let count =
            hub.api.all(Kind::Workload).iter().filter(|w| Hub::condition(w, state).0 == "True").count();
        assert!(count > 50, "{state}: {count}");
    }
    let (before, from) = (decisions(&hub), hub.log.len());
    hub.crash();
    let inputs: Vec<Input> = hub.api.list();
    assert!(inputs.len() > 2 * ALL);
    let began = Instant::now();
    hub.recover();
    let took = began.elapsed();
    eprintln!("ready after {took:?}");
    // The aim of 2 s is for a release build that has the machine to itself; here it is only not to grow out of hand.
    assert!(took < Duration::from_secs(60), "{took:?}");
    hub.advance(5_000);
    let writes: Vec<&Effect> = hub.log[from..]
        .iter()
        .filter(|effect| {
            matches!(effect, Effect::Store(request)
                if matches!(request.kind, Kind::Workload | Kind::Job) && request.op != Op::Get)
        })
        .collect();
    assert!(writes.is_empty(), "{} writes, the first {:?}", writes.len(), writes.first());
    let kept = hub.log[from..]
        .iter()
        .all(|effect| !matches!(effect, Effect::Command { command, .. } if command.desired != Desired::Keep));
    assert!(kept, "nothing is started or stopped");
    assert_eq!(decisions(&hub), before);
}
