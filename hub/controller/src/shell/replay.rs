//! Recorded decisions, decided again and told in words.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fairlead_engine::Plan;
use fairlead_engine::record::{Decided, Fault, Player};

use super::ring::records;

/// Why nothing could be played.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A file cannot be read, or the text not written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A file is not a record that this program reads.
    #[error("{path}: {fault}")]
    Record {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        fault: Fault,
    },
    /// There is nothing to play.
    #[error("there are no records in {0}")]
    Nothing(PathBuf),
}

/// Decides again what a file, or every file of a folder, has recorded, and writes a line for each decision. With
/// `decision` only that one, in full. A record that ends within an entry is played up to there: its writer was cut off.
/// Says whether everything came out the same.
///
/// # Errors
///
/// Something cannot be read or written.
pub fn replay(path: &Path, decision: Option<u64>, out: &mut impl Write) -> Result<bool, ReplayError> {
    let files = records(path)?;
    if files.is_empty() {
        return Err(ReplayError::Nothing(path.to_owned()));
    }
    let mut same = true;
    for file in files {
        same &= play(&file, decision, out)?;
    }
    Ok(same)
}

fn play(path: &Path, decision: Option<u64>, out: &mut impl Write) -> Result<bool, ReplayError> {
    let bytes = fs::read(path)?;
    let broken = |fault| ReplayError::Record { path: path.to_owned(), fault };
    let mut player = Player::new(&bytes).map_err(broken)?;
    writeln!(out, "{}", path.display())?;
    loop {
        let decided = match player.decide() {
            Ok(Some(decided)) => decided,
            Ok(None) => return Ok(true),
            Err(Fault::Truncated) => {
                writeln!(out, "  the record ends here, within an entry")?;
                return Ok(true);
            }
            Err(fault) => return Err(broken(fault)),
        };
        match decision {
            None => line(&decided, out)?,
            Some(number) if number == decided.number => {
                line(&decided, out)?;
                in_full(&decided.plan, out)?;
            }
            Some(_) => {}
        }
        if !decided.is_same() {
            if decision.is_some_and(|number| number != decided.number) {
                line(&decided, out)?;
            }
            writeln!(out, "  what follows rests on it and is not played")?;
            return Ok(false);
        }
    }
}

fn line(decided: &Decided, out: &mut impl Write) -> io::Result<()> {
    let Plan { at, admissions, evictions, heads, .. } = &decided.plan;
    let time = jiff::Timestamp::from_millisecond(at.0).map_or_else(|_| at.0.to_string(), |at| at.to_string());
    let verdict = if decided.is_same() { "same" } else { "DIFFERS" };
    writeln!(
        out,
        "  #{} {time}  looked at {}, admitted {}, evicted {}  {:032x} {verdict}",
        decided.number,
        heads.len(),
        admissions.len(),
        evictions.len(),
        decided.hash,
    )
}

fn in_full(plan: &Plan, out: &mut impl Write) -> io::Result<()> {
    for head in &plan.heads {
        let (key, queue, reason) = (&head.key, &head.cluster_queue, head.verdict.reason);
        writeln!(out, "    {key} in {queue}: {:?}, {reason}: {}", head.outcome, head.verdict.message)?;
        for it in &head.verdict.candidates {
            let short = it.shortfall.as_ref().map_or_else(String::new, |short| {
                format!(", {} asked, {} there of {}", short.requested, short.available, short.resource)
            });
            writeln!(out, "      {} {}: {}{short} {}", it.cluster, it.flavor, it.reason, it.detail)?;
        }
    }
    for victim in &plan.evictions {
        writeln!(out, "    {} goes for {}: {}", victim.key, victim.by_key, victim.cause.token())?;
    }
    Ok(())
}
