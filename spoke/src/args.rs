//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand};
use fairlead_api::labels::SYSTEM_NAMESPACE;
use fairlead_pki::CaPin;
use fairlead_runtime::settings;
use fairlead_runtime::telemetry::Format;

/// Fairlead's agent on a spoke: it dials the hub and runs what the hub sends, as far as the SpokePolicy allows.
#[derive(Debug, Parser)]
#[command(name = "fairlead-spoke", disable_version_flag = true)]
pub(crate) struct Args {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What the agent can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Join a hub with a single-use token, then run. A cluster that has joined already just runs.
    Join(Box<Join>),
    /// Run with the identity that `join` has stored.
    Run(Settings),
    /// Print the version.
    Version,
}

/// How this cluster joins.
#[derive(clap::Args)]
pub(crate) struct Join {
    /// Address of the hub.
    #[arg(long, env = "FAIRLEAD_HUB", value_name = "HOST:PORT", value_parser = address)]
    pub(crate) hub: String,

    /// Fingerprint of the hub's CA.
    #[arg(long, env = "FAIRLEAD_CA_PIN", value_name = "sha256:…")]
    pub(crate) ca_pin: CaPin,

    /// Name of this cluster on the hub.
    #[arg(long, env = "FAIRLEAD_CLUSTER", value_name = "NAME")]
    pub(crate) name: String,

    /// The join token. Give it as the environment variable: arguments are seen in the list of processes.
    #[arg(long, env = "FAIRLEAD_JOIN_TOKEN", value_name = "fj1.…", hide_env_values = true)]
    pub(crate) token: String,

    /// How the agent runs.
    #[command(flatten)]
    pub(crate) settings: Settings,
}

impl std::fmt::Debug for Join {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Join").field("hub", &self.hub).field("name", &self.name).finish_non_exhaustive()
    }
}

/// How the agent runs. Each option can be given as an environment variable, too.
#[derive(Debug, clap::Args)]
pub(crate) struct Settings {
    /// Kubeconfig of this cluster. Without it: KUBECONFIG, ~/.kube/config, the pod's service account.
    #[arg(long, env = "FAIRLEAD_KUBECONFIG", value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Context in the kubeconfig.
    #[arg(long, env = "FAIRLEAD_CONTEXT", value_name = "NAME")]
    pub(crate) context: Option<String>,

    /// Namespace of the agent's own objects: its identity and its floor.
    #[arg(long, env = "FAIRLEAD_NAMESPACE", value_name = "NAME", default_value = SYSTEM_NAMESPACE)]
    pub(crate) namespace: String,

    /// Where /livez and /readyz are answered; nowhere when it is left out.
    #[arg(long, env = "FAIRLEAD_HEALTH", value_name = "ADDRESS")]
    pub(crate) health: Option<SocketAddr>,

    /// How log lines look: text or json.
    #[arg(long, env = "FAIRLEAD_LOG_FORMAT", value_name = "FORMAT", default_value_t = Format::Text)]
    pub(crate) log_format: Format,
}

fn address(text: &str) -> Result<String, String> {
    settings::host_port(text).map(|_parts| text.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_that_the_hub_prints_is_understood() {
        Args::command().debug_assert();
        let pin = format!("sha256:{}", "0".repeat(64));
        let line =
            ["fairlead-spoke", "join", "--hub", "hub.example:7443", "--ca-pin", &pin, "--name", "aws-use1"];
        let args = Args::try_parse_from(line.into_iter().chain(["--token", "fj1.a.b"])).unwrap();
        let Command::Join(join) = args.command else { panic!("{args:?}") };
        assert_eq!((join.hub.as_str(), join.name.as_str()), ("hub.example:7443", "aws-use1"));
        assert_eq!(join.settings.namespace, "fairlead-system");
        assert!(!format!("{join:?}").contains("fj1"));
    }
}
