//! What goes wrong: lost answers, silent spokes, cut links, vanished copies.

use fairlead_model::Reason;

use crate::brain::testing::{Fault, Hub, Manner, SpokeSim};
use crate::ports::{Kind, SpokeEvent};

#[test]
fn rule_b_a_commit_of_unknown_outcome_holds_its_quota_until_it_is_read() {
    for fault in [Fault::LostAnswer, Fault::LostRequest] {
        let mut hub = Hub::with_spokes(&["east"]);
        // The Workload's create, then the commit.
        hub.api.watch_is_slow = false;
        hub.api.faults.push_back((Kind::Workload, fault));
        hub.submit("one", "5");
        hub.advance(3_000);
        hub.api.faults.push_back((Kind::Workload, fault));
        hub.submit("two", "3");
        hub.advance(3_000);
        assert!(hub.is("one", "Admitted") && hub.is("two", "Admitted"), "{fault:?}");
        assert_eq!(hub.spoke("east").started.len(), 2, "{fault:?}");
        assert_eq!(hub.api.all(Kind::Workload).len(), 2);
    }
}

#[test]
fn rule_d_one_operation_in_flight_per_workload_and_later_news_merge() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.submit("train", "1");
    let from = hub.log.len();
    let spoke = hub.spoke("east");
    spoke.ready();
    spoke.finish(true);
    hub.settle();
    // Ready and finished arrived together: the Workload was written once for PodsReady at most, once for Finished.
    assert!(hub.writes(from, Kind::Workload) <= 2);
    assert!(hub.is("train", "Finished") && hub.is("train", "PodsReady"));
}

#[test]
fn nothing_is_lost_when_a_write_was_not_sent() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.api.faults.push_back((Kind::Workload, Fault::NotSent));
    hub.submit("train", "1");
    assert_eq!(hub.api.all(Kind::Workload).len(), 0);
    hub.advance(1_000);
    assert!(hub.is("train", "Admitted"));
}

#[test]
fn a_hung_spoke_delays_jobs_by_one_answer_time_and_not_each_of_them() {
    let mut hub = Hub::with_spokes(&["east", "west"]);
    hub.spoke("east").manner = Manner::Hung;
    for name in ["a", "b", "c"] {
        hub.submit(name, "1");
    }
    hub.advance(2_000);
    for name in ["a", "b", "c"] {
        assert_eq!(hub.cluster_of(name), "west", "{name}");
    }
    hub.submit("d", "1");
    assert_eq!(hub.cluster_of("d"), "west", "it counts as not answering until it says something");
    let asked = hub.commands("east").len();
    hub.on_spoke("east", |spoke| {
        spoke.manner = Manner::Willing;
        spoke.say(SpokeEvent::Heartbeat);
    });
    hub.advance(10_000);
    hub.submit("e", "1");
    assert!(hub.commands("east").len() > asked || hub.cluster_of("e") == "west");
}

#[test]
fn a_cut_link_changes_nothing_for_running_work_and_gets_no_new_work() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.submit("train", "1");
    hub.on_spoke("east", SpokeSim::ready);
    hub.disconnect("east");
    hub.submit("next", "1");
    hub.advance(20_000);
    assert!(hub.is("train", "Admitted"));
    assert_eq!(hub.why("next").1, "ClusterNotReady");
    hub.spoke("east").finish(true);
    hub.connect("east");
    assert!(hub.is("train", "Finished"));
    assert!(hub.is("next", "Admitted"));
    assert_eq!(hub.spoke("east").started.len(), 2, "nothing ran twice");
}

#[test]
fn a_suspect_spoke_gets_nothing_new() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.spoke("east").manner = Manner::Hung;
    hub.advance(31_000);
    hub.submit("train", "1");
    assert_eq!(hub.commands("east").len(), 0);
    let cluster = hub.api.get(Kind::Cluster, "", "east").unwrap();
    assert_eq!(cluster["status"]["presence"], "Suspect");
    assert_eq!(Hub::condition(&cluster, "Connected").1, "HeartbeatMissing");
}

#[test]
fn rule_f_a_vanished_copy_keeps_its_quota_and_is_not_made_again() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.submit("train", "5");
    hub.on_spoke("east", SpokeSim::vanish);
    hub.submit("next", "5");
    hub.advance(120_000);
    assert!(hub.events("train").contains(&Reason::CopyVanished.token().to_owned()));
    assert!(!hub.is("next", "Admitted"));
    assert_eq!(hub.spoke("east").started.len(), 1);
}

#[test]
fn a_copy_stopped_by_somebody_else_is_proven_gone_and_its_job_runs_again() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.submit("train", "5");
    hub.on_spoke("east", SpokeSim::prove_stop);
    assert!(hub.is("train", "Admitted"));
    assert_eq!(hub.spoke("east").started.len(), 2);
    let workload = hub.workload("train");
    assert_eq!(workload["status"]["placements"][0]["state"], "Closed");
}

#[test]
fn a_session_that_ends_between_prepare_and_start_leaves_no_promise_behind() {
    let mut hub = Hub::with_spokes(&["east", "west"]);
    hub.spoke("east").manner = Manner::Hung;
    hub.submit("train", "1");
    hub.disconnect("east");
    assert_eq!(hub.cluster_of("train"), "west", "at once, without waiting for the answer");
}

#[test]
fn rule_a_a_slow_watch_is_no_obstacle_and_old_versions_change_nothing() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.apply(crate::brain::testing::job("train", "1"));
    hub.settle();
    hub.api.watch_is_slow = true;
    hub.on_spoke("east", SpokeSim::ready);
    hub.on_spoke("east", |spoke| spoke.finish(true));
    assert!(hub.is("train", "Finished"), "answers to our writes are facts");
    let before = hub.log.len();
    hub.api.watch_is_slow = false;
    hub.settle();
    assert_eq!(hub.writes(before, Kind::Workload) + hub.writes(before, Kind::Job), 0);
}

#[test]
fn a_refusal_that_crosses_the_commit_takes_the_admission_back_once_it_has_landed() {
    for fault in [None, Some(Fault::LostAnswer), Some(Fault::LostRequest)] {
        let mut hub = Hub::with_spokes(&["east", "west"]);
        hub.spoke("east").manner = Manner::ChangesItsMind(Reason::NoRoom);
        hub.submit_but("train", "1", fault);
        hub.advance(2_000);
        assert_eq!(hub.cluster_of("train"), "west", "{fault:?}");
        assert_eq!(hub.spoke("east").started.len() + hub.spoke("west").started.len(), 1);
        hub.submit("next", "7");
        assert!(hub.is("next", "Admitted"), "quota is counted once");
    }
}
