//! The engine's benchmarks: `cargo xtask bench engine [--json] [ROW…]`.
//!
//! Shapes are those of `reference/performance.md` §2.1, so that figures stand beside the peer's. Each row is measured
//! at two sizes, and before it is timed its decisions are compared with the reference on a small instance of the same
//! shape. Times are medians of several runs by the monotonic clock; allocations are counted by an instrumented
//! allocator and belong to what is timed, no more. A row whose feature the engine lacks is named on standard error and
//! not printed.

#![expect(clippy::disallowed_types, reason = "benches measure time; the engine itself never reads a clock")]
#![expect(
    clippy::clone_on_ref_ptr,
    reason = "the reference is for reading; `Arc::clone` everywhere hides the rule"
)]

#[expect(dead_code, reason = "the properties use all of it")]
#[path = "../../tests/scenario/make.rs"]
mod make;
mod measure;
mod memory;
mod philly;
mod preempt;
mod quota;
#[expect(dead_code, reason = "the properties use all of it")]
#[path = "../../tests/reference/lib.rs"]
mod reference;
mod row;
mod shape;
mod topology;

use std::io::{Result, Write};

use row::Row;

/// A name, and what measures its row or rows.
type Suite = (&'static str, fn() -> Vec<Row>);

/// The rows of issue 4, in its order.
const SUITES: [Suite; 14] = [
    ("admit", quota::admit),
    ("drain", quota::drain),
    ("nofit", quota::nofit),
    ("snapshot", quota::snapshot),
    ("preempt_1", || preempt::own_queue("preempt_1", 1, 20.0)),
    ("preempt_256", || preempt::own_queue("preempt_256", 256, 400.0)),
    ("fair_1", || preempt::fair("fair_1", 1, 0.5)),
    ("fair_64", || preempt::fair("fair_64", 64, 3.0)),
    ("preempt_cycle", preempt::cycle),
    ("tas_required", || topology::gang(topology::Case::Required)),
    ("tas_free", || topology::gang(topology::Case::Free)),
    ("tas_nofit", || topology::gang(topology::Case::NoFit)),
    ("bytes", memory::bytes),
    ("philly", philly::replay),
];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    let json = arguments.iter().any(|it| it == "--json");
    let wanted: Vec<&String> = arguments.iter().filter(|it| !it.starts_with("--")).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|it| *it == name);
    let mut out = std::io::stdout().lock();
    if arguments.iter().any(|it| it == memory::CHILD) {
        return memory::child(&mut out);
    }
    if !json {
        row::print_head(&mut out)?;
    }
    for (name, suite) in SUITES.into_iter().filter(|(name, _)| is_wanted(name)) {
        let rows = suite();
        if rows.is_empty() {
            writeln!(std::io::stderr(), "{name}: missing")?;
        }
        row::print(&mut out, &rows, json)?;
    }
    if is_wanted("million") || is_wanted("million_rss") || is_wanted("million_p99") {
        row::print(&mut out, &memory::million(), json)?;
    }
    Ok(())
}
