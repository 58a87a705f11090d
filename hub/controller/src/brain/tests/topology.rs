//! Topology on the hub's own cluster: places, gates, and nodes that fail.

use serde_json::{Value, json};

use crate::brain::testing::{Hub, job, queue_set};
use crate::ports::Kind;

const HOST: &str = "kubernetes.io/hostname";

fn node(name: &str, ready: &str) -> (Kind, Value) {
    let rack = &name[..2];
    (
        Kind::Node,
        json!({"metadata": {"name": name, "labels": {HOST: name, "rack": rack}},
            "status": {"allocatable": {"cpu": "2", "pods": "10"}, "conditions": [{"type": "Ready", "status": ready}]}}),
    )
}

/// A home queue whose flavor has a topology, and these nodes of 2 cpus; the rack is in the name.
fn hub(nodes: &[&str]) -> Hub {
    let mut hub = Hub::empty();
    for name in nodes {
        hub.apply(node(name, "True"));
    }
    let levels = json!({"levels": [{"nodeLabel": "rack"}, {"nodeLabel": HOST}]});
    hub.apply((Kind::Topology, json!({"metadata": {"name": "racks"}, "spec": levels})));
    for (kind, mut json) in queue_set("cq", "64", false) {
        if kind == Kind::ResourceFlavor {
            json["spec"] = json!({"topologyName": "racks"});
        }
        hub.apply((kind, json));
    }
    hub.settle();
    hub
}

/// An indexed Job of one-cpu pods in one rack.
fn submit(hub: &mut Hub, pods: i64) {
    let (kind, mut json) = job("a", "1");
    json["spec"].as_object_mut().unwrap().remove("managedBy");
    json["spec"]["parallelism"] = json!(pods);
    json["spec"]["completions"] = json!(pods);
    json["spec"]["template"]["metadata"] =
        json!({"annotations": {"kueue.x-k8s.io/podset-required-topology": "rack"}});
    hub.apply((kind, json));
    hub.settle();
}

/// What the Job controller makes of the template.
fn make_pod(hub: &mut Hub, index: i64, name: &str) {
    let job = hub.job("a");
    let template = &job["spec"]["template"];
    let mut pod = json!({"metadata": template["metadata"], "spec": template["spec"]});
    pod["metadata"]["name"] = json!(name);
    pod["metadata"]["namespace"] = json!("team");
    pod["metadata"]["labels"]["batch.kubernetes.io/controller-uid"] = job["metadata"]["uid"].clone();
    pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] = json!(index.to_string());
    hub.apply((Kind::Pod, pod));
    hub.settle();
}

fn pod(hub: &Hub, name: &str) -> Value {
    hub.api.get(Kind::Pod, "team", name).unwrap()
}

/// The scheduler binds a pod to the node that its selector names.
fn bind(hub: &mut Hub, name: &str) {
    let mut pod = pod(hub, name);
    assert!(pod["spec"]["schedulingGates"].as_array().is_none_or(Vec::is_empty), "{pod}");
    pod["spec"]["nodeName"] = pod["spec"]["nodeSelector"][HOST].clone();
    hub.apply((Kind::Pod, pod));
    hub.settle();
}

fn remove(hub: &mut Hub, kind: Kind, namespace: &str, name: &str) {
    hub.delete(kind, namespace, name);
    hub.settle();
}

fn host(hub: &Hub, name: &str) -> String {
    pod(hub, name)["spec"]["nodeSelector"][HOST].as_str().unwrap_or_default().to_owned()
}

#[test]
fn tas6_pods_wait_at_the_gate_and_take_places_by_their_index() {
    let mut hub = hub(&["r1-a", "r1-b", "r2-a"]);
    submit(&mut hub, 4);
    let set = hub.workload("a")["status"]["admission"]["podSetAssignments"][0].clone();
    assert_eq!(set["topologyAssignment"]["levels"], json!([HOST]));
    let gates = hub.job("a")["spec"]["template"]["spec"]["schedulingGates"].clone();
    assert_eq!(gates, json!([{"name": "kueue.x-k8s.io/topology"}]));
    for index in [3, 1, 0, 2] {
        make_pod(&mut hub, index, &format!("p{index}"));
    }
    let hosts: Vec<String> = (0..4).map(|index| host(&hub, &format!("p{index}"))).collect();
    assert_eq!(hosts, ["r1-a", "r1-a", "r1-b", "r1-b"]);
}

