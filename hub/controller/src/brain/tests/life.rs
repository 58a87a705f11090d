//! Evictions, deactivation, stop policies, time limits and retention, in home queues and federated ones.

use fairlead_engine::Displaced;
use fairlead_model::ObjectKey;
use serde_json::{Value, json};

use crate::brain::settings::Lifecycle;
use crate::brain::testing::{Hub, job, queue_set};
use crate::ports::Kind;

pub(super) fn local_job(name: &str, cpus: &str) -> (Kind, Value) {
    let (kind, mut json) = job(name, cpus);
    json["spec"].as_object_mut().unwrap().remove("managedBy");
    (kind, json)
}

pub(super) fn local_hub(lifecycle: Lifecycle) -> Hub {
    let mut hub = Hub::with_lifecycle(lifecycle);
    for object in queue_set("cq", "8", false) {
        hub.apply(object);
    }
    hub.settle();
    hub
}

/// A hub whose own cluster runs the job `train` of 5 cpus.
pub(super) fn running(lifecycle: Lifecycle) -> Hub {
    let mut hub = local_hub(lifecycle);
    hub.apply(local_job("train", "5"));
    hub.settle();
    hub.job_status("train", json!({"active": 1, "ready": 0, "startTime": "2027-01-15T08:00:00Z"}));
    hub
}

pub(super) fn stop(hub: &mut Hub, kind: Kind, policy: &str) {
    let (namespace, name) = if kind == Kind::LocalQueue { ("team", "q") } else { ("", "cq") };
    let mut queue = hub.api.get(kind, namespace, name).unwrap();
    queue["spec"]["stopPolicy"] = json!(policy);
    hub.apply((kind, queue));
    hub.settle();
}

fn evicted(hub: &Hub) -> (String, String) {
    Hub::condition(&hub.workload("train"), "Evicted")
}

fn requeued(hub: &Hub) -> (String, String) {
    Hub::condition(&hub.workload("train"), "Requeued")
}

fn yes(reason: &str) -> (String, String) {
    ("True".into(), reason.into())
}

fn no(reason: &str) -> (String, String) {
    ("False".into(), reason.into())
}

#[test]
fn tas7_a_workload_of_failed_nodes_stops_and_is_queued_again() {
    let mut hub = running(Lifecycle::default());
    let gone = Displaced {
        uid: hub.workload("train")["metadata"]["uid"].as_str().unwrap().into(),
        key: ObjectKey::new("team", "train"),
        cluster_queue: "cq".into(),
        nodes: vec!["n1".into()],
        round: 0,
    };
    hub.brain.displace(&gone);
    hub.settle();
    hub.advance(1);
    assert_eq!(evicted(&hub), yes("NodeFailures"));
    assert_eq!(hub.job("train")["spec"]["suspend"], true);
    assert!(hub.is("train", "QuotaReserved"), "its pods are still there");
    hub.job_status("train", json!({"active": 0}));
    assert!(hub.is("train", "Admitted") && evicted(&hub).0 == "False", "there is room for a new start");
}

#[test]
fn a9_a_deactivated_workload_stops_and_comes_back_when_it_is_active_again() {
    let mut hub = running(Lifecycle::default());
    hub.change_workload("train", |workload| workload["spec"]["active"] = json!(false));
    assert_eq!(evicted(&hub), yes("Deactivated"));
    assert_eq!(hub.job("train")["spec"]["suspend"], true);
    assert!(hub.is("train", "QuotaReserved"), "its pods are still there");
    hub.job_status("train", json!({"active": 0}));
    assert!(!hub.is("train", "QuotaReserved"));
    assert_eq!(requeued(&hub), no("Deactivated"));
    hub.advance(60_000);
    assert!(!hub.is("train", "Admitted"));
    hub.change_workload("train", |workload| workload["spec"]["active"] = json!(true));
    assert_eq!(requeued(&hub), yes("Reactivated"));
    assert!(hub.is("train", "Admitted") && evicted(&hub).0 == "False");
    assert_eq!(hub.job("train")["spec"]["suspend"], false);
}

#[test]
fn a9_a_workload_that_waits_is_deactivated_too() {
    let mut hub = running(Lifecycle::default());
    hub.apply(local_job("next", "5"));
    hub.settle();
    hub.change_workload("next", |workload| workload["spec"]["active"] = json!(false));
    let next = hub.workload("next");
    assert_eq!(Hub::condition(&next, "Evicted"), yes("Deactivated"));
    assert_eq!(hub.why("next"), ("Deactivated".into(), "Deactivated".into()));
    let from = hub.log.len();
    hub.advance(60_000);
    assert_eq!(hub.writes(from, Kind::Workload), 0);
}

