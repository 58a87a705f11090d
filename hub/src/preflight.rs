//! `fairlead-hub preflight`: what is in the way on this cluster, and the migration from Kueue.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use fairlead_api::labels::HUB_USER_AGENT;
use fairlead_controller::shell;
use fairlead_runtime::client::{self, ClientSettings};

use crate::args::Preflight;

/// Exit code 0 when the hub can be started, 1 when something is in the way, 2 when nobody can tell.
pub(crate) async fn run(settings: &Preflight) -> ExitCode {
    match look(settings).await {
        Ok(lines) if lines.is_empty() => say(&["nothing is in the way".to_owned()], 0),
        Ok(lines) => say(&lines, 1),
        Err(why) => say(&[format!("preflight: {why:#}")], 2),
    }
}

/// One line for each obstacle.
async fn look(settings: &Preflight) -> anyhow::Result<Vec<String>> {
    if rustls::crypto::aws_lc_rs::default_provider().install_default().is_err() {
        anyhow::bail!("another TLS provider was installed first");
    }
    let connection = ClientSettings {
        kubeconfig: settings.kubeconfig.clone(),
        context: settings.context.clone(),
        user_agent: HUB_USER_AGENT.to_owned(),
    };
    let client = client::connect(&connection).await.context("connect to the hub's API server")?;
    if settings.migrate {
        let count = shell::migrate(&client).await?;
        say(&[format!("{count} objects rewritten")], 0);
    }
    let now = fairlead_runtime::clock::now().wall;
    let found = shell::obstacles(&client, now).await?;
    Ok(found.iter().map(ToString::to_string).collect())
}

fn say(lines: &[String], code: u8) -> ExitCode {
    let mut out = std::io::stdout().lock();
    for line in lines {
        if writeln!(out, "{line}").is_err() {
            break;
        }
    }
    ExitCode::from(code)
}
