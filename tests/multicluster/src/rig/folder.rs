//! The folder of a rig or a test: made fresh, removed at the end unless someone will want to look at it.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
};

use anyhow::{Context, Result};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A folder of its own. Dropping it removes it, unless it was kept or the thread is panicking.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    keep: AtomicBool,
}

impl Folder {
    /// Makes `NAME-PID-N` under `root` (the system's folder for temporary files when absent).
    pub(crate) fn create(root: Option<&Path>, name: &str) -> Result<Self> {
        let root = root.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = root.join(format!("fairlead-{name}-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("make {}", path.display()))?;
        let keep = AtomicBool::new(std::env::var_os("FAIRLEAD_RIG_KEEP").is_some());
        Ok(Self { path, keep })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves it in place at the end.
    pub(crate) fn keep(&self) {
        self.keep.store(true, Ordering::SeqCst);
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.keep.load(Ordering::SeqCst) || std::thread::panicking() {
            return;
        }
        if let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::warn!("{}: not removed: {error}", self.path.display());
        }
    }
}
