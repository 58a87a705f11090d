//! Orders: of a queue, [Q-3], and of the entries of a round [S-2], [S-3].

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;

use fairlead_engine::Policy;
use fairlead_engine::fact::{EvictionCause, Workload};
use fairlead_model::{Millis, Uid};

use super::facts::Node;
use super::round::Entry;
use super::tree::State;

/// The timestamp that counts in every order.
pub(super) fn queue_time(workload: &Workload) -> Millis {
    match workload.evicted {
        Some(it) if it.cause == EvictionCause::PodsReadyTimeout => it.at,
        Some(it) if it.cause == EvictionCause::AdmissionCheck => it.at,
        _ => workload.created,
    }
}

/// Sticky, priority, time, uid.
pub(super) fn queue_order(workload: &Workload, sticky: bool) -> (bool, Reverse<i64>, Millis, Uid) {
    (!sticky, Reverse(workload.priority), queue_time(workload), workload.uid.clone())
}

/// Takes the entry that is handled next. Trees do not affect each other; the first in the list is as good as any.
pub(super) fn take_next(policy: &Policy, state: &State<'_>, entries: &mut Vec<Entry>) -> Option<Entry> {
    let root = state.root(&entries.first()?.leaf());
    let of_tree: Vec<usize> =
        (0..entries.len()).filter(|ix| state.root(&entries[*ix].leaf()) == root).collect();
    let chosen = if policy.fair_sharing.is_some() {
        tournament(state, entries, &of_tree, &root)?
    } else {
        of_tree.into_iter().min_by(|a, b| classical(state, &entries[*a], &entries[*b]))?
    };
    Some(entries.remove(chosen))
}

/// [S-2] Lower borrow level, higher priority, older.
fn classical(state: &State<'_>, a: &Entry, b: &Entry) -> Ordering {
    a.assignment.borrow.cmp(&b.assignment.borrow).then_with(|| priority_then_age(state, a, b))
}

fn priority_then_age(state: &State<'_>, a: &Entry, b: &Entry) -> Ordering {
    let key = |entry: &Entry| {
        let workload = state.facts.workload(&entry.uid);
        (Reverse(workload.priority), queue_time(workload), entry.uid.clone())
    };
    key(a).cmp(&key(b))
}

/// [S-3] The best entry below a node, each Cohort comparing the winners of its children.
fn tournament(state: &State<'_>, entries: &[Entry], among: &[usize], node: &Node) -> Option<usize> {
    if let Node::Queue(name) = node {
        return among.iter().copied().find(|ix| entries[*ix].queue == *name);
    }
    let winner = |child: &Node| Some((child.clone(), tournament(state, entries, among, child)?));
    let winners = state.children(node).into_iter().filter_map(|child| winner(&child));
    winners.min_by(|a, b| compare(state, (&a.0, &entries[a.1]), (&b.0, &entries[b.1]))).map(|(_, ix)| ix)
}

/// [S-3] Not borrowing on what it requests, lower share of the Cohort's child with the workload in, priority, age.
fn compare(state: &State<'_>, (child_a, a): (&Node, &Entry), (child_b, b): (&Node, &Entry)) -> Ordering {
    let with = |entry: &Entry| state.with(&entry.queue, &entry.assignment.usage);
    let (with_a, with_b) = (with(a), with(b));
    let requested = |entry: &Entry| entry.assignment.usage.keys().cloned().collect::<BTreeSet<_>>();
    let borrows_a = with_a.borrows_any(child_a, &requested(a));
    let borrows_b = with_b.borrows_any(child_b, &requested(b));
    let shares = || with_a.share(child_a).compare(with_b.share(child_b));
    borrows_a.cmp(&borrows_b).then_with(shares).then_with(|| priority_then_age(state, a, b))
}
