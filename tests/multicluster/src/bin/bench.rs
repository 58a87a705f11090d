//! `cargo xtask bench SUITE [--json] [--profile=FOLDER]`: runs one suite and prints its rows.

use std::{
    io::{self, Write},
    path::Path,
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
    let (mut json, mut profiles) = (false, None);
    for flag in &flags {
        match flag.strip_prefix("--profile=") {
            Some(folder) => profiles = Some(Path::new(folder)),
            None if flag == "--json" => json = true,
            None => bail!("unknown flag {flag}; there are --json and --profile=FOLDER"),
        }
    }
    let rows = match (suites.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), profiles) {
        (["e2e"], None) => bench::e2e().await?,
        (["burst"], _) => bench::burst(profiles).await?,
        (["e2e"], Some(_)) => bail!("profiles are taken by the suite burst"),
        _ => bail!("name one suite: e2e or burst"),
    };
    let mut out = io::stdout().lock();
    if json {
        print_json(&mut out, &rows)?;
    } else {
        print_table(&mut out, &rows)?;
    }
    Ok(())
}