#[test]
fn tas6_places_survive_a_restart() {
    let mut hub = hub(&["r1-a", "r1-b"]);
    submit(&mut hub, 4);
    make_pod(&mut hub, 0, "p0");
    hub.restart();
    make_pod(&mut hub, 3, "p3");
    assert_eq!((host(&hub, "p0").as_str(), host(&hub, "p3").as_str()), ("r1-a", "r1-b"));
    assert!(hub.is("a", "Admitted"));
}

#[test]
fn tas7_pods_of_a_node_that_is_gone_go_elsewhere_in_the_rack() {
    let mut hub = hub(&["r1-a", "r1-b", "r1-c", "r2-a"]);
    submit(&mut hub, 4);
    for index in 0..4 {
        make_pod(&mut hub, index, &format!("p{index}"));
        bind(&mut hub, &format!("p{index}"));
    }
    let lost = host(&hub, "p0");
    remove(&mut hub, Kind::Node, "", &lost);
    let workload = hub.workload("a");
    assert!(hub.is("a", "Admitted") && !hub.is("a", "Evicted"), "{workload}");
    assert_eq!(workload["status"].get("unhealthyNodes"), None, "{workload}");
    for index in 0..2 {
        remove(&mut hub, Kind::Pod, "team", &format!("p{index}"));
        make_pod(&mut hub, index, &format!("q{index}"));
    }
    assert_eq!(host(&hub, "p2"), "r1-b", "the others stay");
    assert_eq!((host(&hub, "q0").as_str(), host(&hub, "q1").as_str()), ("r1-c", "r1-c"));
}

#[test]
fn tas7_a_node_that_is_not_ready_counts_once_its_pods_are_gone() {
    let mut hub = hub(&["r1-a", "r1-b"]);
    submit(&mut hub, 2);
    for index in 0..2 {
        make_pod(&mut hub, index, &format!("p{index}"));
        bind(&mut hub, &format!("p{index}"));
    }
    let lost = host(&hub, "p0");
    hub.api.set_status(Kind::Node, "", &lost, node(&lost, "Unknown").1["status"].clone());
    hub.settle();
    let places = |hub: &Hub| hub.workload("a")["status"]["admission"].to_string();
    assert!(places(&hub).contains(&lost), "its pods may still run");
    remove(&mut hub, Kind::Pod, "team", "p0");
    remove(&mut hub, Kind::Pod, "team", "p1");
    assert!(!places(&hub).contains(&format!("\"{lost}\"")), "{}", places(&hub));
}

#[test]
fn tas7_without_other_room_the_workload_is_evicted() {
    let mut hub = hub(&["r1-a", "r1-b"]);
    submit(&mut hub, 4);
    hub.api.set_status(Kind::Job, "team", "a", json!({"active": 4, "startTime": "2027-01-15T08:00:00Z"}));
    for index in 0..4 {
        make_pod(&mut hub, index, &format!("p{index}"));
    }
    remove(&mut hub, Kind::Node, "", "r1-a");
    assert_eq!(Hub::condition(&hub.workload("a"), "Evicted"), ("True".into(), "NodeFailures".into()));
    assert_eq!(hub.job("a")["spec"]["suspend"], true);
}

#[test]
fn tas1_pods_that_nobody_placed_take_room() {
    let mut hub = hub(&["r1-a"]);
    let plain = json!({"metadata": {"name": "plain", "namespace": "team"}, "status": {"phase": "Running"},
        "spec": {"nodeName": "r1-a", "containers": [{"name": "main", "resources": {"requests": {"cpu": "1500m"}}}]}});
    hub.apply((Kind::Pod, plain));
    hub.settle();
    submit(&mut hub, 1);
    assert_eq!(hub.why("a").1, "TopologyPlacementFailed");
    remove(&mut hub, Kind::Pod, "team", "plain");
    assert!(hub.is("a", "Admitted"));
}
