//! One spoke of a fleet: its cluster, its agent, its link, its tenants.

use std::sync::Mutex;

use anyhow::{Context, Result};

use super::{Fleet, SYSTEM, TOKEN_LIFETIME, Tenant, install, rearm};
use crate::{
    process::{Process, ProcessSpec},
    proxy::Proxy,
    rig::NodeSpec,
};

/// The variable that takes the join token.
const TOKEN: &str = "FAIRLEAD_JOIN_TOKEN";

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
        let mut command = JoinCommand::parse(&printed)?;
        if !options.direct {
            *command.value("--hub")? = proxy.address().to_string();
        }
        let access = cluster.access_for_service_account(SYSTEM, "fairlead-agent", TOKEN_LIFETIME).await?;
        command.args.extend(["--kubeconfig".to_owned(), access.path().display().to_string()]);
        let agent = fleet.rig().spawn(command.process(fleet, &format!("fairlead-spoke-{name}")))?;
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

/// The command that `kubectl fairlead join` printed, taken apart.
#[derive(Clone, Debug)]
pub struct JoinCommand {
    /// The token, which is given as a variable.
    pub token: String,
    /// The arguments.
    pub args: Vec<String>,
}

impl JoinCommand {
    /// Finds the line with the program, and its continuations.
    pub fn parse(printed: &str) -> Result<Self> {
        let joined = printed.replace("\\\n", " ");
        let words = joined.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let command = words.into_iter().find_map(|words| match words.as_slice() {
            [first, "fairlead-spoke", args @ ..] => {
                let token = first.strip_prefix(TOKEN)?.strip_prefix('=')?.to_owned();
                Some(Self { token, args: args.iter().map(|&arg| arg.to_owned()).collect() })
            }
            _ => None,
        });
        command.with_context(|| format!("no command for fairlead-spoke in:\n{printed}"))
    }

    /// The value of a flag, to be changed.
    pub fn value(&mut self, flag: &str) -> Result<&mut String> {
        let at = self.args.iter().position(|arg| arg == flag);
        let at = at.with_context(|| format!("the join command has no {flag}"))?;
        self.args.get_mut(at + 1).with_context(|| format!("{flag} without a value"))
    }

    /// The agent that it starts.
    pub fn process(&self, fleet: &Fleet, name: &str) -> ProcessSpec {
        let log = fleet.rig().log_file(name);
        ProcessSpec::new(name, &fleet.programs().spoke, &self.args, log).env(TOKEN, &self.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_found_with_its_continuations() {
        let printed = "# on the spoke:\n\n  FAIRLEAD_JOIN_TOKEN=t fairlead-spoke join \\\n    --hub h:1 \\\n    --name a\n";
        let mut command = JoinCommand::parse(printed).unwrap();
        assert_eq!(command.token, "t");
        assert_eq!(command.args, ["join", "--hub", "h:1", "--name", "a"]);
        assert_eq!(command.value("--hub").unwrap(), "h:1");
        assert!(command.value("--token").is_err());
        assert!(JoinCommand::parse("nothing here").is_err());
    }
}
