//! `cargo xtask`: the project's commands.
//!
//! Everything a person or a CI machine does with this project is one of these. Run `cargo xtask help`.

mod arch;
mod files;
mod out;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use out::Out;

/// The project's commands.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check the rules about where things may be: crates, arrows, purity, manifests, files, pages.
    Arch,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            out::complain(format_args!("cargo xtask: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the workspace")?;
    let mut out = Out::new();
    match &args.command {
        Command::Arch => arch::run(root, &mut out),
    }
}
