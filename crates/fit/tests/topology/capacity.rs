//! [TAS-1]: domains, nodes that count, and what is free on them.

use std::sync::Arc;

use fairlead_fit::topology::{Exclusions, Options, WhatIf};
use fairlead_model::{NodeTerm, ObjectKey, Operator, Requirement, Taint, TaintEffect, Toleration};

use crate::lab::{HOST, LEVELS, amounts, ask, assigned, cluster, found, hold, node, place, spec};

/// [TAS-1] Racks of one name in two blocks are two domains; an assignment by host names the host alone.
#[test]
fn a_domain_is_a_path() {
    let nodes = [("b1/r1/n1", "cpu=2"), ("b2/r1/n2", "cpu=2")];
    let by_host = cluster(&LEVELS, &nodes);
    assert!(place(&by_host, &[ask(3, "cpu=1", "required rack")]).is_err());
    assert_eq!(place(&by_host, &[ask(2, "cpu=1", "required rack")]), found(&["n1:2"]));
    let by_rack = cluster(&["block", "rack"], &nodes);
    assert_eq!(place(&by_rack, &[ask(3, "cpu=1", "preferred block")]), found(&["b1/r1:2 b2/r1:1"]));
}

/// [TAS-1] Only nodes that are usable and carry the labels of the flavor and of all levels.
#[test]
fn nodes_without_labels_or_not_ready_do_not_count() {
    let mut topologies = cluster(&LEVELS, &[("b1/r1/n1", "cpu=2"), ("r1/n2", "cpu=2")]);
    let four = [ask(4, "cpu=1", "")];
    assert!(place(&topologies, &four).is_err(), "n2 has no block");
    topologies.set_node(node("b1/r2/n3", "cpu=2"));
    topologies.settle();
    assert_eq!(place(&topologies, &four), found(&["n1:2 n3:2"]));
    topologies.set_node(fairlead_fit::topology::Node { usable: false, ..node("b1/r2/n3", "cpu=2") });
    assert!(place(&topologies, &four).is_err(), "n3 is cordoned");
    topologies.set_node(node("b1/r2/n3", "cpu=3"));
    assert_eq!(place(&topologies, &[ask(5, "cpu=1", "")]), found(&["n1:2 n3:3"]));
    let mut labelled = spec(&LEVELS);
    labelled.labels.insert("pool".into(), "gpu".into());
    topologies.set_flavor("tas".into(), labelled);
    topologies.settle();
    assert!(place(&topologies, &[ask(1, "cpu=1", "")]).is_err(), "no node is in the pool");
}

/// [TAS-1] A node that moves, or has a resource that no node had before, is taken in.
#[test]
fn nodes_change_what_they_have_and_where_they_are() {
    let mut topologies = cluster(&LEVELS, &[("b1/r1/n1", "cpu=2"), ("b1/r2/n2", "cpu=2")]);
    topologies.set_node(node("b1/r1/n1", "cpu=2 gpu=1"));
    topologies.settle();
    assert_eq!(place(&topologies, &[ask(1, "gpu=1", "")]), found(&["n1:1"]));
    assert!(place(&topologies, &[ask(4, "cpu=1", "required rack")]).is_err());
    topologies.set_node(node("b1/r2/n1", "cpu=2"));
    topologies.settle();
    assert!(place(&topologies, &[ask(1, "gpu=1", "")]).is_err());
    assert_eq!(place(&topologies, &[ask(4, "cpu=1", "required rack")]), found(&["n1:2 n2:2"]));
    topologies.remove_node("n2");
    assert!(place(&topologies, &[ask(3, "cpu=1", "")]).is_err());
}

/// [TAS-1] Other pods take requests and a place in the pod count, until they end.
#[test]
fn other_pods_take_room() {
    let mut topologies = cluster(&[HOST], &[("n1", "cpu=4 pods=3")]);
    let key = ObjectKey::new("kube-system", "daemon");
    topologies.set_pod(key.clone(), "n1".into(), &amounts("cpu=1"));
    assert!(place(&topologies, &[ask(3, "cpu=1", "")]).is_err(), "two places are left");
    assert_eq!(place(&topologies, &[ask(2, "cpu=1", "")]), found(&["n1:2"]));
    topologies.set_pod(key.clone(), "n1".into(), &amounts("cpu=3"));
    assert!(place(&topologies, &[ask(2, "cpu=1", "")]).is_err(), "it was resized");
    topologies.remove_pod(&key);
    assert_eq!(place(&topologies, &[ask(3, "cpu=1", "")]), found(&["n1:3"]));
}

