//! Finds victims [P-1]…[P-6]: a what-if on a copied usage plane, dropped to forget.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use fairlead_model::{Amount, Millis, Uid};

use super::assign::Assigner;
use super::entry::{Assignment, Grade, Means, Mode, Target};
use super::overlay::Overlay;
use super::{Round, share};
use crate::fact::{Preemption, Presence, VictimPolicy};
use crate::names::{CqIx, FrIx, RowIx, at};
use crate::quota::{Col, NodeIx, Plane, Tree};
use crate::world::World;
use crate::world::rows::{Held, Row, order_time};

mod classical;
mod fair;

/// Who asks for victims, and what for.
#[derive(Debug)]
pub(crate) struct Ask<'r, 'w> {
    pub(crate) round: &'r Round<'w>,
    pub(crate) row: &'w Row,
    pub(crate) queue: CqIx,
    pub(crate) rules: Preemption,
    pub(crate) tree: &'w Tree,
    pub(crate) node: NodeIx,
    /// What it would be charged.
    pub(crate) usage: Vec<(Col, i64)>,
    /// The flavor-resources that need preemption.
    pub(crate) contested: BTreeSet<Col>,
    /// The same as ordinals of the world.
    pub(crate) contested_frs: BTreeSet<FrIx>,
    /// A number that stands for what it would be charged.
    pub(crate) purpose: u64,
    /// The state to start from.
    pub(crate) state: &'r Overlay<'w>,
    /// Workloads that were evicted for the same preemptor in vain are left alone.
    pub(crate) settling: bool,
    /// The assignment whose topology placement must succeed too; none when only quota counts.
    pub(crate) placing: Option<&'r Assignment>,
}

/// A workload that may be preempted, with what it is ordered by [P-2]. The fields are the policy, in order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct VictimKey {
    /// Those on their way out come first: they cost nothing more.
    not_evicted: bool,
    /// Other queues before the preemptor's own.
    own_queue: bool,
    /// LocalQueues that used more come first, where that counts.
    local_use: Reverse<share::Use>,
    /// Lower priorities first.
    priority: i64,
    /// Later reservations first.
    reserved: Reverse<Millis>,
    /// The last tie.
    uid: Uid,
}

/// A what-if of removals.
#[derive(Clone, Debug)]
pub(crate) struct WhatIf<'r, 'w> {
    pub(crate) ask: &'r Ask<'r, 'w>,
    pub(crate) plane: Plane,
    pub(crate) gone: Overlay<'w>,
}

impl<'w> Round<'w> {
    /// Whether preemption could free one flavor-resource [F-4], found out without doing it.
    pub(crate) fn simulate_preemption(
        &self,
        assigner: &Assigner<'_, 'w>,
        (fr, col): (FrIx, Col),
        value: i64,
    ) -> Grade {
        let level = |plane: &[i64]| assigner.tree.borrow_level(plane, assigner.node, col, value).0;
        let ask = self.ask(assigner, vec![(col, value)], BTreeSet::from([fr]), None);
        let targets = ask.targets();
        if targets.is_empty() {
            return Grade {
                means: Means::NoCandidates,
                borrow: level(assigner.state.plane(assigner.tree_ix)),
            };
        }
        let mut after = assigner.state.plane(assigner.tree_ix).to_vec();
        let mut within = false;
        for target in &targets {
            within |= self.world.row(target.row).and_then(Row::queue) == Some(assigner.queue_ix);
            remove(self.world, assigner.tree, &mut after, target.row);
        }
        Grade { means: if within { Means::Preempt } else { Means::Reclaim }, borrow: level(&after) }
    }

    /// Victims for an assignment that needs preemption.
    pub(crate) fn find_targets(&self, assigner: &Assigner<'_, 'w>, assignment: &Assignment) -> Vec<Target> {
        if assigner.queue.federated {
            // Victims are chosen together with the cluster that they free, which is the choice of clusters' business.
            return Vec::new();
        }
        let usage =
            assignment.usage.iter().filter_map(|(fr, amount)| Some((assigner.tree.column(*fr)?, *amount)));
        let mut contested = BTreeSet::new();
        for pod_set in &assignment.pod_sets {
            for (resource, choice) in &pod_set.flavors {
                if choice.mode == Mode::Preempt {
                    contested.extend(self.world.names.find_fr(choice.flavor, *resource));
                }
            }
        }
        let mut ask = self.ask(assigner, usage.collect(), contested, Some(assignment));
        let targets = ask.targets();
        let in_vain = |target: &Target| {
            let victim = self.world.row(target.row);
            victim
                .and_then(|row| Some((row, row.held.as_deref()?)))
                .is_some_and(|(row, held)| ask.was_in_vain(row, held))
        };
        if !targets.iter().any(in_vain) {
            return targets;
        }
        ask.settling = true;
        ask.targets()
    }

