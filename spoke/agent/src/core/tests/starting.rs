//! Start: created once, adopted, refused, settled.

use fairlead_model::Reason;
use fairlead_session::{CopyState, Desired};
use serde_json::json;

use super::super::Input;
use super::super::harness::{Fault, Spoke, intent, key, manifest, placement};
use crate::ports::{Op, Tenant};

fn live(spoke: &Spoke, seq: u64) -> bool {
    matches!(spoke.state(seq), Some(CopyState::Live(_)))
}

fn reason(spoke: &Spoke, seq: u64) -> Option<Reason> {
    match spoke.state(seq) {
        Some(CopyState::Refused(refusal)) => Some(refusal.reason),
        _ => None,
    }
}

#[test]
fn the_job_is_created_with_our_stamps_as_the_tenant() {
    let mut spoke = Spoke::new();
    spoke.prepare(1, "run", "train");
    spoke.start(1, "run", "train");
    assert!(live(&spoke, 1));
    let job = &spoke.jobs[&key("train")]["metadata"];
    assert_eq!(job["labels"]["fairlead.dev/placement"], "p1-1");
    assert_eq!(job["annotations"], json!({"fairlead.dev/run": "run", "fairlead.dev/epoch": "1.1"}));
    assert_eq!(job["finalizers"], json!(["fairlead.dev/copy"]));
    let create = spoke.requests.iter().find(|request| matches!(request.op, Op::Create(_))).unwrap();
    let tenant = Tenant { namespace: "team-a".into(), service_account: "fairlead-tenant".into() };
    assert_eq!(create.tenant, Some(tenant));
}

#[test]
fn a_start_that_comes_again_changes_nothing() {
    let mut spoke = Spoke::new();
    spoke.start(1, "run", "train");
    spoke.start(1, "run", "train");
    spoke.feed(Input::Void);
    spoke.start(1, "run", "train");
    assert_eq!((spoke.count("create"), spoke.jobs.len()), (1, 1));
    assert!(live(&spoke, 1));
}

#[test]
fn a_start_without_a_prepare_is_checked_against_the_policy() {
    let mut spoke = Spoke::new();
    let mut forbidden = manifest();
    forbidden["spec"]["template"]["spec"]["serviceAccountName"] = json!("admin");
    spoke.command(1, "run", Desired::Start(intent("train", &forbidden)));
    assert_eq!(reason(&spoke, 1), Some(Reason::ForbiddenByPolicy));
    assert_eq!(spoke.count("create"), 0);
}

#[test]
fn two_live_copies_of_one_run_never_exist() {
    let mut spoke = Spoke::new();
    spoke.start(2, "run", "train");
    spoke.start(3, "run", "train-again");
    assert_eq!(reason(&spoke, 3), Some(Reason::Busy));
    spoke.start(1, "run", "train-before");
    assert_eq!(reason(&spoke, 1), Some(Reason::StaleEpoch));
    assert_eq!(spoke.jobs.len(), 1);
    // Also while the first create is still under way.
    let mut racing = Spoke::new();
    for (seq, name) in [(1, "a"), (2, "b")] {
        racing.revision += 1;
        let (run, epoch, revision) = ("run".into(), fairlead_model::Epoch::new(1, seq), racing.revision);
        let desired = Desired::Start(intent(name, &manifest()));
        let command = fairlead_session::Command { run, epoch, revision, desired };
        racing.feed(Input::Command(placement(seq), command));
    }
    racing.run();
    assert_eq!(racing.jobs.len(), 1);
}

#[test]
fn a_refused_start_is_said_with_the_api_servers_words() {
    let mut spoke = Spoke::new();
    spoke.faults.push(("create", Fault::Refused("exceeded quota: gpus")));
    spoke.start(1, "run", "train");
    let Some(CopyState::Refused(refusal)) = spoke.state(1) else { panic!("{:?}", spoke.state(1)) };
    assert_eq!((refusal.reason, &*refusal.detail), (Reason::RejectedByApiServer, "exceeded quota: gpus"));
    spoke.pass(60_000);
    assert_eq!(spoke.count("create"), 1, "a refused command is not tried again");
    spoke.start(1, "run", "train");
    assert!(live(&spoke, 1), "a new revision is");
}

