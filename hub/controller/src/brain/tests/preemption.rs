//! Victims: marked, stopped, and out of their quota only when nothing of them runs any more. The engine names victims in
//! home queues only; in federated ones that waits for the choice of clusters.

use serde_json::{Value, json};

use crate::brain::testing::{Hub, job, queue_set};
use crate::ports::Kind;

fn local_job(name: &str, class: Option<&str>) -> (Kind, Value) {
    let (kind, mut json) = job(name, "5");
    json["spec"].as_object_mut().unwrap().remove("managedBy");
    if let Some(class) = class {
        json["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = json!(class);
    }
    (kind, json)
}

/// A home queue of 8 cpus that preempts lower priorities, with a job of 5 cpus and no priority that runs.
fn hub_with_a_low_job() -> Hub {
    let mut hub = Hub::empty();
    for (kind, mut json) in queue_set("cq", "8", false) {
        if kind == Kind::ClusterQueue {
            json["spec"]["preemption"] = json!({"withinClusterQueue": "LowerPriority"});
        }
        hub.apply((kind, json));
    }
    hub.apply((Kind::WorkloadPriorityClass, json!({"metadata": {"name": "high"}, "value": 100})));
    hub.apply(local_job("low", None));
    hub.settle();
    hub.api.set_status(Kind::Job, "team", "low", json!({"active": 1, "startTime": "2027-01-15T08:00:00Z"}));
    hub.settle();
    assert_eq!(hub.job("low")["spec"]["suspend"], false);
    hub
}

fn submit_high(hub: &mut Hub) {
    hub.apply(local_job("high", Some("high")));
    hub.settle();
}

/// The Job controller has removed the pods of the suspended job.
fn stop_pods(hub: &mut Hub) {
    assert_eq!(hub.job("low")["spec"]["suspend"], true);
    hub.api.set_status(Kind::Job, "team", "low", json!({"active": 0}));
    hub.settle();
}

#[test]
fn a_victim_keeps_its_quota_until_its_pods_are_gone_and_then_waits_again() {
    let mut hub = hub_with_a_low_job();
    submit_high(&mut hub);
    assert_eq!(Hub::condition(&hub.workload("low"), "Evicted"), ("True".into(), "Preempted".into()));
    assert_eq!(Hub::condition(&hub.workload("low"), "Preempted").1, "InClusterQueue");
    hub.advance(60_000);
    assert!(hub.is("low", "Admitted") && !hub.is("high", "Admitted"));
    assert_eq!(hub.why("high").1, "WaitingForPreemptedWorkloads");
    let told = hub.events("low").iter().filter(|reason| *reason == "Preempted").count();
    assert_eq!(told, 1, "preemption settles");

    stop_pods(&mut hub);
    assert!(hub.is("high", "Admitted") && !hub.is("low", "Admitted"));
    let done = json!({"succeeded": 1, "startTime": "2027-01-15T08:00:00Z",
        "conditions": [{"type": "Complete", "status": "True", "reason": "CompletionsReached", "message": ""}]});
    hub.api.set_status(Kind::Job, "team", "high", done);
    hub.settle();
    assert!(hub.is("low", "Admitted") && !hub.is("low", "Preempted") && !hub.is("low", "Evicted"));
    assert_eq!(hub.job("low")["spec"]["suspend"], false);
}

#[test]
fn a_preemption_under_way_is_finished_by_the_next_leader() {
    let mut hub = hub_with_a_low_job();
    submit_high(&mut hub);
    hub.restart();
    assert!(hub.is("low", "Admitted") && !hub.is("high", "Admitted"));
    stop_pods(&mut hub);
    assert!(hub.is("high", "Admitted") && !hub.is("low", "Admitted"));
}
