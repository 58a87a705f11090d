//! `cargo xtask demo [--keep] [--check]` and `cargo xtask demo down`.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anyhow::Result;
use fairlead_multicluster::demo::{self, Action};

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            writeln!(io::stderr(), "demo: {error:#}").ok();
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<bool> {
    demo::run(Action::parse(std::env::args().skip(1))?).await
}
