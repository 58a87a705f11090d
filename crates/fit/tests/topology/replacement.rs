//! [TAS-7]: pods of a failed node are put elsewhere, the others stay.

use std::sync::Arc;

use fairlead_fit::topology::{Topologies, WhatIf, Why};

use crate::lab::{Ask, HOST, LEVELS, amounts, ask, assigned, cluster, hold, written};

fn replaced(topologies: &Topologies, ask: &Ask, assignment: &str, failed: &[&str]) -> Result<String, Why> {
    let failed: Vec<Arc<str>> = failed.iter().map(|name| Arc::from(*name)).collect();
    let found = topologies.replace(&WhatIf::new(), ("tas", &ask.request()), (&assigned(assignment), &failed));
    found.map(|assignment| written(&assignment)).map_err(|misfit| misfit.why)
}

/// A cluster whose pod set is admitted, before a node fails.
fn admitted(nodes: &[(&str, &str)], assignment: &str) -> Topologies {
    let mut topologies = cluster(&LEVELS, nodes);
    hold(&mut topologies, assignment, "cpu=1");
    topologies
}

const NODES: [(&str, &str); 6] = [
    ("b1/r1/n1", "cpu=2"),
    ("b1/r1/n2", "cpu=2"),
    ("b1/r1/n3", "cpu=3"),
    ("b1/r2/n4", "cpu=4"),
    ("b2/r1/n5", "cpu=2"),
    ("b2/r1/n6", "cpu=4"),
];

/// [TAS-7] Anywhere, unless more is required; the failed node itself is never taken, also if it looks usable.
#[test]
fn goes_anywhere_when_nothing_is_required() {
    let topologies = admitted(&NODES, "n1:2 n3:1");
    assert_eq!(replaced(&topologies, &ask(3, "cpu=1", ""), "n1:2 n3:1", &["n1"]), Ok("n2:2 n3:1".into()));
    let preferred = ask(3, "cpu=1", "preferred rack");
    assert_eq!(replaced(&topologies, &preferred, "n1:2 n3:1", &["n1"]), Ok("n2:2 n3:1".into()));
    assert_eq!(replaced(&topologies, &preferred, "n1:2 n3:1", &["n3"]), Ok("n1:2 n2:1".into()));
}

/// [TAS-7] Into the domain that is required; the merged domain counts old and new pods.
#[test]
fn stays_in_the_required_domain() {
    let mut topologies = admitted(&NODES, "n1:2 n3:1");
    let rack = ask(3, "cpu=1", "required rack");
    assert_eq!(replaced(&topologies, &rack, "n1:2 n3:1", &["n1"]), Ok("n2:2 n3:1".into()));
    hold(&mut topologies, "n2:2", "cpu=1");
    assert_eq!(replaced(&topologies, &rack, "n1:2 n3:1", &["n1"]), Ok("n3:3".into()));
    hold(&mut topologies, "n3:1", "cpu=1");
    let short = Why::Short { level: "rack".into(), fits: 1, wanted: 2, size: 1 };
    assert_eq!(replaced(&topologies, &rack, "n1:2 n3:1", &["n1"]), Err(short));
    let block = ask(3, "cpu=1", "required block");
    assert_eq!(replaced(&topologies, &block, "n1:2 n3:1", &["n1"]), Ok("n3:1 n4:2".into()));
}

/// [TAS-7] If it was the only node, there is no domain left to stay in.
#[test]
fn starts_anew_when_nothing_is_left() {
    let topologies = admitted(&NODES, "n1:2");
    let rack = ask(2, "cpu=1", "required rack");
    assert_eq!(replaced(&topologies, &rack, "n1:2", &["n1"]), Ok("n4:2".into()));
}

