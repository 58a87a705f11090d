//! One spoke of a fleet: its cluster, its agent, its link, its tenants.

use std::{net::SocketAddr, sync::Mutex};

use anyhow::{Context, Result, bail};

use super::{Fleet, SYSTEM, TOKEN_LIFETIME, Tenant, install, rearm};
use crate::{
    process::{Process, ProcessSpec},
    proxy::Proxy,
    rig::NodeSpec,
};

/// How a spoke is set up.
#[derive(Debug, Clone)]
pub struct SpokeOptions {
    /// Name of its cluster, in the rig and on the hub.
    pub name: String,
    /// Labels of its Cluster object, for example `fairlead.dev/cloud=aws`.
    pub labels: Vec<(String, String)>,
    /// Its nodes.
    pub nodes: Vec<NodeSpec>,
    /// The agent dials the hub itself, not through the link that can be cut: that one ends with this process.
    pub direct: bool,
}

impl SpokeOptions {
    /// A spoke without labels and nodes.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), labels: Vec::new(), nodes: Vec::new(), direct: false }
    }

    /// Lets the agent dial the hub itself, so that it can outlive this process.
    #[must_use]
    pub fn direct(mut self) -> Self {
        self.direct = true;
        self
    }

    /// Adds a label to its Cluster object.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Adds a node.
    #[must_use]
    pub fn node(mut self, node: NodeSpec) -> Self {
        self.nodes.push(node);
        self
    }
}

/// A running spoke.
#[derive(Debug)]
pub struct Spoke {
    name: String,
    agent: Process,
    proxy: Proxy,
    pub(super) tenants: Mutex<Vec<Tenant>>,
}

impl Spoke {
    /// Installs the agent's manifests, enrols the spoke with the command that the hub's CLI prints, and starts its
    /// agent with it.
    pub(super) async fn join(fleet: &Fleet, options: &SpokeOptions) -> Result<Self> {
        let name = options.name.as_str();
        let cluster = fleet.spoke_cluster(name)?;
        install(cluster, "fairlead-spoke").await?;
        let proxy = Proxy::start(fleet.hub_address()).await?;
        let printed = fleet.cli(&["join", name]).await?;
        for (key, value) in &options.labels {
            let patch = serde_json::json!({"spec": {"labels": {key: value}}}).to_string();
            fleet
                .hub_cluster()?
                .kubectl(&["patch", "clusters.fairlead.dev", name, "--type=merge", "-p", &patch])
                .await?;
        }
        let mut args = join_arguments(&printed)?;
        if !options.direct {
            redirect(&mut args, proxy.address())?;
        }
        let access = cluster.access_for_service_account(SYSTEM, "fairlead-agent", TOKEN_LIFETIME).await?;
        args.extend(["--kubeconfig".to_owned(), access.path().display().to_string()]);
        let process = format!("fairlead-spoke-{name}");
        let log = fleet.rig().log_file(&process);
        let agent = fleet.rig().spawn(ProcessSpec::new(process, &fleet.programs().spoke, args, log))?;
        Ok(Self { name: name.to_owned(), agent, proxy, tenants: Mutex::default() })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its agent's process.
    pub fn agent(&self) -> &Process {
        &self.agent
    }

    /// Its link to the hub.
    pub fn link(&self) -> &Proxy {
        &self.proxy
    }

    /// Kills the agent and starts it again with these variables in addition.
    pub fn restart_agent(&self, env: &[(&str, &str)]) -> Result<()> {
        self.agent.restart_with(|spec| rearm(spec, env))
    }
}

/// The arguments of the command that `kubectl fairlead join` printed: the line that starts with the program, with its
/// continuations.
pub fn join_arguments(printed: &str) -> Result<Vec<String>> {
    let joined = printed.replace("\\\n", " ");
    let line = joined
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("fairlead-spoke "))
        .with_context(|| format!("no command for fairlead-spoke in:\n{printed}"))?;
    Ok(line.split_whitespace().skip(1).map(str::to_owned).collect())
}

/// Lets the agent dial `address` instead of the hub.
fn redirect(args: &mut [String], address: SocketAddr) -> Result<()> {
    let Some(flag) = args.iter().position(|arg| arg == "--hub") else {
        bail!("the join command has no --hub")
    };
    let value = args.get_mut(flag + 1).context("--hub without a value")?;
    *value = address.to_string();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_found_with_its_continuations() {
        let printed = "# on the spoke:\n\n  fairlead-spoke join \\\n    --hub h:1 \\\n    --name a\n";
        assert_eq!(join_arguments(printed).unwrap(), ["join", "--hub", "h:1", "--name", "a"]);
        assert!(join_arguments("nothing here").is_err());
    }
}
