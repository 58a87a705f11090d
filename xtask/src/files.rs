//! The files of the tree, without what was built.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Folders that hold nothing written by hand.
const SKIPPED: [&str; 4] = [".git", "target", ".fairlead", "node_modules"];

/// Paths below `root` with `/` between parts, sorted. Links are not followed.
pub(crate) fn below(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(root.join(&folder)).with_context(|| format!("list {folder}"))?;
        for entry in entries {
            let entry = entry?;
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else {
                continue;
            };
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            let kind = entry.file_type()?;
            if kind.is_file() {
                found.push(path);
            } else if kind.is_dir() && !SKIPPED.contains(&name.as_str()) {
                folders.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Whether the file's name ends with a dot and this.
pub(crate) fn has_ending(path: &str, ending: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == ending)
}
