//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};
use fairlead_runtime::settings;
use fairlead_runtime::telemetry::Format;

/// Fairlead's hub: one queue over every cluster.
#[derive(Debug, Parser)]
#[command(name = "fairlead-hub", disable_version_flag = true)]
pub(crate) struct Args {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What the hub can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the hub until it is told to stop.
    Run(Box<RunArgs>),
    /// Say what keeps the hub from running on this cluster, a running Kueue above all; exit code 1 when something does.
    Preflight(Preflight),
    /// Decide again what `--replay-dir` has recorded, and say whether the same comes out.
    Replay(Replay),
    /// Print the version.
    Version,
}

/// What `preflight` looks at. It needs an administrator's rights.
#[derive(Debug, clap::Args)]
pub(crate) struct Preflight {
    /// Kubeconfig of the hub's cluster. Without it: KUBECONFIG, ~/.kube/config, the pod's service account.
    #[arg(long, env = "FAIRLEAD_KUBECONFIG", value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Context in the kubeconfig.
    #[arg(long, env = "FAIRLEAD_CONTEXT", value_name = "NAME")]
    pub(crate) context: Option<String>,

    /// First rewrite every object of Kueue's that may be stored in an older version. Do it while Kueue still runs,
    /// because its conversion is needed to read them.
    #[arg(long)]
    pub(crate) migrate: bool,
}

/// How the hub runs. Each option can be given as an environment variable, too.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// Kubeconfig of the hub's cluster. Without it: KUBECONFIG, ~/.kube/config, the pod's service account.
    #[arg(long, env = "FAIRLEAD_KUBECONFIG", value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Context in the kubeconfig.
    #[arg(long, env = "FAIRLEAD_CONTEXT", value_name = "NAME")]
    pub(crate) context: Option<String>,

    /// The configuration file: Kueue's Configuration, with a section `fairlead`. What is given here counts more.
    #[arg(long, env = "FAIRLEAD_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Feature gates, as Name=true,Other=false. Give them here or in the file, not in both.
    #[arg(long, env = "FAIRLEAD_FEATURE_GATES", value_name = "GATES")]
    pub(crate) feature_gates: Option<String>,

    /// Namespace of the hub's own objects: lease, CA, join tokens [default: fairlead-system].
    #[arg(long, env = "FAIRLEAD_NAMESPACE", value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    /// Where spokes are listened for [default: 0.0.0.0:7443].
    #[arg(long, env = "FAIRLEAD_LISTEN", value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,

    /// How spokes reach that address, as HOST:PORT: it is printed by `kubectl fairlead join`, and the host is the
    /// name in the gateway's certificate.
    #[arg(long, env = "FAIRLEAD_ADVERTISE", value_name = "HOST:PORT", value_parser = advertised)]
    pub(crate) advertise: Option<Advertised>,

    /// Where /livez and /readyz are answered [default: 0.0.0.0:8081].
    #[arg(long, env = "FAIRLEAD_HEALTH", value_name = "ADDRESS")]
    pub(crate) health: Option<SocketAddr>,

    /// Where metrics are served, over TLS [default: 0.0.0.0:8443].
    #[arg(long, env = "FAIRLEAD_METRICS", value_name = "ADDRESS")]
    pub(crate) metrics: Option<SocketAddr>,

    /// Where the visibility API is served, over TLS [default: 0.0.0.0:8082].
    #[arg(long, env = "FAIRLEAD_VISIBILITY", value_name = "ADDRESS")]
    pub(crate) visibility: Option<SocketAddr>,

    /// How long a finished copy stays on its spoke, so that its logs can be read [default: 1h].
    #[arg(long, env = "FAIRLEAD_RETAIN_FINISHED", value_name = "DURATION", value_parser = settings::duration)]
    pub(crate) retain_finished: Option<Duration>,

    /// Who this process is, for people; the lease shows it.
    #[arg(long, env = "FAIRLEAD_IDENTITY", value_name = "NAME", default_value_t = default_identity())]
    pub(crate) identity: String,

    /// Folder in which decisions are recorded, for `fairlead-hub replay`. Without it nothing is recorded.
    #[arg(long, env = "FAIRLEAD_REPLAY_DIR", value_name = "FOLDER")]
    pub(crate) replay_dir: Option<PathBuf>,

    /// How many bytes the records may take; the oldest go first.
    #[arg(long, env = "FAIRLEAD_REPLAY_BYTES", value_name = "BYTES", default_value_t = 256 << 20)]
    pub(crate) replay_bytes: u64,

    /// How log lines look: text or json.
    #[arg(long, env = "FAIRLEAD_LOG_FORMAT", value_name = "FORMAT", default_value_t = Format::Text)]
    pub(crate) log_format: Format,
}

/// What to decide again.
#[derive(Debug, clap::Args)]
pub(crate) struct Replay {
    /// A record, or a folder of records.
    pub(crate) path: PathBuf,

    /// Show only the decision of this number, in full.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) decision: Option<u64>,
}

/// Where spokes dial.
#[derive(Clone, Debug)]
pub(crate) struct Advertised {
    /// As given.
    pub(crate) address: String,
    /// The host in it.
    pub(crate) host: String,
}

pub(crate) fn advertised(text: &str) -> Result<Advertised, String> {
    let (host, _port) = settings::host_port(text)?;
    Ok(Advertised { address: text.to_owned(), host })
}

/// The pod's name, which is its host name.
fn default_identity() -> String {
    std::env::var("HOSTNAME").unwrap_or_else(|_unset| "fairlead-hub".to_owned())
}
