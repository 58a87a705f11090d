//! [TAS-6]: pods find their domains by rank, or as there is room.

use std::sync::Arc;

use fairlead_fit::topology::{Gated, rank};

use crate::lab::assigned;

fn ranked(ranks: &[u32]) -> Vec<Gated> {
    ranks.iter().map(|rank| Gated { rank: Some(*rank), domain: None }).collect()
}

/// [TAS-6] Neighbouring ranks lie together, in the order of the domains.
#[test]
fn ranks_follow_the_domains() {
    let assignment = assigned("n1:2 n2:1 n3:2");
    let pods = ranked(&[4, 0, 2, 1]);
    assert_eq!(assignment.ungate(&pods, &[]), [(0, 2), (1, 0), (2, 1), (3, 0)]);
    let mut pods = pods;
    pods[1].domain = Some(0);
    assert_eq!(assignment.ungate(&pods, &[]), [(0, 2), (2, 1), (3, 0)], "one was let go before");
}

/// [TAS-6] Missing, double or too large ranks: pods fill what is free, and no more than that.
#[test]
fn without_good_ranks_slots_are_filled() {
    let assignment = assigned("n1:2 n2:1");
    for ranks in [vec![0, 0, 1], vec![0, 1, 3]] {
        assert_eq!(assignment.ungate(&ranked(&ranks), &[]), [(0, 0), (1, 0), (2, 1)], "{ranks:?}");
    }
    let mut pods = vec![Gated::default(); 5];
    pods[0].domain = Some(0);
    assert_eq!(assignment.ungate(&pods, &[]), [(1, 0), (2, 1)], "two stay gated");
    pods[1].domain = Some(0);
    pods[2].domain = Some(0);
    assert_eq!(assignment.ungate(&pods, &[]), [(3, 1)], "more there than were assigned");
}

/// [TAS-6] Nobody goes to a node that has failed.
#[test]
fn failed_nodes_get_no_pods() {
    let assignment = assigned("n1:1 n2:1");
    let failed: Vec<Arc<str>> = vec!["n1".into()];
    assert_eq!(assignment.ungate(&ranked(&[0, 1]), &failed), [(1, 1)]);
}

/// [TAS-6] Ranks count sub-groups, and may start at 1.
#[test]
fn ranks_count_sub_groups() {
    assert_eq!(rank(3, 0, None), Some(3));
    assert_eq!(rank(1, 1, None), Some(0));
    assert_eq!(rank(0, 1, None), None);
    assert_eq!(rank(2, 0, Some((3, 4))), Some(14));
    assert_eq!(rank(2, 0, Some((u32::MAX, 4))), None);
}
