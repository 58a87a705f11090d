//! Runs named end-to-end scenarios against one shared world, with the words and the exit code of a test binary.
//!
//! Starting clusters takes seconds, so all scenarios of a run share one world. Each works in namespaces of its own.
//! Neighbours marked [`Scenario::together`] run at the same time, eight at once; any other runs alone, for what it
//! does to the world (kill the hub, cut a link) would disturb the rest.
//!
//! Arguments as for `cargo test`: substrings of names to run, `--exact`, `--skip SUBSTRING`, `--list`, `--ignored` and
//! `--include-ignored` for long ones. Other flags are taken and ignored.

use std::{
    any::Any,
    io::Write,
    panic::AssertUnwindSafe,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use futures::{FutureExt, StreamExt, future::LocalBoxFuture, stream};

/// What a scenario's function looks like, boxed. [`scenario!`](crate::scenario!) makes it from an `async fn(&World)`.
pub type Run<W> = for<'a> fn(&'a W) -> LocalBoxFuture<'a, Result<()>>;

/// How long a scenario may take unless it says otherwise.
const BOUND: Duration = Duration::from_secs(180);

/// How many scenarios run at the same time, at most. More would only wait for the cores, and for longer than their bounds.
const AT_ONCE: usize = 8;

/// A named scenario.
#[derive(Debug)]
pub struct Scenario<W: 'static> {
    name: &'static str,
    run: Run<W>,
    together: bool,
    long: bool,
    bound: Duration,
}

/// Makes a [`Scenario`] from an `async fn(&World) -> anyhow::Result<()>`, named by its path as written.
#[macro_export]
macro_rules! scenario {
    ($($function:ident)::+) => {
        $crate::scenario::Scenario::new(
            concat!($("::", stringify!($function)),+),
            |world| Box::pin($($function)::+(world)),
        )
    };
}

impl<W> Scenario<W> {
    /// A scenario that runs alone, for at most 3 minutes.
    pub fn new(name: &'static str, run: Run<W>) -> Self {
        Self { name: name.trim_start_matches(':'), run, together: false, long: false, bound: BOUND }
    }

    /// It disturbs nothing outside its namespaces: runs at the same time as its neighbours that are so marked.
    #[must_use]
    pub fn together(mut self) -> Self {
        self.together = true;
        self
    }

    /// It runs only with `--ignored` or `--include-ignored`.
    #[must_use]
    pub fn long(mut self) -> Self {
        self.long = true;
        self
    }

    /// It may take this long.
    #[must_use]
    pub fn within(mut self, bound: Duration) -> Self {
        self.bound = bound;
        self
    }
}

/// What is to be run, as read from the command line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Selection {
    filters: Vec<String>,
    skip: Vec<String>,
    exact: bool,
    list: bool,
    length: Length,
}

/// Which scenarios by how long they take.
#[derive(Debug, Default, PartialEq, Eq)]
enum Length {
    #[default]
    Short,
    Long,
    Any,
}

impl Selection {
    fn parse(args: impl IntoIterator<Item = String>) -> Self {
        let mut selection = Self::default();
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--exact" => selection.exact = true,
                "--list" => selection.list = true,
                "--ignored" => selection.length = Length::Long,
                "--include-ignored" => selection.length = Length::Any,
                "--skip" => selection.skip.extend(args.next()),
                // Flags with a value of a test binary that have no meaning here.
                "--format" | "--test-threads" | "--color" | "--logfile" | "-Z" => drop(args.next()),
                flag if flag.starts_with('-') => {}
                _ => selection.filters.push(arg),
            }
        }
        selection
    }

    fn takes<W>(&self, scenario: &Scenario<W>) -> bool {
        let hit = |pattern: &String| {
            if self.exact { scenario.name == pattern } else { scenario.name.contains(pattern.as_str()) }
        };
        let wanted = self.filters.is_empty() || self.filters.iter().any(hit);
        let length = self.length == Length::Any || scenario.long == (self.length == Length::Long);
        wanted && length && !self.skip.iter().any(hit)
    }
}

