//! The agent's process: wiring only.

mod args;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser as _;
use fairlead_agent::shell::{self, Identity, IdentityError, JoinRequest, Vault};
use fairlead_api::labels::AGENT_USER_AGENT;
use fairlead_runtime::client::{self, ClientSettings};
use fairlead_runtime::health::{self, Readiness};
use fairlead_runtime::store::Store;
use fairlead_runtime::{Supervisor, telemetry};
use tokio::net::TcpListener;

use crate::args::{Args, Command, Join, Settings};

/// What readiness waits for: an identity, and everything that follows from it started.
const AGENT: &str = "the agent";
/// How long tasks may take to end.
const GRACE: Duration = Duration::from_secs(15);

#[tokio::main]
async fn main() -> ExitCode {
    let ended = match Args::parse().command {
        Command::Version => return version(),
        Command::Join(join) => {
            let Join { hub, ca_pin, name, token, settings } = *join;
            run(&settings, Some(JoinRequest { hub, pin: ca_pin, cluster: name, token })).await
        }
        Command::Run(settings) => run(&settings, None).await,
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            tracing::error!("{why:#}");
            ExitCode::FAILURE
        }
    }
}

fn version() -> ExitCode {
    match writeln!(std::io::stdout(), "fairlead-spoke {}", env!("CARGO_PKG_VERSION")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_closed) => ExitCode::FAILURE,
    }
}

/// Joins if asked to, then runs until told to stop.
async fn run(settings: &Settings, join: Option<JoinRequest>) -> anyhow::Result<()> {
    telemetry::init(settings.log_format);
    if rustls::crypto::aws_lc_rs::default_provider().install_default().is_err() {
        anyhow::bail!("another TLS provider was installed first");
    }
    let mut supervisor = Supervisor::new();
    let readiness = Readiness::waiting_for([AGENT]);
    if let Some(address) = settings.health {
        let listener = TcpListener::bind(address).await.with_context(|| format!("listen on {address}"))?;
        supervisor.spawn("health", health::serve(listener, readiness.clone(), supervisor.draining()));
    }
    let client = client::connect(&ClientSettings {
        kubeconfig: settings.kubeconfig.clone(),
        context: settings.context.clone(),
        user_agent: AGENT_USER_AGENT.to_owned(),
    })
    .await
    .context("connect to this cluster's API server")?;
    let vault = Vault::new(Store::new(client.clone()), &settings.namespace);
    let identity = identify(&vault, join).await?;
    shell::start(&mut supervisor, client, &settings.namespace, &identity).await?;
    readiness.meet(AGENT);
    supervisor.run(GRACE).await?;
    Ok(())
}

/// The identity: asked for, or the stored one.
async fn identify(vault: &Vault, join: Option<JoinRequest>) -> anyhow::Result<Identity> {
    if let Some(request) = join {
        return Ok(shell::join(vault, &request).await?);
    }
    let stored = vault.load().await?.identity;
    stored.ok_or_else(|| IdentityError::Nothing(vault.to_string()).into())
}
