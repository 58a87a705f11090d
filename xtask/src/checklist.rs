//! `cargo xtask checklist`: what a Kueue user relies on, row by row, and whether that is tested.
//!
//! The rows stand in `docs/checklist.md`. The state of a row is found in the sources: a scenario `kq_NNN_…` (or
//! `kq_NNN_kq_MMM_…` for two of them) tests it, or a line of `docs/kueue-differences.md` names `row NNN`, or it is alpha and not built yet; anything else is missing.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::files;
use crate::out::Out;

const TABLE: &str = "docs/checklist.md";
const DIFFERENCES: &str = "docs/kueue-differences.md";
/// Where the scenarios are.
const SCENARIOS: &str = "tests/multicluster/tests/kueue/";
/// What the declaration of a scenario contains, and what stands before each number in its name.
const SCENARIO: &str = "async fn kq_";
const ROW: &str = "kq_";

/// A line of the table.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    number: u32,
    feature: String,
    maturity: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Tested,
    Differs,
    NotYet,
    Missing,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tested => "tested",
            Self::Differs => "differs",
            Self::NotYet => "not yet",
            Self::Missing => "missing",
        })
    }
}

/// Prints every row with its state, and how many there are of each.
pub(crate) fn run(root: &Path, out: &mut Out) -> Result<()> {
    let read = |path: &str| fs::read_to_string(root.join(path)).with_context(|| format!("read {path}"));
    let rows = rows(&read(TABLE)?)?;
    let differs = named_rows(&read(DIFFERENCES)?);
    let tested = tested(root)?;
    let states: Vec<State> = rows.iter().map(|row| state(row, &tested, &differs)).collect();
    for (row, state) in rows.iter().zip(&states) {
        out.line(format_args!(
            "{:>3}  {:<8} {:<3} {}",
            row.number,
            state.to_string(),
            row.maturity,
            row.feature
        ))?;
    }
    let count = |wanted: State| states.iter().filter(|state| **state == wanted).count();
    out.line(format_args!(
        "{} tested, {} differ, {} not yet, {} missing",
        count(State::Tested),
        count(State::Differs),
        count(State::NotYet),
        count(State::Missing)
    ))
}

fn state(row: &Row, tested: &BTreeSet<u32>, differs: &BTreeSet<u32>) -> State {
    if tested.contains(&row.number) {
        State::Tested
    } else if differs.contains(&row.number) {
        State::Differs
    } else if row.maturity == "A" {
        State::NotYet
    } else {
        State::Missing
    }
}

/// The rows of the table, which are numbered in rising order.
fn rows(text: &str) -> Result<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [number, feature, maturity] = cells.as_slice() else { continue };
        let Ok(number) = number.parse() else { continue };
        ensure!(rows.last().is_none_or(|last| last.number < number), "{TABLE}: row {number} out of order");
        ensure!(
            ["-", "GA", "B", "A"].contains(maturity),
            "{TABLE}: row {number} has the maturity {maturity}"
        );
        rows.push(Row { number, feature: (*feature).to_owned(), maturity: (*maturity).to_owned() });
    }
    ensure!(!rows.is_empty(), "{TABLE} has no rows");
    Ok(rows)
}

/// The numbers that follow the word `row` or `rows`, as far as nothing but commas and `and` stands between them.
fn named_rows(text: &str) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut listing = false;
    for word in text.split_whitespace() {
        let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        match bare.parse::<u32>() {
            Ok(number) if listing => {
                found.insert(number);
                listing = word.ends_with(',') || word == bare;
            }
            _ => listing = matches!(bare, "row" | "rows") || (listing && bare == "and"),
        }
    }
    found
}

/// The rows that a scenario is named after.
fn tested(root: &Path) -> Result<BTreeSet<u32>> {
    let mut found = BTreeSet::new();
    for path in files::below(root)?.iter().filter(|path| path.starts_with(SCENARIOS)) {
        let text = fs::read_to_string(root.join(path)).with_context(|| format!("read {path}"))?;
        found.extend(text.lines().flat_map(scenario_rows));
    }
    Ok(found)
}

/// The numbers in a scenario's name.
fn scenario_rows(line: &str) -> Vec<u32> {
    let Some(start) = line.find(SCENARIO) else { return Vec::new() };
    let name = line.get(start..).and_then(|rest| rest.split('(').next()).unwrap_or_default();
    let numbers = name.split(ROW).skip(1).map(|part| part.split('_').next().unwrap_or_default());
    numbers.filter_map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str = "| row | feature | maturity |\n|---|---|---|\n| 1 | one | - |\n| 7 | seven | A |\n";

    #[test]
    fn the_table_is_read_and_its_order_is_checked() {
        let rows = rows(ROWS).unwrap();
        assert_eq!(rows.iter().map(|row| row.number).collect::<Vec<_>>(), [1, 7]);
        assert_eq!(rows[1].feature, "seven");
        super::rows(&ROWS.replace("| 7", "| 1")).unwrap_err();
        super::rows(&ROWS.replace("| A", "| X")).unwrap_err();
        super::rows("no table").unwrap_err();
    }

    #[test]
    fn differences_name_rows_one_by_one_or_as_a_list() {
        let text = "as row 5 says, 6 more (rows 8, 9 and 10; 11 not) row 12. 13";
        assert_eq!(named_rows(text).into_iter().collect::<Vec<_>>(), [5, 8, 9, 10, 12]);
    }

    #[test]
    fn a_test_outranks_a_difference_and_alpha_is_not_missing() {
        let row =
            |number, maturity: &str| Row { number, feature: String::new(), maturity: maturity.to_owned() };
        let tested = BTreeSet::from([1, 2]);
        let differs = BTreeSet::from([2, 3]);
        let of = |row: &Row| state(row, &tested, &differs);
        assert_eq!(of(&row(2, "-")), State::Tested);
        assert_eq!(of(&row(3, "A")), State::Differs);
        assert_eq!(of(&row(4, "A")), State::NotYet);
        assert_eq!(of(&row(4, "B")), State::Missing);
    }

    #[test]
    fn scenarios_are_found_by_name() {
        let line = "pub(crate) async fn kq_017_flavor_in_use_cannot_vanish(world: &World) -> Result<()> {";
        assert_eq!(scenario_rows(line), [17]);
        assert_eq!(scenario_rows("async fn kq_025_kq_026_retention(world: &World) {"), [25, 26]);
        assert!(scenario_rows("        scenario!(kq_017_flavor).together(),").is_empty());
    }
}
