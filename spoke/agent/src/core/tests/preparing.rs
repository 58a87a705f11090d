//! Prepare: acceptance, and each refusal by name.

use fairlead_model::{ObjectKey, Reason};
use fairlead_session::{CopyState, Desired};
use serde_json::{Value, json};

use super::super::Input;
use super::super::harness::{Fault, Spoke, intent, key, manifest, placement};
use crate::ports::{Kind, Tenant};

fn reason(spoke: &Spoke, seq: u64) -> Option<Reason> {
    match spoke.state(seq) {
        Some(CopyState::Refused(refusal)) => Some(refusal.reason),
        _ => None,
    }
}

fn detail(spoke: &Spoke, seq: u64) -> String {
    match spoke.state(seq) {
        Some(CopyState::Refused(refusal)) => refusal.detail.to_string(),
        other => panic!("not refused: {other:?}"),
    }
}

fn with_pod_spec(fields: &Value) -> Value {
    let mut manifest = manifest();
    for (field, value) in fields.as_object().unwrap() {
        manifest["spec"]["template"]["spec"][field] = value.clone();
    }
    manifest
}

fn prepare(spoke: &mut Spoke, seq: u64, manifest: &Value) {
    spoke.command(seq, &format!("run-{seq}"), Desired::Prepare(intent(&format!("job-{seq}"), manifest)));
}

#[test]
fn what_fits_is_accepted_without_touching_anything() {
    let mut spoke = Spoke::new();
    spoke.prepare(1, "run", "train");
    assert_eq!(spoke.state(1), Some(CopyState::Accepted));
    assert_eq!(spoke.requests.len(), spoke.count("look-up"));
    let tenant = Tenant { namespace: "team-a".into(), service_account: "fairlead-tenant".into() };
    assert!(spoke.requests.iter().all(|request| request.tenant.as_ref() == Some(&tenant)));
    assert!(spoke.jobs.is_empty());
}

#[test]
fn all_look_ups_go_out_at_once_and_found_references_are_remembered_for_a_while() {
    let mut spoke = Spoke::new();
    spoke.prepare(1, "run-1", "a");
    assert_eq!(spoke.count("look-up"), 1, "the service account; nobody has the name");
    spoke.prepare(2, "run-2", "b");
    assert_eq!(spoke.count("look-up"), 1);
    assert_eq!(spoke.state(2), Some(CopyState::Accepted), "with nothing to look up");
    spoke.pass(5_001);
    spoke.prepare(3, "run-3", "c");
    assert_eq!(spoke.count("look-up"), 2);
}

#[test]
fn the_policy_denies_by_default() {
    let mut spoke = Spoke::new();
    prepare(&mut spoke, 1, &with_pod_spec(&json!({"serviceAccountName": "admin"})));
    prepare(&mut spoke, 2, &with_pod_spec(&json!({"imagePullSecrets": [{"name": "other"}]})));
    let mut elsewhere = intent("train", &manifest());
    elsewhere.namespace = "kube-system".into();
    spoke.command(3, "run-3", Desired::Prepare(elsewhere));
    let mut pod = intent("train", &manifest());
    pod.kind = "v1/Pod".into();
    spoke.command(4, "run-4", Desired::Prepare(pod));
    for seq in 1..=4 {
        assert_eq!(reason(&spoke, seq), Some(Reason::ForbiddenByPolicy), "{seq}");
    }
    assert!(spoke.requests.is_empty(), "nothing is looked up for what is forbidden");
    spoke.gone(Kind::SpokePolicy, &ObjectKey::new("", "fairlead"), "policy", None);
    prepare(&mut spoke, 5, &manifest());
    assert_eq!(reason(&spoke, 5), Some(Reason::ForbiddenByPolicy));
}

#[test]
fn a_missing_or_terminating_namespace_is_named() {
    let mut spoke = Spoke::new();
    let terminating = json!({"metadata": {"name": "team-a", "deletionTimestamp": "t"}});
    spoke.upsert(Kind::Namespace, &ObjectKey::new("", "team-a"), "ns", terminating);
    spoke.prepare(1, "run", "train");
    assert_eq!(reason(&spoke, 1), Some(Reason::NamespaceNotFound));
    assert!(detail(&spoke, 1).contains("team-a"));
}

