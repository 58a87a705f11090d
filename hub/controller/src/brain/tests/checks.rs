//! Two-phase admission: checks of other controllers, in every order.

use serde_json::{Value, json};

use crate::brain::testing::{Hub, job, queue_set};
use crate::ports::Kind;

const NAME: &str = "prov";

/// A Job that the hub's own cluster runs.
fn local_job(name: &str) -> (Kind, Value) {
    let (kind, mut json) = job(name, "1");
    json["spec"].as_object_mut().unwrap().remove("managedBy");
    (kind, json)
}

/// A queue with the check of another controller, beside the dispatch check where it is federated.
fn hub_with_check(federated: bool, on_flavors: &Value) -> Hub {
    let mut hub = Hub::empty();
    let check = json!({"metadata": {"name": NAME}, "spec": {"controllerName": "example.com/prov"}});
    hub.apply((Kind::AdmissionCheck, check));
    for (kind, mut json) in queue_set("cq", "8", federated) {
        if kind == Kind::ClusterQueue {
            let mut checks = vec![json!({"name": NAME, "onFlavors": on_flavors})];
            if federated {
                checks.push(json!({"name": "dispatch"}));
            }
            json["spec"]["admissionChecksStrategy"] = json!({"admissionChecks": checks});
        }
        hub.apply((kind, json));
    }
    if federated {
        hub.join("east");
    }
    hub.settle();
    hub
}

fn local_hub(on_flavors: &Value) -> Hub {
    let mut hub = hub_with_check(false, on_flavors);
    hub.apply(local_job("train"));
    hub.settle();
    hub
}

/// The state of a check, or an empty text where it is not listed.
fn state(hub: &Hub, check: &str) -> String {
    let workload = hub.workload("train");
    let listed = workload["status"]["admissionChecks"].as_array().cloned().unwrap_or_default();
    let found = listed.into_iter().find(|listed| listed["name"] == check).unwrap_or_default();
    found["state"].as_str().unwrap_or_default().to_owned()
}

/// The other controller answers.
fn answer(hub: &mut Hub, state: &str, more: Value) {
    let workload = hub.workload("train");
    let mut status = workload["status"].clone();
    let time = crate::jobs::status::rfc3339(hub.now.wall);
    let mut entry = json!({"name": NAME, "state": state, "message": "so", "lastTransitionTime": time});
    if let (Some(entry), Value::Object(more)) = (entry.as_object_mut(), more) {
        entry.extend(more);
    }
    let listed = status["admissionChecks"].as_array_mut().unwrap();
    let found = listed.iter_mut().find(|listed| listed["name"] == NAME).unwrap();
    let retried = found["retryCount"].clone();
    *found = entry;
    if retried.is_number() {
        found["retryCount"] = retried;
    }
    let name = workload["metadata"]["name"].as_str().unwrap().to_owned();
    hub.api.set_status(Kind::Workload, "team", &name, status);
    hub.settle();
}

#[test]
fn a2_quota_is_reserved_and_the_job_starts_when_every_check_is_ready() {
    let mut hub = local_hub(&json!([]));
    assert!(hub.is("train", "QuotaReserved") && !hub.is("train", "Admitted"));
    assert_eq!(Hub::condition(&hub.workload("train"), "Admitted").1, "UnsatisfiedAdmissionChecks");
    assert_eq!(state(&hub, NAME), "Pending");
    assert_eq!(hub.job("train")["spec"]["suspend"], true);
    let from = hub.log.len();
    hub.advance(60_000);
    assert_eq!(hub.writes(from, Kind::Workload), 0, "waiting costs nothing");
    answer(&mut hub, "Ready", json!({}));
    assert!(hub.is("train", "Admitted"));
    assert_eq!(hub.job("train")["spec"]["suspend"], false);
    assert_eq!(hub.events("train"), ["CreatedWorkload", "QuotaReserved", "Admitted", "Started"]);
}

