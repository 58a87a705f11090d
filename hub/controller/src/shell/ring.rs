//! Records of decisions on disk: files of a folder, of which the oldest go when they are too many.
//!
//! Records are for people who ask why. They never disturb a decision: writing has a task of its own, and what that
//! cannot keep up with, or cannot write, is left out up to the next record's beginning.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tokio::sync::mpsc;
use tracing::warn;

/// The ending of a record's file.
const ENDING: &str = "flrr";
/// Pieces that may wait to be written.
const WAITING: usize = 1024;

/// The files of a folder, a bounded number of bytes.
#[derive(Debug)]
pub struct Ring {
    folder: PathBuf,
    limit: u64,
    next: u64,
    file: Option<File>,
}

impl Ring {
    /// The ring in this folder, which is made if need be. `limit` is for all files together, in bytes.
    ///
    /// # Errors
    ///
    /// The folder cannot be made or read.
    pub fn open(folder: &Path, limit: u64) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let last = records(folder)?.into_iter().filter_map(|path| number(&path)).max();
        Ok(Self {
            folder: folder.to_owned(),
            limit,
            next: last.map_or(1, |last| last.saturating_add(1)),
            file: None,
        })
    }

    /// Writes more of the record; one that begins gets a file of its own. After an error the rest is left out, up to the
    /// next beginning.
    ///
    /// # Errors
    ///
    /// A file cannot be written, read or removed.
    pub fn append(&mut self, begins: bool, bytes: &[u8]) -> io::Result<()> {
        let mut file = if begins { Some(self.begin(bytes.len())?) } else { self.file.take() };
        if let Some(file) = &mut file {
            file.write_all(bytes)?;
        }
        self.file = file;
        Ok(())
    }

    fn begin(&mut self, bytes: usize) -> io::Result<File> {
        self.file = None;
        self.make_room(u64::try_from(bytes).unwrap_or(u64::MAX))?;
        let path = self.folder.join(format!("{:012}.{ENDING}", self.next));
        self.next = self.next.saturating_add(1);
        OpenOptions::new().create_new(true).append(true).open(path)
    }

    /// Removes the oldest files until a piece as large as the largest, and what is about to be written, have room.
    fn make_room(&self, coming: u64) -> io::Result<()> {
        let sized = |path: PathBuf| fs::metadata(&path).map(|meta| (path, meta.len()));
        let files: Vec<(PathBuf, u64)> =
            records(&self.folder)?.into_iter().map(sized).collect::<io::Result<_>>()?;
        let largest = files.iter().map(|(_, size)| *size).max().unwrap_or(0).max(coming);
        let mut total: u64 = files.iter().map(|(_, size)| size).sum();
        for (path, size) in files {
            if total.saturating_add(largest) <= self.limit {
                break;
            }
            fs::remove_file(path)?;
            total = total.saturating_sub(size);
        }
        Ok(())
    }
}

/// The records of a folder, the oldest first. A path that is a file stands for itself.
///
/// # Errors
///
/// The folder cannot be read.
pub fn records(path: &Path) -> io::Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == ENDING) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn number(path: &Path) -> Option<u64> {
    path.file_stem()?.to_str()?.parse().ok()
}

/// Where the pump leaves what is to be written; it never waits there.
#[derive(Debug)]
pub struct Records {
    sender: mpsc::Sender<(bool, Vec<u8>)>,
    /// Something was left out: the rest of the record is of no use.
    cut: bool,
    warned: bool,
}

impl Records {
    /// Writes to this ring on a thread of its own until the other end is gone.
    pub fn start(mut ring: Ring) -> Self {
        let (sender, mut receiver) = mpsc::channel::<(bool, Vec<u8>)>(WAITING);
        let mut warned = false;
        tokio::task::spawn_blocking(move || {
            while let Some((begins, bytes)) = receiver.blocking_recv() {
                if let Err(why) = ring.append(begins, &bytes)
                    && !std::mem::replace(&mut warned, true)
                {
                    warn!("decisions are not recorded: {why}");
                }
            }
        });
        Self { sender, cut: false, warned: false }
    }

    /// Takes more of the record.
    pub(super) fn write(&mut self, begins: bool, bytes: Vec<u8>) {
        self.cut &= !begins;
        if !self.cut && self.sender.try_send((begins, bytes)).is_err() {
            self.cut = true;
            if !std::mem::replace(&mut self.warned, true) {
                warn!("decisions are made faster than they can be recorded; some records end early");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("fairlead-ring-{name}-{}", std::process::id()));
        let _gone = fs::remove_dir_all(&path);
        path
    }

    #[test]
    fn the_oldest_records_go_and_numbers_go_on() {
        let path = folder("oldest");
        let mut ring = Ring::open(&path, 1000).unwrap();
        for _ in 0..10 {
            ring.append(true, &[1; 100]).unwrap();
            ring.append(false, &[2; 100]).unwrap();
            let total: u64 =
                records(&path).unwrap().iter().map(|file| fs::metadata(file).unwrap().len()).sum();
            assert!(total <= 1000, "{total}");
        }
        let left = records(&path).unwrap();
        assert!(left.last().is_some_and(|file| file.ends_with("000000000010.flrr")), "{left:?}");
        let mut ring = Ring::open(&path, 1000).unwrap();
        ring.append(true, &[3; 100]).unwrap();
        assert!(path.join("000000000011.flrr").is_file());
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn after_an_error_the_rest_is_left_out_up_to_the_next_beginning() {
        let path = folder("error");
        let mut ring = Ring::open(&path, 1000).unwrap();
        ring.append(true, &[1; 10]).unwrap();
        fs::remove_dir_all(&path).unwrap();
        assert!(ring.append(true, &[1; 10]).is_err(), "the folder is gone");
        ring.append(false, &[2; 10]).unwrap();
        fs::create_dir_all(&path).unwrap();
        ring.append(false, &[2; 10]).unwrap();
        assert_eq!(records(&path).unwrap(), Vec::<PathBuf>::new());
        ring.append(true, &[1; 10]).unwrap();
        assert_eq!(records(&path).unwrap().len(), 1);
        fs::remove_dir_all(path).unwrap();
    }
}
