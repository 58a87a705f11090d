//! Building programs from Go modules, once, into the cache.
//!
//! A program is built under a temporary name and renamed, so that the cache holds whole ones only; a file lock keeps
//! two processes from building at the same time.

use std::{
    fs::{self, File},
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use super::locate;

/// The kwok that the rig's stages are written for.
pub(super) const KWOK_VERSION: &str = "v0.7.0";

/// A helm that the charts are written for.
const HELM_VERSION: &str = "v3.19.4";

/// Without a version the API server reports one that clients cannot parse.
const CONTROL_PLANE_LDFLAGS: &str = "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3 \
     -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36";

/// Builds take 7 and 2 minutes on 2 cores; one that takes this long hangs.
const BOUND: Duration = Duration::from_secs(45 * 60);

/// The rig's `controlplane` program, keyed by its sources.
pub(super) fn control_plane(cache: &Path) -> Result<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("rig/controlplane");
    let program = cache.join("bin").join(format!("controlplane-{}", source_key(&source)?));
    once(&program, |temporary| {
        let mut go = Command::new(locate::go()?);
        go.args(["build", "-trimpath", "-buildvcs=false", "-ldflags", CONTROL_PLANE_LDFLAGS, "-o"])
            .arg(temporary)
            .arg(".")
            .current_dir(&source);
        run("Kubernetes control planes (once, about 7 minutes)", &mut go)
    })?;
    Ok(program)
}

/// kwok, keyed by its version.
pub(super) fn kwok(cache: &Path) -> Result<PathBuf> {
    let folder = cache.join("bin").join(format!("kwok-{KWOK_VERSION}"));
    once(&folder, |temporary| {
        let mut go = Command::new(locate::go()?);
        go.args(["install", "-trimpath", "-ldflags", "-s -w"])
            .arg(format!("sigs.k8s.io/kwok/cmd/kwok@{KWOK_VERSION}"))
            .env("GOBIN", temporary);
        run("kwok (once, about 2 minutes)", &mut go)
    })?;
    Ok(folder.join("kwok"))
}

/// helm, keyed by its version.
pub(super) fn helm(cache: &Path) -> Result<PathBuf> {
    let folder = cache.join("bin").join(format!("helm-{HELM_VERSION}"));
    once(&folder, |temporary| {
        let mut go = Command::new(locate::go()?);
        go.args(["install", "-trimpath", "-ldflags", "-s -w"])
            .arg(format!("helm.sh/helm/v3/cmd/helm@{HELM_VERSION}"))
            .env("GOBIN", temporary);
        run("helm (once, about 3 minutes)", &mut go)
    })?;
    Ok(folder.join("helm"))
}

/// Makes `target` by `build`, which is given a temporary path on the same file system, unless it is there.
fn once(target: &Path, build: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if target.exists() {
        return Ok(());
    }
    let folder = target.parent().context("no folder to build into")?;
    fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    let lock = File::create(folder.join(".lock")).context("open the cache's lock")?;
    if lock.try_lock().is_err() {
        say(&format!("waiting for another process to build into {}", folder.display()))?;
        lock.lock().context("lock the cache")?;
    }
    if target.exists() {
        return Ok(());
    }
    let name = target.file_name().context("no name to build")?.to_string_lossy();
    let temporary = folder.join(format!(".{name}.{}", std::process::id()));
    build(&temporary)?;
    fs::rename(&temporary, target).with_context(|| format!("move into {}", target.display()))
}

/// Hash of go.mod, go.sum, every Go source and the linker's flags: the first 16 hex digits.
fn source_key(folder: &Path) -> Result<String> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .with_context(|| format!("read {}", folder.display()))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.retain(|file| file.extension().is_some_and(|end| end == "go" || end == "mod" || end == "sum"));
    files.sort();
    let mut hash = Sha256::new();
    hash.update(CONTROL_PLANE_LDFLAGS);
    for file in files {
        let text = fs::read(&file).with_context(|| format!("read {}", file.display()))?;
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        hash.update(format!("\n{name} {}\n", text.len()));
        hash.update(text);
    }
    Ok(hex::encode(hash.finalize()).chars().take(16).collect())
}

