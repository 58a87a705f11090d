//! [TAS-2], [TAS-8], [F-3d]: what requests mean, and which are refused.

use fairlead_fit::topology::{Misfit, Why};

use crate::lab::{Ask, HOST, LEVELS, ask, cluster, found, place};

fn why(topologies: &fairlead_fit::topology::Topologies, asks: &[Ask]) -> Why {
    place(topologies, asks).expect_err("a refusal").why
}

/// [TAS-2] Levels that do not exist, slices wider than the pod set, inner slices that do not fit their outer ones.
#[test]
fn contradictions_are_refused_by_name() {
    let topologies = cluster(&LEVELS, &[("b1/r1/n1", "cpu=9")]);
    let required = ask(4, "cpu=1", "required rack");
    assert_eq!(why(&topologies, &[ask(4, "cpu=1", "required zone")]), Why::UnknownLevel("zone".into()));
    let slices = |slices: &[(&str, u32)]| why(&topologies, &[required.clone().slices(slices)]);
    assert_eq!(slices(&[("zone", 2)]), Why::UnknownLevel("zone".into()));
    assert_eq!(slices(&[("block", 2)]), Why::SliceAboveLevel("block".into()));
    assert_eq!(slices(&[("rack", 4), ("rack", 2)]), Why::SliceNotInside("rack".into()));
    assert_eq!(slices(&[("rack", 4), (HOST, 3)]), Why::SliceSize(3));
    assert_eq!(slices(&[("rack", 4), (HOST, 0)]), Why::SliceSize(0));
    assert_eq!(slices(&[("rack", 0)]), Why::SliceSize(0));
    assert_eq!(slices(&[("rack", 3)]), Why::Remainder { count: 4, size: 3 });
    let misfit = place(&topologies, &[ask(1, "cpu=1", ""), required.slices(&[("rack", 3)])]);
    assert_eq!(misfit.map_err(|Misfit { pod_set, .. }| pod_set), Err(1));
}

/// [TAS-2] Unconstrained pods go anywhere; slices alone may spread from the highest level down.
#[test]
fn slices_alone_are_constrained() {
    let nodes = [("b1/r1/n1", "cpu=3"), ("b1/r2/n2", "cpu=3"), ("b2/r1/n3", "cpu=2")];
    let topologies = cluster(&LEVELS, &nodes);
    assert_eq!(place(&topologies, &[ask(8, "cpu=1", "")]), found(&["n1:3 n2:3 n3:2"]));
    let sliced = ask(6, "cpu=1", "").slices(&[("rack", 2)]);
    assert_eq!(place(&topologies, &[sliced]), found(&["n1:2 n2:2 n3:2"]));
    let more = ask(8, "cpu=1", "").slices(&[("rack", 2)]);
    let short = Why::Short { level: "block".into(), fits: 3, wanted: 4, size: 2 };
    assert_eq!(why(&topologies, &[more]), short);
    assert_eq!(short.to_string(), "3 of 4 slices fit at level block");
}

/// [TAS-2] A group is one leader and one set of workers.
#[test]
fn groups_of_another_form_are_refused() {
    let topologies = cluster(&LEVELS, &[("b1/r1/n1", "cpu=9")]);
    let member = |count| ask(count, "cpu=1", "required rack").grouped();
    assert_eq!(why(&topologies, &[member(2), member(2)]), Why::BadGroup);
    assert_eq!(why(&topologies, &[member(1), member(2), member(1)]), Why::BadGroup);
    assert_eq!(place(&topologies, &[member(1), member(1)]), found(&["n1:1", "n1:1"]));
    assert_eq!(place(&topologies, &[member(0), member(3)]), found(&["", "n1:3"]), "no leader is left");
}

/// [TAS-8] Without the Topology nothing is placed, and nothing is asked of it.
#[test]
fn no_topology_no_placement() {
    let topologies = cluster(&LEVELS, &[("b1/r1/n1", "cpu=9")]);
    let one = ask(1, "cpu=1", "");
    let placed = topologies.place(
        &fairlead_fit::topology::WhatIf::new(),
        &[("gone", one.request())],
        fairlead_fit::topology::Options::default(),
    );
    assert_eq!(placed, Err(Misfit { pod_set: 0, why: Why::NoTopology }));
    assert_eq!(topologies.levels("gone"), None);
    let nothing = cluster(&[], &[("b1/r1/n1", "cpu=9")]);
    assert_eq!(why(&nothing, &[one]), Why::NoTopology);
}

/// [F-3d] A flavor suits a request only if its topology has every level that is named.
#[test]
fn every_named_level_must_exist() {
    let topologies = cluster(&["rack", HOST], &[]);
    let has = |ask: &Ask| topologies.has_levels("tas", &ask.request());
    assert!(has(&ask(1, "cpu=1", "")));
    assert!(has(&ask(1, "cpu=1", "required rack")));
    assert!(!has(&ask(1, "cpu=1", "preferred block")));
    assert!(!has(&ask(2, "cpu=1", "preferred rack").slices(&[("rack", 2), ("switch", 1)])));
}