/// Runs the scenarios that the command line selects, in order, and prints a line for each and a summary.
///
/// `start` makes the world, once, and only when something is selected. `finish` is given the world and the number of
/// failures, before the world is dropped: to keep its logs, for instance.
pub async fn main<W>(
    scenarios: Vec<Scenario<W>>,
    start: impl AsyncFnOnce() -> Result<W>,
    finish: impl FnOnce(W, usize),
) -> ExitCode {
    let selection = Selection::parse(std::env::args().skip(1));
    let selected: Vec<&Scenario<W>> = scenarios.iter().filter(|scenario| selection.takes(scenario)).collect();
    if selection.list {
        for scenario in selected {
            say(&format!("{}: test", scenario.name));
        }
        return ExitCode::SUCCESS;
    }
    say(&format!("running {} scenarios", selected.len()));
    let mut failures = Vec::new();
    if !selected.is_empty() {
        let world = match start().await {
            Ok(world) => world,
            Err(error) => {
                say(&format!("the world did not start: {error:#}"));
                return ExitCode::FAILURE;
            }
        };
        failures = run_all(&world, &selected, &say).await;
        finish(world, failures.len());
    }
    for (name, error) in &failures {
        say(&format!("\n---- {name} ----\n{error:#}"));
    }
    let passed = selected.len() - failures.len();
    let left_out = scenarios.len() - selected.len();
    say(&format!("\n{passed} passed, {} failed, {left_out} not selected", failures.len()));
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn run_all<W>(
    world: &W,
    selected: &[&Scenario<W>],
    say: &dyn Fn(&str),
) -> Vec<(&'static str, anyhow::Error)> {
    let mut failures = Vec::new();
    for group in selected.chunk_by(|one, next| one.together && next.together) {
        let runs = stream::iter(group.iter().map(|scenario| run(world, scenario, say)));
        let results: Vec<_> = runs.buffer_unordered(AT_ONCE).collect().await;
        failures.extend(results.into_iter().flatten());
    }
    failures
}

/// Runs one scenario, says how it ended, and returns its failure: an error, a panic, or too long.
async fn run<W>(
    world: &W,
    scenario: &Scenario<W>,
    say: &dyn Fn(&str),
) -> Option<(&'static str, anyhow::Error)> {
    let start = Instant::now();
    let caught = AssertUnwindSafe((scenario.run)(world)).catch_unwind();
    let result = match tokio::time::timeout(scenario.bound, caught).await {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => Err(anyhow!("panicked: {}", words(&*panic))),
        Err(_elapsed) => Err(anyhow!("not done within {} s", scenario.bound.as_secs())),
    };
    let outcome = if result.is_ok() { "ok" } else { "FAILED" };
    say(&format!("test {} ... {outcome} ({:.1} s)", scenario.name, start.elapsed().as_secs_f32()));
    result.err().map(|error| (scenario.name, error))
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without words".to_owned())
}

/// A line on stdout. A closed pipe is no reason to fail.
fn say(line: &str) {
    writeln!(std::io::stdout().lock(), "{line}").ok();
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn select(args: &[&str]) -> Selection {
        Selection::parse(args.iter().map(ToString::to_string))
    }

    #[test]
    fn reads_a_test_binarys_command_line() {
        let nothing: Run<()> = |()| Box::pin(async { Ok(()) });
        let link = Scenario::new("link::cut", nothing);
        let burst = Scenario::new("burst", nothing).long();
        assert!(select(&[]).takes(&link) && !select(&[]).takes(&burst));
        assert!(select(&["--nocapture", "--test-threads", "1", "cut"]).takes(&link));
        assert!(!select(&["--exact", "cut"]).takes(&link));
        assert!(!select(&["--skip", "link"]).takes(&link));
        assert!(select(&["--ignored"]).takes(&burst) && !select(&["--ignored"]).takes(&link));
        assert!(select(&["--include-ignored"]).takes(&burst) && select(&["--include-ignored"]).takes(&link));
    }

    async fn fine(_: &u32) -> Result<()> {
        Ok(())
    }
    async fn wrong(_: &u32) -> Result<()> {
        Err(anyhow!("wrong"))
    }
    async fn hangs(_: &u32) -> Result<()> {
        std::future::pending().await
    }
    async fn panics(world: &u32) -> Result<()> {
        assert_eq!(*world, 0, "one is not nought");
        Ok(())
    }

    #[tokio::test]
    async fn errors_panics_and_hangs_fail_and_the_rest_goes_on() {
        let scenarios = [
            crate::scenario!(wrong).together(),
            crate::scenario!(panics).together(),
            crate::scenario!(hangs).within(Duration::from_millis(10)),
            crate::scenario!(fine),
        ];
        let selected: Vec<&Scenario<u32>> = scenarios.iter().collect();
        let lines = RefCell::new(Vec::new());
        let failures = run_all(&1, &selected, &|line| lines.borrow_mut().push(line.to_owned())).await;
        let names: Vec<&str> = failures.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["wrong", "panics", "hangs"]);
        let lines = lines.into_inner();
        assert_eq!(lines.iter().filter(|line| line.contains("FAILED")).count(), 3);
        assert!(lines.last().is_some_and(|line| line.starts_with("test fine ... ok")), "{lines:?}");
        assert!(failures[1].1.to_string().contains("one is not nought"));
    }
}
