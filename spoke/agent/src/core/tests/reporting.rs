//! Capacity reports.

use fairlead_session::Report;
use serde_json::json;

use super::super::harness::{Spoke, key, placement};
use crate::ports::Kind;

fn free_cpu(report: &Report) -> Vec<(i64, u32)> {
    report.free.iter().map(|shape| (shape.free.get("cpu"), shape.count)).collect()
}

#[test]
fn the_first_report_waits_for_the_inventory_and_comes_at_once_then() {
    let mut spoke = Spoke::unlisted();
    spoke.node("n1", "8", true);
    assert!(spoke.reports.is_empty());
    spoke.list();
    assert_eq!(spoke.reports.len(), 1);
    assert_eq!((free_cpu(&spoke.reports[0]), spoke.reports[0].nodes), (vec![(8000, 1)], 1));
}

#[test]
fn changes_are_told_once_per_interval_and_silence_costs_nothing() {
    let mut spoke = Spoke::new();
    spoke.node("n2", "4", true);
    spoke.node("n3", "4", true);
    assert_eq!(spoke.reports.len(), 1);
    spoke.pass(60);
    assert_eq!(spoke.reports.len(), 2);
    assert_eq!(free_cpu(&spoke.reports[1]), [(4000, 2), (8000, 1)]);
    spoke.pass(60_000);
    spoke.node("n3", "4", true);
    assert_eq!(spoke.reports.len(), 2);
    spoke.node("n3", "5", true);
    assert_eq!(spoke.reports.len(), 3, "after a quiet time at once");
    assert!(spoke.reports.windows(2).all(|pair| pair[0].version < pair[1].version));
}

#[test]
fn bound_pods_are_reported_by_placement_until_the_copy_has_ended() {
    let mut spoke = Spoke::new();
    spoke.start(1, "run", "train");
    let uid = spoke.uid("train");
    let pod = spoke.pod("pod", &uid, 1, true);
    spoke.pass(60);
    let report = spoke.reports.last().unwrap();
    assert_eq!(report.bound[&placement(1)].get("cpu"), 1000);
    assert_eq!(free_cpu(report), [(7000, 1)]);
    spoke.pod("pod", &uid, 1, false);
    spoke.status("train", json!({"failed": 1, "conditions": [{"type": "Failed", "status": "True"}]}));
    spoke.pass(60);
    let report = spoke.reports.last().unwrap();
    assert!(report.bound.is_empty());
    assert_eq!(free_cpu(report), [(8000, 1)]);
    spoke.gone(Kind::Pod, &key("pod"), "pod", Some(pod));
    assert_eq!(spoke.core.claims.len(), 0);
}
