//! Calls of cargo, always over the whole workspace.
//!
//! Cargo unifies features over the packages that one call selects. Calls over single packages would build the large
//! dependencies again with other features, so everything here selects the workspace and then runs what was built.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use cargo_metadata::{MetadataCommand, TargetKind};

/// What development builds have on top: named points at which hub and agent kill themselves when a test arms them.
/// They do nothing otherwise. Release builds are without.
const DEV_FEATURES: &str = "fairlead-hub/crash-points,fairlead-spoke/crash-points";

/// The workspace, as cargo knows it.
#[derive(Debug)]
pub(crate) struct Cargo {
    root: PathBuf,
    target: PathBuf,
    integration_tests: Vec<(String, String)>,
}

impl Cargo {
    /// Asks cargo about the workspace at `root`.
    pub(crate) fn of(root: &Path) -> Result<Self> {
        let metadata = MetadataCommand::new()
            .manifest_path(root.join("Cargo.toml"))
            .no_deps()
            .exec()
            .context("cargo metadata")?;
        let mut integration_tests = Vec::new();
        for package in metadata.workspace_packages() {
            let tests = package.targets.iter().filter(|target| target.kind.contains(&TargetKind::Test));
            integration_tests.extend(tests.map(|target| (package.name.to_string(), target.name.clone())));
        }
        Ok(Self {
            root: root.to_path_buf(),
            target: metadata.target_directory.into_std_path_buf(),
            integration_tests,
        })
    }

    /// The workspace's root.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Arguments that select the integration tests of which `wanted(package, test)` holds.
    pub(crate) fn select_tests(&self, wanted: impl Fn(&str, &str) -> bool) -> Vec<&str> {
        let chosen = self.integration_tests.iter().filter(|(package, test)| wanted(package, test));
        chosen.flat_map(|(_, test)| ["--test", test.as_str()]).collect()
    }

    /// `cargo COMMAND --workspace ARGS`, in the development profile with its features.
    pub(crate) fn workspace(&self, command: &str, args: &[&str]) -> Command {
        let mut cargo = self.command(command);
        cargo.args(["--workspace", "--features", DEV_FEATURES]).args(args);
        cargo
    }

    /// `cargo COMMAND`.
    pub(crate) fn command(&self, command: &str) -> Command {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(&self.root).arg(command);
        cargo
    }

    /// Builds these targets of the whole workspace for development: `--bins`, for example.
    pub(crate) fn build(&self, targets: &[&str]) -> Result<()> {
        run(&mut self.workspace("build", targets))
    }

    /// Builds Fairlead's programs and the benches as they are shipped.
    pub(crate) fn build_release(&self) -> Result<()> {
        let mut cargo = self.command("build");
        cargo.args(["--release", "--bins"]);
        for package in ["fairlead-hub", "fairlead-spoke", "kubectl-fairlead", "fairlead-multicluster"] {
            cargo.args(["--package", package]);
        }
        run(&mut cargo)
    }

    /// Where a program lies when it was built: `PROFILE/NAME` below the target folder, for example `debug/demo`.
    pub(crate) fn path(&self, program: &str) -> PathBuf {
        self.target.join(program)
    }

    /// A program that was built.
    pub(crate) fn program(&self, program: &str) -> Command {
        let mut command = Command::new(self.path(program));
        command.current_dir(&self.root);
        command
    }
}

/// Runs a command with our own input and output; fails when it does.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    let status = command.status().with_context(|| format!("start {shown}"))?;
    if !status.success() {
        bail!("{shown}: {status}");
    }
    Ok(())
}

/// The command as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_name().unwrap_or_else(|| command.get_program());
    let words = std::iter::once(name).chain(command.get_args()).map(OsStr::to_string_lossy);
    words.map(|word| quoted(&word)).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=/.,:@+".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{word}'") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_shown_as_typed() {
        let mut command = Command::new("/usr/bin/cargo");
        command.args(["test", "--features", "a/b", "two words"]);
        assert_eq!(shown(&command), "cargo test --features a/b 'two words'");
    }

    #[test]
    fn a_command_that_fails_is_named() {
        let error = run(Command::new("sh").args(["-c", "exit 3"])).unwrap_err().to_string();
        assert!(error.contains("sh -c 'exit 3'") && error.contains('3'), "{error}");
        assert!(run(&mut Command::new("/nonexistent/program")).is_err());
    }

    #[test]
    fn integration_tests_are_selected_by_package_and_name() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let cargo = Cargo::of(root).unwrap();
        let e2e = cargo.select_tests(|package, test| package == "fairlead-multicluster" && test == "e2e");
        assert_eq!(e2e, ["--test", "e2e"]);
        assert!(cargo.select_tests(|package, _| package == "no-such").is_empty());
    }
}
