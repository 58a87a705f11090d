//! Where the engine decides otherwise than Kueue, one story each (docs/kueue-differences.md).

#[path = "build/lib.rs"]
mod build;

use std::sync::Arc;

use build::{
    Hub, NAMESPACE, NOW, admitted, flavor, head, holding, labels, queue, resources, with_preemption,
    with_template, workload,
};
use fairlead_engine::fact::{
    ClusterQueue, Flavor, Node, PodSet, Preemption, StopPolicy, Topology, TopologyLevel, TopologyRequest,
    VictimPolicy, Workload,
};
use fairlead_engine::{Fact, Outcome, Settings};
use fairlead_model::{NodeTerm, Operator, Reason, Requirement, Taint, TaintEffect};

fn one_queue(cpu: i64) -> Hub {
    Hub::new(&[flavor("default")], &[queue("q", &[("default", cpu)])])
}

#[test]
fn q10_quota_of_a_drained_local_queue_wakes_those_that_wait() {
    let mut hub = one_queue(4000);
    hub.open(&Arc::from("q"), StopPolicy::None);
    let local = fairlead_engine::fact::LocalQueue {
        key: fairlead_model::ObjectKey::new(NAMESPACE, "other"),
        cluster_queue: "q".into(),
        stop: StopPolicy::None,
        weight: fairlead_engine::fact::Weight::default(),
    };
    hub.tell(Fact::LocalQueue(local.clone()));
    let runs = workload("runs", "other", (1, 4000));
    hub.submit(holding(runs.clone(), "q", ("default", 4000)));
    hub.submit(workload("waits", "q", (1, 4000)));
    assert!(hub.rounds().iter().all(|plan| plan.admissions.is_empty()));
    hub.tell(Fact::LocalQueue(fairlead_engine::fact::LocalQueue { stop: StopPolicy::HoldAndDrain, ..local }));
    hub.submit(runs);
    assert_eq!(admitted(&hub.round()), [("waits", None)]);
}

#[test]
fn q11_workloads_of_a_stopped_queue_stay_preemptible() {
    let reclaim = Preemption { reclaim: VictimPolicy::Any, ..Preemption::default() };
    let in_pool = |queue: ClusterQueue| ClusterQueue { cohort: Some("pool".into()), ..queue };
    let owner = with_preemption(in_pool(queue("owner", &[("default", 4000)])), reclaim);
    let stopped = ClusterQueue { stop: StopPolicy::Hold, ..in_pool(queue("stopped", &[("default", 0)])) };
    let mut hub = Hub::new(&[flavor("default")], &[owner, stopped]);
    hub.submit(holding(workload("borrows", "stopped", (1, 4000)), "stopped", ("default", 4000)));
    hub.submit(workload("owns", "owner", (1, 4000)));
    let plan = hub.round();
    assert_eq!(plan.evictions.iter().map(|it| &*it.key.name).collect::<Vec<_>>(), ["borrows"]);
}

#[test]
fn f3_one_alternative_without_the_flavors_keys_does_not_switch_the_affinity_off() {
    let spot = Flavor { node_labels: labels(&[("tier", "spot")]), ..flavor("spot") };
    let paid = Flavor { node_labels: labels(&[("tier", "paid")]), ..flavor("paid") };
    let mut hub = Hub::new(&[spot, paid], &[queue("q", &[("spot", 4000), ("paid", 4000)])]);
    let term = |key: &str, value: &str| NodeTerm {
        expressions: vec![Requirement {
            key: key.into(),
            operator: Operator::In,
            values: vec![value.into()],
        }],
        fields: Vec::new(),
    };
    let job = with_template(workload("job", "q", (1, 1000)), |template| {
        template.nodes.affinity = Some(vec![term("tier", "paid"), term("disk", "ssd")]);
    });
    hub.submit(job);
    let plan = hub.round();
    assert_eq!(&*plan.admissions[0].pod_sets[0].flavors["cpu"], "paid");
}

/// A home queue on one topology of two nodes with two CPUs each.
fn placed() -> Hub {
    let topology = Topology { name: "hosts".into(), levels: vec!["kubernetes.io/hostname".into()] };
    let nodes =
        Flavor { topology: Some("hosts".into()), node_labels: labels(&[("pool", "x")]), ..flavor("nodes") };
    let mut hub = Hub::new(&[nodes], &[queue("q", &[("nodes", 100_000)])]);
    hub.tell(Fact::Topology(topology));
    for name in ["n1", "n2"] {
        hub.tell(Fact::Node(node(name, &[])));
    }
    hub
}

fn node(name: &str, taints: &[Taint]) -> Node {
    Node {
        name: name.into(),
        labels: labels(&[("pool", "x"), ("kubernetes.io/hostname", name)]),
        taints: taints.to_vec(),
        allocatable: resources(&[("cpu", 2000), ("pods", 110)]),
        usable: true,
    }
}

fn required(workload: Workload) -> Workload {
    let request = TopologyRequest {
        level: TopologyLevel::Required("kubernetes.io/hostname".into()),
        slices: Vec::new(),
        group: None,
    };
    let place = |pod_set: &PodSet| PodSet { topology: Some(request.clone()), ..pod_set.clone() };
    Workload { pod_sets: workload.pod_sets.iter().map(place).collect(), ..workload }
}

