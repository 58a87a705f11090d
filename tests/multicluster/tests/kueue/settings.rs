//! Configuration files for hubs of their own.

use std::{
    fs,
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// A configuration file; it goes with this value.
pub(crate) struct File(PathBuf);

impl File {
    /// Its path.
    pub(crate) fn path(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.0));
    }
}

/// Writes a configuration with these keys.
pub(crate) fn file(keys: &Value) -> Result<File> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut all = json!({"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"});
    if let (Some(all), Some(keys)) = (all.as_object_mut(), keys.as_object()) {
        all.extend(keys.clone());
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("fairlead-life-{}-{number}.yaml", std::process::id());
    let file = File(std::env::temp_dir().join(name));
    fs::write(&file.0, all.to_string()).with_context(|| format!("write {}", file.path()))?;
    Ok(file)
}
