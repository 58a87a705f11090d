//! `cargo xtask arch`: the rules about where things may be, checked.
//!
//! The rules are values over what `cargo metadata` and the files say, so that each can be tested against a planted
//! violation: [`graph`] about crates and the arrows between them, [`manifest`] about `Cargo.toml` and `clippy.toml`,
//! [`source`] about single files, [`docs`] about the pages that must exist.

mod docs;
mod graph;
mod layout;
mod manifest;
mod source;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::out::Out;

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    /// Which rule; a word or two that can be searched for in this folder.
    rule: &'static str,
    /// The crate or file.
    subject: String,
    /// What is wrong and, where it is not plain, what to do.
    problem: String,
}

impl Violation {
    fn new(rule: &'static str, subject: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { rule, subject: subject.into(), problem: problem.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} [{}]", self.subject, self.problem, self.rule)
    }
}

/// Checks the workspace at `root` and returns every violation, sorted.
pub(crate) fn check(root: &Path) -> Result<Vec<Violation>> {
    let graph = graph::Graph::read(root)?;
    let mut found = graph.check(&layout::LAYOUT);
    found.extend(manifest::check(root, &graph, &layout::LAYOUT)?);
    found.extend(source::check(root, &layout::LAYOUT)?);
    found.extend(docs::check(root, &graph)?);
    found.sort();
    Ok(found)
}

/// Prints the violations; fails when there are any.
pub(crate) fn run(root: &Path, out: &mut Out) -> Result<()> {
    let found = check(root).context("the rules could not be checked")?;
    for violation in &found {
        out.line(format_args!("{violation}"))?;
    }
    if !found.is_empty() {
        bail!("{} broken rules", found.len());
    }
    out.line(format_args!("arch: every rule holds"))
}
