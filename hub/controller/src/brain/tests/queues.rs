//! Statuses of queues, checks and clusters, and bad input.

use serde_json::{Value, json};

use crate::brain::testing::{Hub, job};
use crate::ports::Kind;

fn status(hub: &Hub, kind: Kind, namespace: &str, name: &str) -> Value {
    hub.api.get(kind, namespace, name).unwrap()["status"].clone()
}

#[test]
fn queues_count_their_workloads_and_show_usage() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.submit("one", "5");
    hub.submit("two", "5");
    hub.advance(1_100);
    let queue = status(&hub, Kind::ClusterQueue, "", "cq");
    assert_eq!(queue["pendingWorkloads"], 1);
    assert_eq!((&queue["reservingWorkloads"], &queue["admittedWorkloads"]), (&json!(1), &json!(1)));
    let usage = json!([{"name": "default", "resources": [{"name": "cpu", "total": "5", "borrowed": "0"}]}]);
    assert_eq!(queue["flavorsUsage"], usage);
    let local = status(&hub, Kind::LocalQueue, "team", "q");
    assert_eq!(local["admittedWorkloads"], 1);
    assert_eq!(Hub::condition(&json!({"status": local}), "Active"), ("True".into(), "Ready".into()));

    hub.on_spoke("east", |spoke| spoke.finish(true));
    hub.advance(1_100);
    let queue = status(&hub, Kind::ClusterQueue, "", "cq");
    assert_eq!((&queue["pendingWorkloads"], &queue["admittedWorkloads"]), (&json!(0), &json!(1)));
}

#[test]
fn a_status_is_written_once_a_second_at_most_and_only_when_it_changed() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.advance(5_000);
    let from = hub.log.len();
    for n in 0..5 {
        hub.submit(&format!("job-{n}"), "1");
    }
    assert!(hub.writes(from, Kind::ClusterQueue) <= 1);
    hub.advance(5_000);
    assert!(hub.writes(from, Kind::ClusterQueue) <= 2);
    let from = hub.log.len();
    hub.advance(20_000);
    assert_eq!(hub.writes(from, Kind::ClusterQueue) + hub.writes(from, Kind::LocalQueue), 0);
}

#[test]
fn federated_local_queues_are_labelled_and_lose_the_label() {
    let mut hub = Hub::with_spokes(&["east"]);
    let label = |hub: &Hub| {
        hub.api.get(Kind::LocalQueue, "team", "q").unwrap()["metadata"]["labels"]["fairlead.dev/dispatch"]
            .clone()
    };
    assert_eq!(label(&hub), "true");
    change(&mut hub, Kind::ClusterQueue, "cq", |queue| queue["spec"]["admissionChecksStrategy"] = json!({}));
    assert_eq!(label(&hub), Value::Null);
}

/// Changes an object of the cluster's, as a user does.
fn change(hub: &mut Hub, kind: Kind, name: &str, edit: impl FnOnce(&mut Value)) {
    let mut object = hub.api.get(kind, "", name).unwrap();
    edit(&mut object);
    hub.apply((kind, object));
    hub.settle();
    hub.advance(1_100);
}

fn active(hub: &Hub, kind: Kind, namespace: &str, name: &str) -> (String, String) {
    Hub::condition(&hub.api.get(kind, namespace, name).unwrap(), "Active")
}

fn no(reason: &str) -> (String, String) {
    ("False".to_owned(), reason.to_owned())
}

