//! Finds victims [P-1]…[P-6]. Candidates are looked at in the order in which they are taken, queue by queue, until
//! enough are found.

use std::cell::OnceCell;

use super::Round;
use super::assign::Assigner;
use super::entry::{Assignment, Grade, Means, Mode, Target};
use super::overlay::Overlay;
use crate::fact::{Preemption, Presence, VictimPolicy};
use crate::names::{CqIx, FrIx, at};
use crate::quota::plane::{Changes, Draft, Plane};
use crate::quota::{Col, NodeIx, Tree};
use crate::world::World;
use crate::world::holders::{Marks, Rank};
use crate::world::rows::{Held, Row};

mod board;
mod classical;
mod fair;
mod lane;
mod what_if;

/// Who asks for victims, and what for.
#[derive(Debug)]
pub(crate) struct Ask<'r, 'w> {
    pub(crate) round: &'r Round<'w>,
    pub(crate) row: &'w Row,
    pub(crate) queue: CqIx,
    pub(crate) rules: Preemption,
    pub(crate) tree_ix: u32,
    pub(crate) tree: &'w Tree,
    pub(crate) node: NodeIx,
    /// What it would be charged.
    pub(crate) usage: Vec<(Col, i64)>,
    /// The flavor-resources of that, and their columns.
    columns: Vec<(FrIx, Col)>,
    /// The flavor-resources that need preemption.
    pub(crate) contested: Vec<Col>,
    /// The same as ordinals of the world.
    pub(crate) contested_frs: Vec<FrIx>,
    /// The same as marks, and whether those tell one from another.
    marks: Marks,
    marks_tell: bool,
    /// A number that stands for what it would be charged, once it is needed.
    purpose: OnceCell<u64>,
    /// The state to start from.
    pub(crate) state: &'r Overlay<'w>,
    /// Workloads that were evicted for the same preemptor in vain are left alone.
    pub(crate) settling: bool,
    /// The assignment whose topology placement must succeed too; none when only quota counts.
    pub(crate) placing: Option<&'r Assignment>,
}

impl<'w> Round<'w> {
    /// Whether preemption could free one flavor-resource [F-4], found out without doing it.
    pub(crate) fn simulate_preemption(
        &self,
        assigner: &Assigner<'_, 'w>,
        (fr, col): (FrIx, Col),
        value: i64,
    ) -> Grade {
        let below = assigner.state.plane(assigner.tree_ix);
        let level = |plane: Plane<'_>| assigner.tree.borrow_level(plane, assigner.node, col, value).0;
        let ask = self.ask(assigner, vec![(col, value)], vec![fr], None);
        let targets = ask.targets();
        if targets.is_empty() {
            return Grade { means: Means::NoCandidates, borrow: level(below) };
        }
        let mut after = Changes::default();
        let mut within = false;
        for held in targets.iter().filter_map(|target| self.world.row(target.row)?.held.as_deref()) {
            within |= held.queue == assigner.queue_ix;
            let mut draft = Draft { below, changes: &mut after };
            let only = |other: FrIx| (other == fr).then_some(col);
            change(self.world, assigner.tree, &mut draft, (held, false), only);
        }
        let means = if within { Means::Preempt } else { Means::Reclaim };
        Grade { means, borrow: level(below.with(&after)) }
    }

    /// Victims for an assignment that needs preemption.
    pub(crate) fn find_targets(&self, assigner: &Assigner<'_, 'w>, assignment: &Assignment) -> Vec<Target> {
        if assigner.queue.federated {
            // Victims are chosen together with the cluster that they free, which is the choice of clusters' business.
            return Vec::new();
        }
        let usage =
            assignment.usage.iter().filter_map(|(fr, amount)| Some((assigner.tree.column(*fr)?, *amount)));
        let choices = assignment.pod_sets.iter().flat_map(|pod_set| &pod_set.flavors);
        let mut contested: Vec<FrIx> = choices
            .filter(|(_, choice)| choice.mode == Mode::Preempt)
            .filter_map(|(resource, choice)| self.world.names.find_fr(choice.flavor, *resource))
            .collect();
        contested.sort_unstable();
        contested.dedup();
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
        contested_frs: Vec<FrIx>,
        placing: Option<&'r Assignment>,
    ) -> Ask<'r, 'w> {
        let asked = |(col, _): &(Col, i64)| Some((*assigner.tree.columns.get(at(*col))?, *col));
        Ask {
            round: self,
            row: assigner.row,
            queue: assigner.queue_ix,
            rules: assigner.queue.fact.as_ref().map(|fact| fact.preemption).unwrap_or_default(),
            tree_ix: assigner.tree_ix,
            tree: assigner.tree,
            node: assigner.node,
            columns: usage.iter().filter_map(asked).collect(),
            usage,
            contested: contested_frs.iter().filter_map(|fr| assigner.tree.column(*fr)).collect(),
            marks: contested_frs.iter().copied().collect(),
            marks_tell: Marks::are_exact(self.world.names.fr_count()),
            contested_frs,
            purpose: OnceCell::new(),
            state: assigner.state,
            settling: false,
            placing,
        }
    }
}

