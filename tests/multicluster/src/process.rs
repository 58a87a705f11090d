//! A program that the rig runs: its log, its signals, its end.
//!
//! Every process is started through a [`Keeper`], so that none outlives the rig's owner: not after a panic, and not
//! when the owner is killed.

mod keeper;

use std::{
    fs::{self, OpenOptions},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use nix::{sys::signal, unistd::Pid};

pub use keeper::{Keeper, end_all};
pub use nix::sys::signal::Signal;

use crate::procfs::{self, ProcessId, Usage};

/// Pause between two looks at whether a process has ended.
const PAUSE: Duration = Duration::from_millis(10);

/// What to run.
#[derive(Debug, Clone)]
pub struct ProcessSpec {
    /// Name in messages and in the file of pids: no spaces.
    pub name: String,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables set in addition to the owner's.
    pub env: Vec<(String, String)>,
    /// File that receives stdout and stderr; a restart appends.
    pub log: PathBuf,
}

impl ProcessSpec {
    /// A program with arguments and the file for its output.
    pub fn new(
        name: impl Into<String>,
        program: impl Into<PathBuf>,
        args: impl IntoIterator<Item = impl Into<String>>,
        log: impl Into<PathBuf>,
    ) -> Self {
        Self {
            name: name.into(),
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            log: log.into(),
        }
    }

    /// Sets a variable for it, replacing an earlier value.
    #[must_use]
    pub fn env(mut self, key: &str, value: impl Into<String>) -> Self {
        self.set_env(key, value);
        self
    }

    /// As [`ProcessSpec::env`], in place.
    pub fn set_env(&mut self, key: &str, value: impl Into<String>) {
        self.env.retain(|(name, _)| name != key);
        self.env.push((key.to_owned(), value.into()));
    }
}

/// A started program. Dropping it kills it, unless its keeper was told to leave everything running.
#[derive(Debug)]
pub struct Process {
    keeper: Arc<Keeper>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    spec: ProcessSpec,
    child: Child,
    id: ProcessId,
}

impl Process {
    fn spawn(keeper: Arc<Keeper>, spec: ProcessSpec) -> Result<Self> {
        let state = State::start(&keeper, spec)?;
        Ok(Self { keeper, state: Mutex::new(state) })
    }

    /// The name it was given.
    pub fn name(&self) -> String {
        self.state().spec.name.clone()
    }

    /// Its pid (of the latest start).
    pub fn pid(&self) -> u32 {
        self.state().id.pid
    }

    /// Its pid and start time.
    pub fn id(&self) -> ProcessId {
        self.state().id
    }

    /// Where its output goes.
    pub fn log(&self) -> PathBuf {
        self.state().spec.log.clone()
    }

    /// The last `lines` lines of its output, for messages.
    pub fn log_tail(&self, lines: usize) -> String {
        let text = fs::read(self.log()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let all: Vec<&str> = text.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }

    /// Sends a signal: `SIGKILL`, `SIGTERM`, `SIGSTOP`, `SIGCONT`. Fails when it has ended.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let mut state = self.state();
        if state.child.try_wait()?.is_some() {
            bail!("{} has ended", state.spec.name);
        }
        signal::kill(pid_of(state.id)?, signal).with_context(|| format!("{signal} to {}", state.spec.name))
    }

    /// Its exit status, once it has ended.
    pub fn exited(&self) -> Result<Option<ExitStatus>> {
        Ok(self.state().child.try_wait()?)
    }

    /// Waits for its end, at most `bound`. `None`: it still runs.
    pub async fn wait(&self, bound: Duration) -> Result<Option<ExitStatus>> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.exited()? {
                return Ok(Some(status));
            }
            if start.elapsed() >= bound {
                return Ok(None);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Asks it to end with SIGTERM, kills it after `grace`, and returns how it ended.
    pub async fn stop(&self, grace: Duration) -> Result<ExitStatus> {
        if self.exited()?.is_none() {
            self.signal(Signal::SIGTERM)?;
        }
        if let Some(status) = self.wait(grace).await? {
            return Ok(status);
        }
        self.kill()
    }

    /// Kills it with SIGKILL and returns how it ended. Does nothing to one that has ended.
    pub fn kill(&self) -> Result<ExitStatus> {
        self.state().kill()
    }

    /// Kills it when it still runs, lets `change` alter what is run, and starts it again.
    pub fn restart_with(&self, change: impl FnOnce(&mut ProcessSpec)) -> Result<()> {
        let mut state = self.state();
        state.kill()?;
        let mut spec = state.spec.clone();
        change(&mut spec);
        *state = State::start(&self.keeper, spec)?;
        Ok(())
    }

    /// Kills it when it still runs and starts it again unchanged.
    pub fn restart(&self) -> Result<()> {
        self.restart_with(|_| {})
    }

    /// CPU time and memory since its latest start.
    pub fn usage(&self) -> Result<Usage> {
        procfs::usage(self.pid())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.keeper.left() {
            return;
        }
        if let Err(error) = self.kill() {
            tracing::warn!("{}: not ended: {error:#}", self.name());
        }
    }
}

impl State {
    fn start(keeper: &Keeper, spec: ProcessSpec) -> Result<Self> {
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&spec.log)
            .with_context(|| format!("open {}", spec.log.display()))?;
        let child = Command::new(&spec.program)
            .args(&spec.args)
            .envs(spec.env.iter().map(|(key, value)| (key, value)))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            // Its own group: Ctrl-C at the terminal is for the owner, which ends the rest in order.
            .process_group(0)
            .spawn()
            .with_context(|| format!("start {} ({})", spec.name, spec.program.display()))?;
        let id = ProcessId::of(child.id())?;
        keeper.record(&spec.name, id)?;
        Ok(Self { spec, child, id })
    }

    fn kill(&mut self) -> Result<ExitStatus> {
        if let Some(status) = self.child.try_wait()? {
            return Ok(status);
        }
        self.child.kill()?;
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(10) {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(PAUSE);
        }
        bail!("{} (pid {}) does not end", self.spec.name, self.id.pid)
    }
}

fn pid_of(id: ProcessId) -> Result<Pid> {
    Ok(Pid::from_raw(i32::try_from(id.pid)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rig::folder::Folder;

    fn sleeper(keeper: &Arc<Keeper>, folder: &Folder) -> Process {
        let spec = ProcessSpec::new("sleeper", "sleep", ["600"], folder.path().join("sleeper.log"));
        keeper.spawn(spec).unwrap()
    }

    #[tokio::test]
    async fn signals_waits_and_restarts() {
        let folder = Folder::create(None, "process").unwrap();
        let keeper = Keeper::start(folder.path()).unwrap();
        let process = sleeper(&keeper, &folder);
        let first = process.id();
        process.signal(Signal::SIGSTOP).unwrap();
        process.signal(Signal::SIGCONT).unwrap();
        assert!(process.wait(Duration::ZERO).await.unwrap().is_none());
        process.stop(Duration::from_secs(10)).await.unwrap();
        assert!(!first.alive());
        assert!(process.signal(Signal::SIGTERM).is_err(), "no signal to a pid that may be another's");
        process.restart_with(|spec| spec.set_env("A", "b")).unwrap();
        assert!(process.id().alive() && process.id() != first);
    }

    #[test]
    fn drop_ends_it() {
        let folder = Folder::create(None, "process").unwrap();
        let keeper = Keeper::start(folder.path()).unwrap();
        let process = sleeper(&keeper, &folder);
        let id = process.id();
        drop(process);
        assert!(!id.alive());
    }

    #[test]
    fn what_is_left_can_be_ended_later_by_its_file_of_pids() {
        let folder = Folder::create(None, "process").unwrap();
        let keeper = Keeper::start(folder.path()).unwrap();
        let process = sleeper(&keeper, &folder);
        let id = process.id();
        keeper.leave();
        drop(process);
        assert!(id.alive());
        assert_eq!(end_all(keeper.pids()).unwrap(), vec!["sleeper".to_owned()]);
        assert!(!id.alive());
        assert_eq!(end_all(keeper.pids()).unwrap(), Vec::<String>::new());
    }
}
