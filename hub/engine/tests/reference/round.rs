//! One round [S-1]: nomination against one state, then one entry after the other [S-4], [S-5].

use std::collections::BTreeSet;

use fairlead_engine::fact::VictimPolicy;
use fairlead_engine::{Outcome, Policy};
use fairlead_model::{Amount, Uid};

use super::assign::{Assigner, Assignment, Mode, Positions};
use super::facts::Node;
use super::order::take_next;
use super::tree::{State, Victim};
use super::{Amounts, Name};

/// A head that passed the checks of, and what it was nominated for.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) uid: Uid,
    pub(super) queue: Name,
    pub(super) assignment: Assignment,
    pub(super) victims: Vec<Victim>,
}

impl Entry {
    /// The leaf of its ClusterQueue.
    pub(super) fn leaf(&self) -> Node {
        Node::Queue(self.queue.clone())
    }
}

/// An entry that was handled.
#[derive(Clone, Debug)]
pub(super) struct Handled {
    pub(super) entry: Entry,
    pub(super) outcome: Outcome,
}

/// [S-1] Nominates every head against the same state, then handles them in order.
pub(super) fn play(
    policy: &Policy,
    state: &State<'_>,
    heads: &[(Name, Uid, Option<Positions>)],
) -> Vec<Handled> {
    let mut entries: Vec<Entry> = Vec::new();
    for (queue, uid, positions) in heads {
        let (assignment, victims) = assigner(policy, state, (queue, uid), positions.as_ref()).best();
        entries.push(Entry { uid: uid.clone(), queue: queue.clone(), assignment, victims });
    }
    let mut progress = Progress { policy, state: state.clone(), taken: BTreeSet::new() };
    let mut handled = Vec::new();
    while let Some(mut entry) = take_next(policy, &progress.state, &mut entries) {
        let outcome = progress.handle(&mut entry);
        handled.push(Handled { entry, outcome });
    }
    handled
}

fn assigner<'a>(
    policy: &'a Policy,
    state: &'a State<'a>,
    (queue, uid): (&Name, &Uid),
    positions: Option<&'a Positions>,
) -> Assigner<'a> {
    let (workload, queue) = (state.facts.workload(uid), &state.facts.queues[queue]);
    Assigner { policy, state, workload, queue, positions, nominated: None }
}

struct Progress<'a> {
    policy: &'a Policy,
    /// Everything held, victims included, and what entries so far have claimed.
    state: State<'a>,
    /// Victims of the entries so far.
    taken: BTreeSet<Uid>,
}

impl Progress<'_> {
    /// [S-4] What becomes of an entry.
    fn handle(&mut self, entry: &mut Entry) -> Outcome {
        if self.overlaps(entry) {
            self.compute_again(entry);
        }
        let gated = self.state.facts.workload(&entry.uid).preemption_gated;
        match entry.assignment.mode() {
            Mode::NoFit => Outcome::NoFit,
            Mode::Preempt if entry.victims.is_empty() => {
                self.reserve(entry);
                Outcome::PreemptionNoCandidates
            }
            Mode::Preempt if gated => Outcome::PreemptionGated,
            Mode::Deferred => {
                self.claim(entry, &entry.assignment.usage);
                Outcome::PendingPreemption
            }
            Mode::Preempt | Mode::Fit if self.overlaps(entry) || !self.fits(entry) => Outcome::Skipped,
            mode => {
                self.claim(entry, &entry.assignment.usage);
                self.taken.extend(entry.victims.iter().map(|(uid, _)| uid.clone()));
                if mode == Mode::Fit { Outcome::Admitted } else { Outcome::PendingPreemption }
            }
        }
    }

    fn overlaps(&self, entry: &Entry) -> bool {
        entry.victims.iter().any(|(uid, _)| self.taken.contains(uid))
    }

    /// [S-4.2] With the victims of others gone, among the flavors that were nominated, from the first one.
    fn compute_again(&self, entry: &mut Entry) {
        let state = self.state.without(&self.taken);
        let again = assigner(self.policy, &state, (&entry.queue, &entry.uid), None);
        let (mut assignment, victims) = Assigner { nominated: Some(&entry.assignment), ..again }.best();
        assignment.deferred = true;
        (entry.assignment, entry.victims) = (assignment, victims);
    }

    /// [S-4.9] Whether it fits with all victims gone, its own included.
    fn fits(&self, entry: &Entry) -> bool {
        let gone = self.taken.iter().chain(entry.victims.iter().map(|(uid, _)| uid));
        self.state.without(gone).fits(&entry.queue, &entry.assignment.usage)
    }

    fn claim(&mut self, entry: &Entry, usage: &Amounts) {
        self.state = self.state.with(&entry.queue, usage);
    }

    /// [S-4.5] Holds back what an entry without victims waits for, unless it can always take it back.
    fn reserve(&mut self, entry: &Entry) {
        let leaf = entry.leaf();
        if self.state.facts.queues[&entry.queue].preemption.reclaim == VictimPolicy::Any {
            return;
        }
        let mut reserved = Amounts::new();
        for (fr, amount) in &entry.assignment.usage {
            let (nominal, used) = (self.state.nominal(&leaf, fr), self.state.usage(&leaf, fr));
            let ceiling = match (entry.assignment.borrow > 0, self.state.borrowing_limit(&leaf, fr)) {
                (true, None) => Amount::Unlimited,
                (true, Some(limit)) => nominal.plus(limit),
                (false, _) => nominal,
            };
            let room = ceiling.minus(used).saturated();
            let room = if entry.assignment.borrow > 0 { room } else { room.max(0) };
            reserved.insert(fr.clone(), room.min(*amount));
        }
        self.claim(entry, &reserved);
    }
}
