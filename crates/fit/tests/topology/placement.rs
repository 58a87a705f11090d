//! [TAS-3], [TAS-4], [TAS-5]: which domains are chosen, level by level.

use fairlead_fit::topology::{Options, Topologies, WhatIf, Why};

use crate::lab::{Ask, HOST, LEVELS, amounts, ask, assigned, cluster, found, held, hold, place, place_if};

/// Racks of block b1 with 6, 4 and 4 CPUs, one of block b2 with 8.
fn uneven() -> Topologies {
    let nodes = [
        ("b1/r1/n1", "cpu=4"),
        ("b1/r1/n2", "cpu=2"),
        ("b1/r2/n3", "cpu=4"),
        ("b1/r3/n4", "cpu=3"),
        ("b1/r3/n5", "cpu=1"),
        ("b2/r1/n6", "cpu=8"),
    ];
    cluster(&LEVELS, &nodes)
}

/// [TAS-4] Required takes the smallest domain that is enough, the first of equals; inside it the fewest nodes.
#[test]
fn required_takes_the_smallest_sufficient_domain() {
    let topologies = uneven();
    let racks = |count| place(&topologies, &[ask(count, "cpu=1", "required rack")]);
    assert_eq!(racks(4), found(&["n3:4"]), "r2 and r3 have the same room; r2 comes first");
    assert_eq!(racks(5), found(&["n1:4 n2:1"]));
    assert_eq!(racks(6), found(&["n1:4 n2:2"]));
    assert_eq!(racks(7), found(&["n6:7"]));
    assert_eq!(
        place(&topologies, &[ask(14, "cpu=1", "required block")]),
        found(&["n1:4 n2:2 n3:4 n4:3 n5:1"])
    );
}

/// [TAS-4] A required level that has no room fails, and says how much there was.
#[test]
fn required_fails_with_what_was_there() {
    let topologies = uneven();
    let short = |asks: &[Ask]| place(&topologies, asks).map_err(|misfit| misfit.why);
    let level = |level: &str, fits, wanted| Err(Why::Short { level: level.into(), fits, wanted, size: 1 });
    assert_eq!(short(&[ask(9, "cpu=1", "required rack")]), level("rack", 8, 9));
    assert_eq!(short(&[ask(15, "cpu=1", "required block")]), level("block", 14, 15));
    assert_eq!(short(&[ask(1, "cpu=9", "required block")]), level("block", 0, 1));
    assert_eq!(short(&[ask(1, "gpu=1", "")]), level(HOST, 0, 1));
    assert_eq!(short(&[ask(23, "cpu=1", "preferred rack")]), level("block", 22, 23));
}

/// [TAS-4] Preferred goes up level by level, and at the top takes the largest first and the last one as small as possible.
#[test]
fn preferred_goes_up_and_then_spreads() {
    let topologies = uneven();
    let racks = |count| place(&topologies, &[ask(count, "cpu=1", "preferred rack")]);
    assert_eq!(racks(4), found(&["n3:4"]));
    assert_eq!(
        racks(9),
        found(&["n1:4 n2:1 n3:4"]),
        "block b1: its largest rack and a sufficient one, whose nodes are one pool"
    );
    assert_eq!(racks(16), found(&["n1:4 n3:4 n6:8"]), "both blocks: their racks are one pool");
    assert_eq!(racks(22), found(&["n1:4 n2:2 n3:4 n4:3 n5:1 n6:8"]));
}

/// [TAS-4] Unconstrained pods fill the nodes with the least room first (gate TASProfileMixed), or the most.
#[test]
fn unconstrained_takes_the_least_free() {
    let topologies = uneven();
    let free = |count, mixed_profile| {
        let options = Options { mixed_profile, ..Options::default() };
        place_if(&topologies, &WhatIf::new(), &[ask(count, "cpu=1", "")], options)
    };
    assert_eq!(free(2, true), found(&["n2:2"]), "the smallest that takes all");
    assert_eq!(free(10, true), found(&["n1:4 n2:2 n4:3 n5:1"]), "n5, n2, n4, n1");
    assert_eq!(free(9, false), found(&["n5:1 n6:8"]), "the largest, then the smallest sufficient");
    assert_eq!(free(10, false), found(&["n2:2 n6:8"]));
}

