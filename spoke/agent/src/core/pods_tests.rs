//! What a pod asks for, and when it counts as stopped.

use serde_json::json;

use super::*;

fn amounts(spec: &Value) -> (i64, i64) {
    let requests = requests(spec);
    (requests.get("cpu"), requests.get("memory"))
}

fn container(cpu: &str) -> Value {
    json!({"resources": {"requests": {"cpu": cpu}}})
}

fn sidecar(cpu: &str) -> Value {
    json!({"restartPolicy": "Always", "resources": {"requests": {"cpu": cpu}}})
}

#[test]
fn requests_are_the_larger_of_running_and_starting_plus_overhead() {
    let spec = json!({
        "overhead": {"cpu": "100m", "memory": "1"},
        "initContainers": [container("3"), sidecar("1"), container("4")],
        "containers": [container("1"), container("2")],
    });
    // Running: 1 + 2 + the sidecar's 1. Starting: 3, then 4 beside the sidecar.
    assert_eq!(amounts(&spec), (5100, 1));
}

#[test]
fn requests_of_the_pod_as_a_whole_replace_the_sum() {
    let spec = json!({
        "resources": {"requests": {"cpu": "500m"}},
        "containers": [{"resources": {"requests": {"cpu": "1", "memory": "7"}}}],
    });
    assert_eq!(amounts(&spec), (500, 7));
}

fn pod(phase: &str, containers: &Value, extra: &Value) -> Value {
    let mut pod = json!({
        "metadata": {}, "spec": {"nodeName": "n", "containers": [{}]},
        "status": {"phase": phase, "containerStatuses": containers},
    });
    if let Some(extra) = extra.as_object() {
        for (path, value) in extra {
            let (parent, field) = path.split_once('.').unwrap();
            pod[parent][field] = value.clone();
        }
    }
    pod
}

#[test]
fn stopped_is_what_the_kubelet_said_of_every_container() {
    let terminated = json!([{"state": {"terminated": {}}}]);
    let running = json!([{"state": {"running": {}}}]);
    let waiting = json!([{"state": {"waiting": {}}}]);
    let deleting = json!({"metadata.deletionTimestamp": "t"});
    let none = json!({});
    let collected = json!({"status.conditions": [{"type": "DisruptionTarget", "reason": "DeletionByPodGC"}]});
    let rejected = json!({"status.reason": "OutOfcpu"});
    let sidecar_runs = json!({"metadata.deletionTimestamp": "t",
                              "status.initContainerStatuses": [{"state": {"running": {}}}]});
    let cases = [
        ("Succeeded", &terminated, &none, true),
        ("Failed", &terminated, &none, true),
        ("Failed", &terminated, &collected, true),
        ("Failed", &running, &collected, false),
        ("Failed", &running, &none, false),
        ("Failed", &waiting, &none, true),
        ("Failed", &waiting, &collected, false),
        ("Failed", &json!([]), &none, false),
        ("Failed", &json!([]), &rejected, true),
        ("Running", &terminated, &none, false),
        ("Running", &terminated, &deleting, true),
        ("Running", &terminated, &sidecar_runs, false),
        ("Running", &running, &deleting, false),
        ("Pending", &json!([]), &deleting, false),
    ];
    for (phase, containers, extra, expected) in cases {
        assert_eq!(read(&pod(phase, containers, extra)).stopped, expected, "{phase} {containers} {extra}");
    }
    let mut two = pod("Running", &terminated, &deleting);
    two["spec"]["containers"] = json!([{}, {}]);
    assert!(!read(&two).stopped, "one of two containers has no status yet");
}

#[test]
fn a_pod_is_ours_by_the_placement_label_and_its_job_by_the_controllers() {
    let labelled = |labels: Value| read(&json!({"metadata": {"labels": labels}}));
    let ours = labelled(json!({"fairlead.dev/placement": "p1-1", "batch.kubernetes.io/controller-uid": "u"}));
    assert_eq!((ours.job, ours.placement.as_deref()), (Some(Uid::from("u")), Some("p1-1")));
    assert_eq!(labelled(json!({"batch.kubernetes.io/controller-uid": "u"})).job, None);
    assert_eq!(ours.node, None);
}
