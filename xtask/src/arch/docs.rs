//! The pages that must exist, and links that must lead somewhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use fairlead_model::Reason;

use super::Violation;
use super::graph::Graph;
use crate::files;

/// The longest that the map of the code may be, in lines.
const MAX_MAP_LINES: usize = 300;
/// What each page about a reason answers.
const SECTIONS: [&str; 3] = ["## What it means", "## How to see it", "## What to do"];

/// Every broken rule about the documentation.
pub(super) fn check(root: &Path, graph: &Graph) -> Result<Vec<Violation>> {
    let mut found = map(root, graph);
    found.extend(reasons(root, Reason::ALL));
    found.extend(index(root, "docs/adr"));
    found.extend(named_tests(root)?);
    for path in files::below(root)?.iter().filter(|path| files::has_ending(path, "md")) {
        let text = fs::read_to_string(root.join(path)).with_context(|| format!("read {path}"))?;
        found.extend(links(root, path, &text));
    }
    Ok(found)
}

/// `ARCHITECTURE.md` is short and names every crate's folder.
fn map(root: &Path, graph: &Graph) -> Vec<Violation> {
    const MAP: &str = "ARCHITECTURE.md";
    let Ok(text) = fs::read_to_string(root.join(MAP)) else {
        return vec![Violation::new("map", MAP, "is missing")];
    };
    let mut found: Vec<_> = graph
        .crates
        .iter()
        .filter(|krate| !text.contains(&format!("`{}`", krate.folder)))
        .map(|krate| Violation::new("map", MAP, format!("does not say what `{}` is for", krate.folder)))
        .collect();
    let lines = text.lines().count();
    if lines > MAX_MAP_LINES {
        found.push(Violation::new("map", MAP, format!("has {lines} lines; {MAX_MAP_LINES} is the most")));
    }
    found
}

/// Each reason has a page with its three answers and a line in the index, and no page is about nothing.
pub(super) fn reasons(root: &Path, all: &[Reason]) -> Vec<Violation> {
    const FOLDER: &str = "docs/reasons";
    let index = fs::read_to_string(root.join(FOLDER).join("README.md")).unwrap_or_default();
    let mut found = Vec::new();
    for reason in all {
        let path = format!("{FOLDER}/{reason}.md");
        let text = fs::read_to_string(root.join(&path)).unwrap_or_default();
        if !text.starts_with(&format!("# {reason}\n")) {
            found.push(Violation::new("reasons", &path, format!("no page with the title {reason}")));
            continue;
        }
        for section in SECTIONS.iter().filter(|section| !text.contains(&format!("\n{section}\n"))) {
            found.push(Violation::new("reasons", &path, format!("lacks the section {section:?}")));
        }
        if !index.contains(&format!("({reason}.md)")) {
            found.push(Violation::new(
                "reasons",
                format!("{FOLDER}/README.md"),
                format!("does not list {reason}"),
            ));
        }
    }
    let tokens: BTreeSet<&str> = all.iter().map(|reason| reason.token()).collect();
    for page in pages(&root.join(FOLDER)).iter().filter(|page| !tokens.contains(page.as_str())) {
        let path = format!("{FOLDER}/{page}.md");
        found.push(Violation::new("reasons", path, "no reason has this token"));
    }
    found
}

/// A folder's `README.md` lists each numbered page once, and no number is used twice.
fn index(root: &Path, folder: &str) -> Vec<Violation> {
    let Ok(index) = fs::read_to_string(root.join(folder).join("README.md")) else {
        return vec![Violation::new("index", format!("{folder}/README.md"), "is missing")];
    };
    let mut found = Vec::new();
    let mut numbers = BTreeSet::new();
    for page in pages(&root.join(folder)) {
        let path = format!("{folder}/{page}.md");
        if !index.contains(&format!("({page}.md)")) {
            found.push(Violation::new("index", &path, "is not listed in README.md beside it"));
        }
        let number = page.split('-').next().unwrap_or_default().to_owned();
        if number.len() != 4 || !number.bytes().all(|b| b.is_ascii_digit()) {
            found.push(Violation::new(
                "index",
                &path,
                "the name does not begin with four digits and a hyphen",
            ));
        } else if !numbers.insert(number) {
            found.push(Violation::new("index", &path, "another page has this number"));
        }
    }
    found
}

/// The tests that the list of invariants names exist. A word in backticks with two underscores or more is a test.
fn named_tests(root: &Path) -> Result<Vec<Violation>> {
    const LIST: &str = "docs/invariants.md";
    let Ok(text) = fs::read_to_string(root.join(LIST)) else {
        return Ok(vec![Violation::new("invariants", LIST, "is missing")]);
    };
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let named: BTreeSet<&str> = text
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|name| name.matches('_').count() > 1 && name.chars().all(word))
        .collect();
    let mut missing = named;
    for path in files::below(root)?.iter().filter(|path| files::has_ending(path, "rs")) {
        let text = fs::read_to_string(root.join(path)).with_context(|| format!("read {path}"))?;
        missing.retain(|name| !text.contains(&format!("fn {name}(")));
    }
    Ok(missing
        .into_iter()
        .map(|name| Violation::new("invariants", LIST, format!("no test is called {name}")))
        .collect())
}

/// Names of the pages in a folder, without `.md` and without the index.
fn pages(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".md").map(str::to_owned))
        .filter(|page| page != "README")
        .collect()
}

/// Relative links lead to files that exist.
fn links(root: &Path, path: &str, text: &str) -> Vec<Violation> {
    let folder = root.join(path).parent().map(Path::to_path_buf).unwrap_or_default();
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', ' ']).next())
        .map(|target| target.split('#').next().unwrap_or_default())
        .filter(|target| !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:"))
        .filter(|target| !folder.join(target).exists())
        .map(|target| Violation::new("link", path, format!("leads to {target}, which does not exist")))
        .collect()
}
