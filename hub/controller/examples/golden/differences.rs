//! The scenarios that are known to differ: those that `docs/kueue-differences.md` lists in its table of scenarios.

use std::collections::BTreeSet;
use std::path::Path;

/// Names of scenarios and families that are decided otherwise on purpose.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    names: BTreeSet<String>,
}

impl Differences {
    /// Reads the table: rows whose first cell is a name in backticks, below the heading `Scenarios`.
    pub(crate) fn read(page: &Path) -> Self {
        let text = std::fs::read_to_string(page).unwrap_or_default();
        let table = text.split("\n## ").find(|section| section.starts_with("Scenarios")).unwrap_or_default();
        let first_cell =
            |line: &str| line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name.to_owned());
        Self { names: table.lines().filter_map(first_cell).collect() }
    }

    /// Whether a scenario, or its whole family, is listed.
    pub(crate) fn contains(&self, name: &str, family: &str) -> bool {
        self.names.contains(name) || self.names.contains(family)
    }
}