#[test]
fn what_is_in_use_stays_until_nobody_uses_it() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.apply((
        Kind::Topology,
        json!({"metadata": {"name": "racks"}, "spec": {"levels": [{"nodeLabel": "rack"}]}}),
    ));
    change(&mut hub, Kind::ResourceFlavor, "default", |flavor| {
        flavor["spec"] = json!({"topologyName": "racks"});
    });
    let protected = [
        (Kind::Topology, "racks"),
        (Kind::ResourceFlavor, "default"),
        (Kind::AdmissionCheck, "dispatch"),
        (Kind::ClusterQueue, "cq"),
    ];
    for (kind, name) in protected {
        let object = hub.api.get(kind, "", name).unwrap();
        assert_eq!(object["metadata"]["finalizers"], json!(["kueue.x-k8s.io/resource-in-use"]), "{name}");
    }
    hub.submit("train", "1");
    for (kind, name) in protected {
        hub.delete(kind, "", name);
    }
    hub.advance(5_000);
    for (kind, name) in protected {
        assert!(hub.api.get(kind, "", name).is_some(), "{name} is in use");
    }
    assert_eq!(active(&hub, Kind::ClusterQueue, "", "cq"), no("Terminating"));
    hub.submit("late", "1");
    assert!(!hub.is("late", "Admitted"), "a queue that is being deleted admits nothing");
    hub.on_spoke("east", |spoke| spoke.finish(true));
    hub.advance(5_000);
    for (kind, name) in protected {
        assert!(hub.api.get(kind, "", name).is_none(), "{name} went with the last of its users");
    }
}

#[test]
fn a_finalizer_of_somebody_else_is_kept() {
    let mut hub = Hub::empty();
    let flavor = json!({"metadata": {"name": "spot", "finalizers": ["example.com/keep"]}, "spec": {}});
    hub.apply((Kind::ResourceFlavor, flavor));
    hub.settle();
    hub.delete(Kind::ResourceFlavor, "", "spot");
    hub.settle();
    let flavor = hub.api.get(Kind::ResourceFlavor, "", "spot").unwrap();
    assert_eq!(flavor["metadata"]["finalizers"], json!(["example.com/keep"]));
}

#[test]
fn a_cluster_queue_says_what_it_lacks() {
    let mut hub = Hub::with_spokes(&["east"]);
    change(&mut hub, Kind::ResourceFlavor, "default", |flavor| {
        flavor["spec"] = json!({"topologyName": "racks"});
    });
    assert_eq!(active(&hub, Kind::ClusterQueue, "", "cq"), no("TopologyNotFound"));
    assert_eq!(active(&hub, Kind::LocalQueue, "team", "q"), no("ClusterQueueIsInactive"));
    hub.apply((
        Kind::Topology,
        json!({"metadata": {"name": "racks"}, "spec": {"levels": [{"nodeLabel": "rack"}]}}),
    ));
    hub.settle();
    hub.advance(1_100);
    assert_eq!(active(&hub, Kind::ClusterQueue, "", "cq").0, "True");

    let with = |checks: Value| {
        move |queue: &mut Value| queue["spec"]["admissionChecksStrategy"]["admissionChecks"] = checks
    };
    let per_flavor = json!([{"name": "dispatch", "onFlavors": ["default"]}]);
    change(&mut hub, Kind::ClusterQueue, "cq", with(per_flavor));
    assert_eq!(active(&hub, Kind::ClusterQueue, "", "cq"), no("MultiKueueAdmissionCheckAppliedPerFlavor"));
    change(&mut hub, Kind::ClusterQueue, "cq", with(json!([{"name": "dispatch"}, {"name": "none"}])));
    assert_eq!(active(&hub, Kind::ClusterQueue, "", "cq"), no("AdmissionCheckNotFound"));
}

#[test]
fn another_controllers_check_takes_its_queues_down_and_up_by_its_status() {
    let mut hub = Hub::with_spokes(&["east"]);
    let said = |status: &str| {
        json!({"conditions": [{"type": "Active", "status": status, "reason": "Said", "message": "",
        "lastTransitionTime": "2026-12-01T00:00:00Z"}]})
    };
    let check = json!({"metadata": {"name": "budget"}, "spec": {"controllerName": "example.com/budget"}, "status": said("False")});
    hub.apply((Kind::AdmissionCheck, check));
    change(&mut hub, Kind::ClusterQueue, "cq", |queue| {
        queue["spec"]["admissionChecksStrategy"]["admissionChecks"] =
            json!([{"name": "dispatch"}, {"name": "budget"}]);
    });
    assert_eq!(active(&hub, Kind::ClusterQueue, "", "cq"), no("AdmissionCheckInactive"));
    hub.api.set_status(Kind::AdmissionCheck, "", "budget", said("True"));
    hub.advance(1_100);
    assert_eq!(active(&hub, Kind::ClusterQueue, "", "cq").0, "True");
}

