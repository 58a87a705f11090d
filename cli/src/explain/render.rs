//! An explanation as text.

use fairlead_api::kueue::{Placement, Verdict, VerdictCandidate};
use jiff::Timestamp;

use super::{Explanation, advice};
use crate::age;
use crate::table::{Table, printable, wrap};

/// Where values begin.
const COLUMN: usize = 13;

/// The whole text, in lines of at most `width` where that is possible without cutting.
pub(super) fn text(explanation: &Explanation, width: Option<usize>, now: Timestamp) -> String {
    let mut text = String::new();
    for (title, value) in facts(explanation, now) {
        push(&mut text, title, &value, width);
    }
    let candidates = explanation.verdict.as_ref().map_or(&[][..], |verdict| verdict.candidates.as_slice());
    if !candidates.is_empty() {
        text.push('\n');
        text.push_str(&candidate_table(candidates).render(width));
    }
    if !explanation.placements.is_empty() {
        text.push('\n');
        text.push_str(&placement_table(&explanation.placements).render(width));
    }
    text
}

fn facts(explanation: &Explanation, now: Timestamp) -> Vec<(&'static str, String)> {
    let unknown = || "-".to_owned();
    let mut facts = vec![
        ("Workload", format!("{}/{}", explanation.namespace, explanation.workload)),
        ("Job", explanation.job.clone().unwrap_or_else(unknown)),
        ("Queue", queue(explanation)),
        ("Priority", explanation.priority.to_string()),
        ("Age", age::since(explanation.created, now)),
        ("State", explanation.state.clone()),
    ];
    if let Some(cluster) = &explanation.cluster {
        facts.push(("Cluster", cluster.clone()));
    }
    match &explanation.verdict {
        Some(verdict) => {
            facts.extend(why(verdict, now));
            facts.extend(advice::about(&verdict.code).map(|advice| ("What to do", advice.to_owned())));
        }
        None => facts.push(("Why", "not decided yet".to_owned())),
    }
    facts
}

fn queue(explanation: &Explanation) -> String {
    let queue = explanation.queue.clone().unwrap_or_else(|| "-".to_owned());
    match &explanation.cluster_queue {
        Some(cluster_queue) => format!("{queue} (quota of {cluster_queue})"),
        None => queue,
    }
}

fn why(verdict: &Verdict, now: Timestamp) -> [(&'static str, String); 2] {
    let why = if verdict.message.is_empty() {
        verdict.code.clone()
    } else {
        format!("{}: {}", verdict.code, verdict.message)
    };
    [("Why", why), ("Decided", format!("{} ago", age::since(Some(verdict.at.0), now)))]
}

fn push(text: &mut String, title: &str, value: &str, width: Option<usize>) {
    let value = printable(value);
    let lines = match width {
        Some(width) => wrap(&value, width.saturating_sub(COLUMN)),
        None => vec![value],
    };
    let mut title = format!("{title}:");
    for line in lines {
        let padding = " ".repeat(COLUMN.saturating_sub(title.len()));
        text.extend([title.as_str(), &padding, &line, "\n"]);
        title.clear();
    }
}

fn candidate_table(candidates: &[VerdictCandidate]) -> Table {
    let mut table = Table::new(["CLUSTER", "FLAVOR", "RESULT"], "");
    for candidate in candidates {
        let cluster = if candidate.cluster.is_empty() { "-" } else { &candidate.cluster };
        table.row([cluster, candidate.flavor.as_deref().unwrap_or("-"), &result(candidate)]);
    }
    table
}

/// The rule that failed, what was measured, and what the spoke said.
fn result(candidate: &VerdictCandidate) -> String {
    let mut text = candidate.code.clone();
    if let (Some(resource), Some(requested), Some(available)) =
        (&candidate.resource, &candidate.requested, &candidate.available)
    {
        text.extend([": ", resource, " asked ", &requested.0, ", there ", &available.0]);
        if let Some(shortfall) = &candidate.shortfall {
            text.extend([", short ", &shortfall.0]);
        }
    }
    if let Some(message) = &candidate.message {
        let gap = if candidate.resource.is_some() { "; " } else { ": " };
        text.push_str(gap);
        text.push_str(message);
    }
    text
}

fn placement_table(placements: &[Placement]) -> Table {
    let mut table = Table::new(["PLACEMENT", "CLUSTER", "EPOCH", "STATE", "REASON"], "");
    for placement in placements {
        table.row([
            placement.id.clone(),
            placement.cluster.clone(),
            format!("{}.{}", placement.epoch.term, placement.epoch.seq),
            format!("{:?}", placement.state),
            placement.reason.clone().unwrap_or_default(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::explain::tests::workload;

    fn pending() -> Explanation {
        Explanation::of(&workload(&json!({
            "verdict": {
                "code": "WaitingForCapacity",
                "message": "No cluster has room for 2 pods of nvidia.com/gpu=8 in flavor a100 now.",
                "at": "2026-12-01T08:00:01Z",
                "candidates": [
                    { "cluster": "aws-use1", "flavor": "a100", "code": "WaitingForCapacity",
                      "resource": "nvidia.com/gpu", "requested": "16", "available": "8", "shortfall": "8" },
                    { "cluster": "gcp-euw4", "flavor": "a100", "code": "MissingReference",
                      "message": "Secret team-a/registry-credentials does not exist there" },
                    { "cluster": "", "flavor": "l4", "code": "UntoleratedTaint" },
                ],
            },
        })))
    }

    #[test]
    fn a_waiting_workload_at_80_columns() {
        let text = text(&pending(), Some(80), "2026-12-01T08:05:00Z".parse().unwrap());
        let expected = "\
Workload:    team-a/job-train-1a2b3
Job:         Job/train
Queue:       gpu
Priority:    0
Age:         5m
State:       Pending
Why:         WaitingForCapacity: No cluster has room for 2 pods of
             nvidia.com/gpu=8 in flavor a100 now.
Decided:     4m59s ago
What to do:  Wait, or add nodes. The hub looks again as soon as the spoke
             reports more room.

CLUSTER    FLAVOR   RESULT
aws-use1   a100     WaitingForCapacity: nvidia.com/gpu asked 16, there 8, short
                    8
gcp-euw4   a100     MissingReference: Secret team-a/registry-credentials does
                    not exist there
-          l4       UntoleratedTaint
";
        assert_eq!(text, expected);
        assert!(text.lines().all(|line| line.len() <= 80));
    }

    #[test]
    fn a_running_workload_says_where_and_under_which_promise() {
        let explanation = Explanation::of(&workload(&json!({
            "clusterName": "aws-use1",
            "admission": { "clusterQueue": "research", "podSetAssignments": [] },
            "verdict": { "code": "Admitted", "message": "", "at": "2026-12-01T08:00:01Z" },
            "placements": [{ "id": "p3-7", "cluster": "aws-use1", "clusterUid": "u", "state": "Running",
                             "epoch": { "term": 3, "seq": 7 } }],
        })));
        let text = text(&explanation, None, "2026-12-01T08:05:00Z".parse().unwrap());
        for line in [
            "Queue:       gpu (quota of research)",
            "Cluster:     aws-use1",
            "Why:         Admitted",
            "p3-7        aws-use1   3.7     Running",
        ] {
            assert!(text.lines().any(|l| l == line), "{line:?} in\n{text}");
        }
    }

    #[test]
    fn before_the_first_decision_it_says_that() {
        let text = text(&Explanation::of(&workload(&json!({}))), Some(80), Timestamp::UNIX_EPOCH);
        assert!(text.contains("Why:         not decided yet\n"), "{text}");
    }
}
