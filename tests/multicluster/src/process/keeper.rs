//! Knows every process that was started, and ends them when their owner is gone.
//!
//! Pids go to a file, each with its start time, so that no later process with the same pid is ever touched. A small
//! shell, the warden, holds the read end of a pipe whose write end only the owner has: the kernel closes it however
//! the owner ends, SIGKILL included, and the warden then kills what the file names.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{self, Signal};

use super::{PAUSE, Process, ProcessSpec, pid_of};
use crate::procfs::ProcessId;

/// Waits for a word or the end of its input; without the word `leave` it kills every process of the file of pids that
/// is still the one recorded. The 20th word after the name's bracket in `/proc/PID/stat` is the start time.
const WARDEN: &str = r#"
word=
IFS= read -r word
[ "$word" = leave ] && exit 0
while read -r pid start name; do
    stat=$(cat "/proc/$pid/stat" 2>/dev/null) || continue
    set -f
    set -- ${stat##*) }
    [ "${20}" = "$start" ] && kill -KILL "$pid"
done <"$1"
"#;

/// How long processes get between SIGTERM and SIGKILL when a left rig is ended.
const GRACE: Duration = Duration::from_secs(5);

/// Starts processes, records them, and ends them with the owner.
#[derive(Debug)]
pub struct Keeper {
    pids: PathBuf,
    file: Mutex<File>,
    warden: Mutex<Child>,
    left: AtomicBool,
}

impl Keeper {
    /// Starts a keeper whose file of pids is `pids` in `folder`.
    pub fn start(folder: &Path) -> Result<Arc<Self>> {
        let pids = folder.join("pids");
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&pids)
            .with_context(|| format!("open {}", pids.display()))?;
        let warden = Command::new("sh")
            .args(["-c", WARDEN, "fairlead-warden"])
            .arg(&pids)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("start the warden (sh)")?;
        Ok(Arc::new(Self {
            pids,
            file: Mutex::new(file),
            warden: Mutex::new(warden),
            left: AtomicBool::new(false),
        }))
    }

    /// Starts a process that ends with the owner.
    pub fn spawn(self: &Arc<Self>, spec: ProcessSpec) -> Result<Process> {
        Process::spawn(Arc::clone(self), spec)
    }

    /// The file of pids: a line `PID START NAME` for each process ever started.
    pub fn pids(&self) -> &Path {
        &self.pids
    }

    /// Lets everything run on after the owner's end; [`end_all`] ends it later.
    pub fn leave(&self) {
        self.left.store(true, Ordering::SeqCst);
        let mut warden = self.warden.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut stdin) = warden.stdin.take()
            && let Err(error) = stdin.write_all(b"leave\n")
        {
            tracing::warn!("the warden is gone: {error}");
        }
    }

    /// The pid of the warden.
    pub fn warden(&self) -> u32 {
        self.warden.lock().unwrap_or_else(PoisonError::into_inner).id()
    }

    pub(super) fn left(&self) -> bool {
        self.left.load(Ordering::SeqCst)
    }

    pub(super) fn record(&self, name: &str, id: ProcessId) -> Result<()> {
        let line = format!("{} {} {name}\n", id.pid, id.start);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(line.as_bytes()).with_context(|| format!("write {}", self.pids.display()))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let warden = self.warden.get_mut().unwrap_or_else(PoisonError::into_inner);
        drop(warden.stdin.take());
        if let Err(error) = warden.wait() {
            tracing::warn!("the warden was not waited for: {error}");
        }
    }
}

/// Ends every process that a file of pids names and that still is the one recorded: SIGTERM, 5 s, then SIGKILL.
/// Returns the names of those that it ended.
pub fn end_all(pids: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(pids).with_context(|| format!("read {}", pids.display()))?;
    let alive: Vec<(ProcessId, String)> =
        text.lines().filter_map(parse).filter(|(id, _)| id.alive()).collect();
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        for (id, name) in alive.iter().filter(|(id, _)| id.alive()) {
            if let Err(error) = signal::kill(pid_of(*id)?, signal) {
                tracing::warn!("{signal} to {name}: {error}");
            }
        }
        let start = Instant::now();
        while start.elapsed() < GRACE && alive.iter().any(|(id, _)| id.alive()) {
            std::thread::sleep(PAUSE);
        }
    }
    if let Some((id, name)) = alive.iter().find(|(id, _)| id.alive()) {
        bail!("{name} (pid {}) does not end", id.pid);
    }
    Ok(alive.into_iter().map(|(_, name)| name).collect())
}

fn parse(line: &str) -> Option<(ProcessId, String)> {
    let mut words = line.split_whitespace();
    let id = ProcessId { pid: words.next()?.parse().ok()?, start: words.next()?.parse().ok()? };
    Some((id, words.next()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rig::folder::Folder;

    /// Not a test by itself: the owner that the next test kills.
    #[test]
    #[ignore = "run by the_owners_end_by_sigkill_ends_its_processes"]
    fn owner_to_be_killed() {
        let Some(folder) = std::env::var_os("FAIRLEAD_TEST_OWNER") else {
            return;
        };
        let folder = Path::new(&folder);
        let keeper = Keeper::start(folder).unwrap();
        let spec = ProcessSpec::new("sleeper", "sleep", ["600"], folder.join("sleeper.log"));
        let process = keeper.spawn(spec).unwrap();
        fs::write(folder.join("started"), process.pid().to_string()).unwrap();
        std::thread::sleep(Duration::from_secs(600));
    }

    #[test]
    fn the_owners_end_by_sigkill_ends_its_processes() {
        let folder = Folder::create(None, "owner").unwrap();
        let mut owner = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process::keeper::tests::owner_to_be_killed", "--ignored"])
            .env("FAIRLEAD_TEST_OWNER", folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let started = folder.path().join("started");
        within_a_minute(|| fs::read_to_string(&started).is_ok_and(|pid| !pid.is_empty()));
        let id = ProcessId::of(fs::read_to_string(&started).unwrap().parse().unwrap()).unwrap();
        assert!(id.alive());
        owner.kill().unwrap();
        owner.wait().unwrap();
        within_a_minute(|| !id.alive());
    }

    fn within_a_minute(holds: impl Fn() -> bool) {
        let start = Instant::now();
        while !holds() {
            assert!(start.elapsed() < Duration::from_secs(60), "not within a minute");
            std::thread::sleep(PAUSE);
        }
    }

    #[test]
    fn the_warden_kills_what_is_recorded_and_nothing_else() {
        let folder = Folder::create(None, "keeper").unwrap();
        let keeper = Keeper::start(folder.path()).unwrap();
        let mut mine = Command::new("sleep").arg("600").spawn().unwrap();
        let mut foreign = Command::new("sleep").arg("600").spawn().unwrap();
        let id = ProcessId::of(mine.id()).unwrap();
        let other = ProcessId::of(foreign.id()).unwrap();
        keeper.record("mine", id).unwrap();
        // As if the pid had been taken over by a later process.
        keeper.record("foreign", ProcessId { start: other.start + 1, ..other }).unwrap();
        drop(keeper);
        assert!(!id.alive());
        assert!(other.alive());
        foreign.kill().unwrap();
        foreign.wait().unwrap();
        mine.wait().unwrap();
    }
}