    fn ask<'r>(
        &'r self,
        assigner: &Assigner<'r, 'w>,
        usage: Vec<(Col, i64)>,
        contested_frs: BTreeSet<FrIx>,
        placing: Option<&'r Assignment>,
    ) -> Ask<'r, 'w> {
        Ask {
            round: self,
            row: assigner.row,
            queue: assigner.queue_ix,
            rules: assigner.queue.fact.as_ref().map(|fact| fact.preemption).unwrap_or_default(),
            tree: assigner.tree,
            node: assigner.node,
            usage,
            contested: contested_frs.iter().filter_map(|fr| assigner.tree.column(*fr)).collect(),
            contested_frs,
            purpose: placing.map_or(0, |assignment| assignment.purpose(&self.world.names)),
            state: assigner.state,
            settling: false,
            placing,
        }
    }
}

/// Takes what a workload holds out of a plane of its tree.
pub(crate) fn remove(world: &World, tree: &Tree, plane: &mut Plane, row: RowIx) {
    change(world, tree, plane, row, Tree::remove_usage);
}

/// Puts it back.
pub(crate) fn restore(world: &World, tree: &Tree, plane: &mut Plane, row: RowIx) {
    change(world, tree, plane, row, Tree::add_usage);
}

fn change(
    world: &World,
    tree: &Tree,
    plane: &mut Plane,
    row: RowIx,
    apply: fn(&Tree, &mut [i64], NodeIx, Col, i64),
) {
    let Some(held) = world.row(row).and_then(|row| row.held.as_deref()) else { return };
    let Some((_, node)) = world.forest.place.get(&held.queue) else { return };
    for (fr, amount) in &held.usage {
        if let Some(col) = tree.column(*fr) {
            apply(tree, plane, *node, col, *amount);
        }
    }
}

impl<'r, 'w> Ask<'r, 'w> {
    fn world(&self) -> &'w World {
        self.round.world
    }

    /// The victims: none when preemption does not help.
    fn targets(&'r self) -> Vec<Target> {
        match &self.round.policy.fair_sharing {
            Some(strategies) => fair::targets(self, strategies),
            None => classical::targets(self),
        }
    }

    fn plane(&self) -> Plane {
        let tree = self.world().forest.place.get(&self.queue).map_or(0, |(tree, _)| *tree);
        self.state.plane(tree).to_vec()
    }

    /// Whether a workload may be a victim under a policy [P-1].
    fn may_preempt(&self, victim: &Row, policy: VictimPolicy) -> bool {
        let Some(held) = victim.held.as_deref() else { return false };
        if !held.usage.iter().any(|(fr, amount)| *amount > 0 && self.contested_frs.contains(fr)) {
            return false;
        }
        let reachable = held.reservation.spoke.as_ref().is_none_or(|spoke| {
            let cluster = self.world().clusters.get(spoke).and_then(|row| row.fact.as_ref());
            cluster.is_some_and(|cluster| cluster.presence == Presence::Fresh)
        });
        let (mine, theirs) = (self.row.fact.priority, victim.fact.priority);
        let allowed = match policy {
            VictimPolicy::Never => false,
            VictimPolicy::Any => true,
            VictimPolicy::LowerPriority => theirs < mine,
            VictimPolicy::LowerOrNewerEqualPriority => {
                theirs < mine || (theirs == mine && order_time(&self.row.fact) < order_time(&victim.fact))
            }
        };
        reachable && allowed && !(self.settling && self.was_in_vain(victim, held))
    }

    /// Whether this workload was evicted for this preemptor before, got its quota back, and everything is as it was
    /// then: to evict it again would go round in a circle. Between LocalQueues that take turns by their use there is no
    /// circle: each admission puts the victim's further back.
    fn was_in_vain(&self, victim: &Row, held: &Held) -> bool {
        if held.evicted || victim.made_way.is_empty() {
            return false;
        }
        let state = self.world().state_of(held.queue);
        let mut before = victim.made_way.iter();
        let again = before.any(|earlier| {
            earlier.preemptor == self.row.fact.uid
                && earlier.purpose == self.purpose
                && earlier.state == state
        });
        again && !self.takes_turns(victim, held)
    }

    fn takes_turns(&self, victim: &Row, held: &Held) -> bool {
        let world = self.world();
        let own = held.queue == self.queue
            && world.queue(self.queue).is_some_and(|queue| world.is_usage_based(queue));
        own && (&victim.fact.key.namespace, &victim.fact.queue)
            != (&self.row.fact.key.namespace, &self.row.fact.queue)
    }

    /// Workloads of a queue that may be preempted under a policy.
    fn candidates_in(&self, queue: CqIx, policy: VictimPolicy) -> Vec<RowIx> {
        if policy == VictimPolicy::Never {
            return Vec::new();
        }
        let held = self.world().queue(queue).map(|queue| &queue.held);
        let there = |ix: &RowIx| !self.state.is_gone(*ix);
        let may =
            |ix: &RowIx| there(ix) && self.world().row(*ix).is_some_and(|row| self.may_preempt(row, policy));
        held.into_iter().flatten().copied().filter(may).collect()
    }

    /// Sorts victims by [P-2].
    fn sort(&self, victims: &mut [RowIx]) {
        victims.sort_by_cached_key(|ix| self.key(*ix));
    }

    fn key(&self, ix: RowIx) -> Option<VictimKey> {
        let row = self.world().row(ix)?;
        let held = row.held.as_deref()?;
        let own_queue = held.queue == self.queue;
        let queue = self.world().queue(held.queue).filter(|_| own_queue);
        let local_use = queue.map(|queue| self.round.local_use(queue, row)).unwrap_or_default();
        Some(VictimKey {
            not_evicted: !held.evicted,
            own_queue,
            local_use: Reverse(local_use),
            priority: row.fact.priority,
            reserved: Reverse(held.at),
            uid: row.fact.uid.clone(),
        })
    }

    fn is_evicted(&self, ix: RowIx) -> bool {
        self.world().row(ix).and_then(|row| row.held.as_deref()).is_some_and(|held| held.evicted)
    }

    fn node_of(&self, ix: RowIx) -> Option<NodeIx> {
        let held = self.world().row(ix)?.held.as_deref()?;
        self.world().forest.place.get(&held.queue).map(|(_, node)| *node)
    }

    /// Whether a node uses no more than its own quota in every contested flavor-resource.
    fn within_quota(&self, plane: &[i64], node: NodeIx) -> bool {
        self.contested.iter().all(|col| !self.tree.borrowing_with(plane, node, *col, 0))
    }

    /// The queue at a node.
    fn queue_at(&self, node: NodeIx) -> Option<CqIx> {
        self.tree.nodes.get(at(node)).and_then(|node| node.queue)
    }
}

