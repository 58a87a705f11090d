//! What a process has used, and whether it is still the same one, from `/proc`.

use std::{fs, time::Duration};

use anyhow::{Context, Result};

/// Ticks of `utime`, `stime` and `starttime` in a second: the same on every Linux that Rust supports.
const TICKS_A_SECOND: u64 = 100;

/// A process, told apart from a later one with the same pid by when it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessId {
    /// The pid.
    pub pid: u32,
    /// Start time in clock ticks since boot (`starttime` of `/proc/PID/stat`).
    pub start: u64,
}

impl ProcessId {
    /// The process that has this pid now.
    pub fn of(pid: u32) -> Result<Self> {
        Ok(Self { pid, start: read(pid)?.start })
    }

    /// True while that very process exists and is not a zombie.
    pub fn alive(self) -> bool {
        read(self.pid).is_ok_and(|stat| stat.start == self.start && stat.state != 'Z')
    }
}

/// What a process has used since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// User and system time together, in steps of 10 ms.
    pub cpu: Duration,
    /// Resident memory now, in bytes.
    pub resident: u64,
}

/// CPU time and resident memory of a process. Fails when it is gone.
pub fn usage(pid: u32) -> Result<Usage> {
    let stat = read(pid)?;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).context("read process status")?;
    let resident = resident_kib(&status).unwrap_or_default() * 1024;
    Ok(Usage { cpu: Duration::from_millis(stat.cpu_ticks * 1000 / TICKS_A_SECOND), resident })
}

struct Stat {
    state: char,
    start: u64,
    cpu_ticks: u64,
}

fn read(pid: u32) -> Result<Stat> {
    let text =
        fs::read_to_string(format!("/proc/{pid}/stat")).with_context(|| format!("no process {pid}"))?;
    parse(&text).with_context(|| format!("unreadable /proc/{pid}/stat"))
}

/// Parses a `stat` line. The program's name may hold spaces and brackets, so fields are counted from its last bracket.
fn parse(text: &str) -> Option<Stat> {
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        cpu_ticks: number(14)? + number(15)?,
        start: number(22)?,
    })
}

fn resident_kib(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_shift_fields() {
        let line = "42 (a ) b) R 1 42 42 0 -1 4194560 100 0 0 0 120 30 0 0 20 0 5 0 987654 1000 200 0";
        let stat = parse(line).unwrap();
        assert_eq!((stat.state, stat.cpu_ticks, stat.start), ('R', 150, 987_654));
    }

    #[test]
    fn knows_itself_and_not_another_start_time() {
        let me = ProcessId::of(std::process::id()).unwrap();
        assert!(me.alive());
        assert!(!ProcessId { start: me.start + 1, ..me }.alive());
        assert!(usage(me.pid).unwrap().resident > 0);
    }
}
