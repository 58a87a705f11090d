//! The cluster step: which spoke takes a workload, and what is said of those that do not.

#[path = "build/lib.rs"]
mod build;

use std::collections::BTreeMap;
use std::sync::Arc;

use build::{
    Hub, admitted, federated, flavor, head, holding, labels, promised, queue, resources, shape, spoke,
    workload,
};
use fairlead_engine::Fact;
use fairlead_engine::Outcome;
use fairlead_engine::fact::{
    AdmissionCheck, CheckKind, CheckPhase, CheckState, CheckUse, Cluster, DispatchPolicy, Exclusion, Flavor,
    Mode, Presence,
};
use fairlead_model::{LabelSelector, Operator, PlacementId, Reason, Requirement, SpokeId};

/// One federated queue of 100 CPUs and spokes of two nodes each, with `free` millicores free of 8000.
fn hub(spokes: &[(&str, i64)]) -> Hub {
    let mut hub = Hub::new(&[flavor("default")], &[federated("q", &[("default", 100_000)])]);
    for (name, free) in spokes {
        hub.connect(name, &[shape(name, *free, 2)], &[shape(name, 8000, 2)]);
    }
    hub
}

fn selector(key: &str, value: &str) -> LabelSelector {
    let one = Requirement { key: key.into(), operator: Operator::In, values: vec![value.into()] };
    LabelSelector { requirements: vec![one] }
}

#[test]
fn f11_the_least_used_cluster_takes_it_and_names_break_ties() {
    let mut hub = hub(&[("b", 8000), ("a", 8000), ("c", 4000)]);
    hub.submit(workload("first", "q", (1, 2000)));
    let plan = hub.round();
    assert_eq!(admitted(&plan), [("first", Some("a"))]);
    let verdict = &plan.admissions[0].verdict;
    assert_eq!((verdict.reason, verdict.cluster.as_deref()), (Reason::Admitted, Some("a")));
    let clusters: Vec<_> = verdict.candidates.iter().map(|it| (&*it.cluster, it.reason)).collect();
    assert_eq!(clusters, [("a", Reason::Fits), ("b", Reason::NotChosen), ("c", Reason::NotChosen)]);
    // What is promised counts as used before any report shows it.
    hub.submit(workload("second", "q", (1, 2000)));
    assert_eq!(admitted(&hub.round()), [("second", Some("b"))]);
}

#[test]
fn f11_two_heads_of_one_round_do_not_share_the_same_room() {
    let queues = [federated("q1", &[("default", 100_000)]), federated("q2", &[("default", 100_000)])];
    let mut hub = Hub::new(&[flavor("default")], &queues);
    hub.connect("a", &[shape("a", 4000, 1)], &[shape("a", 4000, 1)]);
    hub.connect("b", &[shape("b", 3000, 1)], &[shape("b", 4000, 1)]);
    hub.submit(workload("one", "q1", (1, 3000)));
    hub.submit(workload("two", "q2", (1, 3000)));
    let plan = hub.round();
    assert_eq!(admitted(&plan), [("one", Some("a")), ("two", Some("b"))]);
}

#[test]
fn f11_never_is_told_from_not_now() {
    let mut hub = hub(&[("a", 1000)]);
    hub.submit(workload("huge", "q", (1, 9000)));
    hub.submit(workload("many", "q", (3, 8000)));
    hub.submit(workload("later", "q", (1, 4000)));
    let plans = hub.rounds();
    let told = |name: &str| {
        let plan = plans.iter().find(|plan| plan.heads.iter().any(|it| *it.key.name == *name)).unwrap();
        let candidate = head(plan, name).verdict.candidates[0].clone();
        (head(plan, name).verdict.reason, candidate.shortfall.unwrap())
    };
    let (reason, short) = told("huge");
    assert_eq!((reason, short.requested, short.available), (Reason::NoSingleNodeFits, 9000, 8000));
    let (reason, short) = told("many");
    assert_eq!((reason, short.requested, short.available), (Reason::ExceedsClusterCapacity, 24_000, 16_000));
    let (reason, short) = told("later");
    assert_eq!((reason, short.requested, short.available), (Reason::WaitingForCapacity, 4000, 2000));
}

#[test]
fn f11_an_elastic_cluster_is_never_said_to_be_too_small() {
    let mut hub = hub(&[("a", 8000)]);
    hub.tell(Fact::Cluster(Cluster { elastic: true, ..spoke("a") }));
    hub.submit(workload("huge", "q", (1, 9000)));
    assert_eq!(head(&hub.round(), "huge").verdict.reason, Reason::WaitingForCapacity);
}

