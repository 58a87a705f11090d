//! `cargo xtask test`: every check and every test, in an order in which what fails soonest comes first.
//!
//! One call of cargo at a time: two would fight over the same folder and the same memory.

mod readme;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::cargo::{Cargo, run};
use crate::out::Out;
use crate::{DEMO, arch, tools};

/// The package whose tests need clusters.
const RIG: &str = "fairlead-multicluster";
/// The one of them that runs all end-to-end scenarios.
const E2E: &str = "e2e";
/// The one that runs the rows of the checklist.
const KUEUE: &str = "kueue";

/// One step.
struct Step {
    name: &'static str,
    about: &'static str,
    run: fn(&Cargo, &mut Out) -> Result<()>,
}

const STEPS: [Step; 14] = [
    Step { name: "tools", about: "kubectl and go are there", run: |_, _| tools::check() },
    Step {
        name: "fmt",
        about: "code is formatted",
        run: |cargo, _| run(cargo.command("fmt").args(["--all", "--check"])),
    },
    Step {
        name: "arch",
        about: "crates, arrows, files and pages",
        run: |cargo, out| arch::run(cargo.root(), out),
    },
    Step { name: "clippy", about: "no lint warns", run: clippy },
    Step {
        name: "build",
        about: "programs for the rig",
        run: |cargo, _| cargo.build(&["--bins", "--examples"]),
    },
    Step { name: "crds", about: "generated manifests are current", run: |cargo, _| crds(cargo, true) },
    Step { name: "unit", about: "unit and property tests", run: unit },
    Step { name: "doc", about: "documentation and its examples", run: doc },
    Step { name: "programs", about: "Kubernetes' own programs, built once", run: programs },
    Step { name: "rig", about: "the rig and the API on a real API server", run: rig },
    Step { name: "kueue", about: "the rows of docs/checklist.md on one hub", run: kueue },
    Step { name: "e2e", about: "a hub and three clusters", run: e2e },
    Step {
        name: "demo",
        about: "the demo, checked",
        run: |cargo, _| run(cargo.program(DEMO).arg("--check")),
    },
    Step { name: "readme", about: "the commands of README.md", run: readme },
];

/// Runs the steps of these names, in order; all of them when none is named.
pub(crate) fn steps(cargo: &Cargo, names: &[String], out: &mut Out) -> Result<()> {
    if let Some(unknown) = names.iter().find(|name| STEPS.iter().all(|step| step.name != name.as_str())) {
        bail!("there is no step {unknown}; `cargo xtask test --list` lists them");
    }
    let chosen: Vec<&Step> =
        STEPS.iter().filter(|step| names.is_empty() || names.iter().any(|name| name == step.name)).collect();
    let began = Instant::now();
    for (number, step) in (1..).zip(&chosen) {
        let place = format!("[{number}/{}]", chosen.len());
        out.line(format_args!("==> {place} {}: {}", step.name, step.about))?;
        let start = Instant::now();
        (step.run)(cargo, out).with_context(|| {
            format!(
                "step {} failed after {}; the {} before it passed; again: cargo xtask test {}",
                step.name,
                seconds(start.elapsed()),
                number - 1,
                step.name
            )
        })?;
        out.line(format_args!("    {place} {} passed in {}", step.name, seconds(start.elapsed())))?;
    }
    out.line(format_args!("all {} steps passed in {}", chosen.len(), seconds(began.elapsed())))
}

/// Prints the steps.
pub(crate) fn list(out: &mut Out) -> Result<()> {
    STEPS.iter().try_for_each(|step| out.line(format_args!("{:<10} {}", step.name, step.about)))
}

/// Writes the generated manifests, or only says which are out of date. The example must have been built.
pub(crate) fn crds(cargo: &Cargo, check: bool) -> Result<()> {
    let mut command = cargo.program("debug/examples/manifests");
    command.args(check.then_some("--check")).arg(cargo.root());
    run(&mut command)
}

fn clippy(cargo: &Cargo, _: &mut Out) -> Result<()> {
    run(&mut cargo.workspace("clippy", &["--all-targets", "--", "-D", "warnings"]))
}

/// All tests that need no cluster.
fn unit(cargo: &Cargo, _: &mut Out) -> Result<()> {
    let mut args = vec!["--lib", "--bins", "--examples"];
    args.extend(cargo.select_tests(|package, _| package != RIG));
    run(&mut cargo.workspace("test", &args))
}

fn doc(cargo: &Cargo, _: &mut Out) -> Result<()> {
    run(cargo.workspace("doc", &["--no-deps"]).env("RUSTDOCFLAGS", "-Dwarnings"))?;
    run(&mut cargo.workspace("test", &["--doc"]))
}

/// They are built once into a cache; that takes minutes, so it is a step of its own.
fn programs(cargo: &Cargo, _: &mut Out) -> Result<()> {
    run(cargo.program(DEMO).arg("programs"))
}

/// What needs clusters, but no hub with spokes.
fn rig(cargo: &Cargo, _: &mut Out) -> Result<()> {
    let alone = |package: &str, test: &str| package == RIG && ![E2E, KUEUE].contains(&test);
    run(&mut cargo.workspace("test", &cargo.select_tests(alone)))
}

fn kueue(cargo: &Cargo, _: &mut Out) -> Result<()> {
    run(&mut cargo.workspace("test", &["--test", KUEUE]))
}

fn e2e(cargo: &Cargo, _: &mut Out) -> Result<()> {
    run(&mut cargo.workspace("test", &["--test", E2E]))
}

/// A tour that fails half-way leaves its demo running, so that is ended here.
fn readme(cargo: &Cargo, out: &mut Out) -> Result<()> {
    let outcome = readme::run(cargo.root(), out);
    if outcome.is_err() {
        run(cargo.program(DEMO).arg("down"))?;
    }
    outcome
}

fn seconds(span: Duration) -> String {
    match span.as_secs() {
        long @ 120.. => format!("{} min {} s", long / 60, long % 60),
        _ => format!("{:.1} s", span.as_secs_f32()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn cargo() -> Cargo {
        Cargo::of(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()).unwrap()
    }

    #[test]
    fn names_are_unique_and_an_unknown_one_is_refused() {
        let names: BTreeSet<_> = STEPS.iter().map(|step| step.name).collect();
        assert_eq!(names.len(), STEPS.len());
        let error = steps(&cargo(), &["nonsense".to_owned()], &mut Out::new()).unwrap_err();
        assert!(error.to_string().contains("no step nonsense"), "{error}");
    }

    #[test]
    fn spans_are_short_to_read() {
        assert_eq!(seconds(Duration::from_millis(1540)), "1.5 s");
        assert_eq!(seconds(Duration::from_secs(125)), "2 min 5 s");
    }
}
