//! The live table: queue, Job, state, cluster, reason.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use super::jobs::NAMESPACES;
use crate::fleet::Fleet;
use crate::work::workloads;

/// The most rows that a terminal is asked to show.
const ROWS: usize = 18;

/// How far a Job has come. Those that are more interesting to watch come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    Running,
    Admitted,
    Pending,
    Failed,
    Succeeded,
}

/// One Job, as its Workload on the hub says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Row {
    state: State,
    queue: String,
    job: String,
    cluster: String,
    reason: String,
}

impl Row {
    /// Whether the Job has ended.
    pub(super) fn ended(&self) -> bool {
        matches!(self.state, State::Failed | State::Succeeded)
    }

    /// A row from a Workload.
    fn of(workload: &Value) -> Self {
        let text =
            |pointer: &str| workload.pointer(pointer).and_then(Value::as_str).unwrap_or("-").to_owned();
        Self {
            state: state(workload),
            queue: text("/spec/queueName"),
            job: text("/metadata/ownerReferences/0/name"),
            cluster: text("/status/clusterName"),
            reason: text("/status/verdict/code"),
        }
    }

    fn line(&self) -> String {
        let state = format!("{:?}", self.state);
        format!("{:<11} {:<18} {:<10} {:<10} {}", self.queue, self.job, state, self.cluster, self.reason)
    }
}

fn state(workload: &Value) -> State {
    let conditions = workload.pointer("/status/conditions").and_then(Value::as_array);
    let condition = |type_: &str| {
        let holds = |c: &&Value| c["type"] == type_ && c["status"] == "True";
        conditions.and_then(|conditions| conditions.iter().find(holds))
    };
    match (condition("Finished"), condition("Admitted"), condition("PodsReady")) {
        (Some(finished), _, _) if finished["reason"] == "Succeeded" => State::Succeeded,
        (Some(_), _, _) => State::Failed,
        (None, Some(_), Some(_)) => State::Running,
        (None, Some(_), None) => State::Admitted,
        (None, None, _) => State::Pending,
    }
}

/// Every Job of the demo, the most interesting first.
pub(super) async fn rows(fleet: &Fleet) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for namespace in NAMESPACES {
        rows.extend(workloads(fleet, namespace).await?.iter().map(Row::of));
    }
    rows.sort();
    Ok(rows)
}

/// Shows rows: on a terminal as a table that stays in place, elsewhere as a line for each change.
#[derive(Debug)]
pub(super) struct Board {
    terminal: bool,
    /// How many lines of the last table are on the screen.
    shown: usize,
    /// The last line of each Job.
    known: BTreeMap<String, String>,
}

impl Board {
    pub(super) fn new() -> Self {
        Self { terminal: io::stdout().is_terminal(), shown: 0, known: BTreeMap::new() }
    }

    /// Shows the rows as they are now.
    pub(super) fn show(&mut self, rows: &[Row], elapsed: Duration) -> Result<()> {
        let text = if self.terminal { self.frame(rows, elapsed) } else { self.changes(rows, elapsed) };
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        Ok(out.flush()?)
    }

    /// The table, drawn over the last one.
    fn frame(&mut self, rows: &[Row], elapsed: Duration) -> String {
        let count = |state: State| rows.iter().filter(|row| row.state == state).count();
        let mut lines = vec![
            format!(
                "{:5.1} s   {} pending   {} admitted   {} running   {} succeeded   {} failed",
                elapsed.as_secs_f32(),
                count(State::Pending),
                count(State::Admitted),
                count(State::Running),
                count(State::Succeeded),
                count(State::Failed),
            ),
            format!("{:<11} {:<18} {:<10} {:<10} {}", "QUEUE", "JOB", "STATE", "CLUSTER", "REASON"),
        ];
        lines.extend(rows.iter().take(ROWS).map(Row::line));
        if rows.len() > ROWS {
            lines.push(format!("... and {} more", rows.len() - ROWS));
        }
        // Up to where the last table began, then each line with the rest of the old one wiped, then what is left over.
        let mut text = if self.shown > 0 { format!("\x1b[{}A", self.shown) } else { String::new() };
        for line in &lines {
            text.extend([line, "\x1b[K\n"]);
        }
        text.push_str("\x1b[J");
        self.shown = lines.len();
        text
    }

    /// A line for each Job whose line has changed.
    fn changes(&mut self, rows: &[Row], elapsed: Duration) -> String {
        let mut text = String::new();
        for row in rows {
            let line = row.line();
            if self.known.get(&row.job) != Some(&line) {
                let seconds = format!("{:5.1} s  ", elapsed.as_secs_f32());
                text.extend([seconds.as_str(), &line, "\n"]);
                self.known.insert(row.job.clone(), line);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn workload(job: &str, conditions: &[(&str, &str)]) -> Value {
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(type_, reason)| json!({"type": type_, "status": "True", "reason": reason}))
            .collect();
        json!({
            "metadata": {"ownerReferences": [{"name": job}]},
            "spec": {"queueName": "research"},
            "status": {"conditions": conditions, "clusterName": "aws-use1", "verdict": {"code": "Admitted"}},
        })
    }

    #[test]
    fn the_state_is_the_furthest_that_the_workload_has_come() {
        let state = |conditions: &[(&str, &str)]| Row::of(&workload("a", conditions)).state;
        assert_eq!(state(&[]), State::Pending);
        assert_eq!(state(&[("Admitted", "Admitted")]), State::Admitted);
        assert_eq!(state(&[("Admitted", "Admitted"), ("PodsReady", "Started")]), State::Running);
        assert_eq!(state(&[("Admitted", "Admitted"), ("Finished", "Failed")]), State::Failed);
        assert!(Row::of(&workload("a", &[("Finished", "Succeeded")])).ended());
    }

    #[test]
    fn in_a_log_each_change_is_one_line() {
        let mut board = Board { terminal: false, shown: 0, known: BTreeMap::new() };
        let (pending, running) =
            (workload("a", &[]), workload("a", &[("Admitted", "A"), ("PodsReady", "S")]));
        let mut show = |workload: &Value| board.changes(&[Row::of(workload)], Duration::from_millis(1500));
        let line = "  1.5 s  research    a                  Pending    aws-use1   Admitted\n";
        assert_eq!(show(&pending), line);
        assert_eq!(show(&pending), "");
        assert!(show(&running).contains("Running"));
    }

    #[test]
    fn a_long_table_says_how_much_is_not_shown_and_is_drawn_in_place() {
        let mut board = Board { terminal: true, shown: 0, known: BTreeMap::new() };
        let rows: Vec<Row> = (0..30).map(|n| Row::of(&workload(&n.to_string(), &[]))).collect();
        let first = board.frame(&rows, Duration::ZERO);
        assert!(first.contains("... and 12 more") && first.lines().count() <= 24, "{first}");
        assert!(board.frame(&rows[..1], Duration::ZERO).starts_with("\x1b[21A"));
        assert_eq!(board.shown, 3);
    }
}
