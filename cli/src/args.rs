//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Parser, Subcommand, ValueEnum};

use crate::output::Format;

/// Join clusters to the hub, read its queues, and ask why a job waits or where it went.
#[derive(Debug, Parser)]
#[command(name = "kubectl fairlead", bin_name = "kubectl fairlead", disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) connection: Connection,

    /// Output format.
    #[arg(short, long, global = true, value_enum, value_name = "FORMAT", default_value_t = Format::Table)]
    pub(crate) output: Format,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How to reach the hub; as kubectl's own flags.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Connection {
    /// Path to the kubeconfig file.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// The kubeconfig context to use.
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,

    /// The namespace to look in; the context's by default.
    #[arg(short, long, global = true, value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    /// The user to impersonate.
    #[arg(long = "as", global = true, value_name = "USER")]
    pub(crate) as_user: Option<String>,

    /// A group to impersonate; may be given several times.
    #[arg(long = "as-group", global = true, value_name = "GROUP", requires = "as_user", action = ArgAction::Append)]
    pub(crate) as_groups: Vec<String>,

    /// How long the command may take, for example 30s or 2m; without end by default.
    #[arg(long, global = true, value_name = "DURATION", value_parser = duration)]
    pub(crate) request_timeout: Option<Duration>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print the command that makes a cluster a spoke of this hub.
    #[command(after_help = JOIN_HELP)]
    Join(Join),
    /// List the clusters and whether they can take work.
    Clusters(Clusters),
    /// List queues: what waits, what holds quota, what is admitted.
    Queues(Queues),
    /// Say why a job waits, or why it went where it went.
    Explain(Explain),
    /// Rewrite manifests of Kueue's API v1beta1 to v1beta2.
    #[command(after_help = CONVERT_HELP)]
    Convert(Convert),
    /// Show the versions of this command, the hub and the spokes.
    Version(Version),
}

const JOIN_HELP: &str = "Creates the Cluster if there is none of that name, and a join token that is good for one \
                         spoke of that name, for 15 minutes. The printed command is to be run where the spoke's \
                         kubeconfig is.";

const CONVERT_HELP: &str = "Prints every document, and changes only what was renamed. Comments are lost. Nothing is \
                            sent anywhere: kubectl fairlead convert -f old.yaml | kubectl apply -f -";

/// `convert -f FILE`.
#[derive(Debug, clap::Args)]
pub(crate) struct Convert {
    /// A file with manifests, YAML or JSON; - is standard input. May be given several times.
    #[arg(short, long = "filename", value_name = "FILE", required = true, action = ArgAction::Append)]
    pub(crate) files: Vec<PathBuf>,
}

/// `join NAME`.
#[derive(Debug, clap::Args)]
pub(crate) struct Join {
    /// The cluster's name on the hub.
    #[arg(value_parser = cluster_name)]
    pub(crate) name: String,

    /// A label of the cluster for policies and flavors to select by, for example fairlead.dev/cloud=aws; may be given
    /// several times.
    #[arg(short, long = "label", value_name = "KEY=VALUE", value_parser = label, action = ArgAction::Append)]
    pub(crate) labels: Vec<(String, String)>,

    /// Print a helm command instead, which installs the agent; with a value, for this chart: a folder or a reference.
    #[arg(long, value_name = "CHART", num_args = 0..=1, default_missing_value = "charts/fairlead-spoke")]
    pub(crate) helm: Option<String>,

    /// Store nothing: with server the API server checks what would be stored, with client nothing is sent.
    #[arg(long, value_enum, value_name = "WHERE")]
    pub(crate) dry_run: Option<DryRun>,
}

/// How far a dry run goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DryRun {
    /// The API server checks everything and stores nothing.
    Server,
    /// Nothing is sent that would change anything.
    Client,
}

/// `clusters [NAME...]`.
#[derive(Debug, clap::Args)]
pub(crate) struct Clusters {
    /// Only these.
    pub(crate) names: Vec<String>,
}

