//! Generated manifests: what `cargo xtask crds` writes below `charts/`.
//!
//! The files are plain YAML without templating, so `kubectl apply` takes them as they are, and helm too: what needs values
//! (the Deployment and what belongs to it) is written by hand beside them. A test fails when the
//! committed files and this module differ.

mod admission;
mod crds;
mod definitions;
mod guards;
mod job_annotations;
mod rbac;
mod roles;
mod tidy;
mod yaml;

use std::io;
use std::path::Path;

use serde_json::Value;

pub use admission::admission_policies;
pub use crds::{hub_crds, spoke_crds};

/// A generated file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path below the charts folder, with `/` between parts.
    pub path: String,
    /// Its whole text.
    pub text: String,
}

/// Where the hub's chart keeps its templates, below the charts folder.
pub const HUB_TEMPLATES: &str = "fairlead-hub/templates";
/// Where the spoke's chart keeps its templates, below the charts folder.
pub const SPOKE_TEMPLATES: &str = "fairlead-spoke/templates";

/// Every definition as (path below the charts folder, YAML).
pub fn crds() -> Vec<(String, String)> {
    let files = |folder: &'static str, definitions: Vec<Value>| {
        definitions.into_iter().map(move |definition| {
            let name =
                definition.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
            (format!("{folder}/crds/{name}.yaml"), yaml::document("", &definition))
        })
    };
    files(HUB_TEMPLATES, hub_crds()).chain(files(SPOKE_TEMPLATES, spoke_crds())).collect()
}

/// Every generated file, in the order of its path.
pub fn files() -> Vec<File> {
    let policies = admission_policies()
        .into_iter()
        .map(|(name, text)| (format!("{HUB_TEMPLATES}/admission/{name}.yaml"), text));
    let rbac = [
        // Beside the templates: helm makes the namespace itself.
        ("fairlead-hub/namespace.yaml".to_owned(), rbac::namespace()),
        ("fairlead-spoke/namespace.yaml".to_owned(), rbac::namespace()),
        (format!("{HUB_TEMPLATES}/rbac.yaml"), rbac::hub()),
        (format!("{HUB_TEMPLATES}/roles.yaml"), roles::people()),
        (format!("{SPOKE_TEMPLATES}/rbac.yaml"), rbac::spoke()),
        ("fairlead-spoke/examples/tenant.yaml".to_owned(), rbac::tenant_example()),
    ];
    let mut files: Vec<File> =
        crds().into_iter().chain(policies).chain(rbac).map(|(path, text)| File { path, text }).collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// Writes every generated file below `charts`, and returns the paths of those that were changed.
///
/// # Errors
///
/// Whatever the file system says.
pub fn write(charts: &Path) -> io::Result<Vec<String>> {
    let mut changed = Vec::new();
    for file in stale(charts)? {
        let path = charts.join(&file.path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&path, &file.text)?;
        changed.push(file.path);
    }
    Ok(changed)
}

/// The generated files that are missing below `charts` or have another text there.
///
/// # Errors
///
/// Whatever the file system says, other than that a file is missing.
pub fn stale(charts: &Path) -> io::Result<Vec<File>> {
    let mut stale = Vec::new();
    for file in files() {
        match std::fs::read_to_string(charts.join(&file.path)) {
            Ok(text) if text == file.text => {}
            Ok(_) => stale.push(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => stale.push(file),
            Err(error) => return Err(error),
        }
    }
    Ok(stale)
}
