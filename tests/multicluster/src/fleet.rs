//! A hub and its spokes on a [`Rig`]: everything that a platform team would set up, set up.
//!
//! The hub and the agents run as processes with the rights that the charts give them, not as administrators. Spokes
//! are enrolled as users enrol them: the command that `kubectl fairlead join` prints is the command that is run. Each
//! agent reaches the hub through a [`Proxy`](crate::proxy::Proxy), so that a test can cut its link.

mod programs;
mod spoke;
mod tenants;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};

pub use programs::{Programs, Ran};
pub use spoke::{JoinCommand, Spoke, SpokeOptions};
pub use tenants::{Tenant, apply_all, create_namespace};

use crate::{
    process::{Process, ProcessSpec},
    rig::{Cluster, ClusterOptions, NodeSpec, Rig, RigOptions, free_port},
    wait,
};

/// The hub's cluster in the rig.
pub const HUB: &str = "hub";

/// Namespace of the hub and of the agents.
pub const SYSTEM: &str = "fairlead-system";

/// The variable that arms a crash point: its name, optionally with `:n` for its n-th time.
pub const CRASH_POINT: &str = "FAIRLEAD_CRASH_POINT";

/// How long processes may take to be ready. A second or two is usual.
const READY_BOUND: Duration = Duration::from_secs(60);

/// How long the hub may take to end in order.
const STOP_BOUND: Duration = Duration::from_secs(15);

/// How long a service account's token for hub or agent is valid.
const TOKEN_LIFETIME: Duration = Duration::from_hours(12);

/// How a fleet is set up.
#[derive(Debug, Clone, Default)]
pub struct FleetOptions {
    /// Its spokes.
    pub spokes: Vec<SpokeOptions>,
    /// Nodes of the hub's own cluster, for home queues.
    pub hub_nodes: Vec<NodeSpec>,
    /// Write audit logs on every cluster.
    pub audit: bool,
    /// Let every API server be profiled.
    pub profiling: bool,
    /// Further arguments of the hub.
    pub hub_args: Vec<String>,
    /// Where its folder is made; the system's folder for temporary files when absent.
    pub root: Option<PathBuf>,
}

/// A running hub with its spokes.
#[derive(Debug)]
pub struct Fleet {
    // Dropped in this order: agents and hub before the clusters they talk to.
    spokes: BTreeMap<String, Spoke>,
    hub: Process,
    listening: Listening,
    programs: Programs,
    rig: Rig,
}

/// Where the hub listens.
#[derive(Debug, Clone, Copy)]
struct Listening {
    gateway: SocketAddr,
    metrics: SocketAddr,
    visibility: SocketAddr,
    health: SocketAddr,
}

impl Listening {
    fn choose() -> Result<Self> {
        let address = || Ok::<_, anyhow::Error>(SocketAddr::from(([127, 0, 0, 1], free_port()?)));
        Ok(Self { gateway: address()?, metrics: address()?, visibility: address()?, health: address()? })
    }
}

impl Fleet {
    /// Starts the clusters, the hub, and the agents, and waits until every spoke is connected.
    pub async fn start(options: FleetOptions) -> Result<Self> {
        let programs = Programs::find()?;
        let rig = Rig::start(rig_options(&options)).await?;
        let result = Self::start_on(rig, programs, &options).await;
        if let Err(error) = &result {
            tracing::error!("the fleet did not start: {error:#}");
        }
        result
    }

    async fn start_on(rig: Rig, programs: Programs, options: &FleetOptions) -> Result<Self> {
        install(rig.cluster(HUB)?, "fairlead-hub").await?;
        let listening = Listening::choose()?;
        let hub = start_hub(&rig, &programs, listening, &options.hub_args).await?;
        let mut fleet = Self { spokes: BTreeMap::new(), hub, listening, programs, rig };
        fleet.hub_ready().await?;
        let joining = options.spokes.iter().map(|spoke| Spoke::join(&fleet, spoke));
        let spokes = try_join_all(joining).await?;
        fleet.spokes = spokes.into_iter().map(|spoke| (spoke.name().to_owned(), spoke)).collect();
        for spoke in fleet.spokes() {
            fleet.connected(spoke.name()).await?;
        }
        Ok(fleet)
    }

    /// The rig below.
    pub fn rig(&self) -> &Rig {
        &self.rig
    }

    /// The hub's own cluster.
    pub fn hub_cluster(&self) -> Result<&Cluster> {
        self.rig.cluster(HUB)
    }

    /// A client of the hub's API server with an administrator's rights.
    pub fn hub_client(&self) -> Result<Client> {
        Ok(self.hub_cluster()?.client())
    }

    /// The hub's process.
    pub fn hub(&self) -> &Process {
        &self.hub
    }

    /// Where the gateway listens.
    pub fn hub_address(&self) -> SocketAddr {
        self.listening.gateway
    }

    /// Where the hub serves metrics.
    pub fn metrics_address(&self) -> SocketAddr {
        self.listening.metrics
    }

    /// Where the hub serves the visibility API.
    pub fn visibility_address(&self) -> SocketAddr {
        self.listening.visibility
    }

    /// Where the hub answers probes.
    pub fn health_address(&self) -> SocketAddr {
        self.listening.health
    }

    /// Fairlead's programs.
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// A spoke by name.
    pub fn spoke(&self, name: &str) -> Result<&Spoke> {
        self.spokes.get(name).with_context(|| format!("no spoke {name}"))
    }

    /// All spokes, by name.
    pub fn spokes(&self) -> impl Iterator<Item = &Spoke> {
        self.spokes.values()
    }

