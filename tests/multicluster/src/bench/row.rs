//! One figure and how it is printed.

use std::io::{Result, Write};

use serde_json::json;

/// One figure of a suite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Stable name.
    pub id: &'static str,
    /// What was measured.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
    /// What we aim at, where there is an aim.
    pub aim: Option<f64>,
    /// What MultiKueue does on the same rig, where known: `reference/performance.md` §2.2 and issue 3.
    pub peer: Option<f64>,
}

impl Row {
    /// A row without aim and peer.
    pub const fn new(id: &'static str, value: f64, unit: &'static str) -> Self {
        Self { id, value, unit, aim: None, peer: None }
    }

    /// Sets the aim.
    #[must_use]
    pub const fn aim(mut self, aim: f64) -> Self {
        self.aim = Some(aim);
        self
    }

    /// Sets the peer's figure.
    #[must_use]
    pub const fn peer(mut self, peer: f64) -> Self {
        self.peer = Some(peer);
        self
    }
}

/// One JSON object a line: row, value, unit, aim (null where there is none).
pub fn print_json(out: &mut impl Write, rows: &[Row]) -> Result<()> {
    for row in rows {
        writeln!(
            out,
            "{}",
            json!({"row": row.id, "value": rounded(row.value), "unit": row.unit, "aim": row.aim})
        )?;
    }
    Ok(())
}

/// A table for people, with the peer's figure beside.
pub fn print_table(out: &mut impl Write, rows: &[Row]) -> Result<()> {
    writeln!(out, "{:<16} {:>10} {:<10} {:>8} {:>11}", "row", "value", "unit", "aim", "MultiKueue")?;
    for row in rows {
        let cell =
            |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{}", rounded(value)));
        let (value, aim, peer) = (rounded(row.value), cell(row.aim), cell(row.peer));
        writeln!(out, "{:<16} {value:>10} {:<10} {aim:>8} {peer:>11}", row.id, row.unit)?;
    }
    Ok(())
}

/// Two decimals: more is noise.
fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_print_as_the_issue_says() {
        let rows = [
            Row::new("idle_p50", 12.345, "ms").aim(25.0).peer(1170.0),
            Row::new("burst_rate", 27.0, "jobs/s"),
        ];
        let mut json = Vec::new();
        print_json(&mut json, &rows).unwrap();
        let lines: Vec<serde_json::Value> = String::from_utf8(json)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines[0], json!({"row": "idle_p50", "value": 12.35, "unit": "ms", "aim": 25.0}));
        assert_eq!(lines[1]["aim"], serde_json::Value::Null);
        let mut table = Vec::new();
        print_table(&mut table, &rows).unwrap();
        assert!(String::from_utf8(table).unwrap().contains("1170"));
    }
}
