//! Jobs of home queues: started in part, put back when they stop, and changed by their users.

use serde_json::{Value, json};

use crate::brain::testing::{Hub, job, queue_set};
use crate::jobs::json;
use crate::ports::Kind;

fn local_job(name: &str, pods: i64, cpus: &str) -> Value {
    let (_, mut json) = job(name, cpus);
    json["spec"].as_object_mut().unwrap().remove("managedBy");
    json["spec"]["parallelism"] = json!(pods);
    json["spec"]["completions"] = json!(pods);
    json
}

fn hub(cpus: &str) -> Hub {
    let mut hub = Hub::empty();
    for (kind, mut json) in queue_set("cq", cpus, false) {
        if kind == Kind::ResourceFlavor {
            json["spec"] = json!({"nodeLabels": {"pool": "a"}});
        }
        hub.apply((kind, json));
    }
    hub.settle();
    hub
}

fn submit(hub: &mut Hub, job: Value) {
    hub.apply((Kind::Job, job));
    hub.settle();
}

/// What the Job controller says of a Job: it runs, or it is suspended and has no pods.
fn says(hub: &mut Hub, name: &str, active: i64) {
    let suspended = if active == 0 { "True" } else { "False" };
    let status = json!({"active": active, "startTime": "2027-01-15T08:00:00Z",
        "conditions": [{"type": "Suspended", "status": suspended}]});
    hub.api.set_status(Kind::Job, "team", name, status);
    hub.settle();
}

/// A user changes their Job.
fn change(hub: &mut Hub, name: &str, patch: &Value) {
    let mut job = hub.job(name);
    json::apply_merge_patch(&mut job, patch);
    submit(hub, job);
}

fn deactivate(hub: &mut Hub, name: &str) {
    let mut workload = hub.workload(name);
    workload["spec"]["active"] = json!(false);
    hub.apply((Kind::Workload, workload));
    hub.settle();
}

#[test]
fn f9_a_job_starts_with_the_pods_that_fit_and_asks_for_all_again() {
    let mut hub = hub("7");
    let mut job = local_job("a", 10, "1");
    job["metadata"]["annotations"] = json!({"kueue.x-k8s.io/job-min-parallelism": "4"});
    submit(&mut hub, job);
    let running = hub.job("a");
    assert_eq!((&running["spec"]["suspend"], &running["spec"]["parallelism"]), (&json!(false), &json!(7)));
    says(&mut hub, "a", 7);
    let workload = hub.workload("a");
    assert_eq!(workload["spec"]["podSets"][0]["minCount"], 4);
    deactivate(&mut hub, "a");
    says(&mut hub, "a", 0);
    let stopped = hub.job("a");
    assert_eq!((&stopped["spec"]["suspend"], &stopped["spec"]["parallelism"]), (&json!(true), &json!(10)));
    assert_eq!(hub.workload("a")["metadata"]["uid"], workload["metadata"]["uid"]);
}

#[test]
fn a_stopped_job_is_as_its_user_wrote_it() {
    let mut hub = hub("2");
    submit(&mut hub, local_job("a", 1, "1"));
    let template = |hub: &Hub| hub.job("a")["spec"]["template"].clone();
    assert_eq!(template(&hub)["spec"]["nodeSelector"], json!({"pool": "a"}));
    says(&mut hub, "a", 1);
    deactivate(&mut hub, "a");
    says(&mut hub, "a", 0);
    let stopped = template(&hub);
    assert_eq!(stopped["spec"].get("nodeSelector").filter(|selector| !selector.is_null()), None, "{stopped}");
    assert_eq!(stopped.pointer("/metadata/annotations/kueue.x-k8s.io~1workload"), None);
}

#[test]
fn a_waiting_job_may_be_changed() {
    let mut hub = hub("2");
    submit(&mut hub, local_job("a", 3, "1"));
    assert!(!hub.is("a", "Admitted"));
    let before = hub.workload("a");
    change(&mut hub, "a", &json!({"spec": {"parallelism": 2}}));
    let after = hub.workload("a");
    assert_eq!(after["spec"]["podSets"][0]["count"], 2);
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert!(hub.is("a", "Admitted"));
}

