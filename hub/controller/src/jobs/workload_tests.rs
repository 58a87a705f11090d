//! Tests of the Workload made from a Job.

use serde_json::json;

use super::*;

fn job() -> Value {
    json!({
        "metadata": {
            "name": "train", "namespace": "team", "uid": "u-1",
            "labels": {"kueue.x-k8s.io/queue-name": "gpu"},
        },
        "spec": {
            "parallelism": 4, "completions": 3, "suspend": true,
            "template": {
                "metadata": {
                    "creationTimestamp": null,
                    "labels": {"app": "x", "batch.kubernetes.io/controller-uid": "u-1", "controller-uid": "u-1",
                               "job-name": "train", "batch.kubernetes.io/job-name": "train"},
                },
                "spec": {"containers": [{"name": "main", "env": [
                    {"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "A", "value": "3"}]}]},
            },
        },
    })
}

#[test]
fn a_workload_is_owned_by_its_job_and_holds_its_finalizer_from_birth() {
    let workload = workload_of(&job(), &Priorities::default()).unwrap();
    let metadata = &workload["metadata"];
    assert_eq!(metadata["name"], json!(name_of("train", "u-1")));
    assert_eq!(metadata["namespace"], "team");
    assert_eq!(metadata["finalizers"], json!(["kueue.x-k8s.io/resource-in-use"]));
    assert_eq!(metadata["labels"], json!({"kueue.x-k8s.io/job-uid": "u-1"}));
    assert_eq!(
        metadata["ownerReferences"],
        json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u-1",
                "controller": true, "blockOwnerDeletion": true}])
    );
    assert_eq!(workload["spec"]["queueName"], "gpu");
    assert_eq!(workload["spec"]["podSets"][0]["count"], 3);
    assert_eq!(workload["spec"].get("priority"), None);
}

#[test]
fn the_template_loses_what_the_api_server_made_and_doubled_variables() {
    let workload = workload_of(&job(), &Priorities::default()).unwrap();
    let template = &workload["spec"]["podSets"][0]["template"];
    assert_eq!(template["metadata"], json!({"labels": {"app": "x"}}));
    assert_eq!(
        template["spec"]["containers"][0]["env"],
        json!([{"name": "B", "value": "2"}, {"name": "A", "value": "3"}])
    );
}

#[test]
fn the_priority_comes_from_the_label_then_the_pods_then_the_default() {
    let mut priorities = Priorities {
        workload: [("high".into(), 100)].into(),
        pod: [("node-critical".into(), 7), ("usual".into(), 5)].into(),
        pod_default: Some("usual".into()),
    };
    let mut job = job();
    let of = |job: &Value, priorities: &Priorities| {
        workload_of(job, priorities).unwrap()["spec"]["priority"].clone()
    };
    assert_eq!(of(&job, &priorities), 5);
    job["spec"]["template"]["spec"]["priorityClassName"] = json!("node-critical");
    assert_eq!(of(&job, &priorities), 7);
    priorities.workload.insert("default".into(), 30);
    assert_eq!(of(&job, &priorities), 30);
    job["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = json!("high");
    assert_eq!(of(&job, &priorities), 100);
    job["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = json!("missing");
    let error = workload_of(&job, &priorities).unwrap_err();
    assert_eq!(error.to_string(), "WorkloadPriorityClass missing does not exist");
}

#[test]
fn a_run_time_limit_that_is_no_number_is_named() {
    let mut job = job();
    job["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = json!("60");
    let workload = workload_of(&job, &Priorities::default()).unwrap();
    assert_eq!(workload["spec"]["maximumExecutionTimeSeconds"], 60);
    job["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = json!("soon");
    assert!(workload_of(&job, &Priorities::default()).unwrap_err().to_string().contains("\"soon\""));
}

#[test]
fn a_class_that_changes_reaches_the_workload() {
    let mut priorities = Priorities { workload: [("high".into(), 100)].into(), ..Priorities::default() };
    let mut job = job();
    job["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = json!("high");
    let spec = workload_of(&job, &priorities).unwrap()["spec"].clone();
    assert_eq!(priority_patch(&job, &spec, &priorities), Ok(None));
    priorities.workload.insert("high".into(), 200);
    assert_eq!(priority_patch(&job, &spec, &priorities).unwrap().unwrap()["priority"], 200);
}

#[test]
fn f9_fewer_pods_may_be_enough() {
    let mut job = job();
    let set = |job: &Value| pod_set(job).map(|set| set["minCount"].clone());
    for (least, stored) in [("2", json!(2)), ("3", Value::Null)] {
        job["metadata"]["annotations"] = json!({"kueue.x-k8s.io/job-min-parallelism": least});
        assert_eq!(set(&job), Ok(stored), "of three");
    }
    for least in ["0", "-1", "some"] {
        job["metadata"]["annotations"] = json!({"kueue.x-k8s.io/job-min-parallelism": least});
        assert!(set(&job).unwrap_err().to_string().contains("job-min-parallelism"), "{least}");
    }
}
