//! Recorded decisions of Kueue, played through the hub's own conversion and engine. Some scenarios of every family lie
//! beside this test; the whole corpus is looked for in `FAIRLEAD_CASES`, else beside the checkout.

use std::path::{Path, PathBuf};

#[path = "../examples/golden/cluster.rs"]
mod cluster;
#[path = "../examples/golden/compare.rs"]
mod compare;
#[path = "../examples/golden/config.rs"]
mod config;
#[path = "../examples/golden/differences.rs"]
mod differences;
#[path = "../examples/golden/runner.rs"]
mod runner;

use config::Rules;

fn beside() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/admission")
}

/// The whole corpus, if this machine has it.
fn corpus() -> Option<PathBuf> {
    let named = std::env::var_os("FAIRLEAD_CASES").map(|folder| PathBuf::from(folder).join("admission"));
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases/admission");
    named.into_iter().chain([beside]).find(|folder| folder.is_dir())
}

#[test]
fn some_scenarios_of_every_family_agree() {
    let summary = runner::run(&beside(), Rules::Kueue).unwrap();
    assert_eq!(summary.failures(), Vec::<String>::new());
    assert!(summary.passed() >= 20, "{} scenarios", summary.passed());
    assert_eq!(summary.families().len(), 12);
    assert!(summary.known().0 >= 1, "the circles are listed as known differences");
}

/// With the hub's own rules the only differences are in the last bit of a share and in circles.
#[test]
fn the_hubs_own_rules_agree_too() {
    let summary = runner::run(&beside(), Rules::Fairlead).unwrap();
    assert_eq!(summary.failures(), Vec::<String>::new());
}

#[test]
fn the_whole_corpus_agrees() {
    let Some(folder) = corpus() else {
        println!("skipped: no corpus in FAIRLEAD_CASES or beside the checkout");
        return;
    };
    let summary = runner::run(&folder, Rules::Kueue).unwrap();
    assert_eq!(summary.failures(), Vec::<String>::new());
    assert!(summary.passed() > 0);
}

/// A runner that cannot fail would prove nothing.
#[test]
fn a_wrong_expectation_is_found() {
    let text = std::fs::read_to_string(beside().join("fifo.jsonl")).unwrap();
    let mut scenario: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(runner::play(&scenario, Rules::Kueue), Ok(()));
    let steps = scenario["steps"].as_array_mut().unwrap();
    let usage =
        steps.iter_mut().find_map(|step| step["after"]["usage"].as_object_mut().filter(|it| !it.is_empty()));
    usage.unwrap().clear();
    let error = runner::play(&scenario, Rules::Kueue).unwrap_err();
    assert!(error.contains("usage"), "{error}");
}