impl<'r, 'w> WhatIf<'r, 'w> {
    fn new(ask: &'r Ask<'r, 'w>) -> Self {
        Self { ask, plane: ask.plane(), gone: ask.state.clone() }
    }

    fn remove(&mut self, row: RowIx) {
        remove(self.ask.world(), self.ask.tree, &mut self.plane, row);
        self.gone.free_place(row);
    }

    fn restore(&mut self, row: RowIx) {
        restore(self.ask.world(), self.ask.tree, &mut self.plane, row);
        self.gone.retake_place(row);
    }

    /// Charges, or takes back, what the preemptor asks for.
    fn charge_preemptor(&mut self, add: bool) {
        for (col, amount) in &self.ask.usage {
            let apply = if add { Tree::add_usage } else { Tree::remove_usage };
            apply(self.ask.tree, &mut self.plane, self.ask.node, *col, *amount);
        }
    }

    /// Whether the preemptor fits now.
    fn fits(&self, may_borrow: bool) -> bool {
        let ask = self.ask;
        let quota = ask.usage.iter().all(|(col, amount)| {
            let borrows = !may_borrow && ask.tree.borrowing_with(&self.plane, ask.node, *col, *amount);
            let available = ask.tree.available(&self.plane, ask.node, *col).max(Amount::ZERO);
            !borrows && Amount::Finite(*amount) <= available
        });
        quota && ask.placing.is_none_or(|assignment| ask.round.places(&self.gone, ask.row, assignment))
    }

    /// Puts victims back, from the second to last to the first, where the preemptor fits all the same [P-4].
    fn minimise(&mut self, mut targets: Vec<Target>, may_borrow: bool) -> Vec<Target> {
        let Some(mut ix) = targets.len().checked_sub(1) else { return targets };
        while let Some(previous) = ix.checked_sub(1) {
            ix = previous;
            let Some(target) = targets.get(ix).copied() else { continue };
            self.restore(target.row);
            if self.fits(may_borrow) {
                targets.swap_remove(ix);
            } else {
                self.remove(target.row);
            }
        }
        targets
    }
}
