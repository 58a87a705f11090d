//! Pods that are ready in time, or not, and pods that are done with [W-1], [W-3].

use serde_json::json;

use super::life::{local_hub, local_job, running};
use crate::brain::settings::{Lifecycle, Requeuing, RequeuingTimestamp, WaitForPodsReady};
use crate::brain::testing::{Hub, SpokeSim, queue_set};
use crate::ports::Kind;

fn waiting(change: impl FnOnce(&mut WaitForPodsReady)) -> Lifecycle {
    let mut rules = WaitForPodsReady {
        timeout_ms: 300_000,
        recovery_timeout_ms: Some(60_000),
        block_admission: false,
        requeuing: Requeuing::default(),
    };
    change(&mut rules);
    Lifecycle { pods_ready: Some(rules), ..Lifecycle::default() }
}

fn evicted(hub: &Hub) -> (String, String) {
    Hub::condition(&hub.workload("train"), "Evicted")
}

fn until_evicted(hub: &mut Hub) {
    let waited = (0..302).find(|_| {
        hub.advance(1_000);
        evicted(hub).0 == "True"
    });
    assert!(waited.is_some_and(|seconds| seconds > 290), "{waited:?}");
}

/// The job is started, its pods do not become ready, and it is stopped.
fn fail_once(hub: &mut Hub) {
    hub.job_status("train", json!({"active": 1, "ready": 0}));
    until_evicted(hub);
    assert_eq!(evicted(hub).1, "PodsReadyTimeout");
    assert_eq!(hub.job("train")["spec"]["suspend"], true);
    hub.job_status("train", json!({"active": 0}));
    assert!(!hub.is("train", "QuotaReserved"));
}

#[test]
fn w1_each_timeout_waits_twice_as_long_and_the_limit_deactivates() {
    let mut hub = running(waiting(|rules| rules.requeuing.limit = Some(3)));
    for (count, seconds) in [(1, 60), (2, 120), (3, 240)] {
        fail_once(&mut hub);
        let status = hub.workload("train")["status"].clone();
        assert_eq!(status["requeueState"]["count"], count);
        assert_eq!(Hub::condition(&hub.workload("train"), "Requeued").1, "PodsReadyTimeout");
        let evictions =
            json!([{"reason": "PodsReadyTimeout", "underlyingCause": "WaitForStart", "count": count}]);
        assert_eq!(status["schedulingStats"]["evictions"], evictions);
        hub.advance((seconds - 2) * 1000);
        assert!(!hub.is("train", "QuotaReserved"), "after {count}");
        hub.advance(3_000);
        assert!(hub.is("train", "Admitted"), "after {count}: {:#}", hub.workload("train")["status"]);
    }
    hub.job_status("train", json!({"active": 1, "ready": 0}));
    until_evicted(&mut hub);
    assert_eq!(evicted(&hub).1, "DeactivatedDueToRequeuingLimitExceeded");
    assert_eq!(hub.workload("train")["spec"]["active"], false);
    assert_eq!(hub.workload("train")["status"].get("requeueState"), None);
}

#[test]
fn w1_ready_in_time_is_all_that_is_asked() {
    let mut hub = running(waiting(|_| {}));
    hub.advance(200_000);
    hub.job_status("train", json!({"active": 1, "ready": 1}));
    assert!(hub.is("train", "PodsReady"));
    hub.advance(1_000_000);
    assert!(hub.is("train", "Admitted"));
}

#[test]
fn w1_a_lost_pod_has_to_come_back_in_time() {
    let mut hub = running(waiting(|_| {}));
    hub.job_status("train", json!({"active": 1, "ready": 1}));
    hub.job_status("train", json!({"active": 1, "ready": 0}));
    assert!(hub.is("train", "PodsReady"), "not for a moment's sake");
    hub.advance(1_100);
    let shown = Hub::condition(&hub.workload("train"), "PodsReady");
    assert_eq!(shown, ("False".into(), "WaitForRecovery".into()));
    hub.job_status("train", json!({"active": 1, "ready": 1}));
    assert_eq!(Hub::condition(&hub.workload("train"), "PodsReady"), ("True".into(), "Recovered".into()));
    hub.job_status("train", json!({"active": 1, "ready": 0}));
    hub.advance(63_000);
    assert_eq!(evicted(&hub), ("True".into(), "PodsReadyTimeout".into()));
    let counted = hub.workload("train")["status"]["schedulingStats"]["evictions"][0].clone();
    assert_eq!(counted["underlyingCause"], "WaitForRecovery");
}

#[test]
fn w1_without_a_recovery_time_out_lost_pods_may_take_for_ever() {
    let mut hub = running(waiting(|rules| rules.recovery_timeout_ms = None));
    hub.job_status("train", json!({"active": 1, "ready": 1}));
    hub.job_status("train", json!({"active": 1, "ready": 0}));
    hub.advance(10_000_000);
    assert!(hub.is("train", "Admitted"));
}