/// [TAS-3], [TAS-4] Slices lie whole in a domain of their level; rooms for parts of a slice do not add up.
#[test]
fn slices_stay_whole() {
    let topologies = uneven();
    let slices =
        |count, size, level| place(&topologies, &[ask(count, "cpu=1", level).slices(&[("rack", size)])]);
    assert_eq!(
        slices(9, 3, "required block"),
        found(&["n1:4 n2:2 n3:3"]),
        "r1 takes two slices, r2 and r3 one"
    );
    assert_eq!(slices(12, 3, "required block"), found(&["n1:4 n2:2 n3:3 n4:2 n5:1"]));
    assert!(slices(15, 3, "required block").is_err(), "14 CPUs are four slices");
    let hosts = ask(6, "cpu=1", "required block").slices(&[(HOST, 3)]);
    assert_eq!(place(&topologies, &[hosts]), found(&["n6:6"]));
}

/// [TAS-4] Below the slices' level pods fill the nodes with the least room first, also under BestFit (spec/15).
#[test]
fn below_the_slices_small_nodes_come_first() {
    let nodes = [("b1/r1/n1", "cpu=4"), ("b1/r1/n2", "cpu=1"), ("b1/r1/n3", "cpu=2")];
    let topologies = cluster(&LEVELS, &nodes);
    let sliced = ask(4, "cpu=1", "required rack").slices(&[("rack", 4)]);
    assert_eq!(place(&topologies, &[sliced]), found(&["n1:1 n2:1 n3:2"]));
    assert_eq!(place(&topologies, &[ask(4, "cpu=1", "required rack")]), found(&["n1:4"]));
}

/// [TAS-3], [TAS-4] Inner slices too: a node takes whole ones only, and what is left over counts for nothing above.
#[test]
fn inner_slices_stay_whole() {
    let nodes = [("b1/r1/n1", "cpu=5"), ("b1/r1/n2", "cpu=3"), ("b1/r2/n3", "cpu=3"), ("b1/r2/n4", "cpu=3")];
    let topologies = cluster(&LEVELS, &nodes);
    let two_layers = |count| {
        let layers = [("rack", 4), (HOST, 2)];
        place(&topologies, &[ask(count, "cpu=1", "required block").slices(&layers)])
    };
    assert_eq!(two_layers(4), found(&["n3:2 n4:2"]));
    assert_eq!(two_layers(8), found(&["n1:2 n2:2 n3:2 n4:2"]));
    assert!(two_layers(12).is_err(), "8 CPUs of r1 are six pods in twos, one slice of four");
}

/// [TAS-3] A leader needs room beside the workers, in the same domain.
#[test]
fn a_leader_lies_with_its_workers() {
    let group = |workers, leader: &str, level| {
        vec![ask(1, leader, level).grouped(), ask(workers, "cpu=1", level).grouped()]
    };
    let topologies = uneven();
    let placed = |workers, leader, level| place(&topologies, &group(workers, leader, level));
    assert_eq!(placed(3, "cpu=1", "required rack"), found(&["n3:1", "n3:3"]));
    assert_eq!(
        placed(4, "cpu=1", "required rack"),
        found(&["n1:1", "n1:3 n2:1"]),
        "r2 has no room for the leader"
    );
    assert_eq!(
        placed(4, "cpu=4", "required rack"),
        found(&["n6:1", "n6:4"]),
        "the leader would cost r1 too much"
    );
    assert!(placed(8, "cpu=1", "required rack").is_err());
    assert!(placed(1, "gpu=1", "required block").is_err(), "no node takes the leader");
    let workers_first =
        [ask(3, "cpu=1", "required rack").grouped(), ask(1, "cpu=1", "required rack").grouped()];
    assert_eq!(
        place(&topologies, &workers_first),
        found(&["n3:3", "n3:1"]),
        "the larger one are the workers"
    );
}

/// [TAS-4] Over several domains the leader's comes first: one that can host it without leaving too little for the workers.
#[test]
fn a_spread_group_pays_little_for_its_leader() {
    let nodes =
        [("b1/r1/n1", "cpu=3"), ("b1/r1/n2", "cpu=1"), ("b2/r1/n3", "cpu=2"), ("b2/r1/n4", "cpu=2 gpu=1")];
    let topologies = cluster(&LEVELS, &nodes);
    let group = |leader: &str, workers| {
        let level = "preferred rack";
        place(&topologies, &[ask(1, leader, level).grouped(), ask(workers, "cpu=1", level).grouped()])
    };
    assert_eq!(group("cpu=1", 7), found(&["n1:1", "n1:2 n2:1 n3:2 n4:2"]));
    assert_eq!(group("gpu=1", 8), found(&["n4:1", "n1:3 n2:1 n3:2 n4:2"]));
    assert!(group("cpu=1", 8).is_err());
    assert!(group("cpu=3", 6).is_err(), "only n1 can host it, and then five workers fit");
    assert_eq!(group("cpu=3", 5), found(&["n1:1", "n2:1 n3:2 n4:2"]));
}

