//! Logs of the process.

use std::fmt;
use std::io::IsTerminal as _;
use std::str::FromStr;

use tracing_subscriber::EnvFilter;

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            other => Err(format!("a log format is text or json, not {other}")),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Json => "json",
        })
    }
}

/// Starts logging to standard error. The environment variable `RUST_LOG` says what is logged (`info` where it is
/// not set; kube's and the network stack's own lines only from `warn`). A second call changes nothing.
pub fn init(format: Format) {
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_unset| EnvFilter::new("info,kube=warn,hyper=warn,h2=warn,rustls=warn,tonic=warn"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let builder = builder.with_ansi(std::io::stderr().is_terminal());
    let started = match format {
        Format::Text => builder.with_target(false).try_init(),
        Format::Json => builder.json().flatten_event(true).try_init(),
    };
    if let Err(why) = started {
        tracing::debug!(%why, "logging had been started before");
    }
}