#[test]
fn cohorts_in_a_circle_stop_their_queues_until_it_is_broken() {
    let mut hub = Hub::with_spokes(&["east"]);
    for (name, parent) in [("a", "b"), ("b", "a")] {
        hub.apply((Kind::Cohort, json!({"metadata": {"name": name}, "spec": {"parentName": parent}})));
    }
    change(&mut hub, Kind::ClusterQueue, "cq", |queue| queue["spec"]["cohortName"] = json!("a"));
    assert_eq!(active(&hub, Kind::ClusterQueue, "", "cq"), no("CohortCycle"));
    assert_eq!(active(&hub, Kind::Cohort, "", "a"), no("CohortCycle"));
    hub.submit("train", "1");
    assert_eq!(hub.why("train").1, "ClusterQueueInactive");
    change(&mut hub, Kind::Cohort, "b", |cohort| cohort["spec"] = json!({}));
    assert_eq!(active(&hub, Kind::Cohort, "", "b").0, "True");
    assert!(hub.is("train", "Admitted"));
}

#[test]
fn a_cluster_shows_conditions_at_once_and_numbers_now_and_then() {
    let mut hub = Hub::with_spokes(&["east"]);
    let cluster = hub.api.get(Kind::Cluster, "", "east").unwrap();
    for condition in
        ["Registered", "Connected", "CredentialsValid", "ClockSynced", "Schedulable", "CapacityFresh"]
    {
        assert_eq!(Hub::condition(&cluster, condition).0, "True", "{condition}");
    }
    assert_eq!(cluster["status"]["versions"]["kubernetes"], "v1.36.3");
    hub.advance(31_000);
    let cluster = hub.api.get(Kind::Cluster, "", "east").unwrap();
    assert_eq!(cluster["status"]["nodes"], 1);
    assert_eq!(cluster["status"]["flavors"][0]["free"]["cpu"], "8");
    let from = hub.log.len();
    hub.advance(300_000);
    assert!(hub.writes(from, Kind::Cluster) <= 10, "{}", hub.writes(from, Kind::Cluster));
    hub.disconnect("east");
    let cluster = hub.api.get(Kind::Cluster, "", "east").unwrap();
    assert_eq!(Hub::condition(&cluster, "Connected"), ("False".into(), "Disconnected".into()));
}