#[test]
fn a_job_that_is_changed_while_it_runs_is_queued_anew() {
    let mut hub = hub("4");
    let mut job = local_job("a", 1, "1");
    job["spec"]["completions"] = json!(3);
    submit(&mut hub, job);
    says(&mut hub, "a", 1);
    let before = hub.workload("a");
    change(&mut hub, "a", &json!({"spec": {"parallelism": 2}}));
    assert_eq!(hub.job("a")["spec"]["suspend"], true, "it is stopped first");
    assert_eq!(
        hub.workload("a")["metadata"]["uid"],
        before["metadata"]["uid"],
        "and keeps its quota until then"
    );
    says(&mut hub, "a", 0);
    let after = hub.workload("a");
    assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(
        after["spec"]["podSets"][0]["template"].pointer("/spec/nodeSelector/pool"),
        None,
        "from its own template"
    );
    assert_eq!(after["spec"]["podSets"][0]["count"], 2);
    assert_eq!(hub.job("a")["spec"]["suspend"], false);
}

#[test]
fn a_priority_class_that_changes_reaches_waiting_workloads() {
    let mut hub = hub("1");
    let class =
        |value: i64| (Kind::WorkloadPriorityClass, json!({"metadata": {"name": "high"}, "value": value}));
    hub.apply(class(5));
    submit(&mut hub, local_job("a", 1, "1"));
    let mut job = local_job("b", 1, "1");
    job["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = json!("high");
    submit(&mut hub, job);
    assert_eq!(hub.workload("b")["spec"]["priority"], 5);
    hub.apply(class(50));
    hub.settle();
    assert_eq!(hub.workload("b")["spec"]["priority"], 50);
}

#[test]
fn nothing_is_written_for_a_job_that_does_not_change() {
    let mut hub = hub("1");
    submit(&mut hub, local_job("a", 1, "1"));
    says(&mut hub, "a", 1);
    let (job, workload) = (hub.job("a"), hub.workload("a"));
    says(&mut hub, "a", 1);
    hub.advance(60_000);
    assert_eq!(hub.workload("a")["metadata"]["generation"], workload["metadata"]["generation"]);
    assert_eq!(hub.job("a")["metadata"]["generation"], job["metadata"]["generation"]);
}

fn prebuilt(cpus: &str) -> (Kind, Value) {
    let template = local_job("a", 1, cpus)["spec"]["template"].clone();
    (
        Kind::Workload,
        json!({"metadata": {"name": "made-before", "namespace": "team"}, "status": {},
            "spec": {"active": true, "queueName": "q", "podSets": [{"name": "main", "count": 1, "template": template}]}}),
    )
}

fn job_of_prebuilt() -> Value {
    let mut job = local_job("a", 1, "1");
    job["metadata"]["annotations"] = json!({"kueue.x-k8s.io/prebuilt-workload-name": "made-before"});
    job
}

#[test]
fn j3_a_job_waits_for_the_workload_that_it_names_and_adopts_it() {
    let mut hub = hub("2");
    submit(&mut hub, job_of_prebuilt());
    assert_eq!(hub.api.all(Kind::Workload).len(), 0);
    hub.apply(prebuilt("1"));
    hub.settle();
    assert_eq!(hub.workload("a")["metadata"]["name"], "made-before");
    assert!(hub.is("a", "Admitted"), "{}", hub.workload("a"));
    assert_eq!(hub.job("a")["spec"]["suspend"], false);
}

#[test]
fn j3_a_workload_for_other_pods_is_out_of_sync() {
    let mut hub = hub("2");
    hub.apply(prebuilt("2"));
    submit(&mut hub, job_of_prebuilt());
    assert_eq!(Hub::condition(&hub.workload("a"), "Finished"), ("True".into(), "OutOfSync".into()));
    assert_eq!(hub.job("a")["spec"]["suspend"], true);
}