/// [TAS-1] What one flavor's workloads hold on a host is missing to all flavors that have it.
#[test]
fn flavors_share_their_hosts() {
    let mut topologies = cluster(&[HOST], &[("b1/r1/n1", "cpu=4")]);
    topologies.set_flavor("other".into(), spec(&["rack", HOST]));
    topologies.set_flavor("racks".into(), spec(&["block", "rack"]));
    topologies.settle();
    topologies.hold("other", &assigned("n1:3"), &amounts("cpu=1"));
    assert!(place(&topologies, &[ask(2, "cpu=1", "")]).is_err());
    let four = ask(4, "cpu=1", "");
    let in_racks = topologies.place(&WhatIf::new(), &[("racks", four.request())], Options::default());
    assert!(in_racks.is_ok(), "without hosts flavors are apart");
    topologies.release("other", &assigned("n1:3"), &amounts("cpu=1"));
    assert_eq!(place(&topologies, &[four]), found(&["n1:4"]));
}

/// [TAS-1] What is held outlives nodes, and flavors whose Topology is missing for a while.
#[test]
fn holdings_outlive_nodes_and_topologies() {
    let mut topologies = cluster(&LEVELS, &[("b1/r1/n1", "cpu=4")]);
    hold(&mut topologies, "n1:3", "cpu=1");
    topologies.remove_node("n1");
    topologies.remove_flavor("tas");
    topologies.set_flavor("tas".into(), spec(&LEVELS));
    topologies.set_node(node("b1/r1/n1", "cpu=4"));
    topologies.settle();
    assert!(place(&topologies, &[ask(2, "cpu=1", "")]).is_err());
    topologies.release("tas", &assigned("n1:3"), &amounts("cpu=1"));
    assert_eq!(place(&topologies, &[ask(4, "cpu=1", "")]), found(&["n1:4"]));
    let racks = spec(&["block", "rack"]);
    topologies.set_flavor("tas".into(), racks.clone());
    topologies.settle();
    topologies.hold("tas", &assigned("b1/r1:3"), &amounts("cpu=1"));
    topologies.remove_flavor("tas");
    topologies.set_flavor("tas".into(), racks);
    topologies.settle();
    assert!(place(&topologies, &[ask(2, "cpu=1", "")]).is_err());
}

fn taint(effect: TaintEffect) -> Taint {
    Taint { key: "dedicated".into(), value: "a".into(), effect }
}

fn toleration() -> Toleration {
    Toleration { key: "dedicated".into(), exists: true, value: "".into(), effect: None }
}

/// [TAS-1] Taints are tolerated by the pods or by the flavor, and matter only where leaves are nodes.
#[test]
fn taints_keep_pods_away_from_nodes_but_not_from_racks() {
    let tainted =
        |effect| fairlead_fit::topology::Node { taints: vec![taint(effect)], ..node("b1/r1/n1", "cpu=4") };
    let mut topologies = cluster(&LEVELS, &[]);
    topologies.set_node(tainted(TaintEffect::NoExecute));
    topologies.settle();
    let mut one = ask(1, "cpu=1", "");
    assert!(place(&topologies, std::slice::from_ref(&one)).is_err());
    topologies.set_node(tainted(TaintEffect::PreferNoSchedule));
    assert!(place(&topologies, std::slice::from_ref(&one)).is_ok());
    topologies.set_node(tainted(TaintEffect::NoSchedule));
    assert!(place(&topologies, std::slice::from_ref(&one)).is_err());
    topologies.set_flavor("racks".into(), spec(&["rack"]));
    let tolerant = fairlead_fit::topology::FlavorSpec { tolerations: vec![toleration()], ..spec(&LEVELS) };
    topologies.set_flavor("tolerant".into(), tolerant);
    topologies.settle();
    for flavor in ["racks", "tolerant"] {
        let placed = topologies.place(&WhatIf::new(), &[(flavor, one.request())], Options::default());
        assert!(placed.is_ok(), "{flavor}");
    }
    one.nodes.tolerations.push(toleration());
    assert!(place(&topologies, &[one]).is_ok());
}