#[test]
fn t9_reclaimed_pods_free_quota_and_nodes() {
    let mut hub = placed();
    let first = required(workload("first", "q", (2, 1000)));
    hub.submit(first.clone());
    let plan = hub.round();
    hub.submit(required(workload("second", "q", (2, 1000))));
    assert_eq!(admitted(&hub.round()).len(), 1, "the other node");
    hub.submit(required(workload("third", "q", (1, 1000))));
    assert!(hub.round().admissions.is_empty(), "both nodes are full");
    let reservation = fairlead_engine::fact::Reservation {
        cluster_queue: "q".into(),
        at: NOW,
        pod_sets: Arc::clone(&plan.admissions[0].pod_sets),
        spoke: None,
        placement: None,
        admitted: true,
    };
    hub.submit(Workload { reservation: Some(reservation), reclaimable: vec![("main".into(), 1)], ..first });
    assert_eq!(admitted(&hub.round()), [("third", None)]);
    let (usage, _) = hub.world.usage();
    assert_eq!(usage["q"].by_flavor["nodes"]["cpu"].0, 4000);
}

/// A placed job that is told that the node of its first pod has failed; the node's name.
fn with_failed_node(hub: &mut Hub) -> Arc<str> {
    let job = required(workload("job", "q", (1, 1000)));
    hub.submit(job.clone());
    let plan = hub.round();
    let place = plan.admissions[0].pod_sets[0].topology.as_ref();
    let failed = place.map_or_else(|| "nowhere".into(), |place| Arc::clone(&place.domains[0].0[0]));
    let taint = Taint { key: "down".into(), value: "".into(), effect: TaintEffect::NoExecute };
    hub.tell(Fact::Node(node(&failed, &[taint])));
    let reservation = fairlead_engine::fact::Reservation {
        cluster_queue: "q".into(),
        at: NOW,
        pod_sets: Arc::clone(&plan.admissions[0].pod_sets),
        spoke: None,
        placement: None,
        admitted: true,
    };
    hub.submit(Workload {
        reservation: Some(reservation),
        unhealthy_nodes: vec![Arc::clone(&failed)],
        ..job
    });
    failed
}

#[test]
fn tas7_pods_of_a_failed_node_are_put_elsewhere() {
    let mut hub = placed();
    let failed = with_failed_node(&mut hub);
    let plan = hub.round();
    let moved = plan.admissions[0].pod_sets[0].topology.clone().unwrap();
    assert_eq!(moved.domains.len(), 1);
    assert_ne!(moved.domains[0].0[0], failed);
    assert!(plan.displaced.is_empty());
}

/// The other node is full, too.
fn without_spare(fail_fast: bool) -> (Hub, Arc<str>) {
    let mut hub = placed();
    hub.policy.fail_fast = fail_fast;
    hub.submit(required(workload("beside", "q", (2, 1000))));
    assert_eq!(admitted(&hub.round()).len(), 1);
    let failed = with_failed_node(&mut hub);
    (hub, failed)
}

#[test]
fn tas7_without_room_elsewhere_the_workload_goes_at_once() {
    let (mut hub, failed) = without_spare(true);
    let plan = hub.round();
    let gone: Vec<_> = plan.displaced.iter().map(|it| (&*it.key.name, it.nodes.as_slice())).collect();
    assert_eq!(gone, [("job", &[failed][..])]);
    assert!(plan.evictions.is_empty(), "nobody is preempted for it");
    let plan = hub.round();
    assert!(plan.displaced.is_empty() && plan.quiet, "it is told once");
}

#[test]
fn tas7_without_fail_fast_the_workload_stays_and_is_placed_when_there_is_room() {
    let (mut hub, failed) = without_spare(false);
    assert!(hub.round().displaced.is_empty());
    hub.tell(Fact::WorkloadGone("beside".into()));
    let plan = hub.round();
    assert_ne!(plan.admissions[0].pod_sets[0].topology.as_ref().unwrap().domains[0].0[0], failed);
}

#[test]
fn w1_a_blocking_queue_offers_nothing_until_its_pods_are_ready_and_others_go_on() {
    let settings = Settings { block_admission: true, ..Settings::default() };
    let queues = [queue("q", &[("default", 10_000)]), queue("other", &[("default", 10_000)])];
    let mut hub = Hub::with(settings, &[flavor("default")], &queues);
    for (name, queue) in [("first", "q"), ("second", "q"), ("third", "other")] {
        hub.submit(workload(name, queue, (1, 1000)));
    }
    let plan = hub.round();
    assert_eq!(plan.admissions.len(), 2, "one of each queue");
    let plan = hub.round();
    assert!(plan.admissions.is_empty() && plan.quiet);
    assert_eq!(head(&plan, "second").outcome, Outcome::Blocked);
    assert_eq!(head(&plan, "second").verdict.reason, Reason::WaitingForPodsReady);
    let first = holding(workload("first", "q", (1, 1000)), "q", ("default", 1000));
    hub.submit(Workload { pods_ready: true, ..first });
    assert_eq!(admitted(&hub.round()), [("second", None)]);
}
