//! The commands of `README.md` are run, so that they stay true.
//!
//! A fenced block with the info string `sh` belongs to the tour when the line before it is the marker. All such blocks
//! are one script: what a reader types one after the other in one terminal.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::out::Out;

/// Stands on the line before a block that is run.
const MARKER: &str = "<!-- CI runs this -->";

/// Runs the marked blocks.
pub(super) fn run(root: &Path, out: &mut Out) -> Result<()> {
    let text = fs::read_to_string(root.join("README.md")).context("read README.md")?;
    let script = script(&text);
    ensure!(!script.is_empty(), "README.md has no block after the marker {MARKER}");
    out.line(format_args!("{} lines of README.md", script.lines().count()))?;
    // -v shows each command before its output, as a terminal does.
    let mut bash = Command::new("bash");
    bash.args(["-euvo", "pipefail", "-c", &script]).current_dir(root);
    let status = bash.status().context("start bash")?;
    ensure!(status.success(), "a command of README.md failed, the last one shown ({status})");
    Ok(())
}

/// The marked blocks, one after the other.
fn script(text: &str) -> String {
    let mut script = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim() != MARKER || lines.next().map(str::trim) != Some("```sh") {
            continue;
        }
        for line in lines.by_ref().take_while(|line| line.trim() != "```") {
            script.extend([line, "\n"]);
        }
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_marked_blocks_are_run_and_in_order() {
        let text =
            format!("a\n{MARKER}\n```sh\none\ntwo\n```\n```sh\nnot this\n```\n{MARKER}\n```sh\nthree\n```\n");
        assert_eq!(script(&text), "one\ntwo\nthree\n");
        assert_eq!(script(&format!("{MARKER}\n```yaml\na: b\n```\n")), "");
    }

    #[test]
    fn a_failing_command_fails_the_step() {
        let folder = std::env::temp_dir().join(format!("fairlead-readme-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let outcome = |commands: &str| {
            fs::write(folder.join("README.md"), format!("{MARKER}\n```sh\n{commands}\n```\n")).unwrap();
            run(&folder, &mut Out::new()).is_ok()
        };
        assert!(outcome("true"));
        assert!(!outcome("false\ntrue"));
        assert!(!outcome("false | true"));
        assert!(!outcome("echo $unset_variable"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
