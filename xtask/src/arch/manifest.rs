//! `Cargo.toml` and `clippy.toml`: what crates inherit, and thresholds that must agree.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use toml_edit::{DocumentMut, Item, TableLike};

use super::Violation;
use super::graph::Graph;
use super::layout::{Place, Purity};

/// What every package takes from the workspace.
const INHERITED: [&str; 4] = ["version", "edition", "rust-version", "license"];

/// Every broken rule about manifests and lint settings.
pub(super) fn check(root: &Path, graph: &Graph, layout: &[Place]) -> Result<Vec<Violation>> {
    let mut found = Vec::new();
    let thresholds = read(&root.join("clippy.toml"))?;
    for krate in &graph.crates {
        let path = format!("{}/Cargo.toml", krate.folder);
        found.extend(manifest(&path, &read(&root.join(&path))?));
        let pure = layout.iter().any(|place| place.name == krate.name && place.purity == Purity::Pure);
        if pure {
            let path = format!("{}/clippy.toml", krate.folder);
            found.extend(pure_settings(root, &path, &thresholds)?);
        }
    }
    Ok(found)
}

fn read(path: &Path) -> Result<DocumentMut> {
    let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    text.parse().with_context(|| format!("parse {}", path.display()))
}

fn manifest(path: &str, document: &DocumentMut) -> Vec<Violation> {
    let mut found = Vec::new();
    let package = document.get("package").and_then(Item::as_table_like);
    for field in INHERITED {
        if !package.and_then(|table| table.get(field)).is_some_and(inherits) {
            let problem = format!("{field} is not taken from the workspace ({field}.workspace = true)");
            found.push(Violation::new("inherit", path, problem));
        }
    }
    if !document.get("lints").is_some_and(inherits) {
        let problem = "lints are not taken from the workspace ([lints] workspace = true)";
        found.push(Violation::new("inherit", path, problem));
    }
    for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
        let table = document.get(kind).and_then(Item::as_table_like);
        found.extend(table.into_iter().flat_map(|table| versions(path, table)));
    }
    found
}

fn versions(path: &str, dependencies: &dyn TableLike) -> Vec<Violation> {
    dependencies
        .iter()
        .filter(|(_, item)| !inherits(item))
        .map(|(name, _)| {
            let problem = format!("{name} does not take its version from [workspace.dependencies]");
            Violation::new("inherit", path, problem)
        })
        .collect()
}

fn inherits(item: &Item) -> bool {
    item.as_table_like().and_then(|table| table.get("workspace")).and_then(Item::as_bool) == Some(true)
}

/// The nearest `clippy.toml` wins and is not merged with the root's, so a pure crate's must repeat it.
fn pure_settings(root: &Path, path: &str, thresholds: &DocumentMut) -> Result<Vec<Violation>> {
    if !root.join(path).exists() {
        let problem = "is missing; a pure crate forbids hash order and clocks there";
        return Ok(vec![Violation::new("clippy", path, problem)]);
    }
    let own = read(&root.join(path))?;
    let mut found = Vec::new();
    for (key, value) in thresholds.iter() {
        if own.get(key).map(text) != Some(text(value)) {
            let problem = format!("{key} differs from the root's {}", text(value));
            found.push(Violation::new("clippy", path, problem));
        }
    }
    let forbidden = own.get("disallowed-types").map(text).unwrap_or_default();
    for name in ["HashMap", "HashSet", "SystemTime", "Instant"] {
        if !forbidden.contains(&format!("::{name}\"")) {
            found.push(Violation::new("clippy", path, format!("disallowed-types does not name {name}")));
        }
    }
    Ok(found)
}

fn text(item: &Item) -> String {
    item.to_string().trim().to_owned()
}
