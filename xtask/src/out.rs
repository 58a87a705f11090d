//! Where xtask prints: data and progress of a command, line by line.

use std::fmt;
use std::io::{self, Write};

use anyhow::Result;

/// Writes lines to standard output, at once.
#[derive(Debug)]
pub(crate) struct Out(io::Stdout);

impl Out {
    /// Standard output.
    pub(crate) fn new() -> Self {
        Self(io::stdout())
    }

    /// One line.
    pub(crate) fn line(&mut self, text: fmt::Arguments<'_>) -> Result<()> {
        let mut out = self.0.lock();
        writeln!(out, "{text}")?;
        Ok(out.flush()?)
    }
}

/// One line to standard error, for messages about the command itself.
pub(crate) fn complain(text: fmt::Arguments<'_>) {
    // Where standard error is closed there is nobody to tell.
    drop(writeln!(io::stderr(), "{text}"));
}
