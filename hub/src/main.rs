//! The hub process: wiring only.

mod args;
mod keeper;
mod preflight;
mod run;
mod serving;
mod settings;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use fairlead_controller::shell;

use crate::args::{Args, Command, Replay};

#[tokio::main]
async fn main() -> ExitCode {
    match Args::parse().command {
        Command::Version => version(),
        Command::Preflight(settings) => preflight::run(&settings).await,
        Command::Replay(what) => replay(&what),
        Command::Run(args) => match run::run(*args).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                tracing::error!("{why:#}");
                ExitCode::FAILURE
            }
        },
    }
}

fn replay(what: &Replay) -> ExitCode {
    match shell::replay(&what.path, what.decision, &mut std::io::stdout().lock()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            let _told = writeln!(std::io::stderr(), "fairlead-hub: {why}");
            ExitCode::FAILURE
        }
    }
}

fn version() -> ExitCode {
    match writeln!(std::io::stdout(), "fairlead-hub {}", env!("CARGO_PKG_VERSION")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_closed) => ExitCode::FAILURE,
    }
}
