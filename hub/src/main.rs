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

use crate::args::{Args, Command};

#[tokio::main]
async fn main() -> ExitCode {
    match Args::parse().command {
        Command::Version => version(),
        Command::Preflight(settings) => preflight::run(&settings).await,
        Command::Run(args) => match run::run(*args).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                tracing::error!("{why:#}");
                ExitCode::FAILURE
            }
        },
    }
}

fn version() -> ExitCode {
    match writeln!(std::io::stdout(), "fairlead-hub {}", env!("CARGO_PKG_VERSION")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_closed) => ExitCode::FAILURE,
    }
}