#[test]
fn bad_input_is_named_in_condition_verdict_and_event() {
    let mut hub = Hub::with_spokes(&["east"]);
    let in_queue = |name: &str, queue: &str| {
        let (kind, mut json) = job(name, "1");
        json["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = json!(queue);
        (kind, json)
    };
    hub.apply(in_queue("lost", "nowhere"));
    hub.apply((
        Kind::LocalQueue,
        json!({"metadata": {"name": "dangling", "namespace": "team"}, "spec": {"clusterQueue": "none"}}),
    ));
    hub.apply(in_queue("dangling", "dangling"));
    hub.apply(job("huge", "9"));
    hub.settle();
    let expect = |name: &str, condition: &str, token: &str| {
        assert_eq!(hub.why(name), (condition.to_owned(), token.to_owned()), "{name}");
        assert!(hub.events(name).contains(&token.to_owned()), "{name}: {:?}", hub.events(name));
    };
    expect("lost", "Misconfigured", "LocalQueueNotFound");
    expect("dangling", "Misconfigured", "ClusterQueueNotFound");
    expect("huge", "ExceedsMaxQuota", "ExceedsMaxQuota");
}

#[test]
fn a_missing_priority_class_is_named_and_waited_for() {
    let mut hub = Hub::with_spokes(&["east"]);
    let (kind, mut json) = job("train", "1");
    json["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = json!("high");
    hub.apply((kind, json));
    hub.settle();
    assert_eq!(hub.events("train"), ["InvalidJob"]);
    hub.apply((Kind::WorkloadPriorityClass, json!({"metadata": {"name": "high"}, "value": 100})));
    hub.settle();
    assert_eq!(hub.workload("train")["spec"]["priority"], 100);
    assert!(hub.is("train", "Admitted"));
}

#[test]
fn a_job_for_fairlead_in_a_home_queue_is_held_until_the_queue_is_federated() {
    let mut hub = Hub::empty();
    for object in crate::brain::testing::queue_set("cq", "8", false) {
        hub.apply(object);
    }
    hub.join("east");
    hub.submit("train", "1");
    assert_eq!(hub.why("train"), ("Misconfigured".into(), "InvalidJob".into()));
    assert_eq!(hub.job("train")["spec"]["suspend"], true);
    let mut queue = hub.api.get(Kind::ClusterQueue, "", "cq").unwrap();
    queue["spec"]["admissionChecksStrategy"] = json!({"admissionChecks": [{"name": "dispatch"}]});
    hub.apply((Kind::ClusterQueue, queue));
    hub.settle();
    assert_eq!(hub.cluster_of("train"), "east");
}

#[test]
fn a_foreign_workload_of_the_same_name_is_left_alone_and_waited_for() {
    let mut hub = Hub::with_spokes(&["east"]);
    let (kind, mut json) = job("train", "1");
    json["metadata"]["uid"] = json!("uid-of-the-job");
    let name = crate::jobs::workload::name_of("train", "uid-of-the-job");
    hub.apply((
        Kind::Workload,
        json!({"metadata": {"name": name, "namespace": "team"}, "spec": {"podSets": []}}),
    ));
    hub.apply((kind, json));
    hub.settle();
    let from = hub.log.len();
    hub.advance(20_000);
    assert!(hub.log.len() - from < 60, "it waits between two looks");
    hub.delete(Kind::Workload, "team", &name);
    hub.advance(6_000);
    assert!(hub.is("train", "Admitted"));
}

#[test]
fn a_stopped_cluster_queue_says_so_on_its_workloads_and_goes_on_when_it_runs_again() {
    let mut hub = Hub::with_spokes(&["east"]);
    let stop = |hub: &mut Hub, policy: &str| {
        let mut queue = hub.api.get(Kind::ClusterQueue, "", "cq").unwrap();
        queue["spec"]["stopPolicy"] = json!(policy);
        hub.apply((Kind::ClusterQueue, queue));
        hub.settle();
    };
    hub.submit("runs", "1");
    stop(&mut hub, "Hold");
    hub.submit("waits", "1");
    assert_eq!(hub.why("waits"), ("Suspended".into(), "QueueStopped".into()));
    assert!(hub.is("runs", "Admitted"), "what was admitted runs on");
    stop(&mut hub, "None");
    assert!(hub.is("waits", "Admitted"));
}

#[test]
fn a_workloads_conditions_keep_up_with_its_spec() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.submit("train", "1");
    let mut workload = hub.workload("train");
    workload["spec"]["maximumExecutionTimeSeconds"] = json!(3600);
    hub.apply((Kind::Workload, workload));
    hub.settle();
    let workload = hub.workload("train");
    let seen = |condition: &Value| condition["observedGeneration"] == workload["metadata"]["generation"];
    assert!(workload["status"]["conditions"].as_array().unwrap().iter().all(seen), "{workload}");
    let from = hub.log.len();
    hub.advance(5_000);
    assert_eq!(hub.writes(from, Kind::Workload), 0, "and then nothing more is written");
}