/// [TAS-4] Each pod set is placed on top of those before it, and never on top of what a node has (design.md §6).
#[test]
fn pod_sets_of_one_workload_do_not_over_commit() {
    let topologies = uneven();
    let both = [ask(8, "cpu=1", "required rack"), ask(6, "cpu=1", "required rack")];
    assert_eq!(place(&topologies, &both), found(&["n6:8", "n1:4 n2:2"]));
    let three = [both[0].clone(), both[1].clone(), ask(5, "cpu=1", "required rack")];
    assert_eq!(place(&topologies, &three).map_err(|misfit| misfit.pod_set), Err(2), "all or nothing");
    let twice = [both[0].clone(), both[0].clone()];
    let empty = Options { empty: true, ..Options::default() };
    assert!(place_if(&topologies, &WhatIf::new(), &twice, empty).is_err(), "also on empty topologies");
}

/// [TAS-4] Pod sets on different flavors see each other where these share hosts.
#[test]
fn pod_sets_on_two_flavors_share_hosts() {
    let mut topologies = cluster(&LEVELS, &[("b1/r1/n1", "cpu=4"), ("b1/r1/n2", "cpu=2")]);
    topologies.set_flavor("other".into(), crate::lab::spec(&["rack", HOST]));
    topologies.settle();
    let (three, two) = (ask(3, "cpu=1", ""), ask(2, "cpu=1", ""));
    let placed = topologies.place(
        &WhatIf::new(),
        &[("tas", three.request()), ("other", two.request())],
        Options::default(),
    );
    let placed = placed.expect("room for both");
    let names = |flavor, ix: usize| crate::lab::written(&topologies.assignment(flavor, &placed[ix]));
    assert_eq!((names("tas", 0), names("other", 1)), ("n1:3".into(), "n2:2".into()));
    let twice = [("tas", three.request()), ("other", three.request()), ("tas", two.request())];
    let misfit = topologies.place(&WhatIf::new(), &twice, Options::default());
    assert_eq!(misfit.map_err(|misfit| misfit.pod_set), Err(2));
}

/// [TAS-5] Fragmentation: a victim's room counts only where it is; without victims an empty topology says what to reserve.
#[test]
fn victims_must_make_room_in_one_domain() {
    let mut topologies = uneven();
    hold(&mut topologies, "n1:3 n6:5", "cpu=1");
    hold(&mut topologies, "n3:2", "cpu=1");
    let six = [ask(6, "cpu=1", "required rack")];
    assert!(place(&topologies, &six).is_err());
    let per_pod = amounts("cpu=1");
    let (one, other) = (assigned("n3:2"), assigned("n1:3 n6:5"));
    let mut what_if = WhatIf::new();
    what_if.free(&topologies, held(&one, &per_pod));
    assert!(place_if(&topologies, &what_if, &six, Options::default()).is_err(), "two CPUs in the wrong rack");
    what_if.free(&topologies, held(&other, &per_pod));
    assert_eq!(place_if(&topologies, &what_if, &six, Options::default()), found(&["n1:4 n2:2"]));
    what_if.take(&topologies, held(&one, &per_pod));
    what_if.take(&topologies, held(&other, &per_pod));
    assert_eq!(what_if, WhatIf::new(), "taken back, nothing is left of it");
    let empty = Options { empty: true, ..Options::default() };
    assert_eq!(place_if(&topologies, &what_if, &six, empty), found(&["n1:4 n2:2"]));
    what_if.take(&topologies, held(&assigned("n2:2 n6:8"), &per_pod));
    assert_eq!(
        place_if(&topologies, &what_if, &six, empty),
        found(&["n1:4 n2:2"]),
        "empty of what is assumed too"
    );
    assert!(place(&topologies, &six).is_err(), "nothing has changed");
}

