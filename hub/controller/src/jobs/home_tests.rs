//! Tests of starting and stopping Jobs in place.

use super::*;

fn pod_set() -> Value {
    json!({"name": "main", "count": 8, "minCount": 2, "template": {
        "metadata": {"labels": {"app": "x"}, "annotations": {"note": "mine"}},
        "spec": {"nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "own", "operator": "Exists"}]},
    }})
}

/// A Job as its user wrote it and the API server stored it.
fn job() -> Value {
    json!({
        "metadata": {"annotations": {"kueue.x-k8s.io/job-completions-equal-parallelism": "true"}},
        "spec": {"suspend": true, "parallelism": 8, "completions": 8, "template": {
            "metadata": {"labels": {"app": "x", "job-name": "a"}, "annotations": {"note": "mine"}},
            "spec": {"nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "own", "operator": "Exists"}]},
        }},
    })
}

fn place() -> HomePlace {
    HomePlace {
        flavors: vec![
            json!({"nodeLabels": {"gpu": "new"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]}),
        ],
        cluster_queue: "cq".into(),
        local_queue: "x".repeat(64),
        workload: "job-a-12345".into(),
        count: Some(5),
        topology: true,
    }
}

#[test]
fn a_job_is_started_with_its_flavor_its_count_and_its_gate() {
    let mut job = job();
    let patch = start_patch(&job, &pod_set()["template"], &place());
    json::apply_merge_patch(&mut job, &patch);
    assert_eq!(
        job["spec"],
        json!({"suspend": false, "parallelism": 5, "completions": 5, "template": {
            "metadata": {
                "labels": {"app": "x", "job-name": "a", "kueue.x-k8s.io/podset": "main",
                           "kueue.x-k8s.io/cluster-queue-name": "cq", "kueue.x-k8s.io/tas": "true"},
                "annotations": {"note": "mine", "kueue.x-k8s.io/workload": "job-a-12345"},
            },
            "spec": {
                "nodeSelector": {"disk": "ssd", "gpu": "new"},
                "tolerations": [{"key": "own", "operator": "Exists"}, {"key": "gpu", "operator": "Exists"}],
                "schedulingGates": [{"name": "kueue.x-k8s.io/topology"}],
            },
        }})
    );
}

#[test]
fn a_stopped_job_gets_back_what_its_user_wrote() {
    let mut started = job();
    let patch = start_patch(&started, &pod_set()["template"], &place());
    json::apply_merge_patch(&mut started, &patch);
    started["status"] = json!({"startTime": "2026-01-01T00:00:00Z", "active": 1});
    assert_eq!(restore_patch(&started, &pod_set()), None, "it runs");
    json::apply_merge_patch(&mut started, &stop_patch());
    assert_eq!(restore_patch(&started, &pod_set()), None, "the Job controller has not seen it");
    started["status"] = json!({"startTime": "2026-01-01T00:00:00Z",
        "conditions": [{"type": "Suspended", "status": "True"}]});
    let patch = restore_patch(&started, &pod_set()).unwrap();
    json::apply_merge_patch(&mut started, &patch);
    let mut written = job()["spec"].clone();
    written["template"]["spec"]["schedulingGates"] = Value::Null;
    json::apply_merge_patch(
        &mut started,
        &json!({"spec": {"template": {"spec": {"schedulingGates": null}}}}),
    );
    json::apply_merge_patch(&mut written, &json!({"template": {"spec": {"schedulingGates": null}}}));
    assert_eq!(started["spec"], written);
    assert_eq!(restore_patch(&started, &pod_set()), None, "nothing is left to put back");
}

#[test]
fn another_start_leaves_no_trace_of_the_last() {
    let mut job = job();
    let first = start_patch(&job, &pod_set()["template"], &place());
    json::apply_merge_patch(&mut job, &first);
    let second = HomePlace { count: None, topology: false, flavors: Vec::new(), ..place() };
    let patch = start_patch(&job, &pod_set()["template"], &second);
    json::apply_merge_patch(&mut job, &patch);
    let template = &job["spec"]["template"];
    assert_eq!(template["spec"], self::job()["spec"]["template"]["spec"]);
    assert_eq!(template["metadata"]["labels"].get("kueue.x-k8s.io/tas"), None);
}

#[test]
fn completions_stay_where_the_user_does_not_say_that_they_follow() {
    let mut job = job();
    job["metadata"] = json!({});
    let patch = start_patch(&job, &pod_set()["template"], &place());
    assert_eq!(patch["spec"]["parallelism"], 5);
    assert_eq!(patch["spec"].get("completions"), None);
}
