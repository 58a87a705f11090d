//! Stop: what is proof and what is not.

use fairlead_session::{CopyState, Desired};
use serde_json::json;

use super::super::Input;
use super::super::harness::{Fault, Spoke, intent, key, manifest, placement};
use crate::ports::Kind;

/// A copy with one running pod.
fn running() -> Spoke {
    let mut spoke = Spoke::new();
    spoke.start(1, "run", "train");
    let uid = spoke.uid("train");
    spoke.status("train", json!({"active": 1, "ready": 1}));
    spoke.pod("pod", &uid, 1, true);
    spoke
}

fn stopping(spoke: &Spoke) -> bool {
    matches!(spoke.state(1), Some(CopyState::Stopping(_)))
}

fn stopped(spoke: &Spoke) -> bool {
    matches!(spoke.state(1), Some(CopyState::Stopped(_)))
}

#[test]
fn stopped_is_said_when_the_kubelet_has_reported_the_end() {
    let mut spoke = running();
    spoke.stop(1, "run");
    assert!(stopping(&spoke));
    let uid = spoke.uid("train");
    let last = spoke.pod("pod", &uid, 1, false);
    assert!(stopping(&spoke), "the API server is still deleting pods");
    spoke.gone(Kind::Pod, &key("pod"), "pod", Some(last));
    spoke.collected("train");
    assert!(stopped(&spoke));
    assert!(spoke.jobs.is_empty());
    assert_eq!((spoke.count("delete"), spoke.count("patch")), (1, 1));
    spoke.acknowledge(1);
    spoke.feed(Input::Withdrawn(placement(1)));
    spoke.run();
    assert_eq!((spoke.state(1), spoke.core.rows.len()), (None, 0));
}

#[test]
fn a_pod_that_was_removed_by_force_is_never_proof() {
    let mut spoke = running();
    spoke.stop(1, "run");
    let uid = spoke.uid("train");
    let last = spoke.pod("pod", &uid, 1, true);
    spoke.gone(Kind::Pod, &key("pod"), "pod", Some(last));
    spoke.collected("train");
    spoke.status("train", json!({"active": 0}));
    spoke.pass(600_000);
    assert!(stopping(&spoke));
    assert_eq!(spoke.count("patch"), 0, "the finalizer keeps the Job");
}

#[test]
fn after_a_gap_the_jobs_count_and_the_nodes_decide() {
    let mut spoke = running();
    spoke.stop(1, "run");
    spoke.gone(Kind::Pod, &key("pod"), "pod", None);
    spoke.node("n2", "8", false);
    spoke.status("train", json!({"active": 0, "failed": 1}));
    spoke.collected("train");
    assert!(stopping(&spoke), "one node does not report");
    spoke.node("n2", "8", true);
    assert!(stopped(&spoke));
}

#[test]
fn a_pod_that_only_the_jobs_status_spoke_of_is_a_gap() {
    let mut spoke = Spoke::new();
    spoke.start(1, "run", "train");
    spoke.status("train", json!({"active": 2}));
    spoke.stop(1, "run");
    spoke.collected("train");
    assert!(stopping(&spoke), "two pods were counted and never seen");
    spoke.status("train", json!({"active": 0, "terminating": 1}));
    assert!(stopping(&spoke));
    spoke.status("train", json!({"active": 0, "terminating": 0}));
    assert!(stopped(&spoke));
}

#[test]
fn a_copy_without_pods_stops_at_once() {
    let mut spoke = Spoke::new();
    spoke.start(1, "run", "train");
    spoke.stop(1, "run");
    assert!(stopping(&spoke), "pods may still be made until the deletion has gone through");
    spoke.collected("train");
    assert!(stopped(&spoke));
}

#[test]
fn stop_of_what_does_not_exist_is_answered_unless_pods_are_left() {
    let mut spoke = Spoke::new();
    spoke.stop(1, "run");
    assert!(stopped(&spoke));
    let mut left = Spoke::new();
    left.pod("pod", "job-that-is-gone", 1, true);
    left.stop(1, "run");
    assert!(stopping(&left));
    left.pod("pod", "job-that-is-gone", 1, false);
    assert!(stopped(&left));
}

