//! The programs that clusters are made of: found, or built once into a cache folder outside the tree.
//!
//! Looked for in this order: `KUBEBUILDER_ASSETS`, then `PATH`, each only when all four control-plane programs are
//! there at 1.36 or newer; else the rig's own `controlplane` program, from Go modules. kwok comes from its module.
//! The cache is `$FAIRLEAD_CACHE`, or `~/.cache/fairlead`.

mod build;
mod locate;

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// A part of a control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The key-value store behind every cluster of a rig.
    Etcd,
    /// kube-apiserver.
    ApiServer,
    /// kube-controller-manager.
    ControllerManager,
    /// kube-scheduler.
    Scheduler,
    /// Plays the kubelets of nodes that are not there.
    Kwok,
}

impl Part {
    /// The parts of a control plane proper.
    const CONTROL_PLANE: [Self; 4] = [Self::Etcd, Self::ApiServer, Self::ControllerManager, Self::Scheduler];

    /// The program's usual name.
    pub fn program(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kwok => "kwok",
        }
    }
}

/// Where the control-plane programs come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlPlane {
    /// Four ordinary programs in one folder.
    Folder(PathBuf),
    /// The rig's program with a subcommand for each.
    Combined(PathBuf),
}

/// Every program a rig runs.
#[derive(Debug, Clone)]
pub struct Binaries {
    /// etcd, kube-apiserver, kube-controller-manager, kube-scheduler.
    pub control_plane: ControlPlane,
    /// kwok.
    pub kwok: PathBuf,
    /// kubectl.
    pub kubectl: PathBuf,
}

impl Binaries {
    /// Finds the programs; builds what is missing (once: about 10 minutes on 2 cores) with progress on stderr. Blocks.
    ///
    /// Fails when kubectl is missing, or Go is missing and something must be built, and says how to get it.
    pub fn find() -> Result<Self> {
        let kubectl = locate::kubectl()?;
        let cache = cache()?;
        let control_plane = match locate::control_plane() {
            Some(folder) => ControlPlane::Folder(folder),
            None => ControlPlane::Combined(build::control_plane(&cache)?),
        };
        let kwok = match locate::assets_kwok() {
            Some(kwok) => kwok,
            None => build::kwok(&cache)?,
        };
        Ok(Self { control_plane, kwok, kubectl })
    }

    /// The program to run for a part, and the arguments that come before its flags.
    pub fn command(&self, part: Part) -> (PathBuf, Vec<String>) {
        match (&self.control_plane, part) {
            (_, Part::Kwok) => (self.kwok.clone(), Vec::new()),
            (ControlPlane::Folder(folder), part) => (folder.join(part.program()), Vec::new()),
            (ControlPlane::Combined(program), part) => (program.clone(), vec![part.program().to_owned()]),
        }
    }
}

/// helm, built once. Blocks. Only the charts' tests need it.
pub fn helm() -> Result<PathBuf> {
    build::helm(&cache()?)
}

/// The cache folder: `$FAIRLEAD_CACHE`, or `~/.cache/fairlead`.
pub fn cache() -> Result<PathBuf> {
    if let Some(folder) = env::var_os("FAIRLEAD_CACHE").filter(|folder| !folder.is_empty()) {
        return Ok(folder.into());
    }
    let home =
        env::var_os("HOME").context("neither FAIRLEAD_CACHE nor HOME is set: no place for built programs")?;
    Ok(Path::new(&home).join(".cache").join("fairlead"))
}
