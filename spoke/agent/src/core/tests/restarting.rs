//! What a new process knows: only what the cluster holds.

use fairlead_model::Epoch;
use fairlead_session::CopyState;
use serde_json::json;

use super::super::Input;
use super::super::harness::{Spoke, key, placement};
use crate::ports::Kind;

fn started() -> Spoke {
    let mut spoke = Spoke::new();
    spoke.start(1, "run", "train");
    spoke
}

#[test]
fn the_inventory_comes_from_the_listed_jobs() {
    let mut spoke = started();
    spoke.status("train", json!({"active": 1, "ready": 1}));
    spoke.restart();
    let seen = &spoke.observed[&placement(1)];
    assert_eq!((seen.run.as_str(), seen.epoch, seen.boot), ("run", Epoch::new(1, 1), 2));
    assert_eq!((&*seen.namespace, &*seen.name), ("team-a", "train"));
    assert!(matches!(&seen.state, CopyState::Live(status) if status.ready == 1));
}

#[test]
fn a_start_that_comes_again_after_a_restart_adopts_the_copy() {
    let mut spoke = started();
    spoke.restart();
    spoke.start(1, "run", "train");
    assert_eq!(spoke.count("create"), 1);
}

#[test]
fn a_start_that_was_lost_with_the_process_creates_the_copy() {
    let mut spoke = Spoke::new();
    spoke.prepare(1, "run", "train");
    spoke.restart();
    assert_eq!(spoke.state(1), None);
    spoke.start(1, "run", "train");
    assert!(matches!(spoke.state(1), Some(CopyState::Live(_))));
}

#[test]
fn a_live_copy_still_refuses_lower_epochs_and_second_copies() {
    let mut spoke = Spoke::new();
    spoke.start(2, "run", "train");
    spoke.restart();
    spoke.start(1, "run", "before");
    spoke.start(3, "run", "after");
    assert!(matches!(spoke.state(1), Some(CopyState::Refused(_))));
    assert!(matches!(spoke.state(3), Some(CopyState::Refused(_))));
    assert_eq!(spoke.jobs.len(), 1);
}

#[test]
fn a_stop_begun_before_goes_on_and_rests_on_count_and_nodes() {
    let mut spoke = started();
    spoke.status("train", json!({"active": 1, "ready": 1}));
    spoke.stop(1, "run");
    spoke.restart();
    assert!(matches!(spoke.state(1), Some(CopyState::Stopping(_))));
    spoke.collected("train");
    assert!(matches!(spoke.state(1), Some(CopyState::Stopping(_))), "one pod is still counted");
    spoke.status("train", json!({"active": 0, "failed": 1}));
    let Some(CopyState::Stopped(_)) = spoke.state(1) else { panic!("{:?}", spoke.state(1)) };
    assert!(
        spoke.jobs.contains_key(&key("train")),
        "the proof stays until the hub has it or orders the stop"
    );
    spoke.stop(1, "run");
    assert!(spoke.jobs.is_empty());
}

#[test]
fn a_stored_result_is_said_again_and_needs_no_further_write() {
    let mut spoke = started();
    spoke.status("train", json!({"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}));
    spoke.acknowledge(1);
    spoke.restart();
    spoke.acknowledge(1);
    assert_eq!(spoke.count("patch"), 1);
}

#[test]
fn an_acknowledgement_of_an_earlier_boot_counts_for_nothing() {
    let mut spoke = started();
    spoke.status("train", json!({"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}));
    let version = spoke.observed[&placement(1)].version;
    spoke.restart();
    let (placement, epoch) = (placement(1), Epoch::new(1, 1));
    spoke.feed(Input::Acknowledged { placement, epoch, boot: 1, version });
    spoke.run();
    assert_eq!(spoke.count("patch"), 0);
}

#[test]
fn what_carries_only_some_stamps_or_somebody_elses_is_left_alone() {
    let mut spoke = started();
    let mut twin = spoke.jobs[&key("train")].clone();
    twin["metadata"]["name"] = json!("twin");
    twin["metadata"]["uid"] = json!("twin-uid");
    spoke.jobs.insert(key("twin"), twin.clone());
    spoke.upsert_job("twin", "twin-uid", 5000, twin.clone());
    let mut partial = twin.clone();
    partial["metadata"]["annotations"] = json!({});
    partial["metadata"]["labels"]["fairlead.dev/placement"] = json!("p1-9");
    spoke.upsert_job("partial", "partial-uid", 5001, partial);
    spoke.stop(1, "run");
    spoke.stop(9, "run-9");
    spoke.collected("train");
    assert!(matches!(spoke.state(9), Some(CopyState::Stopped(_))), "nothing of ours is there");
    assert_eq!(spoke.jobs.keys().cloned().collect::<Vec<_>>(), [key("twin")]);
    assert!(spoke.requests.iter().all(|request| request.key != key("twin") && request.key != key("partial")));
}

#[test]
fn a_late_answer_does_not_bring_back_what_is_gone() {
    let mut spoke = started();
    let (uid, job) = (spoke.uid("train"), spoke.jobs[&key("train")].clone());
    spoke.jobs.clear();
    spoke.gone(Kind::Job, &key("train"), &uid, Some(job.clone()));
    spoke.upsert_job("train", &uid, 101, job);
    spoke.run();
    assert!(!matches!(spoke.state(1), Some(CopyState::Live(_))));
}