#[test]
fn q10_a_report_with_more_room_wakes_what_waits_for_it() {
    let mut hub = hub(&[("a", 1000)]);
    hub.submit(workload("later", "q", (1, 4000)));
    assert!(admitted(&hub.round()).is_empty());
    assert!(hub.round().heads.is_empty(), "it is parked");
    hub.report("a", &[shape("a", 4000, 1)], &[shape("a", 8000, 2)], BTreeMap::new());
    assert_eq!(admitted(&hub.round()), [("later", Some("a"))]);
}

#[test]
fn rule_g_deducts_only_what_the_report_does_not_show_as_bound() {
    let empty = [shape("a", 8000, 1)];
    let bound = |cpu: i64| {
        BTreeMap::from([(PlacementId::from("p1"), resources(&[("cpu", cpu), ("pods", cpu / 2000)]))])
    };
    let mut hub = hub(&[]);
    let running = holding(workload("running", "q", (2, 2000)), "q", ("default", 4000));
    hub.tell(Fact::Cluster(spoke("a")));
    hub.submit(promised(running, "a", Some("p1")));
    // Nothing of it is bound yet: 8000 free, 4000 of them spoken for.
    hub.report("a", &empty, &empty, BTreeMap::new());
    hub.submit(workload("next", "q", (1, 5000)));
    assert_eq!(head(&hub.round(), "next").verdict.reason, Reason::WaitingForCapacity);
    // Bound, and no longer in what is free: nothing is deducted twice.
    hub.report("a", &[shape("a", 5000, 1)], &empty, bound(4000));
    assert_eq!(admitted(&hub.round()), [("next", Some("a"))]);
}

#[test]
fn refusals_cordons_and_absence_are_told_with_their_own_reasons() {
    let mut hub = hub(&[("a", 8000), ("b", 8000)]);
    hub.tell(Fact::Cluster(Cluster { cordoned: true, ..spoke("b") }));
    hub.tell(Fact::Cluster(Cluster { presence: Presence::Suspect, ..spoke("c") }));
    let refused = Exclusion {
        spoke: SpokeId::from("a"),
        reason: Reason::MissingReference,
        detail: "Secret token".into(),
    };
    let mut wanted = workload("wanted", "q", (1, 1000));
    wanted.excluded = vec![refused];
    hub.submit(wanted);
    let plan = hub.round();
    let verdict = &head(&plan, "wanted").verdict;
    assert_eq!(verdict.reason, Reason::MissingReference);
    assert!(verdict.message.contains("Secret token"), "{}", verdict.message);
    let told: BTreeMap<_, _> = verdict.candidates.iter().map(|it| (&*it.cluster, it.reason)).collect();
    let expected =
        [("a", Reason::MissingReference), ("b", Reason::ClusterCordoned), ("c", Reason::ClusterNotReady)];
    assert_eq!(told, BTreeMap::from(expected));
}

#[test]
fn a_policy_requires_prefers_and_names_clusters() {
    let mut hub = hub(&[]);
    for (name, tier) in [("a", "slow"), ("b", "fast"), ("c", "fast")] {
        let labels = labels(&[("tier", tier), ("fairlead.dev/cluster", name)]);
        hub.tell(Fact::Cluster(Cluster { labels, ..spoke(name) }));
        hub.report(name, &[shape(name, 8000, 2)], &[shape(name, 8000, 2)], BTreeMap::new());
    }
    let policy = |policy: DispatchPolicy| {
        Fact::Check(AdmissionCheck {
            name: "dispatch".into(),
            kind: CheckKind::Dispatch(policy),
            usable: true,
        })
    };
    hub.tell(policy(DispatchPolicy { required: selector("tier", "fast"), ..DispatchPolicy::default() }));
    hub.submit(workload("required", "q", (1, 1000)));
    assert_eq!(admitted(&hub.round()), [("required", Some("b"))]);
    let preferred = Some(selector("fairlead.dev/cluster", "c"));
    hub.tell(policy(DispatchPolicy { preferred, ..DispatchPolicy::default() }));
    hub.submit(workload("preferred", "q", (1, 1000)));
    assert_eq!(admitted(&hub.round()), [("preferred", Some("c"))]);
    hub.tell(policy(DispatchPolicy { names: Some(vec!["nowhere".into()]), ..DispatchPolicy::default() }));
    hub.submit(workload("nowhere", "q", (1, 1000)));
    assert_eq!(head(&hub.round(), "nowhere").verdict.reason, Reason::NoEligibleCluster);
}

#[test]
fn f11_a_flavor_without_a_cluster_is_as_a_failed_topology_and_the_next_one_is_tried() {
    let pinned = |name: &str, cluster: &str| Flavor {
        node_labels: labels(&[("fairlead.dev/cluster", cluster)]),
        ..flavor(name)
    };
    let flavors = [pinned("near", "a"), pinned("far", "b")];
    let mut hub = Hub::new(&flavors, &[federated("q", &[("near", 100_000), ("far", 100_000)])]);
    hub.connect("a", &[shape("a", 500, 1)], &[shape("a", 8000, 1)]);
    hub.connect("b", &[shape("b", 8000, 1)], &[shape("b", 8000, 1)]);
    hub.submit(workload("job", "q", (1, 1000)));
    let plan = hub.round();
    assert_eq!(admitted(&plan), [("job", Some("b"))]);
    assert_eq!(plan.admissions[0].pod_sets[0].flavors.get("cpu").map(|flavor| &**flavor), Some("far"));
}

