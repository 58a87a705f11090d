//! Free shapes: bound pods are subtracted, nodes that take no work are left out.

use serde_json::json;

use super::super::pods;
use super::*;

fn node(cpu: &str, ready: bool) -> Value {
    json!({
        "metadata": {"labels": {"zone": "a"}},
        "status": {"allocatable": {"cpu": cpu, "pods": "10"},
                   "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}]},
    })
}

fn pod(node: &str, cpu: &str, phase: &str) -> Pod {
    pods::read(&json!({
        "metadata": {"labels": {"fairlead.dev/placement": "p1-1", "batch.kubernetes.io/controller-uid": "job"}},
        "spec": {"nodeName": node, "containers": [{"resources": {"requests": {"cpu": cpu, "x": "3"}}}]},
        "status": {"phase": phase},
    }))
}

fn free(capacity: &Capacity) -> Vec<(i64, i64, u32)> {
    shapes(capacity.free()).iter().map(|s| (s.free.get("cpu"), s.free.get("pods"), s.count)).collect()
}

#[test]
fn bound_pods_are_subtracted_until_they_end() {
    let mut capacity = Capacity::default();
    for name in ["a", "b"] {
        capacity.node(&name.into(), &node("8", true));
    }
    assert_eq!(free(&capacity), [(8000, 10, 2)]);
    capacity.pod(&"u".into(), &pod("a", "3", "Running"));
    assert_eq!(free(&capacity), [(5000, 9, 1), (8000, 10, 1)]);
    assert_eq!(shapes(capacity.empty()).len(), 1);
    assert_eq!(capacity.bound(&"job".into()).map(|bound| bound.get("cpu")), Some(3000));
    capacity.pod(&"u".into(), &pod("a", "3", "Succeeded"));
    assert_eq!(free(&capacity), [(8000, 10, 2)]);
    assert_eq!(capacity.bound(&"job".into()).map(|bound| bound.get("cpu")), Some(3000));
    capacity.pod_gone(&"u".into());
    assert_eq!(capacity.bound(&"job".into()), None);
    assert_eq!(free(&capacity), [(8000, 10, 2)]);
}

#[test]
fn what_a_node_does_not_have_does_not_appear() {
    let mut capacity = Capacity::default();
    capacity.node(&"a".into(), &node("8", true));
    capacity.pod(&"u".into(), &pod("a", "3", "Running"));
    assert!(shapes(capacity.free())[0].free.iter().all(|(name, _)| &**name != "x"));
}

#[test]
fn a_pod_that_is_seen_before_its_node_counts_when_the_node_comes() {
    let mut capacity = Capacity::default();
    capacity.pod(&"u".into(), &pod("a", "3", "Running"));
    assert_eq!(free(&capacity), []);
    capacity.node(&"a".into(), &node("8", true));
    assert_eq!(free(&capacity), [(5000, 9, 1)]);
}

#[test]
fn only_ready_and_open_nodes_are_reported() {
    let mut capacity = Capacity::default();
    assert!(capacity.node(&"a".into(), &node("8", true)));
    assert!(capacity.all_ready());
    assert!(capacity.node(&"a".into(), &node("8", false)));
    assert_eq!((free(&capacity), capacity.usable()), (vec![], 0));
    assert!(!capacity.all_ready());
    capacity.node_gone("a");
    assert!(capacity.all_ready());
}

#[test]
fn an_equal_node_changes_nothing() {
    let mut capacity = Capacity::default();
    capacity.node(&"a".into(), &node("8", true));
    let changes = capacity.changes();
    let mut heartbeat = node("8", true);
    heartbeat["status"]["conditions"][0]["lastHeartbeatTime"] = json!("later");
    assert!(!capacity.node(&"a".into(), &heartbeat));
    capacity.pod(&"u".into(), &pod("a", "3", "Running"));
    let with_pod = capacity.changes();
    capacity.pod(&"u".into(), &pod("a", "3", "Running"));
    assert_eq!((capacity.changes() > changes, capacity.changes()), (true, with_pod));
}
