//! Programs that are already on the machine.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::Part;

/// The oldest Kubernetes whose API the tests need: admission policies that mutate are served from 1.36.
const OLDEST: (u32, u32) = (1, 36);

/// kubectl, from `PATH`.
pub(super) fn kubectl() -> Result<PathBuf> {
    on_path("kubectl").context(
        "kubectl is not on PATH: install it from your distribution, or as kubernetes.io/docs/tasks/tools says",
    )
}

/// Go, from `PATH`.
pub(super) fn go() -> Result<PathBuf> {
    on_path("go").context(
        "Go is not on PATH, and control planes have to be built: install Go 1.26 or newer as go.dev/doc/install says, \
         or set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver, kube-controller-manager and kube-scheduler \
         of Kubernetes 1.36 or newer",
    )
}

/// The first folder of `KUBEBUILDER_ASSETS` and `PATH` that holds all four programs, recent enough.
pub(super) fn control_plane() -> Option<PathBuf> {
    folders().into_iter().find(|folder| is_complete(folder))
}

/// kwok, when it lies beside the assets or on `PATH` at the version that the rig is written for.
pub(super) fn assets_kwok() -> Option<PathBuf> {
    let wanted = super::build::KWOK_VERSION;
    let right = |program: &PathBuf| says(program).is_some_and(|text| text.contains(wanted));
    folders().into_iter().map(|folder| folder.join(Part::Kwok.program())).find(right)
}

fn folders() -> Vec<PathBuf> {
    let assets = env::var_os("KUBEBUILDER_ASSETS").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let path = env::var_os("PATH").unwrap_or_default();
    assets.into_iter().chain(env::split_paths(&path)).collect()
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

fn is_complete(folder: &Path) -> bool {
    Part::CONTROL_PLANE.iter().all(|part| folder.join(part.program()).is_file())
        && Part::CONTROL_PLANE
            .iter()
            .filter(|part| **part != Part::Etcd)
            .all(|part| version(&folder.join(part.program())).is_some_and(|found| found >= OLDEST))
}

/// Major and minor version that a Kubernetes program reports.
fn version(program: &Path) -> Option<(u32, u32)> {
    parse_version(&says(program)?)
}

/// What a program answers to `--version`; `None` when it cannot be run.
fn says(program: &Path) -> Option<String> {
    if !program.is_file() {
        return None;
    }
    let output = Command::new(program).arg("--version").output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split_whitespace().find_map(|word| word.strip_prefix('v'))?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;
    use crate::rig::folder::Folder;

    fn assets(version: &str, programs: &[&str]) -> Folder {
        let folder = Folder::create(None, "assets").unwrap();
        for program in programs {
            let file = folder.path().join(program);
            fs::write(&file, format!("#!/bin/sh\necho Kubernetes {version}\n")).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        folder
    }

    const ALL: [&str; 4] = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];

    #[test]
    fn takes_a_folder_only_when_all_four_are_there_and_recent() {
        assert!(is_complete(assets("v1.36.0", &ALL).path()));
        assert!(is_complete(assets("v2.0.0-alpha.1", &ALL).path()));
        assert!(!is_complete(assets("v1.35.9", &ALL).path()));
        assert!(!is_complete(assets("v1.36.0", &ALL[..3]).path()));
        assert!(!is_complete(assets("(devel)", &ALL).path()));
    }
}
