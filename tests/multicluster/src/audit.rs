//! Reads an API server's audit log: each request once, as it is written.
//!
//! The rig's API servers write a line when a request has ended (`ResponseComplete`), and for watches also one when they
//! start (`ResponseStarted`). Bodies are there for writes of Workloads, Jobs and pods' statuses only.

mod counts;
mod event;
mod replay;

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};

pub use counts::{CountKey, Counts};
pub use event::{AuditEvent, ObjectRef, Verb};
pub use replay::{ObjectWrite, writes_of};

use crate::wait;

/// How long a request's line may take to reach the file after its response has reached the client.
const FLUSH_BOUND: Duration = Duration::from_secs(30);

/// An audit log that is being written, and what was read of it so far.
#[derive(Debug)]
pub struct AuditLog {
    path: PathBuf,
    offset: u64,
    partial: Vec<u8>,
    events: Vec<AuditEvent>,
}

/// A point in an audit log, to count from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(usize);

impl AuditLog {
    /// Opens a log at its beginning. The file need not exist yet.
    pub fn open(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), offset: 0, partial: Vec::new(), events: Vec::new() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads what was written since the last call, and returns just that. Each line is parsed once.
    pub fn refresh(&mut self) -> Result<&[AuditEvent]> {
        let known = self.events.len();
        if let Some(text) = self.read_new()? {
            let mut lines = text.split(|byte| *byte == b'\n').peekable();
            while let Some(line) = lines.next() {
                if lines.peek().is_none() {
                    self.partial = line.to_vec();
                } else if !line.is_empty() {
                    let event = AuditEvent::parse(line)
                        .with_context(|| format!("{}: event {}", self.path.display(), self.events.len()))?;
                    self.events.push(event);
                }
            }
        }
        Ok(&self.events[known..])
    }

    /// The bytes since the last call, after the line that was unfinished then.
    fn read_new(&mut self) -> Result<Option<Vec<u8>>> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("open {}", self.path.display())),
        };
        file.seek(SeekFrom::Start(self.offset))?;
        let mut text = std::mem::take(&mut self.partial);
        let read = file.read_to_end(&mut text)?;
        self.offset += u64::try_from(read)?;
        Ok(Some(text))
    }

    /// All events read so far, in the order of the file.
    pub fn events(&self) -> &[AuditEvent] {
        &self.events
    }

    /// Now, as a point to count from: reads what is there first.
    pub fn mark(&mut self) -> Result<Mark> {
        self.refresh()?;
        Ok(Mark(self.events.len()))
    }

    /// The events read so far that came after a point.
    pub fn since(&self, mark: Mark) -> &[AuditEvent] {
        self.events.get(mark.0..).unwrap_or_default()
    }

    /// Reads until an event satisfies `wanted` (a response can reach its client before its line reaches the file), for
    /// at most 30 s. Returns the first such event, of all that were read.
    pub async fn until(&mut self, what: &str, wanted: impl Fn(&AuditEvent) -> bool) -> Result<AuditEvent> {
        self.until_within(what, FLUSH_BOUND, wanted).await
    }

    /// As [`AuditLog::until`], within another bound.
    pub async fn until_within(
        &mut self,
        what: &str,
        bound: Duration,
        wanted: impl Fn(&AuditEvent) -> bool,
    ) -> Result<AuditEvent> {
        self.refresh()?;
        if let Some(event) = self.events.iter().find(|event| wanted(event)) {
            return Ok(event.clone());
        }
        wait::until(what, bound, async || Ok(self.refresh()?.iter().find(|event| wanted(event)).cloned()))
            .await
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::rig::folder::Folder;

    fn line(name: &str) -> String {
        format!(
            r#"{{"stage":"ResponseComplete","verb":"create","user":{{"username":"u"}},"userAgent":"fairlead-hub/0.1.0 (linux)","objectRef":{{"resource":"jobs","namespace":"a","name":"{name}","apiGroup":"batch"}},"responseStatus":{{"code":201}},"requestReceivedTimestamp":"2026-12-01T08:00:00.000001Z","stageTimestamp":"2026-12-01T08:00:00.250001Z"}}"#
        )
    }

    #[test]
    fn reads_each_line_once_and_a_torn_line_when_it_is_whole() {
        let folder = Folder::create(None, "audit").unwrap();
        let path = folder.path().join("audit.log");
        let mut log = AuditLog::open(&path);
        assert!(log.refresh().unwrap().is_empty());
        let mut file = File::create(&path).unwrap();
        let (one, two) = (line("one"), line("two"));
        let (head, tail) = two.split_at(100);
        write!(file, "{one}\n{head}").unwrap();
        assert_eq!(log.refresh().unwrap().len(), 1);
        let mark = log.mark().unwrap();
        writeln!(file, "{tail}").unwrap();
        assert_eq!(log.refresh().unwrap().len(), 1);
        assert!(log.refresh().unwrap().is_empty());
        assert_eq!(log.since(mark)[0].object.name, "two");
        assert_eq!(log.events().len(), 2);
    }

    #[test]
    fn a_line_that_is_no_event_is_an_error() {
        let folder = Folder::create(None, "audit").unwrap();
        let path = folder.path().join("audit.log");
        std::fs::write(&path, "{\"stage\":1}\n").unwrap();
        AuditLog::open(&path).refresh().unwrap_err();
    }
}
