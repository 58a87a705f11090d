//! Takes the section "What to do" of every page in `docs/reasons` into the program, so that `explain` can say it.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

const SECTION: &str = "\n## What to do\n";

fn main() -> io::Result<()> {
    let pages = Path::new("../docs/reasons");
    let mut paths =
        fs::read_dir(pages)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    paths.sort();
    let mut table = String::from("&[\n");
    for path in paths {
        let token = path.file_stem().unwrap_or_default().to_string_lossy();
        if let Some((_, advice)) = fs::read_to_string(&path)?.split_once(SECTION) {
            let advice = without_links(&advice.split_whitespace().collect::<Vec<_>>().join(" "));
            writeln!(table, "    ({token:?}, {advice:?}),").map_err(io::Error::other)?;
        }
    }
    table.push(']');
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("OUT_DIR is not set"))?;
    fs::write(Path::new(&out).join("advice.rs"), table)?;
    tell_cargo(pages)
}

fn tell_cargo(pages: &Path) -> io::Result<()> {
    use io::Write as _;
    writeln!(io::stdout(), "cargo::rerun-if-changed={}", pages.display())
}

/// `[words](target)` becomes `words`.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        plain.push_str(before);
        let Some((words, after)) = link.split_once("](") else {
            plain.push('[');
            rest = link;
            continue;
        };
        plain.push_str(words);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    plain
}
