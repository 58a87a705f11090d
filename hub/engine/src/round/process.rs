//! Handles the entries of a round one after the other [S-4], [S-5].

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use fairlead_fit::{Pod, Room, place, room};
use fairlead_model::{Amount, Verdict};

use super::Round;
use super::assign::Assigner;
use super::entry::{Assignment, Entry, Mode};
use super::explain;
use super::order::Line;
use super::overlay::Overlay;
use crate::Plan;
use crate::fact::VictimPolicy;
use crate::memory::{Requeue, Scan, Way};
use crate::names::RowIx;
use crate::plan::{Admission, Displaced, Head, Outcome, Preempted};
use crate::quota::plane::Changes;
use crate::world::clusters::{flavor_constraints, flavors_of, with_pod};
use crate::world::rows::{Queue, Row};

/// What has happened so far in a round.
struct Progress<'r, 'w> {
    round: &'r Round<'w>,
    state: Overlay<'w>,
    /// The state once the victims chosen so far are gone; none before there are any.
    after: Option<Overlay<'w>>,
    /// Victims of the entries handled so far.
    gone: BTreeSet<RowIx>,
    plan: &'r mut Plan,
    acted: bool,
    /// Scratch for [`Round::grant`].
    key: Vec<u32>,
}

/// Handles the entries in their order; true when anything changed.
pub(crate) fn process(round: &Round<'_>, mut line: Line, plan: &mut Plan) -> bool {
    let state = Overlay::new(round.world);
    let (gone, key) = (BTreeSet::new(), Vec::new());
    let mut progress = Progress { round, state, after: None, gone, plan, acted: false, key };
    while let Some(entry) = line.pop(round, &progress.state) {
        progress.handle(entry);
    }
    progress.acted
}