#[test]
fn w1_on_a_spoke_that_cannot_tell_nothing_is_late() {
    let mut hub = Hub::with_lifecycle(waiting(|_| {}));
    for object in queue_set("cq", "8", true) {
        hub.apply(object);
    }
    hub.join("east");
    hub.submit("train", "1");
    hub.disconnect("east");
    hub.advance(400_000);
    assert!(hub.is("train", "Admitted"));
    hub.spoke("east").ready();
    hub.connect("east");
    assert!(hub.is("train", "PodsReady") && !hub.is("train", "Evicted"));
}

#[test]
fn w1_on_a_spoke_a_late_run_is_stopped_and_placed_again() {
    let mut hub = Hub::with_lifecycle(waiting(|_| {}));
    for object in queue_set("cq", "8", true) {
        hub.apply(object);
    }
    hub.join("east");
    hub.submit("train", "1");
    hub.advance(301_000);
    assert_eq!(hub.spoke("east").copies(), 0);
    assert!(!hub.is("train", "QuotaReserved"));
    hub.advance(61_000);
    assert!(hub.is("train", "Admitted"));
    hub.on_spoke("east", SpokeSim::ready);
    assert!(hub.is("train", "PodsReady"));
}

#[test]
fn w1_a_queue_that_blocks_admits_one_after_the_other_and_holds_no_other_queue() {
    let mut hub = local_hub(waiting(|rules| rules.block_admission = true));
    for (kind, mut json) in queue_set("other", "8", false) {
        if kind == Kind::LocalQueue {
            json["metadata"]["name"] = json!("other");
        }
        hub.apply((kind, json));
    }
    for name in ["train", "next"] {
        hub.apply(local_job(name, "1"));
        hub.settle();
    }
    let (kind, mut json) = local_job("elsewhere", "1");
    json["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = json!("other");
    hub.apply((kind, json));
    hub.settle();
    assert!(hub.is("train", "Admitted") && !hub.is("next", "Admitted"));
    assert!(hub.is("elsewhere", "Admitted"));
    assert_eq!(hub.why("next"), ("WaitingForPodsReady".into(), "WaitingForPodsReady".into()));
    hub.job_status("train", json!({"active": 1, "ready": 1}));
    assert!(hub.is("next", "Admitted"));
}

#[test]
fn w1_a_restart_in_the_middle_changes_no_deadline() {
    let mut hub = running(waiting(|_| {}));
    hub.advance(200_000);
    hub.restart();
    hub.advance(90_000);
    assert!(hub.is("train", "Admitted"));
    hub.advance(11_000);
    assert_eq!(evicted(&hub).1, "PodsReadyTimeout");
    hub.restart();
    hub.job_status("train", json!({"active": 0}));
    assert_eq!(hub.workload("train")["status"]["requeueState"]["count"], 1);
    hub.restart();
    hub.advance(50_000);
    assert!(!hub.is("train", "QuotaReserved"));
    hub.advance(12_000);
    assert!(hub.is("train", "Admitted"));
}

#[test]
fn q3_the_place_in_line_after_a_timeout_is_by_eviction_or_by_creation() {
    for (timestamp, first) in
        [(RequeuingTimestamp::Eviction, "next"), (RequeuingTimestamp::Creation, "train")]
    {
        let mut hub = running(waiting(|rules| {
            rules.requeuing = Requeuing { timestamp, limit: None, base_ms: 1_000, max_ms: 1_000 };
        }));
        hub.apply(local_job("next", "5"));
        hub.settle();
        hub.advance(301_000);
        // Nothing is admitted until both may be.
        super::life::stop(&mut hub, Kind::ClusterQueue, "Hold");
        hub.job_status("train", json!({"active": 0}));
        hub.advance(5_000);
        super::life::stop(&mut hub, Kind::ClusterQueue, "None");
        assert!(hub.is(first, "Admitted"), "{timestamp:?}");
        let admitted = ["train", "next"].into_iter().filter(|name| hub.is(name, "Admitted")).count();
        assert_eq!(admitted, 1);
    }
}

#[test]
fn w3_pods_that_are_done_with_give_their_quota_back_while_the_others_run() {
    let mut hub = local_hub(Lifecycle::default());
    let (kind, mut json) = local_job("train", "1");
    json["spec"]["parallelism"] = json!(8);
    json["spec"]["completions"] = json!(8);
    hub.apply((kind, json));
    hub.apply(local_job("next", "4"));
    hub.settle();
    assert!(hub.is("train", "Admitted") && !hub.is("next", "Admitted"));
    hub.job_status("train", json!({"active": 4, "ready": 4, "succeeded": 4}));
    hub.advance(1_100);
    let pods = hub.workload("train")["status"]["reclaimablePods"].clone();
    assert_eq!(pods, json!([{"name": "main", "count": 4}]));
    assert!(hub.is("next", "Admitted"), "{:?}", hub.why("next"));
    let from = hub.log.len();
    hub.job_status("train", json!({"active": 0, "ready": 0, "succeeded": 8}));
    hub.advance(5_000);
    assert_eq!(hub.writes(from, Kind::Workload), 0, "the end is near, and says it all");
}
