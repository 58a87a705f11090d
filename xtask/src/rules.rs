//! `cargo xtask rules`: which rules of the specification no test name and no doc comment of the project mentions.
//!
//! A rule counts as mentioned by `[Q-5]`, `[S-4.5]` or `[F-3d]` in a doc comment, by a range such as `[Q-5]…[Q-9]`, and
//! by a test whose name starts so: `fn q5_…`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::files;
use crate::out::Out;

/// The pages whose rules the engine has to mention.
const PAGES: [&str; 5] =
    ["02-queueing.md", "03-quota.md", "04-flavors.md", "05-cycle-and-preemption.md", "08-topology.md"];

/// A rule: its letters and its number.
type Rule = (String, u32);

/// Lists the rules that are not mentioned; fails if there are any.
pub(crate) fn run(root: &Path, out: &mut Out) -> Result<()> {
    let Some(folder) = specification(root) else {
        return out.line(format_args!("rules: skipped, there is no specification (set FAIRLEAD_SPEC)"));
    };
    let mut wanted = BTreeSet::new();
    for page in PAGES {
        let text = fs::read_to_string(folder.join(page)).with_context(|| format!("read {page}"))?;
        wanted.extend(in_brackets(&text));
    }
    let mut mentioned = BTreeSet::new();
    let is_source = |path: &&String| Path::new(path).extension().is_some_and(|it| it == "rs");
    for path in files::below(root)?.iter().filter(is_source) {
        let text = fs::read_to_string(root.join(path)).with_context(|| format!("read {path}"))?;
        mentioned.extend(in_source(&text));
    }
    let missing: Vec<&Rule> = wanted.difference(&mentioned).collect();
    for (letters, number) in &missing {
        out.line(format_args!("{letters}-{number}"))?;
    }
    out.line(format_args!("{} rules, {} not mentioned", wanted.len(), missing.len()))?;
    if missing.is_empty() { Ok(()) } else { bail!("rules that no test name or doc comment mentions") }
}

/// `FAIRLEAD_SPEC`, else the folder beside the checkout.
fn specification(root: &Path) -> Option<PathBuf> {
    let beside = root.parent()?.join("shared/spec");
    let folder = std::env::var_os("FAIRLEAD_SPEC").map_or(beside, PathBuf::from);
    folder.is_dir().then_some(folder)
}

/// Rules that a source file mentions in doc comments and names of tests.
fn in_source(text: &str) -> BTreeSet<Rule> {
    let mut found = BTreeSet::new();
    let mut after_test = false;
    for line in text.lines().map(str::trim_start) {
        if line.starts_with("///") || line.starts_with("//!") {
            found.extend(in_brackets(line));
        } else if line.starts_with("#[test]") {
            after_test = true;
        } else if let Some(name) = line.strip_prefix("fn ") {
            found.extend(Some(name).filter(|_| after_test).and_then(of_test));
            after_test = false;
        }
    }
    found
}

/// The rule that a test's name starts with: `q5_…`.
fn of_test(name: &str) -> Option<Rule> {
    let (id, _) = name.split_once('_')?;
    let digits = id.find(|it: char| it.is_ascii_digit())?;
    let (letters, number) = id.split_at(digits);
    Some((letters.to_ascii_uppercase(), number.parse().ok()?)).filter(|(letters, _)| is_name(letters))
}

/// Rules in brackets, ranges filled in.
fn in_brackets(text: &str) -> BTreeSet<Rule> {
    // The specification writes a hyphen that does not break.
    let text = text.replace('\u{2011}', "-");
    let mut found = BTreeSet::new();
    let mut range_from: Option<Rule> = None;
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once('[') {
        let Some((inside, tail)) = after.split_once(']') else { break };
        rest = tail;
        let Some(rule) = rule(inside) else { continue };
        if let Some(from) = range_from.take().filter(|from| from.0 == rule.0 && before.ends_with('…')) {
            found.extend((from.1..rule.1).map(|number| (rule.0.clone(), number)));
        }
        range_from = Some(rule.clone());
        found.insert(rule);
    }
    found
}

/// `Q-5`, `S-4.5`, `F-3d` and `Q-1..14` less what follows the first number.
fn rule(text: &str) -> Option<Rule> {
    let (letters, number) = text.split_once('-')?;
    let digits = number.find(|it: char| !it.is_ascii_digit()).unwrap_or(number.len());
    let number = number.get(..digits)?.parse().ok()?;
    is_name(letters).then(|| (letters.to_owned(), number))
}

fn is_name(letters: &str) -> bool {
    matches!(letters, "Q" | "T" | "F" | "S" | "P" | "TAS")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(rules: &BTreeSet<Rule>) -> Vec<String> {
        rules.iter().map(|(letters, number)| format!("{letters}{number}")).collect()
    }

    #[test]
    fn doc_comments_and_test_names_count_and_nothing_else() {
        let source = "/// As [Q-5] and [S-4.5] say, see [F-3d].\n// [Q-6]\nlet x = \"[Q-7]\";\nfn t1_helper() {}\n\
                      #[test]\nfn tas4_leaders_first() {}\n#[test]\nfn works_2_times() {}\n";
        assert_eq!(text(&in_source(source)), ["F3", "Q5", "S4", "TAS4"]);
    }

    #[test]
    fn ranges_are_filled_in() {
        assert_eq!(text(&in_brackets("[Q-5]…[Q-7] and [T-1], [T-3]")), ["Q5", "Q6", "Q7", "T1", "T3"]);
        assert_eq!(text(&in_brackets("[T-1]…[F-3]")), ["F3", "T1"]);
    }

    #[test]
    fn the_specification_writes_another_hyphen() {
        assert_eq!(text(&in_brackets("### 2.6 `[Q\u{2011}10]` [see](link) [x-1]")), ["Q10"]);
    }
}
