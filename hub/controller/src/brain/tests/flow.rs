//! The main course: a job comes, runs on a spoke, ends.

use serde_json::json;

use crate::brain::testing::{Hub, Manner, SpokeSim, job, queue_set};
use crate::ports::{Kind, Op};

#[test]
fn a_job_runs_on_a_spoke_from_create_to_complete() {
    let mut hub = Hub::with_spokes(&["east"]);
    let from = hub.log.len();
    hub.submit("train", "1");
    assert_eq!(hub.commands("east"), ["Prepare", "Start"]);
    assert!(hub.is("train", "Admitted"));
    assert_eq!(hub.cluster_of("train"), "east");
    let workload = hub.workload("train");
    assert_eq!(workload["status"]["placements"][0]["state"], "Committed");
    assert_eq!(workload["status"]["admission"]["podSetAssignments"][0]["resourceUsage"], json!({"cpu": "1"}));
    assert_eq!(workload["status"]["admissionChecks"][0]["state"], "Ready");
    assert_eq!(hub.job("train")["spec"]["suspend"], false);

    hub.on_spoke("east", SpokeSim::ready);
    assert!(hub.is("train", "PodsReady"));
    assert_eq!(hub.job("train")["status"]["ready"], 1);
    hub.on_spoke("east", |spoke| spoke.finish(true));
    assert!(hub.is("train", "Finished"));
    let job = hub.job("train");
    assert_eq!(Hub::condition(&job, "Complete").0, "True");
    assert_eq!(job["status"]["succeeded"], 1);
    assert_eq!(hub.events("train").len(), 4);
    let writes = hub.writes(from, Kind::Job) + hub.writes(from, Kind::Workload);
    assert!(writes < 8, "with the user's create: {writes} + 1");
}

#[test]
fn a_result_known_before_the_running_state_was_written_costs_two_writes_less() {
    let mut hub = Hub::with_spokes(&["east"]);
    let from = hub.log.len();
    hub.submit("quick", "1");
    hub.spoke("east").finish(true);
    hub.settle();
    assert_eq!(Hub::condition(&hub.job("quick"), "Complete").0, "True");
    // Workload create, admission, Finished; unsuspend, Complete.
    assert_eq!((hub.writes(from, Kind::Workload), hub.writes(from, Kind::Job)), (3, 2));
}

#[test]
fn a_result_is_acknowledged_only_after_workload_and_job_say_it() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.submit("train", "1");
    hub.on_spoke("east", |spoke| spoke.finish(false));
    let version = hub.spoke("east").entries.values().next().unwrap().version;
    let ack = hub.log.iter().position(
        |effect| matches!(effect, crate::brain::Effect::Acknowledge { ack, .. } if ack.version == version),
    );
    let last_write = hub.log.iter().rposition(
        |effect| matches!(effect, crate::brain::Effect::Store(request) if request.kind != Kind::Event),
    );
    assert!(ack > last_write, "{ack:?} {last_write:?}");
    assert_eq!(Hub::condition(&hub.job("train"), "Failed"), ("True".into(), "BackoffLimitExceeded".into()));
    assert_eq!(Hub::condition(&hub.workload("train"), "Finished").1, "Failed");
}

#[test]
fn a_refusing_spoke_is_left_out_and_another_is_chosen_at_once() {
    let mut hub = Hub::with_spokes(&["east", "west"]);
    hub.spoke("east").manner = Manner::Refuses(fairlead_model::Reason::MissingReference);
    hub.submit("train", "1");
    assert_eq!(hub.cluster_of("train"), "west");
    assert!(hub.events("train").contains(&"MissingReference".to_owned()));
    assert_eq!(hub.commands("east"), ["Prepare"]);
}

#[test]
fn a_refusal_is_forgotten_after_a_while_that_doubles() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.spoke("east").manner = Manner::Refuses(fairlead_model::Reason::MissingReference);
    hub.submit("train", "1");
    assert_eq!(hub.why("train").1, "MissingReference");
    hub.advance(4_900);
    assert_eq!(hub.commands("east").len(), 1);
    hub.advance(200);
    assert_eq!(hub.commands("east").len(), 2);
    hub.advance(9_800);
    assert_eq!(hub.commands("east").len(), 2);
    hub.spoke("east").manner = Manner::Willing;
    hub.advance(300);
    assert_eq!(hub.cluster_of("train"), "east");
}

#[test]
fn a_start_refused_after_the_commit_moves_the_job_to_another_spoke() {
    let mut hub = Hub::with_spokes(&["east", "west"]);
    hub.spoke("east").manner = Manner::RefusesStart(fairlead_model::Reason::SuspendedByLocalQueueing);
    hub.submit("train", "1");
    assert_eq!(hub.cluster_of("train"), "west");
    let workload = hub.workload("train");
    let states: Vec<_> =
        workload["status"]["placements"].as_array().unwrap().iter().map(|p| &p["state"]).collect();
    assert_eq!(states, ["Closed", "Committed"]);
    assert_eq!(hub.spoke("west").copies(), 1);
}

