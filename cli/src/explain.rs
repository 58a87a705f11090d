//! `kubectl fairlead explain WORKLOAD`: the stored verdict, read out.
//!
//! Nothing is computed here: the hub wrote the verdict when it decided, and this shows it. [`find`] reads the objects,
//! [`Explanation::of`] picks what is said, [`render`] says it.

mod advice;
mod find;
mod render;

use fairlead_api::conditions::{self, WorkloadCondition};
use fairlead_api::kueue::{Placement, Verdict, Workload};
use serde::Serialize;

use crate::args::Explain;
use crate::failure::Failure;
use crate::hub::Hub;
use crate::output::{Format, Out};

/// What is said about a workload. Its JSON is API.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Explanation {
    /// Always `Explanation`.
    kind: &'static str,
    namespace: String,
    /// The Workload's name.
    workload: String,
    /// The job that it was made from, as `Kind/name`.
    job: Option<String>,
    /// The LocalQueue.
    queue: Option<String>,
    /// The ClusterQueue that holds the reserved quota.
    cluster_queue: Option<String>,
    /// One word, and in parentheses why, where that is not the verdict's to say.
    state: String,
    /// The cluster that was chosen.
    cluster: Option<String>,
    priority: i32,
    created: Option<jiff::Timestamp>,
    /// Why, as the hub stored it; absent until it has looked.
    verdict: Option<Verdict>,
    placements: Vec<Placement>,
}

/// Finds the workload and explains it.
pub(crate) async fn run(hub: &Hub, options: &Explain, out: &mut Out) -> Result<(), Failure> {
    let workload = find::workload(hub, &options.target).await?;
    let explanation = Explanation::of(&workload);
    match out.format() {
        Format::Json | Format::Yaml => out.value(&explanation),
        Format::Name => out.text(&format!("workload.kueue.x-k8s.io/{}\n", explanation.workload)),
        Format::Table | Format::Wide => {
            let text = render::text(&explanation, out.width(), jiff::Timestamp::now());
            out.text(&text)
        }
    }
}

impl Explanation {
    fn of(workload: &Workload) -> Self {
        let status = workload.status.clone().unwrap_or_default();
        let owner = workload.metadata.owner_references.as_deref().unwrap_or_default();
        let owner = owner.iter().find(|owner| owner.controller == Some(true)).or_else(|| owner.first());
        Self {
            kind: "Explanation",
            namespace: workload.metadata.namespace.clone().unwrap_or_default(),
            workload: workload.metadata.name.clone().unwrap_or_default(),
            job: owner.map(|owner| format!("{}/{}", owner.kind, owner.name)),
            queue: workload.spec.queue_name.clone(),
            cluster_queue: status.admission.as_ref().map(|admission| admission.cluster_queue.clone()),
            state: state(&status.conditions, workload.spec.active),
            cluster: status.cluster_name,
            priority: workload.spec.priority.unwrap_or_default(),
            created: workload.metadata.creation_timestamp.as_ref().map(|time| time.0),
            verdict: status.verdict,
            placements: status.placements,
        }
    }
}

/// Where a workload stands, from its conditions.
fn state(conditions: &[k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition], active: bool) -> String {
    let reason = |type_: WorkloadCondition| {
        conditions::find(conditions, type_.as_str())
            .map(|condition| condition.reason.clone())
            .unwrap_or_default()
    };
    let holds = |type_: WorkloadCondition| conditions::is_true(conditions, type_.as_str());
    if holds(WorkloadCondition::Finished) {
        return format!("Finished ({})", reason(WorkloadCondition::Finished));
    }
    if holds(WorkloadCondition::Admitted) {
        let running = holds(WorkloadCondition::PodsReady);
        return (if running { "Running" } else { "Admitted" }).to_owned();
    }
    if holds(WorkloadCondition::QuotaReserved) {
        return "Reserving".to_owned();
    }
    match (active, holds(WorkloadCondition::Evicted)) {
        (false, _) => "Deactivated".to_owned(),
        (true, true) => format!("Pending (evicted: {})", reason(WorkloadCondition::Evicted)),
        (true, false) => "Pending".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    pub(super) fn workload(status: &Value) -> Workload {
        serde_json::from_value(json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "metadata": {
                "name": "job-train-1a2b3",
                "namespace": "team-a",
                "creationTimestamp": "2026-12-01T08:00:00Z",
                "ownerReferences": [
                    { "apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u1", "controller": true },
                ],
            },
            "spec": { "podSets": [{ "name": "main", "template": {}, "count": 1 }], "queueName": "gpu" },
            "status": status,
        }))
        .unwrap()
    }

    fn condition(type_: &str, reason: &str) -> Value {
        json!({ "type": type_, "status": "True", "reason": reason, "message": "",
                "lastTransitionTime": "2026-12-01T08:00:00Z" })
    }

    #[test]
    fn the_state_is_the_furthest_that_the_workload_has_come() {
        for (conditions, expected) in [
            (json!([]), "Pending"),
            (json!([condition("Evicted", "Preempted")]), "Pending (evicted: Preempted)"),
            (json!([condition("QuotaReserved", "QuotaReserved")]), "Reserving"),
            (
                json!([condition("Admitted", "Admitted"), condition("QuotaReserved", "QuotaReserved")]),
                "Admitted",
            ),
            (json!([condition("Admitted", "Admitted"), condition("PodsReady", "Started")]), "Running"),
            (
                json!([condition("Finished", "Failed"), condition("Admitted", "Admitted")]),
                "Finished (Failed)",
            ),
        ] {
            let explanation = Explanation::of(&workload(&json!({ "conditions": conditions })));
            assert_eq!(explanation.state, expected);
        }
    }

    #[test]
    fn a_deactivated_workload_says_so() {
        let mut workload = workload(&json!({}));
        workload.spec.active = false;
        assert_eq!(Explanation::of(&workload).state, "Deactivated");
    }

    #[test]
    fn json_holds_the_verdict_as_it_was_stored() {
        let verdict = json!({
            "code": "WaitingForCapacity", "message": "No cluster has room.", "at": "2026-12-01T08:00:01Z",
            "candidates": [{ "cluster": "aws-use1", "code": "WaitingForCapacity", "resource": "cpu",
                             "requested": "8", "available": "4", "shortfall": "4" }],
        });
        let explanation = Explanation::of(&workload(&json!({ "verdict": verdict })));
        let value = serde_json::to_value(&explanation).unwrap();
        assert_eq!(value["verdict"], verdict);
        assert_eq!((&value["kind"], &value["job"]), (&json!("Explanation"), &json!("Job/train")));
    }
}