impl<'w> Progress<'_, 'w> {
    fn handle(&mut self, mut entry: Entry) {
        let world = self.round.world;
        let (Some(row), Some(queue)) = (world.row(entry.row), world.queue(entry.queue)) else { return };
        self.refresh(&mut entry, row);
        let outcome = match entry.assignment.mode() {
            Mode::NoFit => Outcome::NoFit,
            Mode::Preempt if entry.targets.is_empty() => {
                self.reserve(&entry, row, queue);
                Outcome::PreemptionNoCandidates
            }
            Mode::Preempt if row.fact.preemption_gated => Outcome::PreemptionGated,
            Mode::Deferred => {
                self.charge(&entry, row);
                Outcome::PendingPreemption
            }
            Mode::Preempt | Mode::Fit if !self.still_fits(&entry, row) => Outcome::Skipped,
            Mode::Preempt => {
                self.charge(&entry, row);
                self.preempt(&entry, row);
                Outcome::PendingPreemption
            }
            Mode::Fit => {
                self.charge(&entry, row);
                self.place(&entry, row);
                Outcome::Admitted
            }
        };
        if entry.second_pass && outcome == Outcome::NoFit {
            self.displace(row, queue);
        }
        self.conclude(&entry, (row, queue), outcome);
    }

    /// Decides again what entries handled earlier in the round have made untrue [S-4]: where they took the place, or
    /// where they preempt the same victims. Only flavors that were nominated before are looked at.
    fn refresh(&mut self, entry: &mut Entry, row: &Row) {
        if entry.second_pass {
            return;
        }
        let hopeless = match entry.assignment.mode() {
            Mode::NoFit | Mode::Deferred => true,
            Mode::Preempt => entry.targets.is_empty(),
            Mode::Fit => false,
        };
        if hopeless {
            return;
        }
        let overlaps = entry.targets.iter().any(|target| self.gone.contains(&target.row));
        if !overlaps && (self.has_place(entry, row) || !self.has_quota(entry)) {
            return;
        }
        let state = if overlaps { self.after() } else { Cow::Borrowed(&self.state) };
        let Some(assigner) = self.round.assigner(&state, entry.row) else { return };
        let again = Assigner { scan: None, nominated: Some(&entry.assignment), ..assigner };
        let (mut assignment, targets) = self.round.best_assignment(&again);
        assignment.deferred = overlaps;
        entry.assignment = assignment;
        entry.targets = targets;
    }

    fn charge(&mut self, entry: &Entry, row: &Row) {
        let round = self.round;
        for state in self.states() {
            if entry.second_pass {
                state.free_place(entry.row);
            } else {
                state.charge(entry.tree, entry.node, &entry.assignment.usage);
            }
            round.take_place(state, row, &entry.assignment);
        }
    }

    /// The state, and what it comes to once the victims are gone: what is charged is charged to both.
    fn states(&mut self) -> impl Iterator<Item = &mut Overlay<'w>> {
        std::iter::once(&mut self.state).chain(self.after.as_mut())
    }

    /// The state once the victims chosen so far are gone.
    fn after(&self) -> Cow<'_, Overlay<'w>> {
        match &self.after {
            None => Cow::Borrowed(&self.state),
            Some(after) if !after.depends_on_order() && !self.state.depends_on_order() => {
                Cow::Borrowed(after)
            }
            Some(_) => {
                let mut after = self.state.clone();
                self.gone.iter().for_each(|victim| after.remove_held(*victim));
                Cow::Owned(after)
            }
        }
    }

    /// Whether an entry has quota once the victims chosen so far and its own are gone.
    fn has_quota(&self, entry: &Entry) -> bool {
        let Some(tree) = self.state.tree(entry.tree) else { return false };
        let after = self.after();
        let mut own = Changes::default();
        for target in &entry.targets {
            after.without(entry.tree, target.row, &mut own);
        }
        let plane = after.plane(entry.tree).with(&own);
        entry.second_pass
            || entry.assignment.usage.iter().all(|(fr, amount)| {
                let available = tree.column(*fr).map(|col| tree.available(plane, entry.node, col));
                Amount::Finite(*amount) <= available.unwrap_or(Amount::ZERO).max(Amount::ZERO)
            })
    }

    /// Whether an entry has its place once the victims chosen so far and its own are gone.
    fn has_place(&self, entry: &Entry, row: &Row) -> bool {
        if !self.has_room(entry) {
            return false;
        }
        if !Round::asks_for_places(&entry.assignment) {
            return true;
        }
        let mut after = self.after().what_if.clone();
        // What it holds already is not in its own way.
        let own = entry.second_pass.then_some(entry.row);
        for freed in entry.targets.iter().map(|target| target.row).chain(own) {
            self.state.free_place_in(&mut after, freed);
        }
        self.round.place_is_free(&after, row, &entry.assignment)
    }

    /// Whether an entry fits once the victims chosen so far and its own are gone, and nobody else claims its victims.
    fn still_fits(&self, entry: &Entry, row: &Row) -> bool {
        let claimed = entry.targets.iter().any(|target| self.gone.contains(&target.row));
        !claimed && self.has_quota(entry) && self.has_place(entry, row)
    }

    /// Whether the chosen spoke still has room.
    fn has_room(&self, entry: &Entry) -> bool {
        let Some(spoke) = entry.assignment.spoke.as_ref() else { return true };
        let reported = self.round.world.clusters.get(spoke).and_then(|row| row.fact.as_ref());
        if reported.is_none_or(|cluster| cluster.mode == crate::fact::Mode::QuotaOnly) {
            return reported.is_some();
        }
        let Some(row) = self.round.world.row(entry.row) else { return false };
        let placed = placements(self.round, row, &entry.assignment);
        let pods: Vec<(Pod<'_>, u32)> = placed.iter().map(|placed| (placed.pod(row), placed.count)).collect();
        room(self.state.left(spoke), &pods) == Room::Fits
    }

    /// Holds back what an entry without victims waits for, so that lower entries of other queues do not take it
    /// [S-4.5]. A queue that can always take its quota back needs no holding.
    fn reserve(&mut self, entry: &Entry, row: &Row, queue: &Queue) {
        let preemption = queue.fact.as_ref().map(|fact| fact.preemption).unwrap_or_default();
        if preemption.reclaim == VictimPolicy::Any {
            return;
        }
        let Some(tree) = self.state.tree(entry.tree) else { return };
        let mut held_back = std::collections::BTreeMap::new();
        for (fr, amount) in &entry.assignment.usage {
            let Some(col) = tree.column(*fr) else { continue };
            let cell = tree.cell(entry.node, col);
            let used = self.state.plane(entry.tree).used(entry.node, col);
            let ceiling = if entry.assignment.borrow > 0 {
                cell.borrowing.map(|limit| cell.nominal.plus(limit))
            } else {
                Some(cell.nominal)
            };
            let amount = match ceiling.map(|ceiling| ceiling.minus(Amount::Finite(used))) {
                None => *amount,
                Some(rest) if entry.assignment.borrow > 0 => rest.saturated().min(*amount),
                Some(rest) => rest.saturated().min(*amount).max(0),
            };
            held_back.insert(*fr, amount);
        }
        let round = self.round;
        for state in self.states() {
            state.charge(entry.tree, entry.node, &held_back);
            round.take_place(state, row, &entry.assignment);
        }
    }

    fn preempt(&mut self, entry: &Entry, row: &Row) {
        let purpose = entry.assignment.purpose(&self.round.world.names);
        for target in &entry.targets {
            if self.gone.insert(target.row) {
                let state = &self.state;
                self.after.get_or_insert_with(|| state.clone()).remove_held(target.row);
            }
            let Some(victim) = self.round.world.row(target.row) else { continue };
            let Some(held) = victim.held.as_deref() else { continue };
            if held.evicted {
                continue;
            }
            self.acted = true;
            self.plan.memory.ways.push(Way {
                victim: victim.fact.uid.clone(),
                preemptor: row.fact.uid.clone(),
                purpose,
            });
            self.plan.evictions.push(Preempted {
                uid: victim.fact.uid.clone(),
                key: victim.fact.key(),
                cluster_queue: self
                    .round
                    .world
                    .queue(held.queue)
                    .map_or_else(|| "".into(), |queue| Arc::clone(&queue.name)),
                cause: target.cause,
                by: row.fact.uid.clone(),
                by_key: row.fact.key(),
                round: self.round.number,
            });
        }
    }

    /// Takes room on the chosen spoke.
    fn place(&mut self, entry: &Entry, row: &Row) {
        self.acted = true;
        let Some(spoke) = &entry.assignment.spoke else { return };
        let mut left = self.state.left(spoke).to_vec();
        for placed in placements(self.round, row, &entry.assignment) {
            place(&mut left, &placed.pod(row), placed.count);
        }
        self.state.set_left(spoke.clone(), left);
    }

    fn admit(&mut self, entry: &Entry, (row, queue): (&Row, &Queue), verdict: &Verdict) {
        let given = self.round.grant(row, entry, &mut self.key);
        self.plan.admissions.push(Admission {
            uid: row.fact.uid.clone(),
            key: row.fact.key(),
            cluster_queue: Arc::clone(&queue.name),
            pod_sets: given.pod_sets,
            demand: given.demand,
            spoke: entry.assignment.spoke.clone(),
            checks_pending: self.round.checks_pending(queue, row),
            round: self.round.number,
            verdict: verdict.clone(),
        });
    }

    /// Has a workload of the second pass go whose failed nodes cannot be replaced [TAS-7].
    fn displace(&mut self, row: &Row, queue: &Queue) {
        let nodes = &row.fact.rare().unhealthy_nodes;
        let placed = row.held.as_deref().is_some_and(|held| !held.places.is_empty());
        if !self.round.policy.fail_fast || nodes.is_empty() || !placed {
            return;
        }
        self.acted = true;
        self.plan.displaced.push(Displaced {
            uid: row.fact.uid.clone(),
            key: row.fact.key(),
            cluster_queue: Arc::clone(&queue.name),
            nodes: nodes.clone(),
            round: self.round.number,
        });
    }

    /// Writes what became of an entry, and what the next round must know of it.
    fn conclude(&mut self, entry: &Entry, (row, queue): (&Row, &Queue), outcome: Outcome) {
        let verdict = explain::entry(self.round, (row, queue), entry, outcome);
        if outcome == Outcome::Admitted {
            self.admit(entry, (row, queue), &verdict);
        }
        self.plan.heads.push(Head {
            uid: row.fact.uid.clone(),
            key: row.fact.key(),
            cluster_queue: Arc::clone(&queue.name),
            root: self.round.root_of(entry.queue, queue),
            round: self.round.number,
            entered: true,
            outcome,
            verdict,
        });
        if outcome == Outcome::Admitted || entry.second_pass {
            return;
        }
        let requeue = requeue(self.round, entry, (row, queue), outcome);
        // A head that goes straight back waits for nothing but the rest of its scan, and a scan that came to its end in
        // this very state finds nothing new.
        let goes_on = requeue.scan.as_ref().is_some_and(Scan::unfinished) && !self.round.is_tired(row, queue);
        let moved = !requeue.immediate || requeue.sticky != row.sticky;
        self.acted |= moved || (goes_on && row.past().swept != Some(self.round.world.version));
        self.plan.memory.requeues.push(requeue);
    }
}