#[test]
fn a_quota_only_cluster_needs_no_report_and_still_honours_pinned_flavors() {
    let pinned = Flavor { node_labels: labels(&[("fairlead.dev/cluster", "b")]), ..flavor("default") };
    let mut hub = Hub::new(&[pinned], &[federated("q", &[("default", 100_000)])]);
    hub.tell(Fact::Cluster(Cluster { mode: Mode::QuotaOnly, ..spoke("a") }));
    hub.tell(Fact::Cluster(Cluster { mode: Mode::QuotaOnly, ..spoke("b") }));
    hub.submit(workload("job", "q", (1, 1000)));
    assert_eq!(admitted(&hub.round()), [("job", Some("b"))]);
}

#[test]
fn a_home_queue_reserves_quota_alone() {
    let mut hub = Hub::new(&[flavor("default")], &[queue("home", &[("default", 4000)])]);
    hub.submit(workload("job", "home", (1, 1000)));
    let plan = hub.round();
    assert_eq!(admitted(&plan), [("job", None)]);
    assert!(!plan.admissions[0].checks_pending);
}

#[test]
fn q1_workloads_without_a_queue_are_told_why_once() {
    let mut hub = Hub::new(&[flavor("default")], &[queue("q", &[("default", 4000)])]);
    hub.submit(workload("lost", "no-such", (1, 1000)));
    let mut orphan = queue("gone", &[("default", 1)]);
    orphan.name = "gone".into();
    hub.open(&Arc::from("gone"), fairlead_engine::fact::StopPolicy::None);
    hub.submit(workload("orphan", "gone", (1, 1000)));
    let plan = hub.round();
    assert_eq!(head(&plan, "lost").verdict.reason, Reason::LocalQueueNotFound);
    assert_eq!(head(&plan, "orphan").verdict.reason, Reason::ClusterQueueNotFound);
    assert!(plan.heads.iter().all(|head| head.outcome == Outcome::Outside));
    assert!(hub.round().heads.is_empty(), "told once");
}

/// A queue with another controller's check before ours.
fn checked() -> Hub {
    let mut queue = federated("q", &[("default", 100_000)]);
    queue.checks.insert(0, CheckUse { check: "other".into(), flavors: Vec::new() });
    let mut hub = Hub::new(&[flavor("default")], &[]);
    hub.tell(Fact::Check(AdmissionCheck { name: "other".into(), kind: CheckKind::Other, usable: true }));
    hub.tell(Fact::ClusterQueue(queue.clone()));
    hub.open(&queue.name, fairlead_engine::fact::StopPolicy::None);
    hub.connect("a", &[shape("a", 8000, 1)], &[shape("a", 8000, 1)]);
    hub
}

#[test]
fn q13_with_another_check_pending_only_quota_is_reserved_and_the_cluster_follows() {
    let mut hub = checked();
    let job = workload("job", "q", (1, 1000));
    hub.submit(job.clone());
    let plan = hub.round();
    assert_eq!(admitted(&plan), [("job", None)]);
    assert!(plan.admissions[0].checks_pending);
    assert!(hub.round().admissions.is_empty(), "nothing to decide while the check is pending");
    let ready = CheckState { check: "other".into(), phase: CheckPhase::Ready };
    let mut reserved = holding(job, "q", ("default", 1000));
    reserved.checks = vec![ready];
    if let Some(reservation) = &mut reserved.reservation {
        reservation.admitted = false;
    }
    hub.submit(reserved);
    let plan = hub.round();
    assert_eq!(admitted(&plan), [("job", Some("a"))]);
    assert!(!plan.admissions[0].checks_pending);
    let (usage, _) = hub.world.usage();
    assert_eq!(usage["q"].by_flavor["default"]["cpu"].0, 1000, "charged once");
}

#[test]
fn q13_second_pass_and_head_are_both_processed() {
    let mut hub = checked();
    hub.policy.fair_sharing = Some(Vec::new());
    let ready = CheckState { check: "other".into(), phase: CheckPhase::Ready };
    let mut reserved = holding(workload("reserved", "q", (1, 1000)), "q", ("default", 1000));
    reserved.checks = vec![ready.clone()];
    hub.submit(reserved);
    let mut fresh = workload("fresh", "q", (1, 1000));
    fresh.checks = vec![ready];
    hub.submit(fresh);
    assert_eq!(admitted(&hub.round()), [("reserved", Some("a")), ("fresh", Some("a"))]);
}
