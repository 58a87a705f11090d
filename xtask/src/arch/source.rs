//! Single files: heads, lengths, leftovers, and what the sources of pure crates may not name.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::Violation;
use super::layout::{Place, Purity};
use crate::files;

/// The longest that a source file may be, in lines.
const MAX_LINES: usize = 700;
/// What marks unfinished work; split so that this file does not trip over itself.
const LEFTOVERS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
/// Endings of files that are read for leftovers.
const CODE: [&str; 8] = ["rs", "go", "proto", "toml", "yaml", "yml", "sh", "py"];
/// File stems that say nothing about what is inside.
const VAGUE: [&str; 5] = ["util", "utils", "helper", "helpers", "misc"];
/// What reaches outside of a pure crate although no dependency shows it.
const IMPURE: [&str; 10] = [
    "std::fs",
    "std::net",
    "std::env",
    "std::io",
    "std::process",
    "std::thread",
    "std::time",
    "Mutex",
    "RwLock",
    "thread_local",
];

/// Every broken rule about single files.
pub(super) fn check(root: &Path, layout: &[Place]) -> Result<Vec<Violation>> {
    let mut found = Vec::new();
    for path in files::below(root)? {
        let Some(ending) = CODE.iter().find(|ending| files::has_ending(&path, ending)) else {
            continue;
        };
        let text = fs::read_to_string(root.join(&path)).with_context(|| format!("read {path}"))?;
        found.extend(leftovers(&path, &text));
        if *ending == "rs" {
            found.extend(rust(&path, &text));
            if is_pure_source(&path, layout) {
                found.extend(impure(&path, &text));
            }
        }
    }
    Ok(found)
}

fn leftovers(path: &str, text: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        for mark in LEFTOVERS {
            if line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == mark) {
                let problem = format!("line {number} says {mark}; do it, or file an issue");
                found.push(Violation::new("leftover", path, problem));
            }
        }
    }
    found
}

fn rust(path: &str, text: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    let name = path.rsplit('/').next().unwrap_or(path);
    if !text.starts_with("//!") {
        let problem = "does not begin with a //! head that says what it is for";
        found.push(Violation::new("head", path, problem));
    }
    let lines = text.lines().count();
    if lines > MAX_LINES {
        let problem = format!("has {lines} lines; {MAX_LINES} is the most");
        found.push(Violation::new("length", path, problem));
    }
    if name == "mod.rs" {
        let problem = "name the file after its module (foo.rs beside foo/)";
        found.push(Violation::new("mod.rs", path, problem));
    }
    if VAGUE.contains(&name.trim_end_matches(".rs")) {
        let problem = "the name does not say what is inside";
        found.push(Violation::new("name", path, problem));
    }
    found
}

fn is_pure_source(path: &str, layout: &[Place]) -> bool {
    let test = path.ends_with("tests.rs") || path.contains("/tests/");
    let pure = |place: &Place| {
        place.purity == Purity::Pure
            && path.strip_prefix(place.folder).is_some_and(|rest| rest.starts_with("/src/"))
    };
    !test && layout.iter().any(pure)
}

fn impure(path: &str, text: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.starts_with("#[cfg(test)]") {
            break;
        }
        let code = line.split("//").next().unwrap_or(line);
        for name in IMPURE.iter().filter(|name| code.contains(**name)) {
            let problem = format!("line {number} uses {name} in a pure crate");
            found.push(Violation::new("purity", path, problem));
        }
    }
    found
}