#[test]
fn a_result_is_kept_until_it_is_stored_then_the_finalizer_goes() {
    let mut spoke = running();
    let uid = spoke.uid("train");
    spoke.pod("pod", &uid, 1, false);
    let done = json!({"succeeded": 1, "completionTime": "2026-01-01T00:00:00Z",
                      "conditions": [{"type": "Complete", "status": "True", "reason": "CompletionsReached"}]});
    spoke.status("train", done);
    let Some(CopyState::Live(status)) = spoke.state(1) else { panic!("{:?}", spoke.state(1)) };
    assert!(status.terminal.is_some_and(|end| end.succeeded));
    assert_eq!(spoke.count("patch"), 0);
    spoke.acknowledge(1);
    assert_eq!(spoke.count("patch"), 1);
    assert_eq!(spoke.jobs[&key("train")]["metadata"]["finalizers"], json!([]));
    spoke.pass(60_000);
    assert_eq!(spoke.requests.len(), 2, "create and release");
    spoke.stop(1, "run");
    spoke.collected("train");
    let Some(CopyState::Stopped(status)) = spoke.state(1) else { panic!("{:?}", spoke.state(1)) };
    assert!(status.terminal.is_some(), "the result comes along");
    assert_eq!(spoke.requests.len(), 3, "create, release, delete: two more than a plain Job");
}

#[test]
fn a_result_that_nobody_stored_survives_a_local_deletion() {
    let mut spoke = running();
    let uid = spoke.uid("train");
    spoke.pod("pod", &uid, 1, false);
    let done = json!({"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]});
    spoke.status("train", done);
    spoke.edit("train", |job| job["metadata"]["deletionTimestamp"] = json!("t"));
    assert!(stopped(&spoke));
    assert!(spoke.jobs.contains_key(&key("train")));
    spoke.acknowledge(1);
    assert!(spoke.jobs.is_empty());
    assert_eq!(spoke.state(1), None);
}

#[test]
fn a_local_background_deletion_is_carried_through() {
    let mut spoke = running();
    spoke.edit("train", |job| job["metadata"]["deletionTimestamp"] = json!("t"));
    assert!(stopping(&spoke));
    assert_eq!(spoke.count("delete"), 1, "our finalizer would keep the pods running");
}

#[test]
fn a_job_that_lost_its_finalizer_and_vanished_is_reported_and_never_made_again() {
    let mut spoke = running();
    let uid = spoke.uid("train");
    spoke.jobs.clear();
    spoke.gone(Kind::Job, &key("train"), &uid, None);
    assert_eq!(spoke.state(1), Some(CopyState::Vanished));
    spoke.start(1, "run", "train");
    spoke.pass(60_000);
    assert_eq!((spoke.count("create"), spoke.state(1)), (1, Some(CopyState::Vanished)));
    spoke.pod("pod", &uid, 1, false);
    assert!(stopped(&spoke), "proof may still come");
}

#[test]
fn a_stop_that_fails_is_tried_again() {
    let mut spoke = running();
    spoke.faults.push(("delete", Fault::Refused("not now")));
    spoke.faults.push(("delete", Fault::NeverArrived));
    spoke.stop(1, "run");
    spoke.pass(1_000);
    assert_eq!(spoke.count("delete"), 3);
    assert!(stopping(&spoke));
}

#[test]
fn a_stop_overtakes_a_create_that_is_under_way() {
    let mut spoke = Spoke::new();
    spoke.revision += 1;
    let command = fairlead_session::Command {
        run: "run".into(),
        epoch: fairlead_model::Epoch::new(1, 1),
        revision: 1,
        desired: Desired::Start(intent("train", &manifest())),
    };
    spoke.feed(Input::Command(placement(1), command));
    spoke.turn_only();
    spoke.stop(1, "run");
    assert_eq!((spoke.count("create"), spoke.count("delete")), (1, 1));
    spoke.collected("train");
    assert!(stopped(&spoke));
}

#[test]
fn keep_changes_nothing_and_says_when_there_is_nothing_to_keep() {
    let mut spoke = running();
    spoke.command(1, "run", Desired::Keep);
    assert!(matches!(spoke.state(1), Some(CopyState::Live(_))));
    spoke.command(2, "run-2", Desired::Keep);
    assert_eq!(spoke.state(2), Some(CopyState::Vanished));
    assert_eq!(spoke.requests.len(), 1);
}

#[test]
fn a_conflict_at_the_release_is_tried_again() {
    let mut spoke = Spoke::new();
    spoke.start(1, "run", "train");
    spoke.stop(1, "run");
    spoke.faults.push(("patch", Fault::Conflict));
    spoke.collected("train");
    assert!(stopping(&spoke) && spoke.count("patch") == 1);
    spoke.pass(100);
    assert!(stopped(&spoke) && spoke.count("patch") == 2);
}