#[test]
fn a2_what_is_reserved_counts_for_others_and_in_the_queues_status() {
    let mut hub = local_hub(&json!([]));
    let (kind, mut json) = local_job("next");
    json["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("8");
    hub.apply((kind, json));
    hub.advance(1_100);
    assert_eq!(hub.why("next").1, "WaitingForQuota");
    let queue = hub.api.get(Kind::ClusterQueue, "", "cq").unwrap();
    let status = &queue["status"];
    assert_eq!((&status["reservingWorkloads"], &status["admittedWorkloads"]), (&json!(1), &json!(0)));
}

#[test]
fn a3_retry_gives_quota_back_resets_the_checks_and_waits() {
    let mut hub = local_hub(&json!([]));
    answer(&mut hub, "Retry", json!({"requeueAfterSeconds": 30}));
    let workload = hub.workload("train");
    assert_eq!(Hub::condition(&workload, "Evicted"), ("True".into(), "AdmissionCheck".into()));
    assert_eq!(Hub::condition(&workload, "Requeued"), ("False".into(), "AdmissionCheck".into()));
    assert!(!hub.is("train", "QuotaReserved"));
    assert_eq!(state(&hub, NAME), "Pending");
    assert_eq!(workload["status"]["admissionChecks"][0]["retryCount"], 1);
    let counted = json!([{"reason": "AdmissionCheck", "underlyingCause": "", "count": 1}]);
    assert_eq!(workload["status"]["schedulingStats"]["evictions"], counted);
    hub.advance(29_000);
    assert!(!hub.is("train", "QuotaReserved"), "it waits as long as the check asked");
    hub.advance(2_000);
    assert!(hub.is("train", "QuotaReserved"));
    assert_eq!(Hub::condition(&hub.workload("train"), "Requeued"), ("True".into(), "BackoffFinished".into()));
    assert_eq!(Hub::condition(&hub.workload("train"), "Evicted").0, "False");
    answer(&mut hub, "Ready", json!({}));
    assert!(hub.is("train", "Admitted"));
}

#[test]
fn a3_retry_of_a_running_job_stops_it_first() {
    let mut hub = local_hub(&json!([]));
    answer(&mut hub, "Ready", json!({}));
    hub.api.set_status(Kind::Job, "team", "train", json!({"active": 1, "startTime": "2027-01-15T08:00:00Z"}));
    hub.settle();
    answer(&mut hub, "Retry", json!({"requeueAfterSeconds": 1}));
    assert_eq!(hub.job("train")["spec"]["suspend"], true);
    assert!(hub.is("train", "QuotaReserved"), "quota is held while pods are there");
    hub.api.set_status(Kind::Job, "team", "train", json!({"active": 0, "terminating": 1}));
    hub.settle();
    assert!(hub.is("train", "QuotaReserved"), "also while they are terminating");
    hub.api.set_status(Kind::Job, "team", "train", json!({"active": 0}));
    hub.settle();
    assert!(!hub.is("train", "QuotaReserved"));
}

#[test]
fn a4_a_rejected_workload_is_deactivated_and_may_be_tried_again_by_hand() {
    let mut hub = local_hub(&json!([]));
    answer(&mut hub, "Rejected", json!({}));
    let workload = hub.workload("train");
    assert_eq!(workload["spec"]["active"], false);
    let reason = "DeactivatedDueToAdmissionCheck";
    assert_eq!(Hub::condition(&workload, "Evicted"), ("True".into(), reason.into()));
    assert_eq!(Hub::condition(&workload, "DeactivationTarget").0, "");
    assert!(!hub.is("train", "QuotaReserved"));
    assert!(hub.events("train").contains(&"AdmissionCheckRejected".to_owned()));
    assert_eq!(hub.events("train").iter().filter(|event| event.starts_with("EvictedDueTo")).count(), 1);
    let mut workload = hub.workload("train");
    workload["spec"]["active"] = json!(true);
    hub.apply((Kind::Workload, workload));
    hub.settle();
    assert!(hub.is("train", "QuotaReserved"), "{:#}", hub.workload("train"));
    assert_eq!(Hub::condition(&hub.workload("train"), "Requeued"), ("True".into(), "Reactivated".into()));
}

#[test]
fn a1_a_check_for_other_flavors_is_not_waited_for() {
    let hub = local_hub(&json!(["spot"]));
    assert!(hub.is("train", "Admitted"), "{:#}", hub.workload("train")["status"]);
    assert_eq!(state(&hub, NAME), "");
    let hub = local_hub(&json!(["default"]));
    assert!(!hub.is("train", "Admitted"));
}

#[test]
fn a5_updates_of_ready_checks_are_on_the_started_job() {
    let mut hub = local_hub(&json!([]));
    let update = json!({"name": "main", "labels": {"team": "a"}, "annotations": {"claim": "c"},
        "nodeSelector": {"pool": "p"}, "tolerations": [{"key": "spot", "operator": "Exists"}]});
    answer(&mut hub, "Ready", json!({"podSetUpdates": [update]}));
    let template = hub.job("train")["spec"]["template"].clone();
    assert_eq!(template["spec"]["nodeSelector"], json!({"pool": "p"}));
    assert_eq!(template["spec"]["tolerations"][0]["key"], "spot");
    assert_eq!(template["metadata"]["labels"]["team"], "a");
    assert_eq!(template["metadata"]["annotations"]["claim"], "c");
}

#[test]
fn a5_updates_that_contradict_the_job_end_it_before_it_starts() {
    let mut hub = local_hub(&json!([]));
    let update = json!({"name": "main", "nodeSelector": {"pool": "p"}});
    let other = json!({"name": "main", "nodeSelector": {"pool": "q"}});
    answer(&mut hub, "Ready", json!({"podSetUpdates": [update, other]}));
    let workload = hub.workload("train");
    assert_eq!(Hub::condition(&workload, "Finished"), ("True".into(), "FailedToStart".into()));
    assert_eq!(hub.job("train")["spec"]["suspend"], true);
    hub.apply(local_job("next"));
    hub.settle();
    hub.advance(1_100);
    let queue = hub.api.get(Kind::ClusterQueue, "", "cq").unwrap();
    assert_eq!(queue["status"]["reservingWorkloads"], 1, "its quota is free again");
}

#[test]
fn in_a_federated_queue_the_cluster_is_chosen_when_the_other_checks_are_ready() {
    let mut hub = hub_with_check(true, &json!([]));
    hub.submit("train", "1");
    assert!(hub.is("train", "QuotaReserved") && !hub.is("train", "Admitted"));
    assert_eq!((state(&hub, NAME), state(&hub, "dispatch")), ("Pending".into(), "Pending".into()));
    assert!(hub.commands("east").is_empty(), "nobody is asked before");
    let update = json!({"name": "main", "nodeSelector": {"pool": "p"}});
    answer(&mut hub, "Ready", json!({"podSetUpdates": [update]}));
    assert_eq!(hub.cluster_of("train"), "east", "{:#}", hub.workload("train"));
    assert!(hub.is("train", "Admitted"));
    assert_eq!(state(&hub, "dispatch"), "Ready");
    let manifest = &hub.spoke("east").started[0].manifest;
    assert!(String::from_utf8_lossy(manifest).contains(r#""pool":"p""#));
}

#[test]
fn ready_checks_and_no_cluster_keep_the_quota_and_say_so() {
    let mut hub = hub_with_check(true, &json!([]));
    hub.submit("train", "1");
    hub.disconnect("east");
    answer(&mut hub, "Ready", json!({}));
    assert!(hub.is("train", "QuotaReserved") && !hub.is("train", "Admitted"));
    assert!(hub.events("train").contains(&"SecondPassFailed".to_owned()), "{:?}", hub.events("train"));
    hub.connect("east");
    assert_eq!(hub.cluster_of("train"), "east");
}

#[test]
fn a_check_that_says_retry_while_the_spoke_is_asked_wins() {
    let mut hub = hub_with_check(true, &json!([]));
    hub.submit("train", "1");
    hub.spoke("east").manner = crate::brain::testing::Manner::Hung;
    answer(&mut hub, "Ready", json!({}));
    assert_eq!(hub.commands("east"), ["Prepare"]);
    answer(&mut hub, "Retry", json!({"requeueAfterSeconds": 5}));
    assert!(!hub.is("train", "QuotaReserved"));
    assert_eq!(Hub::condition(&hub.workload("train"), "Evicted").1, "AdmissionCheck");
    hub.spoke("east").manner = crate::brain::testing::Manner::Willing;
    hub.advance(7_000);
    assert!(hub.is("train", "QuotaReserved") && !hub.is("train", "Admitted"));
}

#[test]
fn a_restart_between_the_phases_changes_nothing() {
    let mut hub = hub_with_check(true, &json!([]));
    hub.submit("train", "1");
    let from = hub.log.len();
    hub.restart();
    hub.advance(5_000);
    assert_eq!(hub.writes(from, Kind::Workload), 0);
    answer(&mut hub, "Ready", json!({}));
    assert_eq!(hub.cluster_of("train"), "east");
}

#[test]
fn whatever_others_write_into_the_dispatch_check_decides_nothing() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.submit("train", "1");
    let workload = hub.workload("train");
    let mut status = workload["status"].clone();
    status["admissionChecks"][0]["state"] = json!("Rejected");
    let name = workload["metadata"]["name"].as_str().unwrap().to_owned();
    hub.api.set_status(Kind::Workload, "team", &name, status);
    hub.advance(10_000);
    assert!(hub.is("train", "Admitted"));
    assert_eq!(hub.spoke("east").copies(), 1);
}