#[test]
fn a_job_without_managed_by_is_never_unsuspended_and_people_are_told() {
    let mut hub = Hub::with_spokes(&["east"]);
    let (kind, mut json) = job("old", "1");
    json["spec"].as_object_mut().unwrap().remove("managedBy");
    hub.apply((kind, json));
    hub.settle();
    assert_eq!(hub.spoke("east").copies(), 1);
    assert!(hub.events("old").contains(&"ManagedByMissing".to_owned()));
    hub.on_spoke("east", SpokeSim::ready);
    assert_eq!(hub.job("old")["spec"]["suspend"], true);
    hub.on_spoke("east", |spoke| spoke.finish(true));
    let job = hub.job("old");
    assert_eq!(job["spec"]["suspend"], true);
    assert_eq!(Hub::condition(&job, "Complete").0, "True");
}

#[test]
fn jobs_of_others_are_left_alone() {
    let mut hub = Hub::with_spokes(&["east"]);
    let (kind, mut json) = job("foreign", "1");
    json["spec"]["managedBy"] = json!("example.com/other");
    hub.apply((kind, json));
    let (kind, mut json) = job("part", "1");
    json["metadata"]["ownerReferences"] = json!([{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "controller": true, "uid": "x", "name": "x"}]);
    hub.apply((kind, json));
    hub.settle();
    assert_eq!(hub.api.all(Kind::Workload).len(), 0);
}

#[test]
fn a_job_of_a_home_queue_is_started_in_place() {
    let mut hub = Hub::empty();
    for object in queue_set("cq", "8", false) {
        hub.apply(object);
    }
    let flavor = json!({"metadata": {"name": "default"}, "spec": {"nodeLabels": {"disk": "ssd"}}});
    hub.apply((Kind::ResourceFlavor, flavor));
    let (kind, mut json) = job("local", "1");
    json["spec"].as_object_mut().unwrap().remove("managedBy");
    hub.apply((kind, json));
    hub.settle();
    let mut job = hub.job("local");
    assert_eq!(job["spec"]["suspend"], false);
    assert_eq!(job["spec"]["template"]["spec"]["nodeSelector"], json!({"disk": "ssd"}));
    assert!(hub.is("local", "Admitted"));
    assert_eq!(hub.cluster_of("local"), "");

    job["status"] = json!({"succeeded": 1, "startTime": "2027-01-15T08:00:00Z", "conditions": [
        {"type": "Complete", "status": "True", "reason": "CompletionsReached", "message": "done"}]});
    job["metadata"]["uid"] = json!(null);
    hub.api.set_status(Kind::Job, "team", "local", job["status"].clone());
    hub.settle();
    assert_eq!(Hub::condition(&hub.workload("local"), "Finished"), ("True".into(), "Succeeded".into()));
}

#[test]
fn quota_is_never_exceeded_and_freed_by_the_stored_result() {
    let mut hub = Hub::with_spokes(&["east", "west"]);
    hub.submit("one", "5");
    hub.submit("two", "5");
    assert!(hub.is("one", "Admitted"));
    assert_eq!(hub.why("two"), ("WaitingForQuota".into(), "WaitingForQuota".into()));
    assert_eq!(Hub::condition(&hub.job("two"), "Suspended").0, "True");
    let spoke = hub.cluster_of("one");
    hub.on_spoke(&spoke, |spoke| spoke.finish(true));
    assert!(hub.is("two", "Admitted"));
}

#[test]
fn the_job_says_complete_only_after_the_workload_says_finished() {
    let mut hub = Hub::with_spokes(&["east"]);
    hub.submit("train", "1");
    hub.api.faults.push_back((Kind::Workload, crate::brain::testing::Fault::LostRequest));
    hub.on_spoke("east", |spoke| spoke.finish(true));
    hub.advance(2_000);
    let writes = |kind: Kind, text: &str| -> Vec<usize> {
        let says = |effect: &crate::brain::Effect| {
            matches!(effect, crate::brain::Effect::Store(request) if request.kind == kind
                && matches!(&request.op, Op::PatchStatus(json) | Op::PutStatus(json) if json.to_string().contains(text)))
        };
        hub.log.iter().enumerate().filter(|(_, effect)| says(effect)).map(|(at, _)| at).collect()
    };
    let (finished, complete) = (writes(Kind::Workload, "\"Finished\""), writes(Kind::Job, "\"Complete\""));
    assert_eq!((finished.len(), complete.len()), (2, 1), "the first write was lost");
    assert!(complete[0] > finished[1]);
}
