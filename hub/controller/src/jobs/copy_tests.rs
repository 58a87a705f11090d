//! Tests of the copy sent to a spoke.

use serde_json::json;

use super::*;

fn job() -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": "train", "namespace": "team", "uid": "u", "resourceVersion": "7", "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [{}], "ownerReferences": [{}],
            "finalizers": ["x"],
            "labels": {"app": "x", "kueue.x-k8s.io/queue-name": "q", "fairlead.dev/placement": "forged"},
            "annotations": {"kueue.x-k8s.io/thing": "1",
                            "kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "kept"},
        },
        "spec": {
            "parallelism": 2, "suspend": true, "managedBy": "fairlead.dev/dispatch", "ttlSecondsAfterFinished": 5,
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}},
            "fieldOfTheFuture": {"a": [1]},
            "template": {
                "metadata": {"labels": {"app": "x", "batch.kubernetes.io/controller-uid": "u",
                                        "kueue.x-k8s.io/queue-name": "q"}},
                "spec": {"nodeSelector": {"fairlead.dev/cluster": "east", "tier": "gold"},
                         "tolerations": [{"key": "a", "operator": "Exists"}]},
            },
        },
        "status": {"active": 1},
    })
}

#[test]
fn the_copy_keeps_what_the_user_wrote_and_drops_the_listed_fields() {
    let copy = copy_of(&job(), &Place::default());
    assert_eq!(
        copy,
        json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "train", "namespace": "team", "labels": {"app": "x"}, "annotations": {"note": "kept"}},
            "spec": {
                "parallelism": 2, "suspend": false, "fieldOfTheFuture": {"a": [1]},
                "template": {
                    "metadata": {"labels": {"app": "x"}},
                    "spec": {"nodeSelector": {"tier": "gold"}, "tolerations": [{"key": "a", "operator": "Exists"}]},
                },
            },
        })
    );
}

#[test]
fn flavors_add_node_labels_and_tolerations_once() {
    let flavor = json!({
        "nodeLabels": {"fairlead.dev/cloud": "aws", "gpu": "h100", "tier": "silver"},
        "tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}],
    });
    let copy = copy_of(&job(), &Place { flavors: vec![flavor.clone(), flavor], ..Place::default() });
    let pod = &copy["spec"]["template"]["spec"];
    assert_eq!(pod["nodeSelector"], json!({"tier": "gold", "gpu": "h100"}));
    assert_eq!(
        pod["tolerations"],
        json!([{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}])
    );
}

#[test]
fn a_selector_of_the_users_own_stays() {
    let mut job = job();
    job["spec"]["manualSelector"] = json!(true);
    let copy = copy_of(&job, &Place::default());
    assert_eq!(copy["spec"]["selector"], job["spec"]["selector"]);
    assert_eq!(copy["spec"]["template"]["metadata"]["labels"]["batch.kubernetes.io/controller-uid"], "u");
}

#[test]
fn f9_a_copy_has_as_many_pods_as_were_admitted() {
    let place = Place { count: Some(1), ..Place::default() };
    let mut job = job();
    job["spec"]["completions"] = json!(2);
    let spec = copy_of(&job, &place)["spec"].clone();
    assert_eq!((&spec["parallelism"], &spec["completions"]), (&json!(1), &json!(2)));
    job["metadata"]["annotations"]["kueue.x-k8s.io/job-completions-equal-parallelism"] = json!("true");
    assert_eq!(copy_of(&job, &place)["spec"]["completions"], 1);
}
