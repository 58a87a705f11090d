//! Fairlead's own programs, as cargo built them.

use std::{
    env,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, Result, bail};
use tokio::process::Command;

use crate::rig::Access;

/// Where the programs are.
#[derive(Debug, Clone)]
pub struct Programs {
    /// `fairlead-hub`.
    pub hub: PathBuf,
    /// `fairlead-spoke`.
    pub spoke: PathBuf,
    /// `kubectl-fairlead`.
    pub cli: PathBuf,
}

/// What one run of the command line gave.
#[derive(Debug, Clone)]
pub struct Ran {
    /// Its exit code; -1 when a signal ended it.
    pub code: i32,
    /// What it printed on stdout.
    pub stdout: String,
    /// What it printed on stderr.
    pub stderr: String,
}

impl Programs {
    /// The programs in `FAIRLEAD_BIN_DIR`, or in the profile's folder that this program was built into.
    pub fn find() -> Result<Self> {
        let folder = match env::var_os("FAIRLEAD_BIN_DIR") {
            Some(folder) => PathBuf::from(folder),
            None => beside_me()?,
        };
        let program = |name: &str| {
            let path = folder.join(name);
            if path.is_file() {
                Ok(path)
            } else {
                bail!(
                    "{} is missing: build it with cargo build (cargo xtask does), or set FAIRLEAD_BIN_DIR",
                    path.display()
                )
            }
        };
        Ok(Self {
            hub: program("fairlead-hub")?,
            spoke: program("fairlead-spoke")?,
            cli: program("kubectl-fairlead")?,
        })
    }

    /// Runs `kubectl fairlead` and returns stdout; fails with its message when it fails.
    pub async fn cli(&self, access: &Access, args: &[&str]) -> Result<String> {
        let ran = self.try_cli(access, args).await?;
        if ran.code != 0 {
            bail!("kubectl fairlead {}: exit code {}: {}", args.join(" "), ran.code, ran.stderr.trim());
        }
        Ok(ran.stdout)
    }

    /// Runs `kubectl fairlead`, whatever its exit code.
    pub async fn try_cli(&self, access: &Access, args: &[&str]) -> Result<Ran> {
        run(&self.cli, args.iter().copied(), &[("KUBECONFIG", access.path())]).await
    }
}

/// Runs a program to its end and returns what it said.
pub(crate) async fn run(
    program: &Path,
    args: impl IntoIterator<Item = &str>,
    env: &[(&str, &Path)],
) -> Result<Ran> {
    let output = Command::new(program)
        .args(args)
        .envs(env.iter().map(|(name, value)| (*name, *value)))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .with_context(|| format!("run {}", program.display()))?;
    Ok(Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// The profile's folder: test binaries lie in its `deps`.
fn beside_me() -> Result<PathBuf> {
    let me = env::current_exe().context("where this program is")?;
    let folder = me.parent().context("this program lies in no folder")?;
    Ok(if folder.ends_with("deps") {
        folder.parent().context("no folder above deps")?.to_owned()
    } else {
        folder.to_owned()
    })
}