#[test]
fn a_missing_reference_is_named_and_an_optional_one_is_not_missed() {
    let mut spoke = Spoke::new();
    prepare(&mut spoke, 1, &with_pod_spec(&json!({"imagePullSecrets": [{"name": "pull"}]})));
    assert_eq!(reason(&spoke, 1), Some(Reason::MissingReference));
    assert!(detail(&spoke, 1).contains("Secret pull"), "{}", detail(&spoke, 1));
    let volume = |optional: bool| {
        with_pod_spec(
            &json!({"volumes": [{"name": "v", "configMap": {"name": "data", "optional": optional}}]}),
        )
    };
    prepare(&mut spoke, 2, &volume(false));
    assert!(detail(&spoke, 2).contains("ConfigMap data"));
    prepare(&mut spoke, 3, &volume(true));
    assert_eq!(spoke.state(3), Some(CopyState::Accepted));
    spoke.exists.insert((Kind::ConfigMap, "data"));
    prepare(&mut spoke, 4, &volume(false));
    assert_eq!(spoke.state(4), Some(CopyState::Accepted));
    assert_eq!(spoke.count("get"), 0, "only metadata is ever read");
}

#[test]
fn a_foreign_job_of_the_name_is_left_alone() {
    let mut spoke = Spoke::new();
    let foreign =
        json!({"metadata": {"name": "train", "uid": "theirs", "resourceVersion": "5", "labels": {}}});
    spoke.jobs.insert(key("train"), foreign.clone());
    spoke.upsert(Kind::ForeignJob, &key("train"), "theirs", foreign.clone());
    spoke.prepare(1, "run", "train");
    assert_eq!(reason(&spoke, 1), Some(Reason::NameTaken));
    spoke.start(1, "run", "train");
    assert_eq!(reason(&spoke, 1), Some(Reason::NameTaken));
    spoke.stop(1, "run");
    assert_eq!(spoke.jobs[&key("train")], foreign);
    assert_eq!((spoke.count("delete"), spoke.count("patch")), (0, 0));
}

#[test]
fn a_foreign_job_that_no_watch_has_shown_yet_is_found_by_the_create() {
    let mut spoke = Spoke::new();
    let foreign =
        json!({"metadata": {"name": "train", "uid": "theirs", "resourceVersion": "5", "labels": {}}});
    spoke.jobs.insert(key("train"), foreign.clone());
    spoke.prepare(1, "run", "train");
    assert_eq!(spoke.state(1), Some(CopyState::Accepted));
    spoke.start(1, "run", "train");
    assert_eq!(reason(&spoke, 1), Some(Reason::NameTaken));
    assert_eq!(spoke.jobs[&key("train")], foreign);
}

#[test]
fn a_name_that_a_watch_shows_as_taken_is_asked_for_and_free_once_it_is() {
    let mut spoke = Spoke::new();
    spoke.upsert(Kind::ForeignJob, &key("train"), "theirs", json!({"metadata": {}}));
    spoke.prepare(1, "run-1", "train");
    assert_eq!(spoke.state(1), Some(CopyState::Accepted), "the watch was behind; the look-up is not");
    spoke.upsert(Kind::ForeignJob, &key("other"), "new", json!({"metadata": {}}));
    spoke.gone(Kind::ForeignJob, &key("other"), "old", None);
    let before = spoke.count("look-up");
    spoke.prepare(2, "run-2", "other");
    assert_eq!(spoke.count("look-up"), before + 1, "another one has the name");
    spoke.gone(Kind::ForeignJob, &key("other"), "new", None);
    spoke.prepare(3, "run-3", "other");
    assert_eq!(spoke.count("look-up"), before + 1);
}

#[test]
fn a_copy_of_ours_that_has_the_name_makes_it_busy() {
    let mut spoke = Spoke::new();
    spoke.start(1, "run-1", "train");
    spoke.prepare(2, "run-2", "train");
    assert_eq!(reason(&spoke, 2), Some(Reason::Busy));
}

#[test]
fn room_is_held_for_what_was_accepted_and_released_when_it_lapses() {
    let mut spoke = Spoke::new();
    let mut wide = manifest();
    wide["spec"]["parallelism"] = json!(6);
    prepare(&mut spoke, 1, &wide);
    assert_eq!(spoke.state(1), Some(CopyState::Accepted));
    prepare(&mut spoke, 2, &wide);
    assert_eq!(reason(&spoke, 2), Some(Reason::NoRoom));
    spoke.pass(29_000);
    assert_eq!(spoke.state(1), Some(CopyState::Accepted));
    spoke.pass(1_001);
    assert_eq!(spoke.state(1), None, "the hold has lapsed and the hub is told");
    prepare(&mut spoke, 3, &wide);
    assert_eq!(spoke.state(3), Some(CopyState::Accepted));
}