/// Runs a build, says every few seconds how long it has taken, and shows its messages when it fails.
fn run(what: &str, command: &mut Command) -> Result<()> {
    let mut messages = tempfile()?;
    let mut child = command
        .env("CGO_ENABLED", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(messages.try_clone()?)
        .spawn()
        .with_context(|| format!("start the build of {what}"))?;
    let start = Instant::now();
    let mut progress = Progress::new(what);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if start.elapsed() > BOUND {
            child.kill()?;
            child.wait()?;
            bail!("building {what} took more than {} minutes", BOUND.as_secs() / 60);
        }
        progress.show(start.elapsed())?;
        std::thread::sleep(Duration::from_millis(200));
    };
    progress.end(start.elapsed())?;
    if !status.success() {
        bail!("building {what} failed ({status}):\n{}", read_back(&mut messages)?);
    }
    Ok(())
}

fn say(line: &str) -> Result<()> {
    Ok(writeln!(std::io::stderr().lock(), "{line}")?)
}

struct Progress {
    what: String,
    terminal: bool,
    shown: Option<u64>,
}

impl Progress {
    fn new(what: &str) -> Self {
        Self { what: what.to_owned(), terminal: std::io::stderr().is_terminal(), shown: None }
    }

    /// One line that counts seconds at a terminal, a line every 15 s in a log.
    fn show(&mut self, elapsed: Duration) -> Result<()> {
        let step = if self.terminal { 1 } else { 15 };
        let now = elapsed.as_secs() / step;
        if self.shown == Some(now) {
            return Ok(());
        }
        self.shown = Some(now);
        self.line(elapsed, if self.terminal { "" } else { "\n" })
    }

    fn end(&self, elapsed: Duration) -> Result<()> {
        self.line(elapsed, "\n")
    }

    fn line(&self, elapsed: Duration, end: &str) -> Result<()> {
        let start = if self.terminal { "\r" } else { "" };
        let mut out = std::io::stderr().lock();
        write!(out, "{start}building {}: {} s{end}", self.what, elapsed.as_secs())?;
        Ok(out.flush()?)
    }
}

/// A file without a name for a build's messages.
fn tempfile() -> Result<File> {
    let path = std::env::temp_dir().join(format!("fairlead-build-{}", std::process::id()));
    let file = File::options().create(true).truncate(true).read(true).write(true).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

fn read_back(file: &mut File) -> Result<String> {
    use std::io::{Read, Seek};
    file.rewind()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rig::folder::Folder;

    #[test]
    fn builds_once_and_leaves_nothing_half_done() {
        let folder = Folder::create(None, "cache").unwrap();
        let target = folder.path().join("bin/program");
        once(&target, |_| bail!("no compiler")).unwrap_err();
        assert!(!target.exists());
        once(&target, |temporary| Ok(fs::write(temporary, "whole")?)).unwrap();
        once(&target, |_| bail!("built a second time")).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "whole");
    }

    #[test]
    fn every_source_changes_the_key() {
        let folder = Folder::create(None, "sources").unwrap();
        let key = || source_key(folder.path()).unwrap();
        let mut keys = vec![key()];
        for name in ["go.mod", "go.sum", "a.go", "b.go"] {
            fs::write(folder.path().join(name), "x").unwrap();
            keys.push(key());
        }
        fs::write(folder.path().join("README.md"), "x").unwrap();
        assert_eq!(keys.last(), Some(&key()));
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 5);
    }

    #[test]
    fn a_failed_build_shows_the_compilers_words() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo undefined: gang >&2; exit 1"]);
        let error = run("a test", &mut command).unwrap_err().to_string();
        assert!(error.contains("undefined: gang"), "{error}");
    }
}