impl Round<'_> {
    /// Whether a head has gone straight back so often, with nothing changed, that it has been through every combination
    /// of positions: with several pod sets the positions may chase each other for ever.
    fn is_tired(&self, row: &Row, queue: &Queue) -> bool {
        let longest = queue.groups.iter().map(|group| group.flavors.len()).max().unwrap_or(0).max(1);
        let combinations =
            row.gang.pod_sets.iter().fold(1_usize, |product, _| product.saturating_mul(longest));
        let enough = u32::try_from(combinations.min(MOST_RETRIES)).unwrap_or(u32::MAX);
        row.past().retried.0 == self.world.version && row.past().retried.1 > enough
    }
}

/// Most times that a head goes straight back with nothing changed.
const MOST_RETRIES: usize = 64;

/// Whether a head goes straight back into its heap, and what is remembered of it …[Q-9].
fn requeue(round: &Round<'_>, entry: &Entry, (row, queue): (&Row, &Queue), outcome: Outcome) -> Requeue {
    let strict = queue.is_strict();
    let waits = outcome == Outcome::PendingPreemption;
    let scan = (!waits).then(|| scan_of(round, queue, &entry.assignment));
    let unfinished = scan.as_ref().is_some_and(Scan::unfinished);
    let goes_on = unfinished && !round.is_tired(row, queue);
    let immediate = strict || waits || outcome == Outcome::Skipped || goes_on;
    Requeue {
        uid: row.fact.uid.clone(),
        immediate,
        sticky: !strict && (waits || row.sticky),
        class_failed: matches!(outcome, Outcome::NoFit | Outcome::PreemptionNoCandidates),
        swept: !unfinished,
        scan,
    }
}