#[test]
fn a_withdrawn_acceptance_frees_its_room_at_once() {
    let mut spoke = Spoke::new();
    let mut wide = manifest();
    wide["spec"]["parallelism"] = json!(6);
    prepare(&mut spoke, 1, &wide);
    spoke.feed(Input::Withdrawn(placement(1)));
    spoke.run();
    assert_eq!((spoke.state(1), spoke.forgotten.len()), (None, 1));
    prepare(&mut spoke, 2, &wide);
    assert_eq!(spoke.state(2), Some(CopyState::Accepted));
}

#[test]
fn room_stays_taken_between_start_and_binding() {
    let mut spoke = Spoke::new();
    let mut wide = manifest();
    wide["spec"]["parallelism"] = json!(6);
    spoke.command(1, "run-1", Desired::Start(intent("a", &wide)));
    prepare(&mut spoke, 2, &wide);
    assert_eq!(reason(&spoke, 2), Some(Reason::NoRoom));
}

#[test]
fn a_pod_that_no_empty_node_takes_never_fits() {
    let mut spoke = Spoke::new();
    let mut big = manifest();
    big["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("9");
    prepare(&mut spoke, 1, &big);
    assert_eq!(reason(&spoke, 1), Some(Reason::NoSingleNodeFits));
}

#[test]
fn an_epoch_of_an_earlier_leader_is_stale() {
    let mut spoke = Spoke::new();
    spoke.establish(2);
    spoke.prepare(1, "run", "train");
    assert_eq!(reason(&spoke, 1), Some(Reason::StaleEpoch));
    // A leader that took over a commit starts what its predecessor promised.
    spoke.start(2, "run", "train");
    assert!(matches!(spoke.state(2), Some(CopyState::Live(_))));
}

#[test]
fn what_the_api_server_does_not_let_the_tenant_see_is_forbidden() {
    let mut spoke = Spoke::new();
    spoke.faults.push(("look-up", Fault::Refused("jobs.batch is forbidden")));
    spoke.prepare(1, "run", "train");
    assert_eq!(reason(&spoke, 1), Some(Reason::ForbiddenByPolicy));
    spoke.faults.push(("look-up", Fault::NeverArrived));
    spoke.prepare(2, "run-2", "other");
    assert_eq!(reason(&spoke, 2), Some(Reason::SpokeRefused));
}

#[test]
fn nothing_is_answered_before_the_inventory_is_complete() {
    let mut spoke = Spoke::unlisted();
    spoke.prepare(1, "run", "train");
    assert!(!spoke.core.inventory_ready() && spoke.requests.is_empty());
    spoke.list();
    assert_eq!(spoke.state(1), Some(CopyState::Accepted));
}

#[test]
fn a_prepare_is_void_with_its_session_and_is_asked_again_in_the_next() {
    let mut spoke = Spoke::new();
    spoke.prepare(1, "run", "train");
    spoke.feed(Input::Void);
    spoke.run();
    assert_eq!((spoke.state(1), spoke.forgotten.len()), (None, 1));
    spoke.revision = 0;
    spoke.prepare(1, "run", "train");
    assert_eq!(spoke.state(1), Some(CopyState::Accepted));
}

#[test]
fn a_refusal_is_forgotten_once_it_is_stored_and_withdrawn() {
    let mut spoke = Spoke::new();
    prepare(&mut spoke, 1, &with_pod_spec(&json!({"serviceAccountName": "admin"})));
    spoke.acknowledge(1);
    assert_eq!(spoke.state(1), None);
    spoke.feed(Input::Withdrawn(placement(1)));
    spoke.run();
    assert_eq!(spoke.core.rows.len(), 0);
}

#[test]
fn a_manifest_that_is_no_job_is_refused() {
    let mut spoke = Spoke::new();
    let mut broken = intent("train", &manifest());
    broken.manifest = b"{".as_slice().into();
    spoke.command(1, "run-1", Desired::Prepare(broken));
    prepare(&mut spoke, 2, &json!({"spec": {}}));
    assert_eq!((reason(&spoke, 1), reason(&spoke, 2)), (Some(Reason::InvalidJob), Some(Reason::InvalidJob)));
}
