//! One round [S-1]: one head from every active queue, all judged against the same state, then handled one after the
//! other.

use std::cell::Cell;
use std::sync::Arc;

use crate::fact::{CheckKind, CheckPhase, CheckUse};
use crate::names::RowIx;
use crate::plan::Spent;
use crate::world::World;
use crate::world::rows::{Queue, Row};
use crate::{Budget, Plan, Policy};

mod assign;
mod cluster;
mod contest;
mod double;
mod entry;
mod explain;
mod flavor;
mod grade;
pub(crate) mod grant;
mod heads;
mod order;
mod overlay;
mod preempt;
mod process;
mod second_pass;
pub(crate) mod share;
mod topology;

use assign::Assigner;
use overlay::Overlay;

/// A round in the making.
#[derive(Debug)]
pub(crate) struct Round<'w> {
    pub(crate) world: &'w World,
    pub(crate) policy: &'w Policy,
    /// Its number within the plan.
    pub(crate) number: u32,
    /// What it has cost so far.
    spent: Cell<Spent>,
}

/// Runs one round and appends what it decides to the plan.
pub(crate) fn run(world: &World, policy: &Policy, budget: Budget, plan: &mut Plan) {
    let round = Round { world, policy, number: plan.rounds, spent: Cell::default() };
    let base = Overlay::new(world);
    let nominated = round.nominate(&base, budget, plan);
    let acted = process::process(&round, round.line_up(nominated.entries), plan);
    plan.rounds = plan.rounds.saturating_add(1);
    plan.spent.add(round.spent());
    plan.quiet = !acted && !nominated.unfinished;
}

impl<'w> Round<'w> {
    /// What chooses flavors for a row in a state.
    pub(crate) fn assigner<'r>(&'r self, state: &'r Overlay<'w>, row_ix: RowIx) -> Option<Assigner<'r, 'w>> {
        let row = self.world.row(row_ix)?;
        let queue_ix = row.queue()?;
        let queue = self.world.queue(queue_ix)?;
        let (tree_ix, node, tree) = self.world.tree_of(queue_ix)?;
        let scan = row.past().scan.as_ref().filter(|scan| self.remembers(queue, scan));
        Some(Assigner {
            round: self,
            state,
            row,
            queue_ix,
            queue,
            tree_ix,
            tree,
            node,
            scan,
            nominated: None,
        })
    }

    /// Whether a scan position still counts [F-8]: it is of the last round, or the quota has not changed since.
    fn remembers(&self, queue: &Queue, scan: &crate::memory::Scan) -> bool {
        let this = self.world.round.saturating_add(u64::from(self.number));
        scan.generation == queue.generation || scan.round.saturating_add(1) >= this
    }

    /// Whether checks of other controllers have to come first. While no flavor is assigned yet, a check that applies to
    /// some flavors only counts as one that applies.
    pub(crate) fn checks_pending(&self, queue: &Queue, row: &Row) -> bool {
        let used = queue.fact.as_ref().map_or(&[][..], |fact| &fact.checks);
        let applies = |used: &CheckUse| {
            let Some(held) = row.held.as_deref().filter(|_| !used.flavors.is_empty()) else { return true };
            let mut assigned = held.charge.pod_sets.iter().flat_map(|set| set.flavors.values());
            assigned.any(|flavor| used.flavors.contains(flavor))
        };
        let other = |name: &Arc<str>| {
            self.world.checks.get(name).is_none_or(|check| matches!(check.kind, CheckKind::Other))
        };
        let ready = |name: &Arc<str>| {
            row.fact
                .rare()
                .checks
                .iter()
                .any(|state| state.check == *name && state.phase == CheckPhase::Ready)
        };
        used.iter().any(|used| other(&used.check) && applies(used) && !ready(&used.check))
    }

    /// What it has cost so far.
    pub(crate) fn spent(&self) -> Spent {
        self.spent.get()
    }

    /// Counts a candidate that is looked at.
    pub(crate) fn count_candidate(&self) {
        let spent = self.spent.get();
        self.spent.set(Spent { candidates: spent.candidates.saturating_add(1), ..spent });
    }

    /// Counts a what-if.
    pub(crate) fn count_what_if(&self) {
        let spent = self.spent.get();
        self.spent.set(Spent { what_ifs: spent.what_ifs.saturating_add(1), ..spent });
    }
}
