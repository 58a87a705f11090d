//! The hub dies and another takes over.

use fairlead_session::CopyState;

use crate::brain::Effect;
use crate::brain::testing::{Fault, Hub, Manner};
use crate::ports::{Kind, Op};

#[test]
fn running_work_is_kept_and_goes_on_being_mirrored() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.submit("train", "1");
    hub.restart();
    assert_eq!(hub.commands("east"), ["Prepare", "Start", "Keep"]);
    hub.on_spoke("east", |spoke| spoke.finish(true));
    assert!(hub.is("train", "Finished"));
    assert_eq!(hub.spoke("east").started.len(), 1);
}

#[test]
fn what_was_committed_and_never_started_is_started_once() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.stop_after(|effect| matches!(effect, Effect::Store(request) if request.commit));
    hub.submit("train", "1");
    assert!(hub.is("train", "Admitted"), "the commit was carried out");
    assert_eq!(hub.spoke("east").started.len(), 0);
    hub.go_on();
    hub.restart();
    assert_eq!(hub.spoke("east").started.len(), 1);
    assert_eq!(hub.cluster_of("train"), "east");
}

#[test]
fn what_was_accepted_and_never_committed_is_decided_again() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.api.faults.push_back((Kind::Event, Fault::NotSent));
    hub.stop_before(|effect| matches!(effect, Effect::Store(request) if request.commit));
    hub.submit("train", "1");
    assert!(!hub.is("train", "Admitted"));
    hub.go_on();
    hub.restart();
    assert!(hub.is("train", "Admitted"));
    assert_eq!(hub.spoke("east").started.len(), 1);
    let accepted = hub.spoke("east").entries.values().filter(|e| e.state == CopyState::Accepted).count();
    assert_eq!(accepted, 0, "the room of the first promise was let go");
}

#[test]
fn a_result_stored_on_the_workload_alone_is_brought_to_the_job_and_acknowledged() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.submit("train", "1");
    hub.stop_after(|effect| {
        matches!(effect, Effect::Store(request) if request.kind == Kind::Workload
            && matches!(&request.op, Op::PutStatus(put) if put.to_string().contains("\"Finished\"")))
    });
    hub.on_spoke("east", |spoke| spoke.finish(true));
    assert!(hub.is("train", "Finished"));
    assert_eq!(Hub::condition(&hub.job("train"), "Complete").0, "");
    hub.go_on();
    hub.restart();
    assert_eq!(Hub::condition(&hub.job("train"), "Complete").0, "True");
    let version = hub.spoke("east").entries.values().next().unwrap().version;
    assert!(hub.spoke("east").acknowledged.iter().any(|ack| ack.version == version));
}

#[test]
fn a_job_deleted_while_hub_and_link_were_down_is_stopped() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.submit("train", "1");
    hub.crash();
    hub.delete(Kind::Job, "team", "train");
    hub.recover();
    assert_eq!(hub.spoke("east").copies(), 0);
    assert_eq!(hub.api.all(Kind::Workload).len(), 0);
}

#[test]
fn a_copy_that_the_hub_does_not_know_is_kept_and_reported() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.submit("train", "1");
    hub.crash();
    hub.api.forget_all(Kind::Workload);
    hub.api.forget_all(Kind::Job);
    let from = hub.log.len();
    hub.recover();
    assert_eq!(hub.spoke("east").copies(), 1);
    let told = hub.log[from..]
        .iter()
        .any(|effect| matches!(effect, Effect::Warn(text) if text.contains("team/train")));
    assert!(told);
    assert!(!hub.log[from..].iter().any(|effect| matches!(effect, Effect::Command { .. })));
}

#[test]
fn rule_c_nothing_is_decided_before_every_list_is_complete() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.submit("train", "1");
    hub.spoke("east").manner = Manner::Hung;
    hub.crash();
    let from = hub.log.len();
    hub.recover_partly(Kind::Tombstone);
    assert_eq!(hub.log.len(), from);
}

#[test]
fn a_restart_changes_no_committed_decision_and_holds_quota() {
    let mut hub = Hub::with_spokes(&["east", "west"]);
    hub.submit("one", "5");
    hub.submit("two", "5");
    let before = hub.cluster_of("one");
    hub.restart();
    assert_eq!(hub.cluster_of("one"), before);
    assert!(!hub.is("two", "Admitted"));
    assert_eq!(hub.spoke("east").copies() + hub.spoke("west").copies(), 1);
}
