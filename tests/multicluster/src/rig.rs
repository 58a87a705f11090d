//! Real clusters on this machine: one etcd, and for each cluster a kube-apiserver, kube-controller-manager,
//! kube-scheduler and kwok, on loopback ports of their own and in one folder.
//!
//! Dropping a [`Rig`] ends everything it started and removes its folder, also after a panic; when the owner is killed,
//! the [`Keeper`]'s warden does it. [`Rig::leave`] lets it run on, for the demo.

mod access;
mod authority;
mod cluster;
mod flags;
pub(crate) mod folder;
mod kubectl;
mod nodes;
mod ports;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use futures::future::try_join_all;

pub use access::Access;
pub use cluster::{Cluster, ClusterOptions};
pub use nodes::NodeSpec;
pub use ports::free as free_port;

use crate::{
    audit::AuditLog,
    binaries::{Binaries, Part},
    process::{Keeper, Process, ProcessSpec},
    procfs::Usage,
    wait,
};
use folder::Folder;

/// How long etcd may take to listen. A fraction of a second is usual.
const ETCD_BOUND: Duration = Duration::from_secs(60);

/// How a rig is set up.
#[derive(Debug, Clone, Default)]
pub struct RigOptions {
    /// Where its folder is made; the system's folder for temporary files when absent.
    pub root: Option<PathBuf>,
    /// Its clusters, by name. They start in parallel.
    pub clusters: Vec<(String, ClusterOptions)>,
}

impl RigOptions {
    /// Adds a cluster.
    #[must_use]
    pub fn cluster(mut self, name: &str, options: ClusterOptions) -> Self {
        self.clusters.push((name.to_owned(), options));
        self
    }
}

/// Running clusters. See the module's description for how they end.
#[derive(Debug)]
pub struct Rig {
    // Fields are dropped in this order: processes first, then their keeper, then the folder.
    clusters: BTreeMap<String, Cluster>,
    shared: Shared,
}

/// What every cluster of a rig needs.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    etcd: Arc<Process>,
    etcd_url: String,
    pub(crate) binaries: Arc<Binaries>,
    pub(crate) keeper: Arc<Keeper>,
    folder: Arc<Folder>,
}

impl Rig {
    /// Finds (or builds) the programs and starts etcd and the clusters. Returns when every API server is ready and its
    /// controllers work; about 8 s for three clusters.
    pub async fn start(options: RigOptions) -> Result<Self> {
        // A second caller finds a provider installed: that is as good.
        rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
        let binaries = tokio::task::spawn_blocking(Binaries::find).await??;
        let folder = Folder::create(options.root.as_deref(), "rig")?;
        let keeper = Keeper::start(folder.path())?;
        let (etcd, etcd_url) = start_etcd(&binaries, &keeper, folder.path()).await?;
        let shared = Shared {
            etcd: Arc::new(etcd),
            etcd_url,
            binaries: Arc::new(binaries),
            keeper,
            folder: Arc::new(folder),
        };
        let mut rig = Self { clusters: BTreeMap::new(), shared };
        rig.add_clusters(options.clusters).await?;
        Ok(rig)
    }

    /// Starts further clusters on a running rig, in parallel.
    pub async fn add_clusters(&mut self, clusters: Vec<(String, ClusterOptions)>) -> Result<()> {
        for (name, _) in &clusters {
            if self.clusters.contains_key(name) {
                bail!("the rig has a cluster {name} already");
            }
        }
        let starting =
            clusters.into_iter().map(|(name, options)| Cluster::start(&self.shared, name, options));
        for cluster in try_join_all(starting).await? {
            self.clusters.insert(cluster.name().to_owned(), cluster);
        }
        Ok(())
    }

    /// Ends a cluster. Its objects stay in etcd until the rig ends.
    pub fn remove_cluster(&mut self, name: &str) -> Result<()> {
        self.clusters.remove(name).with_context(|| format!("no cluster {name}"))?;
        Ok(())
    }

    /// A cluster by name.
    pub fn cluster(&self, name: &str) -> Result<&Cluster> {
        self.clusters.get(name).with_context(|| format!("the rig has no cluster {name}"))
    }

    /// All clusters, by name.
    pub fn clusters(&self) -> impl Iterator<Item = &Cluster> {
        self.clusters.values()
    }

    /// Starts a program that ends with the rig: hub, agents, clients.
    pub fn spawn(&self, spec: ProcessSpec) -> Result<Process> {
        self.shared.keeper.spawn(spec)
    }

    /// What starts and ends processes, to be used without the rig at hand.
    pub fn keeper(&self) -> Arc<Keeper> {
        Arc::clone(&self.shared.keeper)
    }

    /// The programs in use.
    pub fn binaries(&self) -> &Binaries {
        &self.shared.binaries
    }

    /// The rig's folder: data, logs, kubeconfigs. `logs/` holds a log for each process.
    pub fn folder(&self) -> &Path {
        self.shared.folder.path()
    }

    /// The log file for a process of this name.
    pub fn log_file(&self, name: &str) -> PathBuf {
        self.shared.log_file(name)
    }

    /// The shared etcd.
    pub fn etcd(&self) -> &Process {
        &self.shared.etcd
    }

    /// Opens the audit log of every cluster that writes one, by cluster name.
    pub fn audit_logs(&self) -> Result<BTreeMap<String, AuditLog>> {
        self.clusters()
            .filter(|cluster| cluster.audited())
            .map(|cluster| Ok((cluster.name().to_owned(), cluster.audit_log()?)))
            .collect()
    }

    /// CPU time and memory of every process of the control planes, by name (`etcd`, `hub-kube-apiserver`, …).
    pub fn usage(&self) -> Result<BTreeMap<String, Usage>> {
        let parts = self.clusters().flat_map(|cluster| cluster.parts().map(|(_, process)| process));
        parts.chain([self.etcd()]).map(|process| Ok((process.name(), process.usage()?))).collect()
    }

    /// Leaves the folder in place at the end, for someone to look at.
    pub fn keep_folder(&self) {
        self.shared.folder.keep();
    }

    /// Lets everything run on after this process, and returns the file of pids for
    /// [`end_all`](crate::process::end_all), which ends it. The folder stays.
    pub fn leave(self) -> PathBuf {
        self.shared.folder.keep();
        self.shared.keeper.leave();
        self.shared.keeper.pids().to_path_buf()
    }
}

impl Shared {
    pub(crate) fn etcd_url(&self) -> &str {
        &self.etcd_url
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn log_file(&self, name: &str) -> PathBuf {
        self.folder.path().join("logs").join(format!("{name}.log"))
    }
}

async fn start_etcd(binaries: &Binaries, keeper: &Arc<Keeper>, folder: &Path) -> Result<(Process, String)> {
    let logs = folder.join("logs");
    fs::create_dir_all(&logs).with_context(|| format!("make {}", logs.display()))?;
    let [client, peer] = ports::free_ports()?;
    let (program, mut args) = binaries.command(Part::Etcd);
    args.extend(flags::etcd(&binaries.control_plane, &folder.join("etcd"), client, peer));
    let etcd = keeper.spawn(ProcessSpec::new("etcd", program, args, logs.join("etcd.log")))?;
    wait::until_true("etcd listens", ETCD_BOUND, async || {
        if let Some(status) = etcd.exited()? {
            bail!("etcd ended ({status}): {}", etcd.log_tail(5));
        }
        Ok(tokio::net::TcpStream::connect(("127.0.0.1", client)).await.is_ok())
    })
    .await?;
    Ok((etcd, format!("http://127.0.0.1:{client}")))
}
