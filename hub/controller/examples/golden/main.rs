//! Plays admission scenarios through the hub's own conversion and engine and compares every round:
//! `cargo run -p fairlead-controller --example golden -- DIR [--verbose] [--defaults]`.
//!
//! Where Fairlead's rules differ from Kueue's and recorded scenarios depend on it, Kueue's are played, unless
//! `--defaults` asks for the hub's own.
#![expect(clippy::print_stdout, reason = "a command's output")]

use std::path::PathBuf;
use std::process::ExitCode;

mod cluster;
mod compare;
mod config;
mod differences;
mod runner;

use config::Rules;

/// Longest part of a failure that is shown without `--verbose`.
const SHOWN: usize = 600;

fn main() -> ExitCode {
    let (flags, folders): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|it| it.starts_with("--"));
    let has = |flag: &str| flags.iter().any(|it| it == flag);
    let rules = if has("--defaults") { Rules::Fairlead } else { Rules::Kueue };
    let [folder] = folders.as_slice() else {
        println!("usage: golden DIR [--verbose] [--defaults]");
        return ExitCode::from(2);
    };
    match runner::run(&PathBuf::from(folder), rules) {
        Ok(summary) => {
            print(&summary, has("--verbose"));
            if summary.failures().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            println!("{folder}: {error}");
            ExitCode::from(2)
        }
    }
}

/// Prints each failure, each family, the known differences, and the sum as the last line.
fn print(summary: &runner::Summary, verbose: bool) {
    let failures = summary.failures();
    for failure in &failures {
        let end = if verbose { failure.len() } else { failure.floor_char_boundary(SHOWN) };
        println!("FAIL {}", failure.get(..end).unwrap_or_default());
    }
    for (family, (all, failed)) in summary.families() {
        println!("{family:<10} {:>4} agree {failed:>4} differ", all - failed);
    }
    let (known, same) = summary.known();
    println!("{known} known differences (docs/kueue-differences.md), of which {same} agree all the same");
    println!("{} passed, {} failed", summary.passed(), failures.len());
}
