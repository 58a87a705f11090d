//! Rules of the brain that are not about one failure: e and g. The others are in the neighbouring files.

use fairlead_model::Resources;
use fairlead_session::Report;
use serde_json::json;

use crate::brain::testing::{Hub, SpokeSim, job};
use crate::ports::{Kind, SpokeEvent};

#[test]
fn rule_e_a_deletion_and_a_creation_of_one_name_are_two_facts() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.submit("train", "1");
    let first = hub.workload("train")["metadata"]["uid"].clone();
    // Both before the brain hears of either.
    hub.delete(Kind::Job, "team", "train");
    hub.apply(job("train", "1"));
    hub.settle();
    let second = hub.workload("train")["metadata"]["uid"].clone();
    assert_ne!(first, second);
    assert_eq!(hub.commands("east"), ["Prepare", "Start", "Stop", "Prepare", "Start"]);
}

#[test]
fn rule_g_room_is_deducted_by_what_the_report_does_not_know_yet() {
    let mut hub = Hub::empty();
    for object in crate::brain::testing::queue_set("cq", "32", true) {
        hub.apply(object);
    }
    hub.join("east");
    hub.submit("one", "5");
    hub.submit("two", "5");
    assert!(hub.is("one", "Admitted"));
    assert_eq!(
        hub.why("two").1,
        "WaitingForCapacity",
        "the report still says 8 free; 5 of them are promised"
    );
    hub.submit("small", "3");
    assert!(hub.is("small", "Admitted"));

    // The pods are bound now: the report says so, and nothing is deducted twice.
    hub.on_spoke("east", |spoke| {
        spoke.say(SpokeEvent::Report(bound(spoke, &[("one", 5_000), ("small", 3_000)])));
    });
    assert!(!hub.is("two", "Admitted"));
    hub.on_spoke("east", |spoke| spoke.finish(true));
    hub.on_spoke("east", |spoke| spoke.say(SpokeEvent::Report(bound(spoke, &[("small", 3_000)]))));
    assert!(hub.is("two", "Admitted"), "{:?}", hub.why("two"));
}

/// A report of 8 cpus, less the pods of these jobs.
fn bound(spoke: &SpokeSim, jobs: &[(&str, i64)]) -> Report {
    let mut report = spoke.report();
    for (job, cpus) in jobs {
        let (id, _) = spoke.entries.iter().find(|(_, entry)| &*entry.name == *job).unwrap();
        report.bound.insert(id.clone(), [("cpu".into(), *cpus)].into_iter().collect::<Resources>());
        let left = report.free[0].free.get("cpu") - cpus;
        report.free[0].free.set("cpu", left);
    }
    report
}

#[test]
fn a_check_whose_policy_is_missing_stops_its_queue_and_says_so() {
    let mut hub = Hub::with_spokes(&["east"]);
    let parameters = json!({"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "some"});
    let spec = json!({"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters});
    hub.apply((Kind::AdmissionCheck, json!({"metadata": {"name": "dispatch"}, "spec": spec})));
    hub.advance(1_100);
    let check = hub.api.get(Kind::AdmissionCheck, "", "dispatch").unwrap();
    assert_eq!(Hub::condition(&check, "Active"), ("False".into(), "BadConfig".into()));
    hub.submit("train", "1");
    assert_eq!(hub.why("train"), ("Suspended".into(), "ClusterQueueInactive".into()));
    hub.apply((
        Kind::MultiKueueConfig,
        json!({"metadata": {"name": "some"}, "spec": {"clusters": ["east"]}}),
    ));
    hub.advance(1_100);
    let check = hub.api.get(Kind::AdmissionCheck, "", "dispatch").unwrap();
    assert_eq!(Hub::condition(&check, "Active").0, "True");
    assert_eq!(hub.cluster_of("train"), "east");
}