/// `queues [NAME...]`.
#[derive(Debug, clap::Args)]
pub(crate) struct Queues {
    /// Only these.
    pub(crate) names: Vec<String>,

    /// LocalQueues of every namespace.
    #[arg(short = 'A', long, conflicts_with = "whole_clusters")]
    pub(crate) all_namespaces: bool,

    /// ClusterQueues instead of LocalQueues.
    #[arg(long = "cluster-queues", visible_alias = "cq")]
    pub(crate) whole_clusters: bool,
}

/// `explain WORKLOAD`.
#[derive(Debug, clap::Args)]
pub(crate) struct Explain {
    /// A Workload or a Job: NAME, workload/NAME or job/NAME.
    #[arg(value_name = "WORKLOAD")]
    pub(crate) target: String,
}

/// `version`.
#[derive(Debug, clap::Args)]
pub(crate) struct Version {
    /// Only this command's own version; asks nobody.
    #[arg(long)]
    pub(crate) client: bool,
}

/// A DNS label: what a Cluster may be called, because the name becomes the value of a node label.
fn cluster_name(text: &str) -> Result<String, String> {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let ends = !text.starts_with('-') && !text.ends_with('-');
    if !text.is_empty() && text.len() <= 63 && ends && text.bytes().all(inner) {
        return Ok(text.to_owned());
    }
    Err("use lower-case letters, digits and hyphens, at most 63, with no hyphen at the ends".to_owned())
}

fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    if key.is_empty() { Err("the key is missing".to_owned()) } else { Ok((key.to_owned(), value.to_owned())) }
}

/// `90s`, `2m`, `1h`, or seconds. `0` means without end, as for kubectl, and is given by leaving the flag out.
fn duration(text: &str) -> Result<Duration, String> {
    let (number, factor) = match text.char_indices().last() {
        Some((at, 's')) => (&text[..at], 1),
        Some((at, 'm')) => (&text[..at], 60),
        Some((at, 'h')) => (&text[..at], 3600),
        _ => (text, 1),
    };
    let number: u64 = number.parse().map_err(|error| format!("{error}; write 30s, 2m or 1h"))?;
    match number.checked_mul(factor) {
        Some(0) => Err("leave the flag out to wait without end".to_owned()),
        Some(seconds) => Ok(Duration::from_secs(seconds)),
        None => Err("that is longer than time".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(line: &str) -> Result<Args, clap::Error> {
        Args::try_parse_from(line.split_whitespace())
    }

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn help_speaks_of_kubectl_fairlead_and_never_of_the_file() {
        let mut command = Args::command();
        command.build();
        let mut help = command.render_long_help().to_string();
        for sub in command.get_subcommands_mut() {
            help.push_str(&sub.render_long_help().to_string());
        }
        assert!(help.contains("Usage: kubectl fairlead [OPTIONS] <COMMAND>"), "{help}");
        assert!(help.contains("Usage: kubectl fairlead join [OPTIONS] <NAME>"), "{help}");
        assert!(!help.contains("kubectl-fairlead"), "{help}");
    }

    #[test]
    fn flags_may_stand_before_and_after_the_command() {
        for line in ["k -n team-a queues -o json", "k queues --namespace team-a --output=json"] {
            let args = parse(line).unwrap();
            assert_eq!(args.connection.namespace.as_deref(), Some("team-a"));
            assert_eq!(args.output, Format::Json);
        }
    }

    #[test]
    fn names_labels_and_durations_are_checked() {
        assert!(parse("k join aws-use1 -l fairlead.dev/cloud=aws --dry-run=server").is_ok());
        for bad in [
            "k join Aws",
            "k join -- -a",
            "k join a.b",
            "k join a -l cloud",
            "k join a --dry-run=perhaps",
            "k join",
            "k frob",
            "k",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert!(parse(&format!("k join {}", "a".repeat(64))).is_err());
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("7"), Ok(Duration::from_secs(7)));
        for bad in ["", "s", "0", "-1s", "1d", "99999999999999999999h", "18446744073709551615h"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
