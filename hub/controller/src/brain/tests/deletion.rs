//! Deletion: stop at once, let go only after the proof.

use fairlead_model::Reason;
use serde_json::{Value, json};

use crate::brain::testing::{Hub, Manner, SpokeSim, job};
use crate::ports::Kind;

#[test]
fn a_deleted_job_stops_its_copy_at_once_and_its_workload_goes_after_the_proof() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.submit("train", "5");
    hub.spoke("east").stops_at_once = false;
    let from = hub.log.len();
    hub.delete(Kind::Job, "team", "train");
    hub.settle();
    assert_eq!(hub.commands("east").last(), Some(&"Stop"));
    let workload = hub.api.all(Kind::Workload).pop().unwrap();
    assert!(workload["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(workload["metadata"]["finalizers"], json!(["kueue.x-k8s.io/resource-in-use"]));
    hub.submit("next", "5");
    assert!(!hub.is("next", "Admitted"), "rule f: quota is held through deletion");

    hub.on_spoke("east", SpokeSim::prove_stop);
    assert_eq!(hub.api.all(Kind::Workload).len(), 1, "only the next one's");
    assert!(hub.is("next", "Admitted"));
    // Delete and finalizer of the old one; create, verdict and admission of the next.
    assert_eq!(hub.writes(from, Kind::Workload), 2 + 3);
    assert_eq!(hub.spoke("east").entries.len(), 1, "the stopped entry was acknowledged and forgotten");
}

#[test]
fn a_job_deleted_while_the_link_is_down_stops_after_reconnect() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.submit("train", "1");
    hub.disconnect("east");
    hub.delete(Kind::Job, "team", "train");
    hub.settle();
    assert_eq!(hub.api.all(Kind::Workload).len(), 1);
    hub.connect("east");
    assert_eq!(hub.spoke("east").copies(), 0);
    assert_eq!(hub.api.all(Kind::Workload).len(), 0);
}

#[test]
fn a_job_deleted_before_anything_was_started_needs_no_proof() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.spoke("east").manner = Manner::Hung;
    hub.submit("train", "1");
    hub.delete(Kind::Job, "team", "train");
    hub.settle();
    assert_eq!(hub.api.all(Kind::Workload).len(), 0);
}

#[test]
fn a_replaced_job_starts_only_after_the_old_one_has_stopped() {
    let mut hub = Hub::with_spokes(&["east", "west"]);
    hub.submit("train", "1");
    let spoke = hub.cluster_of("train");
    hub.spoke(&spoke).stops_at_once = false;
    hub.delete(Kind::Job, "team", "train");
    hub.apply(job("train", "1"));
    hub.settle();
    hub.advance(5_000);
    let new =
        hub.api.all(Kind::Workload).into_iter().find(|w| w["metadata"].get("deletionTimestamp").is_none());
    assert_eq!(new.unwrap()["status"]["verdict"]["code"], Reason::Busy.token());
    assert_eq!(hub.spoke("east").started.len() + hub.spoke("west").started.len(), 1);
    hub.on_spoke(&spoke, SpokeSim::prove_stop);
    assert!(hub.is("train", "Admitted"));
    assert_eq!(hub.spoke("east").started.len() + hub.spoke("west").started.len(), 2);
}

#[test]
fn an_unconfirmed_deletion_is_carried_on_by_a_tombstone_that_holds_the_quota() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.submit("train", "5");
    hub.disconnect("east");
    hub.delete(Kind::Job, "team", "train");
    hub.advance(299_000);
    assert_eq!(hub.api.all(Kind::Tombstone).len(), 0);
    hub.advance(2_000);
    let tombstone = hub.api.all(Kind::Tombstone).pop().unwrap();
    assert_eq!(tombstone["spec"]["reason"], "DeadlineExceeded");
    assert_eq!(tombstone["spec"]["heldUsage"][0]["amount"], "5");
    assert_eq!(hub.api.all(Kind::Workload).len(), 0);
    hub.join("west");
    hub.submit("next", "5");
    assert!(!hub.is("next", "Admitted"), "the tombstone holds its quota");
    hub.restart_without_connecting();
    hub.connect("west");
    assert!(!hub.is("next", "Admitted"), "after a restart too");
    hub.connect("east");
    assert_eq!(hub.api.all(Kind::Tombstone).len(), 0);
    assert!(hub.is("next", "Admitted"));
    assert_eq!(hub.spoke("east").copies() + hub.spoke("west").copies(), 1, "the next one's");
}

#[test]
fn a_terminating_namespace_does_not_wait_for_the_deadline() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.submit("train", "1");
    hub.disconnect("east");
    hub.apply((
        Kind::Namespace,
        json!({"metadata": {"name": "team", "deletionTimestamp": "2027-01-15T08:00:00Z"}}),
    ));
    hub.delete(Kind::Job, "team", "train");
    hub.settle();
    assert_eq!(hub.api.all(Kind::Tombstone)[0]["spec"]["reason"], "NamespaceTerminating");
    assert_eq!(hub.api.all(Kind::Workload).len(), 0);
}

#[test]
fn a_finished_copy_is_kept_for_a_while_and_then_retired() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.submit("train", "1");
    hub.on_spoke("east", |spoke| spoke.finish(true));
    hub.advance(3_590_000);
    assert_eq!(hub.spoke("east").copies(), 1);
    hub.advance(20_000);
    assert_eq!(hub.spoke("east").entries.len(), 0);
    hub.delete(Kind::Job, "team", "train");
    hub.settle();
    assert_eq!(hub.api.all(Kind::Workload).len(), 0);
}

#[test]
fn a_deactivated_workload_is_evicted_and_holds_its_quota_until_the_proof() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.submit("train", "5");
    hub.spoke("east").stops_at_once = false;
    let mut workload = hub.workload("train");
    workload["spec"]["active"] = json!(false);
    hub.apply((Kind::Workload, workload.clone()));
    hub.settle();
    assert_eq!(Hub::condition(&hub.workload("train"), "Evicted"), ("True".into(), "Deactivated".into()));
    assert!(hub.is("train", "Admitted"));
    hub.on_spoke("east", SpokeSim::prove_stop);
    let stored = hub.workload("train");
    assert_eq!(stored["status"].get("admission").unwrap_or(&Value::Null), &Value::Null);
    assert_eq!(hub.job("train")["spec"]["suspend"], true);
    hub.advance(1_000);
    assert_eq!(hub.why("train"), ("Deactivated".into(), "Deactivated".into()));
    assert_eq!(hub.spoke("east").started.len(), 1);

    let mut workload = hub.workload("train");
    workload["spec"]["active"] = json!(true);
    hub.apply((Kind::Workload, workload));
    hub.settle();
    assert!(hub.is("train", "Admitted"));
    assert!(!hub.is("train", "Evicted"));
    assert_eq!(hub.spoke("east").started.len(), 2);
}

#[test]
fn a_drained_queue_evicts_and_holds() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.submit("train", "5");
    let mut queue = hub.api.get(Kind::LocalQueue, "team", "q").unwrap();
    queue["spec"]["stopPolicy"] = json!("HoldAndDrain");
    hub.apply((Kind::LocalQueue, queue));
    hub.settle();
    assert_eq!(hub.spoke("east").copies(), 0);
    assert!(!hub.is("train", "Admitted"));
    assert_eq!(Hub::condition(&hub.workload("train"), "Evicted").1, "LocalQueueStopped");
    assert_eq!(hub.why("train").1, "QueueStopped");
}
