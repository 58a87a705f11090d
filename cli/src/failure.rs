//! What went wrong, and the exit code that says so to scripts.

use std::fmt;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use kube::config::{InferConfigError, KubeconfigError};
use kube::core::dynamic::ParseDynamicObjectError;

/// Exit codes. They are API: scripts branch on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It worked.
    Done = 0,
    /// It did not, for a reason without a code of its own.
    Error = 1,
    /// The command line is wrong.
    Usage = 2,
    /// What was asked for does not exist.
    NotFound = 4,
    /// The user may not do that.
    Forbidden = 5,
    /// The time given was not enough.
    TimedOut = 6,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        let code: u8 = match exit {
            Exit::Done => 0,
            Exit::Error => 1,
            Exit::Usage => 2,
            Exit::NotFound => 4,
            Exit::Forbidden => 5,
            Exit::TimedOut => 6,
        };
        Self::from(code)
    }
}

/// Why the command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    message: String,
    closed_pipe: bool,
}

impl Failure {
    /// A failure with this code and sentence.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), closed_pipe: false }
    }

    /// The command took longer than it was given.
    pub(crate) fn timed_out(bound: Duration) -> Self {
        Self::new(Exit::TimedOut, format!("no result within {} s (--request-timeout)", bound.as_secs()))
    }

    /// The exit code.
    pub(crate) const fn exit(&self) -> Exit {
        self.exit
    }

    /// Whether the reader of our output went away, as `head` does.
    pub(crate) const fn is_closed_pipe(&self) -> bool {
        self.closed_pipe
    }

    /// The same with what was being done in front.
    pub(crate) fn during(mut self, what: impl fmt::Display) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => {
                let exit = match status.code {
                    404 => Exit::NotFound,
                    401 | 403 => Exit::Forbidden,
                    408 | 504 => Exit::TimedOut,
                    _ => Exit::Error,
                };
                let message =
                    if status.message.is_empty() { status.reason.clone() } else { status.message.clone() };
                Self::new(exit, message)
            }
            other => Self::new(Exit::Error, with_causes(&other)),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let closed_pipe = error.kind() == io::ErrorKind::BrokenPipe;
        Self { exit: Exit::Error, message: error.to_string(), closed_pipe }
    }
}

impl From<KubeconfigError> for Failure {
    fn from(error: KubeconfigError) -> Self {
        Self::new(Exit::Error, format!("kubeconfig: {}", with_causes(&error)))
    }
}

impl From<InferConfigError> for Failure {
    fn from(error: InferConfigError) -> Self {
        Self::new(Exit::Error, format!("no usable kubeconfig: {}", with_causes(&error)))
    }
}

impl From<ParseDynamicObjectError> for Failure {
    fn from(error: ParseDynamicObjectError) -> Self {
        Self::new(
            Exit::Error,
            format!("an object is not as this version expects it: {}", with_causes(&error)),
        )
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::new(Exit::Error, format!("an object is not as this version expects it: {error}"))
    }
}

impl From<serde_yaml::Error> for Failure {
    fn from(error: serde_yaml::Error) -> Self {
        Self::new(Exit::Error, error.to_string())
    }
}

/// The error and, after colons, what led to it, without saying anything twice.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let words = inner.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn refused(code: u16) -> Failure {
        let mut status = Status::failure("no", "Because");
        status.code = code;
        kube::Error::Api(Box::new(status)).into()
    }

    #[test]
    fn exit_codes_tell_what_scripts_branch_on() {
        let expected = [
            (404, Exit::NotFound),
            (403, Exit::Forbidden),
            (401, Exit::Forbidden),
            (504, Exit::TimedOut),
            (409, Exit::Error),
            (500, Exit::Error),
        ];
        for (code, exit) in expected {
            assert_eq!(refused(code).exit(), exit, "{code}");
        }
        assert_eq!(Failure::timed_out(Duration::from_secs(3)).exit(), Exit::TimedOut);
    }

    #[test]
    fn a_reader_that_went_away_is_no_failure() {
        assert!(Failure::from(io::Error::from(io::ErrorKind::BrokenPipe)).is_closed_pipe());
        assert!(!Failure::from(io::Error::from(io::ErrorKind::NotFound)).is_closed_pipe());
    }
}