#[test]
fn a_create_whose_answer_was_lost_is_settled_by_a_read() {
    let mut happened = Spoke::new();
    happened.faults.push(("create", Fault::AnswerLost));
    happened.start(1, "run", "train");
    assert!(live(&happened, 1));
    assert_eq!((happened.count("create"), happened.count("get")), (1, 0), "the watch was quicker");

    let mut never = Spoke::new();
    never.faults.push(("create", Fault::NeverArrived));
    never.start(1, "run", "train");
    never.pass(100);
    assert!(live(&never, 1));
    assert_eq!((never.count("create"), never.jobs.len()), (2, 1));
}

#[test]
fn a_lost_create_that_may_still_land_is_not_called_refused_or_stopped() {
    let mut spoke = Spoke::new();
    spoke.faults.push(("create", Fault::NeverArrived));
    spoke.faults.push(("create", Fault::Refused("no")));
    spoke.start(1, "run", "train");
    spoke.pass(11_000);
    assert_eq!(spoke.state(1), None, "the first create may land until the API server gives up on it");
    spoke.pass(2_000);
    assert_eq!(reason(&spoke, 1), Some(Reason::RejectedByApiServer));

    let mut stopped = Spoke::new();
    stopped.faults.push(("create", Fault::NeverArrived));
    stopped.faults.push(("get", Fault::NeverArrived));
    stopped.start(1, "run", "train");
    stopped.stop(1, "run");
    stopped.pass(11_000);
    assert_eq!(stopped.state(1), None);
    stopped.pass(2_000);
    assert!(matches!(stopped.state(1), Some(CopyState::Stopped(_))));
    assert_eq!(stopped.count("create"), 1);
}

#[test]
fn a_name_that_was_taken_between_prepare_and_start_is_found_out() {
    let mut spoke = Spoke::new();
    spoke.prepare(1, "run", "train");
    let foreign =
        json!({"metadata": {"name": "train", "uid": "theirs", "resourceVersion": "5", "labels": {}}});
    spoke.jobs.insert(key("train"), foreign);
    spoke.start(1, "run", "train");
    assert_eq!(reason(&spoke, 1), Some(Reason::NameTaken));
}

#[test]
fn a_copy_that_comes_back_suspended_is_deleted_and_refused_with_proof() {
    let mut spoke = Spoke::new();
    spoke.suspends = true;
    spoke.start(1, "run", "train");
    assert_eq!(spoke.state(1), None, "nothing is said while it exists");
    assert_eq!(spoke.count("delete"), 1);
    spoke.collected("train");
    assert!(spoke.jobs.is_empty());
    assert_eq!(reason(&spoke, 1), Some(Reason::SuspendedByLocalQueueing));
    assert_eq!((spoke.count("create"), spoke.count("delete"), spoke.count("patch")), (1, 1, 1));
}

#[test]
fn a_copy_that_is_suspended_before_it_ran_is_refused_also_after_it_was_live() {
    let mut spoke = Spoke::new();
    spoke.start(1, "run", "train");
    assert!(live(&spoke, 1));
    spoke.edit("train", |job| job["spec"]["suspend"] = json!(true));
    spoke.collected("train");
    assert_eq!(reason(&spoke, 1), Some(Reason::SuspendedByLocalQueueing));
}

#[test]
fn a_copy_that_is_suspended_after_it_ran_is_left_alone() {
    let mut spoke = Spoke::new();
    spoke.start(1, "run", "train");
    spoke.status("train", json!({"active": 1, "ready": 1}));
    spoke.edit("train", |job| job["spec"]["suspend"] = json!(true));
    assert!(live(&spoke, 1));
    assert_eq!(spoke.count("delete"), 0);
}

#[test]
fn a_start_that_was_not_begun_is_void_with_its_session() {
    let mut spoke = Spoke::unlisted();
    spoke.start(1, "run", "train");
    spoke.feed(Input::Void);
    spoke.list();
    assert_eq!((spoke.count("create"), spoke.state(1)), (0, None));
    assert_eq!(spoke.core.rows.len(), 0);
}

#[test]
fn a_create_that_was_under_way_when_the_session_ended_shows_in_the_inventory() {
    let mut spoke = Spoke::unlisted();
    spoke.start(1, "run", "train");
    spoke.list();
    assert!(live(&spoke, 1));
    let mut cut = Spoke::new();
    cut.revision += 1;
    let command = fairlead_session::Command {
        run: "run".into(),
        epoch: fairlead_model::Epoch::new(1, 1),
        revision: 1,
        desired: Desired::Start(intent("train", &manifest())),
    };
    cut.feed(Input::Command(placement(1), command));
    cut.turn_only();
    cut.feed(Input::Void);
    cut.run();
    assert!(live(&cut, 1));
}
