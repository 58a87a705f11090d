//! `cargo xtask bench SUITE [--json]`: runs one suite and prints its rows.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anyhow::{Result, bail};
use fairlead_multicluster::bench::{self, print_json, print_table};

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            writeln!(io::stderr(), "bench: {error:#}").ok();
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<()> {
    let (flags, suites): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|arg| arg.starts_with("--"));
    if let Some(unknown) = flags.iter().find(|flag| *flag != "--json") {
        bail!("unknown flag {unknown}; there is --json");
    }
    let rows = match suites.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["e2e"] => bench::e2e().await?,
        _ => bail!("name one suite: e2e"),
    };
    let mut out = io::stdout().lock();
    if flags.is_empty() {
        print_table(&mut out, &rows)?;
    } else {
        print_json(&mut out, &rows)?;
    }
    Ok(())
}