#[test]
fn a9_a_federated_run_is_stopped_on_its_spoke_after_the_mark_is_durable() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.submit("train", "1");
    hub.spoke("east").stops_at_once = false;
    hub.change_workload("train", |workload| workload["spec"]["active"] = json!(false));
    assert_eq!(hub.commands("east").last(), Some(&"Stop"));
    assert_eq!(evicted(&hub), yes("Deactivated"));
    assert_eq!(hub.cluster_of("train"), "", "an eviction clears it");
    assert!(hub.is("train", "QuotaReserved"));
    hub.restart();
    assert!(hub.is("train", "QuotaReserved"), "the next leader holds it too");
    hub.on_spoke("east", crate::brain::testing::SpokeSim::prove_stop);
    assert!(!hub.is("train", "QuotaReserved"));
    hub.change_workload("train", |workload| workload["spec"]["active"] = json!(true));
    assert_eq!(hub.cluster_of("train"), "east");
    assert_eq!(hub.spoke("east").started.len(), 2);
}

#[test]
fn q11_hold_keeps_what_runs_and_drain_evicts_it_until_the_queue_runs_again() {
    for (kind, name) in [(Kind::ClusterQueue, "ClusterQueue"), (Kind::LocalQueue, "LocalQueue")] {
        let mut hub = running(Lifecycle::default());
        stop(&mut hub, kind, "Hold");
        assert!(hub.is("train", "Admitted") && !hub.is("train", "Evicted"), "{name}");
        stop(&mut hub, kind, "HoldAndDrain");
        assert_eq!(evicted(&hub), yes(&format!("{name}Stopped")));
        hub.job_status("train", json!({"active": 0}));
        assert!(!hub.is("train", "QuotaReserved"), "{name}");
        assert_eq!(requeued(&hub), no(&format!("{name}Stopped")));
        hub.advance(60_000);
        assert!(!hub.is("train", "QuotaReserved"), "{name}");
        stop(&mut hub, kind, "None");
        assert_eq!(requeued(&hub), yes(&format!("{name}Restarted")));
        assert!(hub.is("train", "Admitted"), "{name}");
    }
}

#[test]
fn q11_an_eviction_that_has_begun_is_carried_through_when_the_queue_runs_again_meanwhile() {
    let mut hub = running(Lifecycle::default());
    stop(&mut hub, Kind::ClusterQueue, "HoldAndDrain");
    stop(&mut hub, Kind::ClusterQueue, "None");
    assert_eq!(hub.job("train")["spec"]["suspend"], true);
    hub.job_status("train", json!({"active": 0}));
    assert_eq!(requeued(&hub), yes("ClusterQueueRestarted"));
    assert!(hub.is("train", "Admitted"));
    assert_eq!(hub.job("train")["spec"]["suspend"], false);
}