/// [TAS-7] Into the domain of the slice that broke; whole slices may go elsewhere.
#[test]
fn mends_the_broken_slice_where_it_is() {
    let topologies = admitted(&NODES, "n1:1 n2:1 n5:2");
    let sliced = ask(4, "cpu=1", "required block").slices(&[("rack", 2)]);
    let racks = Ask { level: "", ..sliced };
    assert_eq!(replaced(&topologies, &racks, "n1:1 n2:1 n5:2", &["n1"]), Ok("n2:2 n5:2".into()));
    assert_eq!(replaced(&topologies, &racks, "n1:1 n2:1 n5:2", &["n5"]), Ok("n1:1 n2:1 n6:2".into()));
}

/// [TAS-7] An assignment whose slices were not whole before cannot be mended.
#[test]
fn does_not_break_further_what_was_broken() {
    let topologies = admitted(&NODES, "n1:1 n2:2");
    let sliced = ask(4, "cpu=1", "").slices(&[("rack", 2)]);
    let remainder = Why::Remainder { count: 1, size: 2 };
    assert_eq!(replaced(&topologies, &sliced, "n1:1 n2:2", &["n1"]), Err(remainder));
}

/// [TAS-7] Of several layers the innermost broken one says where, and the largest parts that are still whole stay whole.
#[test]
fn mends_layers_from_the_inside() {
    let nodes = [
        ("b1/r1/n1", "cpu=4"),
        ("b1/r1/n2", "cpu=5"),
        ("b1/r1/n3", "cpu=1"),
        ("b1/r1/n4", "cpu=1"),
        ("b1/r2/n5", "cpu=9"),
    ];
    let topologies = admitted(&nodes, "n1:4 n2:4");
    let layers = ask(8, "cpu=1", "required block").slices(&[("rack", 8), (HOST, 2)]);
    let short = Why::Short { level: "block".into(), fits: 0, wanted: 2, size: 2 };
    assert_eq!(
        replaced(&topologies, &layers, "n1:4 n2:4", &["n1"]),
        Err(short),
        "r1 has three single CPUs left"
    );
    let mut topologies = topologies;
    topologies.set_node(crate::lab::node("b1/r1/n3", "cpu=2"));
    topologies.set_node(crate::lab::node("b1/r1/n4", "cpu=3"));
    assert_eq!(replaced(&topologies, &layers, "n1:4 n2:4", &["n1"]), Ok("n2:4 n3:2 n4:2".into()));
}

/// [TAS-7] Another domain of the assignment that is gone makes it fail; several nodes that failed at once are replaced at
/// once.
#[test]
fn stale_domains_fail() {
    let mut topologies = admitted(&NODES, "n1:2 n3:1 n5:1");
    let free = ask(4, "cpu=1", "");
    topologies
        .set_node(fairlead_fit::topology::Node { usable: false, ..crate::lab::node("b2/r1/n5", "cpu=2") });
    assert_eq!(replaced(&topologies, &free, "n1:2 n3:1 n5:1", &["n1"]), Err(Why::Stale("n5".into())));
    topologies.remove_node("n5");
    assert_eq!(replaced(&topologies, &free, "n1:2 n3:1 n5:1", &["n1"]), Err(Why::Stale("n5".into())));
    assert_eq!(replaced(&topologies, &free, "n1:2 n3:1 n5:1", &["n1", "n5"]), Ok("n3:1 n4:3".into()));
}

/// [TAS-7] What the round has assumed counts, and pods of the failed node that are still held do not matter.
#[test]
fn sees_what_the_round_assumed() {
    let topologies = admitted(&NODES, "n1:2 n3:1");
    let per_pod = amounts("cpu=1");
    let mut round = WhatIf::new();
    round.take(&topologies, crate::lab::held(&assigned("n2:1"), &per_pod));
    let rack = ask(3, "cpu=1", "required rack");
    let failed: Vec<Arc<str>> = vec!["n1".into()];
    let found = topologies.replace(&round, ("tas", &rack.request()), (&assigned("n1:2 n3:1"), &failed));
    assert_eq!(found.map(|assignment| written(&assignment)), Ok("n3:3".into()));
}
