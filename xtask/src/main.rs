//! `cargo xtask`: the project's commands.
//!
//! Everything a person or a CI machine does with this project is one of these. Run `cargo xtask help`. What needs
//! Kubernetes types is a program of another crate, which is built and run from here, so that this one compiles in
//! seconds.

mod arch;
mod cargo;
mod checklist;
mod files;
mod out;
mod rules;
mod test;
mod tools;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use cargo::Cargo;
use out::Out;

/// The demo, as it was built.
const DEMO: &str = "debug/demo";

/// The project's commands.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a hub and three clusters on this machine, run 30 Jobs on them, and show what happens.
    ///
    /// `cargo xtask demo down` ends one that was kept.
    Demo {
        /// What demo understands: --keep, --check, down.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Run every check and every test, or only the named steps.
    Test {
        /// Only print the steps.
        #[arg(long)]
        list: bool,
        /// Steps to run.
        steps: Vec<String>,
    },
    /// Check the rules about where things may be: crates, arrows, purity, manifests, files, pages.
    Arch,
    /// Write the manifests below charts/ that are generated from crates/api.
    Crds {
        /// Write nothing; fail when one is out of date.
        #[arg(long)]
        check: bool,
    },
    /// Run the golden scenarios in a folder of *.jsonl files against the admission engine.
    Golden {
        /// The folder, and what else the runner understands.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        args: Vec<String>,
    },
    /// List the rules of the specification that no test name and no doc comment mentions.
    Rules,
    /// List what Kueue's users rely on (docs/checklist.md), and whether each row is tested.
    Checklist,
    /// Run a suite of benchmarks on release builds: engine, e2e, or burst (the part of e2e that is about CPU).
    Bench {
        /// The suite.
        suite: String,
        /// --json for one line of JSON a row, and what else the suite understands.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
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
        Command::Demo { args } => demo(&Cargo::of(root)?, args),
        Command::Test { list: true, .. } => test::list(&mut out),
        Command::Test { steps, .. } => test::steps(&Cargo::of(root)?, steps, &mut out),
        Command::Arch => arch::run(root, &mut out),
        Command::Crds { check } => {
            let cargo = Cargo::of(root)?;
            cargo.build(&["--example", "manifests"])?;
            test::crds(&cargo, *check)
        }
        Command::Golden { args } => {
            let cargo = Cargo::of(root)?;
            cargo.build(&["--example", "golden"])?;
            cargo::run(cargo.program("debug/examples/golden").args(args))
        }
        Command::Rules => rules::run(root, &mut out),
        Command::Checklist => checklist::run(root, &mut out),
        Command::Bench { suite, args } => bench(&Cargo::of(root)?, suite, args),
    }
}

/// The engine's suite needs nothing but the engine; any other runs on the rig.
fn bench(cargo: &Cargo, suite: &str, args: &[String]) -> Result<()> {
    if suite == "engine" {
        let mut bench = cargo.command("bench");
        bench.args(["--quiet", "--package", "fairlead-engine", "--bench", "engine", "--"]).args(args);
        return cargo::run(&mut bench);
    }
    tools::check()?;
    cargo.build_release()?;
    cargo::run(cargo.program("release/bench").arg(suite).args(args))
}

fn demo(cargo: &Cargo, args: &[String]) -> Result<()> {
    // What runs was built, and is to be ended by the program that started it.
    let ends = args == ["down"] && cargo.path(DEMO).is_file();
    if !ends {
        tools::check()?;
        cargo.build(&["--bins"])?;
    }
    cargo::run(cargo.program(DEMO).args(args))
}