fn limited(seconds: i32) -> (Kind, Value) {
    let (kind, mut json) = local_job("train", "5");
    json["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = json!(seconds.to_string());
    (kind, json)
}

#[test]
fn a10_the_time_that_a_workload_may_run_adds_up_over_its_admissions() {
    let mut hub = local_hub(Lifecycle::default());
    hub.apply(limited(10));
    hub.settle();
    assert!(hub.is("train", "Admitted"));
    hub.advance(6_000);
    stop(&mut hub, Kind::ClusterQueue, "HoldAndDrain");
    let past = hub.workload("train")["status"]["accumulatedPastExecutionTimeSeconds"].clone();
    assert_eq!(past, 6);
    hub.advance(60_000);
    stop(&mut hub, Kind::ClusterQueue, "None");
    assert!(hub.is("train", "Admitted"));
    hub.advance(3_000);
    assert!(hub.is("train", "Admitted"));
    hub.advance(2_000);
    assert_eq!(evicted(&hub), yes("DeactivatedDueToMaximumExecutionTimeExceeded"));
    assert_eq!(hub.workload("train")["spec"]["active"], false);
    assert_eq!(hub.workload("train")["status"].get("accumulatedPastExecutionTimeSeconds"), None);
    assert!(hub.events("train").contains(&"MaximumExecutionTimeExceeded".to_owned()));
}

#[test]
fn a10_the_limit_holds_over_a_restart() {
    let mut hub = local_hub(Lifecycle::default());
    hub.apply(limited(10));
    hub.settle();
    hub.advance(5_000);
    hub.restart();
    hub.advance(4_000);
    assert!(hub.is("train", "Admitted"));
    hub.advance(2_000);
    assert!(!hub.is("train", "Admitted"));
}

fn keeping(finished: Option<i64>, deactivated: Option<i64>) -> Lifecycle {
    Lifecycle {
        retain_finished_workloads_ms: finished,
        retain_deactivated_jobs_ms: deactivated,
        ..Lifecycle::default()
    }
}

#[test]
fn a11_a_finished_workload_goes_after_its_time_and_its_job_stays() {
    let mut hub = running(keeping(Some(30_000), None));
    let conditions =
        json!([{"type": "Complete", "status": "True", "reason": "CompletionsReached", "message": ""}]);
    hub.job_status("train", json!({"succeeded": 1, "conditions": conditions}));
    assert!(hub.is("train", "Finished"));
    hub.advance(29_000);
    assert_eq!(hub.api.all(Kind::Workload).len(), 1);
    hub.advance(2_000);
    assert_eq!(hub.api.all(Kind::Workload).len(), 0);
    hub.advance(60_000);
    assert_eq!(hub.api.all(Kind::Workload).len(), 0, "it is not made anew");
    assert_eq!(hub.api.all(Kind::Job).len(), 1);
}

#[test]
fn a11_a_finished_workload_of_a_spoke_goes_with_its_copy() {
    let mut hub = Hub::with_lifecycle(keeping(Some(0), None));
    for object in queue_set("cq", "8", true) {
        hub.apply(object);
    }
    hub.join("east");
    hub.submit("train", "1");
    hub.on_spoke("east", |spoke| spoke.finish(true));
    hub.advance(1_000);
    assert_eq!(Hub::condition(&hub.job("train"), "Complete").0, "True", "the result came first");
    assert_eq!(hub.api.all(Kind::Workload).len(), 0);
    assert_eq!(hub.spoke("east").copies(), 0);
}

#[test]
fn a11_a_job_goes_after_the_hub_has_deactivated_it_and_not_after_a_user_has() {
    let mut hub = local_hub(keeping(None, Some(30_000)));
    hub.apply(limited(10));
    hub.settle();
    hub.advance(11_000);
    assert_eq!(hub.workload("train")["spec"]["active"], false);
    hub.advance(28_000);
    assert_eq!(hub.api.all(Kind::Job).len(), 1);
    hub.advance(3_000);
    assert_eq!(hub.api.all(Kind::Job).len(), 0);
    assert_eq!(hub.api.all(Kind::Workload).len(), 0);

    let mut hub = running(keeping(None, Some(30_000)));
    hub.change_workload("train", |workload| workload["spec"]["active"] = json!(false));
    hub.job_status("train", json!({"active": 0}));
    hub.advance(120_000);
    assert_eq!(hub.api.all(Kind::Job).len(), 1);
}

#[test]
fn a12_a_workload_that_was_to_outlive_its_job_is_finished_and_let_go() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.submit("train", "1");
    let name = hub.workload("train")["metadata"]["name"].as_str().unwrap().to_owned();
    let key = |kind| hub.api.get(kind, "team", if kind == Kind::Job { "train" } else { &name }).unwrap();
    // What Kubernetes does with `--cascade=orphan`.
    let (mut job, mut workload) = (key(Kind::Job), key(Kind::Workload));
    job["metadata"]["finalizers"] = json!(["orphan"]);
    hub.apply((Kind::Job, job));
    hub.delete(Kind::Job, "team", "train");
    hub.settle();
    assert!(hub.api.get(Kind::Workload, "team", &name).is_some(), "it is not deleted");
    workload["metadata"].as_object_mut().unwrap().remove("ownerReferences");
    hub.apply((Kind::Workload, workload));
    hub.take_finalizers(Kind::Job, "train");
    let workload = hub.api.get(Kind::Workload, "team", &name).unwrap();
    assert_eq!(Hub::condition(&workload, "Finished"), yes("OwnerNotFound"));
    assert_eq!(workload["metadata"]["finalizers"], json!([]));
    assert_eq!(hub.spoke("east").copies(), 0);
}

#[test]
fn q1_an_annotation_holds_a_job_back_until_it_is_empty() {
    let mut hub = local_hub(Lifecycle::default());
    let (kind, mut json) = local_job("train", "1");
    json["metadata"]["annotations"] =
        json!({"kueue.x-k8s.io/admission-gated-by": "example.com/a,example.com/b"});
    hub.apply((kind, json));
    hub.settle();
    assert_eq!(hub.why("train"), ("AdmissionGated".into(), "AdmissionGated".into()));
    let mut job = hub.job("train");
    job["metadata"]["annotations"] = json!({"kueue.x-k8s.io/admission-gated-by": "example.com/b"});
    hub.apply((Kind::Job, job));
    hub.settle();
    assert!(!hub.is("train", "Admitted"));
    let mut job = hub.job("train");
    job["metadata"]["annotations"] = json!({});
    hub.apply((Kind::Job, job));
    hub.settle();
    assert!(hub.is("train", "Admitted"));
}

#[test]
fn evictions_are_counted_by_reason_and_cause() {
    let mut hub = running(Lifecycle::default());
    for _ in 0..2 {
        stop(&mut hub, Kind::ClusterQueue, "HoldAndDrain");
        hub.job_status("train", json!({"active": 0}));
        stop(&mut hub, Kind::ClusterQueue, "None");
    }
    let counted = json!([{"reason": "ClusterQueueStopped", "underlyingCause": "", "count": 2}]);
    assert_eq!(hub.workload("train")["status"]["schedulingStats"]["evictions"], counted);
    let told = hub.events("train");
    assert_eq!(told.iter().filter(|event| *event == "EvictedDueToClusterQueueStopped").count(), 2);
}
