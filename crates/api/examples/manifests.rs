//! Writes the generated manifests below `ROOT/charts`, or says which differ: `manifests [--check] ROOT`.
//!
//! It is an example so that it sees the Kubernetes version that only binaries and tests choose. `cargo xtask crds`
//! runs it.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use fairlead_api::manifests;

fn main() -> io::Result<ExitCode> {
    let mut check = false;
    let mut root = None;
    for argument in std::env::args_os().skip(1) {
        if argument == "--check" {
            check = true;
        } else if root.replace(PathBuf::from(argument)).is_some() {
            return usage();
        }
    }
    match root {
        Some(root) if check => report(&root.join("charts")),
        Some(root) => write(&root.join("charts")),
        None => usage(),
    }
}

fn usage() -> io::Result<ExitCode> {
    writeln!(io::stderr(), "usage: manifests [--check] ROOT, where ROOT holds the folder charts")?;
    Ok(ExitCode::from(2))
}

fn write(charts: &std::path::Path) -> io::Result<ExitCode> {
    for path in manifests::write(charts)? {
        writeln!(io::stdout(), "wrote charts/{path}")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn report(charts: &std::path::Path) -> io::Result<ExitCode> {
    let stale = manifests::stale(charts)?;
    for file in &stale {
        writeln!(io::stderr(), "charts/{} is out of date; run `cargo xtask crds`", file.path)?;
    }
    Ok(if stale.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
