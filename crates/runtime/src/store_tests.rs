//! The wire form of each operation, and what each answer means.

use super::*;

const JOBS: Resource = Resource::new("batch", "v1", "jobs", true);

fn options() -> Options {
    Options { field_manager: Some("fairlead-mirror"), ..Options::default() }
}

fn with<T>(op: &Op, options: &Options, check: impl FnOnce(&Call<'_>) -> T) -> T {
    check(&Call { resource: &JOBS, key: &ObjectKey::new("ns", "job"), op, options })
}

fn line(op: &Op, options: &Options) -> String {
    with(op, options, |call| {
        let request = build(call).unwrap();
        format!("{} {} {:?}", request.method(), request.uri(), request.headers().get("Impersonate-User"))
    })
}

fn delete() -> Op {
    Op::Delete { uid: Uid::new("u"), propagation: Propagation::Foreground }
}

fn outcome(op: &Op, code: u16, body: &Value) -> Outcome {
    let code = StatusCode::from_u16(code).unwrap();
    with(op, &options(), |call| interpret(call, code, body.to_string().as_bytes()))
}

#[test]
fn operations_have_their_wire_form() {
    let none = "None";
    let empty = json!({});
    let table = [
        (
            Op::Create(empty.clone()),
            "POST /apis/batch/v1/namespaces/ns/jobs?fieldManager=fairlead-mirror&timeout=10000ms",
        ),
        (
            Op::Patch(empty.clone()),
            "PATCH /apis/batch/v1/namespaces/ns/jobs/job?fieldManager=fairlead-mirror&timeout=10000ms",
        ),
        (
            Op::PatchStatus(empty.clone()),
            "PATCH /apis/batch/v1/namespaces/ns/jobs/job/status?fieldManager=fairlead-mirror&timeout=10000ms",
        ),
        (
            Op::PutStatus(empty),
            "PUT /apis/batch/v1/namespaces/ns/jobs/job/status?fieldManager=fairlead-mirror&timeout=10000ms",
        ),
        (delete(), "DELETE /apis/batch/v1/namespaces/ns/jobs/job?timeout=10000ms"),
        (Op::Get, "GET /apis/batch/v1/namespaces/ns/jobs/job"),
        (Op::GetMetadata, "GET /apis/batch/v1/namespaces/ns/jobs/job"),
    ];
    for (op, expected) in table {
        assert_eq!(line(&op, &options()), format!("{expected} {none}"));
    }
    let tenant =
        Options { impersonate: Some("system:serviceaccount:ns:t".to_owned()), dry_run: true, ..options() };
    assert_eq!(
        line(&Op::Create(json!({})), &tenant),
        "POST /apis/batch/v1/namespaces/ns/jobs?fieldManager=fairlead-mirror&dryRun=All&timeout=10000ms \
         Some(\"system:serviceaccount:ns:t\")"
    );
}

#[test]
fn a_user_that_is_no_header_and_a_name_that_is_no_name_are_refused_unsent() {
    let forged =
        Options { impersonate: Some("x\r\nImpersonate-Group: system:masters".to_owned()), ..options() };
    assert!(with(&Op::Get, &forged, build).is_err());
    let key = ObjectKey::new("ns", "../../../../api/v1/namespaces/x/secrets/y");
    assert!(build(&Call { resource: &JOBS, key: &key, op: &Op::Get, options: &options() }).is_err());
}

#[test]
fn deletes_carry_the_uid() {
    assert_eq!(
        delete_options(&Uid::new("u"), Propagation::Foreground),
        json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Foreground",
               "preconditions": {"uid": "u"}})
    );
}

#[test]
fn refusals_are_told_from_unknown_outcomes() {
    let status = |reason: &str| json!({"kind": "Status", "reason": reason, "message": "m"});
    let create = Op::Create(json!({}));
    assert_eq!(outcome(&create, 409, &status("AlreadyExists")), Outcome::AlreadyExists);
    assert_eq!(outcome(&create, 409, &status("Conflict")), Outcome::Conflict);
    assert_eq!(outcome(&Op::Get, 404, &status("NotFound")), Outcome::NotFound);
    for (code, reason) in [(400, "BadRequest"), (401, "Unauthorized"), (403, "Forbidden"), (422, "Invalid")] {
        let refused = Outcome::Refused { code, reason: reason.to_owned(), message: "m".to_owned() };
        assert_eq!(outcome(&create, code, &status(reason)), refused);
    }
    for code in [408, 429, 500, 502, 503, 504] {
        assert!(matches!(outcome(&create, code, &status("")), Outcome::Unknown(_)), "{code}");
    }
    let half = with(&create, &options(), |call| interpret(call, StatusCode::CREATED, b"{\"metadata\":"));
    assert!(matches!(half, Outcome::Unknown(_)), "{half:?}");
}

#[test]
fn a_delete_is_done_with_or_without_an_object() {
    let status = json!({"kind": "Status", "status": "Success", "details": {"uid": "u"}});
    let Outcome::Done(gone) = outcome(&delete(), 200, &status) else { panic!("not done") };
    assert_eq!((gone.uid.as_str(), gone.version), ("u", 0));
    let going = json!({"kind": "Job", "metadata": {"namespace": "ns", "name": "job", "uid": "u",
                       "resourceVersion": "9", "deletionTimestamp": "2023-11-14T22:13:20Z"}});
    let Outcome::Done(going) = outcome(&delete(), 200, &going) else { panic!("not done") };
    assert_eq!(going.version, 9);
    assert!(going.deleting.is_some());
}