    /// The cluster of a spoke.
    pub fn spoke_cluster(&self, name: &str) -> Result<&Cluster> {
        self.rig.cluster(name)
    }

    /// Waits until the hub leads and its gateway listens.
    pub async fn hub_ready(&self) -> Result<()> {
        let maps: Api<ConfigMap> = Api::namespaced(self.hub_client()?, SYSTEM);
        wait::until_true("the hub is ready", READY_BOUND, async || {
            if let Some(status) = self.hub.exited()? {
                bail!("it ended ({status}): {}", self.hub.log_tail(5));
            }
            let published = maps.get_opt("fairlead-gateway").await?.is_some();
            Ok(published && tokio::net::TcpStream::connect(self.listening.gateway).await.is_ok())
        })
        .await
    }

    /// Waits until the hub says that a spoke is connected and that work can be placed there.
    pub async fn connected(&self, spoke: &str) -> Result<()> {
        self.cluster_condition(spoke, "Connected", "True").await?;
        self.cluster_condition(spoke, "Schedulable", "True").await
    }

    /// Waits until a condition of a Cluster has this status.
    pub async fn cluster_condition(&self, spoke: &str, condition: &str, status: &str) -> Result<()> {
        let clusters: Api<fairlead_api::fairlead::Cluster> = Api::all(self.hub_client()?);
        let what = format!("Cluster {spoke} has {condition}={status}");
        wait::until_true(&what, READY_BOUND, async || {
            let cluster = clusters.get(spoke).await?;
            let conditions = cluster.status.map(|status| status.conditions).unwrap_or_default();
            Ok(conditions.iter().any(|found| found.type_ == condition && found.status == status))
        })
        .await
    }

    /// Ends the hub in order, where it still runs, starts it again with these variables in addition, and waits until
    /// it is ready. (After a kill the new one first waits for the old one's lease to end.)
    pub async fn restart_hub(&self, env: &[(&str, &str)]) -> Result<()> {
        self.hub.stop(STOP_BOUND).await?;
        self.hub.restart_with(|spec| rearm(spec, env))?;
        self.hub_ready().await
    }

    /// Runs `kubectl fairlead` as the hub's administrator and returns what it prints.
    pub async fn cli(&self, args: &[&str]) -> Result<String> {
        self.programs.cli(self.hub_cluster()?.admin(), args).await
    }

    /// Lets everything run on after this process, and returns the file of pids that ends it.
    pub fn leave(self) -> PathBuf {
        // The keeper remembers that it was left, so dropping the processes ends none of them.
        let pids = self.rig.leave();
        drop(self.spokes);
        drop(self.hub);
        pids
    }
}

/// Takes back an armed crash point and sets these variables.
fn rearm(spec: &mut ProcessSpec, env: &[(&str, &str)]) {
    spec.env.retain(|(name, _)| name != CRASH_POINT);
    for (name, value) in env {
        spec.set_env(name, *value);
    }
}

fn rig_options(options: &FleetOptions) -> RigOptions {
    let cluster = |nodes: &[NodeSpec]| ClusterOptions {
        audit: options.audit,
        profiling: options.profiling,
        nodes: nodes.to_vec(),
        ..ClusterOptions::default()
    };
    let rig = RigOptions { root: options.root.clone(), ..RigOptions::default() };
    options.spokes.iter().fold(rig.cluster(HUB, cluster(&options.hub_nodes)), |rig, spoke| {
        rig.cluster(&spoke.name, cluster(&spoke.nodes))
    })
}

/// What `kubectl apply` takes of a chart as it is, below its folder. The rest has to go through helm.
const PLAIN: [&str; 5] = [
    "namespace.yaml",
    "templates/crds",
    "templates/admission",
    "templates/rbac.yaml",
    "templates/roles.yaml",
];

/// Applies a chart's plain manifests: the namespace and definitions first.
pub(crate) async fn install(cluster: &Cluster, chart: &str) -> Result<()> {
    let parts = PLAIN.map(|part| charts().join(chart).join(part));
    let parts: Vec<String> =
        parts.iter().filter(|part| part.exists()).map(|part| part.display().to_string()).collect();
    let crds = charts().join(chart).join("templates/crds").display().to_string();
    let namespace = charts().join(chart).join("namespace.yaml").display().to_string();
    cluster.kubectl(&["apply", "--server-side", "-f", &namespace, "-f", &crds]).await?;
    cluster.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", "-f", &crds]).await?;
    let files = parts.iter().flat_map(|part| ["-f", part.as_str()]);
    cluster.kubectl(&["apply", "--server-side"].into_iter().chain(files).collect::<Vec<_>>()).await?;
    Ok(())
}

/// The charts of this checkout.
pub fn charts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts")
}

async fn start_hub(rig: &Rig, programs: &Programs, listening: Listening, args: &[String]) -> Result<Process> {
    let cluster = rig.cluster(HUB)?;
    let access = cluster.access_for_service_account(SYSTEM, "fairlead-hub", TOKEN_LIFETIME).await?;
    let mut all = vec![
        "run".to_owned(),
        "--kubeconfig".to_owned(),
        access.path().display().to_string(),
        "--listen".to_owned(),
        listening.gateway.to_string(),
        "--advertise".to_owned(),
        listening.gateway.to_string(),
        "--health".to_owned(),
        listening.health.to_string(),
        "--metrics".to_owned(),
        listening.metrics.to_string(),
        "--visibility".to_owned(),
        listening.visibility.to_string(),
    ];
    all.extend(args.iter().cloned());
    let spec = ProcessSpec::new("fairlead-hub", &programs.hub, all, rig.log_file("fairlead-hub"));
    rig.spawn(spec)
}
