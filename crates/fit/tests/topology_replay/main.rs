//! Replays the placements of the admission corpus: the recorded decisions say who was admitted and who left, and each
//! recorded topology assignment is compared with the one found here in the same state.
//!
//! The corpus is found through `FAIRLEAD_CASES`, else beside the checkout; without it the test is skipped.

#[cfg(test)]
mod reader;
#[cfg(test)]
mod replay;

use std::path::PathBuf;

fn corpus() -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases");
    let root = std::env::var_os("FAIRLEAD_CASES").map_or(beside, PathBuf::from);
    let folder = root.join("admission");
    folder.is_dir().then_some(folder)
}

/// [TAS-1] to [TAS-5]: every placement of the families `tas` and `mixed`.
#[test]
fn recorded_placements_are_found_again() {
    let Some(folder) = corpus() else {
        println!("skipped: no admission corpus");
        return;
    };
    let mut tally = replay::Tally::default();
    for family in ["tas.jsonl", "mixed.jsonl"] {
        let text = std::fs::read_to_string(folder.join(family)).expect("a family of the corpus");
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let scenario = serde_json::from_str(line).expect("a scenario");
            replay::scenario(&scenario, &mut tally);
        }
    }
    for difference in &tally.differences {
        println!("{difference}");
    }
    println!("{} placements, {} differences", tally.placements, tally.differences.len());
    assert!(tally.placements > 500, "the corpus has 585 placed pod sets, {} were found", tally.placements);
    assert!(tally.differences.is_empty(), "{} differences", tally.differences.len());
}
