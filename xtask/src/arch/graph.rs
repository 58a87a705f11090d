//! Crates and the arrows between them, as `cargo metadata` gives them.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, MetadataCommand};

use super::Violation;
use super::layout::{ANY, GUARDS, Guard, PURE_DEV, Place, Purity};

/// One arrow: a crate names another in its manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arrow {
    /// The package that is used.
    pub(super) to: String,
    /// Whether only tests, examples and benches see it.
    pub(super) dev: bool,
}

/// One crate of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Krate {
    /// The package's name.
    pub(super) name: String,
    /// Its folder below the workspace's root, with `/` between parts.
    pub(super) folder: String,
    /// What it depends on.
    pub(super) arrows: Vec<Arrow>,
}

/// All crates of the workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Graph {
    /// In the order of their names.
    pub(super) crates: Vec<Krate>,
}

impl Graph {
    /// Asks cargo. Needs no network and no lock file.
    pub(super) fn read(root: &Path) -> Result<Self> {
        let metadata = MetadataCommand::new()
            .manifest_path(root.join("Cargo.toml"))
            .no_deps()
            .exec()
            .context("cargo metadata")?;
        let mut crates: Vec<Krate> = metadata
            .workspace_packages()
            .into_iter()
            .map(|package| Krate {
                name: package.name.to_string(),
                folder: folder(&metadata.workspace_root, &package.manifest_path),
                arrows: package.dependencies.iter().map(arrow).collect(),
            })
            .collect();
        crates.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { crates })
    }

    /// Every broken rule about crates and arrows.
    pub(super) fn check(&self, layout: &[Place]) -> Vec<Violation> {
        let mut found = self.unplaced(layout);
        let ours: BTreeSet<&str> = self.crates.iter().map(|krate| krate.name.as_str()).collect();
        for krate in &self.crates {
            let Some(place) = layout.iter().find(|place| place.name == krate.name) else {
                continue;
            };
            found.extend(misplaced(krate, place));
            for arrow in &krate.arrows {
                if ours.contains(arrow.to.as_str()) {
                    found.extend(inner(krate, place, arrow));
                } else {
                    found.extend(outer(krate, place, arrow));
                }
            }
        }
        found
    }

    fn unplaced(&self, layout: &[Place]) -> Vec<Violation> {
        let known: BTreeSet<&str> = layout.iter().map(|place| place.name).collect();
        self.crates
            .iter()
            .filter(|krate| !known.contains(krate.name.as_str()))
            .map(|krate| {
                let problem =
                    "has no place in the layout; add it to xtask/src/arch/layout.rs and ARCHITECTURE.md";
                Violation::new("layout", &krate.name, problem)
            })
            .collect()
    }
}

fn folder(root: &cargo_metadata::camino::Utf8Path, manifest: &cargo_metadata::camino::Utf8Path) -> String {
    let parent = manifest.parent().unwrap_or(manifest);
    parent.strip_prefix(root).unwrap_or(parent).as_str().replace('\\', "/")
}

fn arrow(dependency: &cargo_metadata::Dependency) -> Arrow {
    Arrow { to: dependency.name.clone(), dev: dependency.kind == DependencyKind::Development }
}

fn misplaced(krate: &Krate, place: &Place) -> Option<Violation> {
    let problem = format!("lies in {}, but belongs in {}", krate.folder, place.folder);
    (krate.folder != place.folder).then(|| Violation::new("layout", &krate.name, problem))
}

fn inner(krate: &Krate, place: &Place, arrow: &Arrow) -> Option<Violation> {
    let allowed = place.may_use.iter().any(|name| *name == ANY || *name == arrow.to);
    let problem = format!("may not depend on {}: the arrow is not in the layout", arrow.to);
    (!allowed).then(|| Violation::new("arrow", &krate.name, problem))
}

fn outer(krate: &Krate, place: &Place, arrow: &Arrow) -> Option<Violation> {
    if place.purity == Purity::Pure {
        let allowed = arrow.dev && PURE_DEV.contains(&arrow.to.as_str());
        let problem = format!("is pure and may not depend on {}", arrow.to);
        return (!allowed).then(|| Violation::new("purity", &krate.name, problem));
    }
    GUARDS
        .iter()
        .find(|guard| guard.is_about(&arrow.to) && !guard.allowed.contains(&krate.name.as_str()))
        .map(|guard| {
            let problem = format!("may not depend on {}: {}", arrow.to, guard.why);
            Violation::new("boundary", &krate.name, problem)
        })
}

impl Guard {
    fn is_about(&self, package: &str) -> bool {
        self.packages.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => package.starts_with(start),
            None => package == *pattern,
        })
    }
}