/// Charges what a workload holds to a plane of its tree, or takes it back; flavor-resources without a column are left
/// out.
fn change(
    world: &World,
    tree: &Tree,
    draft: &mut Draft<'_>,
    (held, add): (&Held, bool),
    column: impl Fn(FrIx) -> Option<Col>,
) {
    let Some((_, node)) = world.forest.place(held.queue) else { return };
    for (fr, amount) in &held.charge.usage {
        match column(*fr) {
            Some(col) if add => tree.add_usage(draft, node, col, *amount),
            Some(col) => tree.remove_usage(draft, node, col, *amount),
            None => {}
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

    /// Usage before anything is taken.
    fn plane(&self) -> Plane<'r> {
        self.state.plane(self.tree_ix)
    }

    /// The column in which a search sees a flavor-resource. Shares depend on all of them, classical preemption only on
    /// those that are asked for.
    fn column(&self, fr: FrIx) -> Option<Col> {
        if self.round.policy.fair_sharing.is_some() {
            return self.tree.column(fr);
        }
        self.columns.iter().find(|(asked, _)| *asked == fr).map(|(_, col)| *col)
    }

    /// Children of a node that may use more than their quota of something.
    fn may_borrow(&self, node: NodeIx) -> Vec<NodeIx> {
        if self.plane().is_unchanged() {
            return self.tree.borrowers(node).collect();
        }
        self.tree.node(node).map(|node| node.children.clone()).unwrap_or_default()
    }

    /// Whether a priority protects from being preempted under a policy, whatever else is the case.
    fn protects(&self, policy: VictimPolicy, priority: i64) -> bool {
        match policy {
            VictimPolicy::Never => true,
            VictimPolicy::Any => false,
            VictimPolicy::LowerPriority => priority >= self.row.fact.priority,
            VictimPolicy::LowerOrNewerEqualPriority => priority > self.row.fact.priority,
        }
    }

    /// Whether a workload may be a victim under a policy [P-1]. Its row is only looked up where its rank does not tell.
    fn may_preempt(&self, rank: &Rank, policy: VictimPolicy) -> bool {
        if self.protects(policy, rank.priority) || !rank.holds.may_meet(self.marks) {
            return false;
        }
        let equal =
            policy == VictimPolicy::LowerOrNewerEqualPriority && rank.priority == self.row.fact.priority;
        if self.marks_tell && !equal && !rank.on_spoke && !self.settling {
            return true;
        }
        let Some(victim) = self.world().row(rank.row) else { return false };
        let Some(held) = victim.held.as_deref() else { return false };
        let older = || self.row.fact.order_time() >= victim.fact.order_time();
        self.holds_contested(held)
            && self.is_reachable(held)
            && !(equal && older())
            && !(self.settling && self.was_in_vain(victim, held))
    }

    fn holds_contested(&self, held: &Held) -> bool {
        held.charge.usage.iter().any(|(fr, amount)| *amount > 0 && self.contested_frs.contains(fr))
    }

    /// Whether a workload is where it can be told to go.
    fn is_reachable(&self, held: &Held) -> bool {
        held.spoke.as_ref().is_none_or(|spoke| {
            let cluster = self.world().clusters.get(spoke).and_then(|row| row.fact.as_ref());
            cluster.is_some_and(|cluster| cluster.presence == Presence::Fresh)
        })
    }

    /// Whether this workload was evicted for this preemptor before, got its quota back, and everything is as it was
    /// then: to evict it again would go round in a circle. Between LocalQueues that take turns by their use there is no
    /// circle: each admission puts the victim's further back.
    fn was_in_vain(&self, victim: &Row, held: &Held) -> bool {
        if held.evicted || victim.past().made_way.is_empty() {
            return false;
        }
        let mut before = victim.past().made_way.iter();
        let again = before.any(|earlier| {
            earlier.preemptor == self.row.fact.uid
                && earlier.purpose == self.purpose()
                && earlier.state == self.world().state_of(held.queue)
        });
        again && !self.takes_turns(victim, held)
    }

    fn purpose(&self) -> u64 {
        let names = &self.world().names;
        *self.purpose.get_or_init(|| self.placing.map_or(0, |assignment| assignment.purpose(names)))
    }

    fn takes_turns(&self, victim: &Row, held: &Held) -> bool {
        let world = self.world();
        let own = held.queue == self.queue
            && world.queue(self.queue).is_some_and(|queue| world.is_usage_based(queue));
        own && (victim.fact.namespace(), victim.fact.queue())
            != (self.row.fact.namespace(), self.row.fact.queue())
    }

    /// Whether a node uses no more than its own quota in every contested flavor-resource.
    fn within_quota(&self, plane: Plane<'_>, node: NodeIx) -> bool {
        self.contested.iter().all(|col| !self.tree.borrowing_with(plane, node, *col, 0))
    }

    /// The queue at a node.
    fn queue_at(&self, node: NodeIx) -> Option<CqIx> {
        self.tree.nodes.get(at(node)).and_then(|node| node.queue)
    }
}
