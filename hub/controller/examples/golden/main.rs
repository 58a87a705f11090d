//! Plays admission scenarios through the hub's own conversion and engine and compares every round:
//! `cargo run --release -p fairlead-controller --example golden -- DIR [--verbose]`.
#![expect(clippy::print_stdout, reason = "a command's output")]

use std::path::PathBuf;
use std::process::ExitCode;

mod cluster;
mod compare;
mod config;
mod differences;
mod runner;

fn main() -> ExitCode {
    let mut folders = Vec::new();
    let mut verbose = false;
    for argument in std::env::args().skip(1) {
        if argument == "--verbose" {
            verbose = true;
        } else {
            folders.push(PathBuf::from(argument));
        }
    }
    let [folder] = folders.as_slice() else {
        println!("usage: golden DIR [--verbose]");
        return ExitCode::from(2);
    };
    match runner::run(folder) {
        Ok(summary) => {
            summary.print(verbose);
            if summary.failed() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            println!("{}: {error}", folder.display());
            ExitCode::from(2)
        }
    }
}