fn scan_of(round: &Round<'_>, queue: &Queue, assignment: &Assignment) -> Scan {
    let names = &round.world.names.resources;
    let tried = |pod_set: &super::entry::PodSetChoice| {
        pod_set.flavors.iter().map(|(resource, choice)| (names.name(*resource), choice.tried)).collect()
    };
    Scan {
        tried: assignment.pod_sets.iter().map(tried).collect(),
        generation: queue.generation,
        round: round.world.round.saturating_add(u64::from(round.number)),
    }
}

/// Pods of one pod set on their way to a spoke.
struct Placed {
    position: usize,
    requests: fairlead_model::Resources,
    labels: fairlead_model::Labels,
    tolerations: Vec<fairlead_model::Toleration>,
    count: u32,
}

impl Placed {
    fn pod<'a>(&'a self, row: &'a Row) -> Pod<'a> {
        static ANY: fairlead_model::NodeConstraints = fairlead_model::NodeConstraints::ANY;
        let nodes = row.gang.pod_sets.get(self.position).map_or(&ANY, |pod_set| &pod_set.template.nodes);
        Pod { requests: &self.requests, nodes, labels: &self.labels, tolerations: &self.tolerations }
    }
}

fn placements(round: &Round<'_>, row: &Row, assignment: &Assignment) -> Vec<Placed> {
    let assigned = round.by_name(row, assignment);
    let mut placed = Vec::with_capacity(assigned.len());
    for (position, (assigned, pod)) in assigned.iter().zip(&*row.gang.requests).enumerate() {
        let (labels, tolerations) = flavor_constraints(round.world, &flavors_of(assigned));
        let requests = with_pod(&pod.effective);
        placed.push(Placed { position, requests, labels, tolerations, count: assigned.count });
    }
    placed
}