/// [TAS-1] Node selector and required affinity, and how many nodes each cause excludes.
#[test]
fn selectors_and_affinity_choose_nodes() {
    let mut topologies =
        cluster(&LEVELS, &[("b1/r1/n1", "cpu=4"), ("b1/r1/n2", "cpu=4"), ("b1/r1/n3", "gpu=1")]);
    let chosen = ask(1, "cpu=1", "").selecting(HOST, "n2");
    assert_eq!(place(&topologies, std::slice::from_ref(&chosen)), found(&["n2:1"]));
    let mut affine = ask(1, "cpu=1", "");
    let values: Vec<Arc<str>> = vec!["n1".into()];
    let expression = Requirement { key: HOST.into(), operator: Operator::NotIn, values };
    affine.nodes.affinity = Some(vec![NodeTerm { expressions: vec![expression], fields: Vec::new() }]);
    assert_eq!(place(&topologies, std::slice::from_ref(&affine)), found(&["n2:1"]));
    topologies.set_node(fairlead_fit::topology::Node { usable: false, ..node("b1/r2/n4", "cpu=4") });
    topologies.settle();
    let causes = |ask: &crate::lab::Ask| {
        topologies.exclusions(&WhatIf::new(), ("tas", &ask.request()), Options::default())
    };
    let counted = || Exclusions { total: 4, unusable: 1, ..Exclusions::default() };
    assert_eq!(causes(&chosen), Exclusions { selector: 2, ..counted() });
    let affinity = Exclusions { affinity: 1, resources: vec![("cpu".into(), 1)], ..counted() };
    assert_eq!(causes(&affine), affinity);
    let big = ask(1, "cpu=9", "");
    assert_eq!(causes(&big), Exclusions { resources: vec![("cpu".into(), 3)], ..counted() });
}

/// [TAS-1] `matchFields` compares the name of the node, which need not be its hostname.
#[test]
fn fields_compare_the_name_of_the_node() {
    let mut topologies = cluster(&LEVELS, &[("b1/r1/n1", "cpu=4")]);
    topologies.set_node(fairlead_fit::topology::Node { name: "ip-2".into(), ..node("b1/r1/n2", "cpu=4") });
    topologies.settle();
    let placed = |name: &str| {
        let values: Vec<Arc<str>> = vec![name.into()];
        let field = Requirement { key: "metadata.name".into(), operator: Operator::In, values };
        let mut pinned = ask(1, "cpu=1", "");
        pinned.nodes.affinity = Some(vec![NodeTerm { expressions: Vec::new(), fields: vec![field] }]);
        place(&topologies, &[pinned])
    };
    assert_eq!(placed("ip-2"), found(&["n2:1"]));
    assert!(placed("n2").is_err());
    assert_eq!(placed("n1"), found(&["n1:1"]));
}

/// Hostile amounts saturate: nothing overflows, and over-committed nodes simply take nothing.
#[test]
fn extreme_amounts_do_no_harm() {
    let huge = i64::MAX.to_string();
    let huge = format!("cpu={huge} pods={huge}");
    let mut topologies = cluster(&LEVELS, &[("b1/r1/n1", &huge), ("b1/r1/n2", &huge), ("b1/r2/n3", "cpu=1")]);
    assert!(place(&topologies, &[ask(u32::MAX, "cpu=0", "required block")]).is_ok());
    assert!(place(&topologies, &[ask(2, &format!("cpu={}", i64::MAX), "required rack")]).is_ok());
    hold(&mut topologies, &format!("n1:{0} n2:{0}", u32::MAX), &format!("cpu={}", i64::MAX));
    assert_eq!(place(&topologies, &[ask(1, "cpu=1", "")]), found(&["n3:1"]));
    assert!(place(&topologies, &[ask(1, "cpu=-5", "")]).is_ok());
}