/// [TAS-5], [S-4] The second look takes all pod sets of a workload together, on top of what the round assumed.
#[test]
fn the_second_look_is_at_all_pod_sets_together() {
    let mut topologies = uneven();
    let per_pod = amounts("cpu=1");
    let (main, extra) = (assigned("n6:5"), assigned("n6:3"));
    let both = [held(&main, &per_pod), held(&extra, &per_pod)];
    assert!(WhatIf::new().fits(&topologies, &both));
    let mut round = WhatIf::new();
    round.take(&topologies, held(&assigned("n6:1"), &per_pod));
    assert!(!round.fits(&topologies, &both), "nine on eight CPUs");
    assert!(round.fits(&topologies, &both[..1]));
    let repeated = assigned("n6:5 n6:4");
    assert!(!WhatIf::new().fits(&topologies, &[held(&repeated, &per_pod)]), "named twice, counted twice");
    hold(&mut topologies, "n6:3", "cpu=1");
    assert!(!round.fits(&topologies, &both[..1]));
    topologies.remove_node("n6");
    assert!(!WhatIf::new().fits(&topologies, &both[1..]), "the node is gone");
}

/// [TAS-4] Balanced placement (gate TASBalancedPlacement): few domains, evenly used.
#[test]
fn balanced_placement_is_even() {
    let nodes = [
        ("b1/r1/n1", "cpu=6"),
        ("b1/r2/n2", "cpu=6"),
        ("b1/r3/n3", "cpu=1"),
        ("b2/r1/n4", "cpu=5"),
        ("b2/r2/n5", "cpu=5"),
    ];
    let topologies = cluster(&LEVELS, &nodes);
    let options = Options { balanced: true, ..Options::default() };
    let placed = |asks: &[Ask]| place_if(&topologies, &WhatIf::new(), asks, options);
    assert_eq!(placed(&[ask(8, "cpu=1", "preferred rack")]), found(&["n1:4 n2:4"]));
    assert_eq!(place(&topologies, &[ask(8, "cpu=1", "preferred rack")]), found(&["n4:5 n5:3"]));
    assert_eq!(placed(&[ask(9, "cpu=1", "preferred rack")]), found(&["n1:5 n2:4"]));
    assert_eq!(
        placed(&[ask(8, "cpu=1", "required block")]),
        place(&topologies, &[ask(8, "cpu=1", "required block")])
    );
    assert_eq!(
        placed(&[ask(23, "cpu=1", "preferred rack")]),
        found(&["n1:6 n2:6 n3:1 n4:5 n5:5"]),
        "else as always"
    );
    let group = |workers| {
        [ask(1, "cpu=1", "preferred rack").grouped(), ask(workers, "cpu=1", "preferred rack").grouped()]
    };
    assert_eq!(placed(&group(8)), found(&["n1:1", "n1:4 n2:4"]));
    let sliced = ask(8, "cpu=1", "preferred rack").slices(&[(HOST, 2)]);
    assert_eq!(placed(&[sliced]), found(&["n1:4 n2:4"]));
}

/// [TAS-4] The threshold is what the smallest domain that is needed can take.
#[test]
fn balance_ends_at_the_smallest_domain() {
    let nodes = [("b1/r1/n1", "cpu=5"), ("b1/r2/n2", "cpu=5"), ("b1/r3/n3", "cpu=2"), ("b2/r1/n4", "cpu=1")];
    let topologies = cluster(&LEVELS, &nodes);
    let options = Options { balanced: true, ..Options::default() };
    let eleven = [ask(11, "cpu=1", "preferred rack")];
    assert_eq!(place_if(&topologies, &WhatIf::new(), &eleven, options), found(&["n1:5 n2:4 n3:2"]));
    assert_eq!(place(&topologies, &eleven), found(&["n1:5 n2:5 n3:1"]));
}

/// [TAS-4] Domains below the threshold are left out, even where they would leave less room to spare.
#[test]
fn balance_leaves_small_domains_out() {
    let nodes = [("b1/r1/n1", "cpu=6"), ("b1/r2/n2", "cpu=5 gpu=1"), ("b1/r3/n3", "cpu=3")];
    let topologies = cluster(&LEVELS, &nodes);
    let options = Options { balanced: true, ..Options::default() };
    let placed = |asks: &[Ask]| place_if(&topologies, &WhatIf::new(), asks, options);
    let nine = ask(9, "cpu=1", "preferred rack");
    assert_eq!(placed(std::slice::from_ref(&nine)), found(&["n1:5 n2:4"]));
    assert_eq!(place(&topologies, std::slice::from_ref(&nine)), found(&["n1:6 n3:3"]));
    let leader = ask(1, "gpu=1 cpu=1", "preferred rack").grouped();
    assert_eq!(placed(&[leader, nine.grouped()]), found(&["n2:1", "n1:5 n2:4"]), "the leader leaves n2 four");
}
