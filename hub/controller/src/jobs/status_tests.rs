//! Tests of the mirrored status.

use serde_json::json;

use super::*;

const NOW: Millis = Millis(1_800_000_000_000);

fn running() -> CopyStatus {
    CopyStatus { active: 2, ready: 1, start_time: Some(Millis(1_799_999_990_500)), ..CopyStatus::default() }
}

fn ended(succeeded: bool) -> CopyStatus {
    let terminal = Terminal {
        succeeded,
        reason: if succeeded { "CompletionsReached" } else { "BackoffLimitExceeded" }.into(),
        message: "said the spoke".into(),
        completion_time: succeeded.then_some(Millis(1_799_999_995_000)),
    };
    CopyStatus {
        succeeded: u32::from(succeeded),
        failed: u32::from(!succeeded),
        start_time: Some(Millis(1_799_999_990_000)),
        terminal: Some(terminal),
        ..CopyStatus::default()
    }
}

fn applied(job: &Value, patch: &Value) -> Value {
    let mut job = job.clone();
    json::apply_merge_patch(&mut job, patch);
    job
}

fn kinds(job: &Value) -> Vec<(&str, &str)> {
    json::list(job, &["status", "conditions"])
        .iter()
        .map(|c| (json::text(c, &["type"]).unwrap(), json::text(c, &["status"]).unwrap()))
        .collect()
}

#[test]
fn a_running_copy_shows_pods_and_start_once() {
    let job = json!({"spec": {"suspend": false}, "status": {}});
    let patch = mirror(&job, Shown::Copy(&running()), NOW).unwrap();
    assert_eq!(
        patch,
        json!({"status": {"active": 2, "ready": 1, "terminating": 0, "startTime": "2027-01-15T07:59:50Z"}})
    );
    let job = applied(&job, &patch);
    assert_eq!(mirror(&job, Shown::Copy(&running()), NOW), None, "equal values are not written");
    let later = CopyStatus { start_time: Some(NOW), ..running() };
    assert_eq!(mirror(&job, Shown::Copy(&later), NOW), None, "the first start is kept");
}

#[test]
fn nothing_but_the_end_is_shown_while_the_job_is_suspended() {
    let job = json!({"spec": {"suspend": true}, "status": {}});
    assert_eq!(mirror(&job, Shown::Copy(&running()), NOW), None);
    let job = applied(&job, &mirror(&job, Shown::Copy(&ended(true)), NOW).unwrap());
    assert_eq!(kinds(&job), [("SuccessCriteriaMet", "True"), ("Complete", "True")]);
}

#[test]
fn a_waiting_job_shows_suspended_and_resumes() {
    let job = json!({"spec": {"suspend": true}});
    let mut job = applied(&job, &mirror(&job, Shown::Waiting, NOW).unwrap());
    assert_eq!(kinds(&job), [("Suspended", "True")]);
    assert_eq!(mirror(&job, Shown::Waiting, NOW), None);
    job["spec"]["suspend"] = json!(false);
    let job = applied(&job, &mirror(&job, Shown::Copy(&running()), NOW).unwrap());
    assert_eq!(kinds(&job), [("Suspended", "False")]);
}

#[test]
fn the_end_is_one_patch_that_the_api_server_accepts() {
    let job = json!({"spec": {"suspend": false}, "status": {"active": 1, "ready": 1,
        "startTime": "2027-01-15T07:59:59Z"}});
    let done = applied(&job, &mirror(&job, Shown::Copy(&ended(true)), NOW).unwrap());
    assert_eq!(kinds(&done), [("SuccessCriteriaMet", "True"), ("Complete", "True")]);
    let status = &done["status"];
    assert_eq!(
        (&status["active"], &status["ready"], &status["terminating"]),
        (&json!(0), &json!(0), &json!(0))
    );
    assert_eq!(status["succeeded"], 1);
    assert_eq!(status["completionTime"], "2027-01-15T07:59:59Z", "never before the start");
    assert_eq!(mirror(&done, Shown::Copy(&ended(false)), NOW), None, "an ended Job is never touched again");

    let failed = applied(&job, &mirror(&job, Shown::Copy(&ended(false)), NOW).unwrap());
    assert_eq!(kinds(&failed), [("FailureTarget", "True"), ("Failed", "True")]);
    assert_eq!(failed["status"].get("completionTime"), None);
}

#[test]
fn counters_never_fall_and_indexes_only_where_they_are_allowed() {
    let job = json!({"spec": {"suspend": false}, "status": {"succeeded": 5, "failed": 2}});
    let copy =
        CopyStatus { succeeded: 3, completed_indexes: "0-2".into(), failed_indexes: "4".into(), ..running() };
    let patch = mirror(&job, Shown::Copy(&copy), NOW).unwrap();
    assert_eq!(patch["status"].get("succeeded"), None);
    assert_eq!(patch["status"]["completedIndexes"], "0-2");
    assert_eq!(patch["status"].get("failedIndexes"), None);
    let per_index = json!({"spec": {"suspend": false, "backoffLimitPerIndex": 1}});
    assert_eq!(mirror(&per_index, Shown::Copy(&copy), NOW).unwrap()["status"]["failedIndexes"], "4");
}
