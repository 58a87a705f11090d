//! `kubectl fairlead`: join clusters, read queues, ask why.
//!
//! A kubectl plugin: kubectl runs the program `kubectl-fairlead` for `kubectl fairlead`. It talks to the hub's API
//! server with the user's own rights and kubeconfig, and to nothing else. Data goes to standard output, messages to
//! standard error; the exit codes are those of [`failure::Exit`].

mod age;
mod args;
mod clusters;
mod convert;
mod explain;
mod failure;
mod hub;
mod join;
mod output;
mod queues;
mod table;
mod version;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};
use failure::{Exit, Failure};
use hub::Hub;
use output::Out;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return usage(&error),
    };
    let mut out = Out::new(args.output);
    match run(&args, &mut out).await {
        Ok(()) => Exit::Done.into(),
        Err(failure) if failure.is_closed_pipe() => Exit::Done.into(),
        Err(failure) => {
            out.message(format_args!("error: {failure}"));
            failure.exit().into()
        }
    }
}

/// Prints what clap has to say: help to standard output, errors to standard error.
fn usage(error: &clap::Error) -> ExitCode {
    // Where nobody listens there is nothing to say.
    drop(error.print());
    if error.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() }
}

async fn run(args: &Args, out: &mut Out) -> Result<(), Failure> {
    // An earlier provider is as good as this one.
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    let work = command(args, out);
    match args.connection.request_timeout {
        None => work.await,
        Some(bound) => {
            tokio::time::timeout(bound, work).await.unwrap_or_else(|_| Err(Failure::timed_out(bound)))
        }
    }
}

async fn command(args: &Args, out: &mut Out) -> Result<(), Failure> {
    if let Command::Version(options) = &args.command {
        return version::run(&args.connection, options, out).await;
    }
    if let Command::Convert(options) = &args.command {
        return convert::run(options, out);
    }
    let hub = Hub::connect(&args.connection).await?;
    match &args.command {
        Command::Join(options) => join::run(&hub, options, out).await,
        Command::Clusters(options) => clusters::run(&hub, options, out).await,
        Command::Queues(options) => queues::run(&hub, options, out).await,
        Command::Explain(options) => explain::run(&hub, options, out).await,
        Command::Convert(options) => convert::run(options, out),
        Command::Version(options) => version::run(&args.connection, options, out).await,
    }
}
