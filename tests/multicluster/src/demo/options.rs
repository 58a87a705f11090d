//! The demo's command line.

use anyhow::{Result, bail};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Run the demo.
    Run(Options),
    /// End one that was kept.
    Down,
    /// Only find, or build, the programs that the rig needs.
    Programs,
}

/// How the demo is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Leave everything running at the end.
    pub keep: bool,
    /// End with a line that says how many Jobs completed exactly once, and fail unless all did.
    pub check: bool,
}

impl Action {
    /// Reads the arguments.
    pub fn parse(args: impl IntoIterator<Item = String>) -> Result<Self> {
        let args: Vec<String> = args.into_iter().collect();
        if let [word] = args.as_slice() {
            match word.as_str() {
                "down" => return Ok(Self::Down),
                "programs" => return Ok(Self::Programs),
                _ => {}
            }
        }
        let mut options = Options::default();
        for arg in args {
            match arg.as_str() {
                "--keep" => options.keep = true,
                "--check" => options.check = true,
                _ => bail!("{arg}: the demo understands --keep, --check, and down"),
            }
        }
        Ok(Self::Run(options))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Action> {
        Action::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn flags_go_together_and_down_stands_alone() {
        assert_eq!(parse("").unwrap(), Action::Run(Options::default()));
        assert_eq!(parse("--check --keep").unwrap(), Action::Run(Options { keep: true, check: true }));
        assert_eq!(parse("down").unwrap(), Action::Down);
        assert!(parse("down --keep").is_err() && parse("--frob").is_err());
    }
}
