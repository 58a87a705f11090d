//! Where a demo keeps its things: `.fairlead/demo` in the checkout, which git ignores.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::fleet::{Fleet, HUB, Spoke};
use crate::process::end_all;

/// The demo's folder.
#[derive(Clone, Debug)]
pub(super) struct Place(PathBuf);

impl Place {
    /// That of this checkout.
    pub(super) fn of_this_checkout() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        Self(root.canonicalize().unwrap_or(root).join(".fairlead/demo"))
    }

    /// The folder.
    pub(super) fn folder(&self) -> &Path {
        &self.0
    }

    /// The file that names the file of pids of a demo that was kept.
    fn kept(&self) -> PathBuf {
        self.0.join("kept")
    }

    /// Makes the folder anew, and keeps others from doing so while the answer lives. Refuses beside a demo that runs
    /// or was kept.
    pub(super) fn make(&self) -> Result<File> {
        let parent = self.0.parent().context("the demo's folder lies in no folder")?;
        fs::create_dir_all(parent).with_context(|| format!("make {}", parent.display()))?;
        let lock = File::create(self.0.with_extension("lock")).context("open the demo's lock")?;
        if self.kept().exists() {
            bail!("a demo is running already; end it with: cargo xtask demo down");
        }
        if lock.try_lock().is_err() {
            bail!("a demo is running already, in another terminal");
        }
        self.clear()?;
        fs::create_dir_all(&self.0).with_context(|| format!("make {}", self.0.display()))?;
        Ok(lock)
    }

    /// Removes the folder.
    pub(super) fn clear(&self) -> Result<()> {
        match fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("remove {}", self.0.display()))
            }
            _ => Ok(()),
        }
    }

    /// Writes what a person needs to look around: kubeconfigs, the programs, and a file to source.
    pub(super) fn publish(&self, fleet: &Fleet) -> Result<()> {
        fs::copy(fleet.hub_cluster()?.admin().path(), self.kubeconfig(HUB))?;
        for spoke in fleet.spokes() {
            fs::copy(fleet.spoke_cluster(spoke.name())?.admin().path(), self.kubeconfig(spoke.name()))?;
        }
        let bin = self.0.join("bin");
        fs::create_dir_all(&bin)?;
        let programs = fleet.programs();
        for program in [&programs.hub, &programs.spoke, &programs.cli] {
            symlink(program, bin.join(program.file_name().context("a program without a name")?))?;
        }
        let (kubeconfig, bin) = (self.kubeconfig(HUB), bin.display());
        let env = format!(
            "export KUBECONFIG='{}'
export PATH='{bin}':\"$PATH\"
",
            kubeconfig.display()
        );
        fs::write(self.0.join("env"), env).context("write env")
    }

    fn kubeconfig(&self, cluster: &str) -> PathBuf {
        self.0.join(format!("{cluster}.kubeconfig"))
    }

    /// What to type to look around.
    pub(super) fn hint(&self) -> String {
        format!(". {}/env", self.0.display())
    }

    /// The kubeconfig of each cluster.
    pub(super) fn kubeconfigs(&self, fleet: &Fleet) -> String {
        let mut lines = vec!["kubeconfigs:".to_owned()];
        for cluster in std::iter::once(HUB).chain(fleet.spokes().map(Spoke::name)) {
            lines.push(format!("  {cluster:<10} {}", self.kubeconfig(cluster).display()));
        }
        lines.join("\n")
    }

    /// Lets the fleet run on, and remembers how to end it.
    pub(super) fn leave(&self, fleet: Fleet) -> Result<()> {
        let pids = fleet.leave();
        fs::write(self.kept(), pids.display().to_string()).context("write where the pids are")
    }

    /// Ends a demo that was kept, and returns how many processes it had.
    pub(super) fn down(&self) -> Result<usize> {
        let Ok(pids) = fs::read_to_string(self.kept()) else {
            return Ok(0);
        };
        let ended = if Path::new(&pids).exists() { end_all(Path::new(&pids))?.len() } else { 0 };
        self.clear()?;
        Ok(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Keeper, ProcessSpec};
    use crate::rig::folder::Folder;

    #[test]
    fn what_was_kept_is_ended_once_and_nothing_starts_beside_it() {
        let folder = Folder::create(None, "place").unwrap();
        let place = Place(folder.path().join("demo"));
        let lock = place.make().unwrap();
        assert!(place.make().unwrap_err().to_string().contains("another terminal"));
        drop(lock);
        let keeper = Keeper::start(&place.0).unwrap();
        let sleeper = ProcessSpec::new("sleeper", "sleep", ["600"], place.0.join("log"));
        let process = keeper.spawn(sleeper).unwrap();
        let id = process.id();
        keeper.leave();
        fs::write(place.kept(), keeper.pids().display().to_string()).unwrap();
        drop(process);
        assert!(place.make().unwrap_err().to_string().contains("demo down"));
        assert_eq!(place.down().unwrap(), 1);
        assert!(!id.alive() && !place.0.exists());
        assert_eq!(place.down().unwrap(), 0);
        place.make().unwrap();
    }
}
