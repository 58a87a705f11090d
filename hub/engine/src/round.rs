//! One round [S-1]: one head from every active queue, all judged against the same state, then handled one after the
//! other.

use std::sync::Arc;

use fairlead_model::{Millis, Reason};

use crate::fact::{CheckKind, CheckPhase, Flavor, PodSet, TopologyLevel};
use crate::names::{CqIx, ResIx, RowIx};
use crate::world::World;
use crate::world::rows::{Group, Queue, Row};
use crate::{Budget, Plan, Policy};

mod assign;
mod cluster;
mod entry;
mod explain;
mod flavor;
mod grade;
mod heads;
mod order;
mod overlay;
mod preempt;
mod process;
pub(crate) mod share;

use assign::{Assigner, Unit};
use entry::{Assignment, Choice};
use overlay::Overlay;

/// A round in the making.
#[derive(Debug)]
pub(crate) struct Round<'w> {
    pub(crate) world: &'w World,
    pub(crate) policy: &'w Policy,
    pub(crate) now: Millis,
    /// Its number within the plan.
    pub(crate) number: u32,
}

/// Runs one round and appends what it decides to the plan.
pub(crate) fn run(world: &World, policy: &Policy, budget: Budget, plan: &mut Plan) {
    let round = Round { world, policy, now: plan.at, number: plan.rounds };
    let base = Overlay::new(world);
    let (entries, cut) = round.nominate(&base, budget, plan);
    let acted = process::process(&round, round.line_up(entries), plan);
    plan.rounds = plan.rounds.saturating_add(1);
    plan.quiet = !acted && !cut;
}

impl<'w> Round<'w> {
    /// What chooses flavors for a row in a state.
    pub(crate) fn assigner<'r>(&'r self, state: &'r Overlay<'w>, row_ix: RowIx) -> Option<Assigner<'r, 'w>> {
        let row = self.world.row(row_ix)?;
        let queue_ix = self.world.queue_of(row)?;
        let queue = self.world.queue(queue_ix)?;
        let (tree_ix, node, tree) = self.world.tree_of(queue_ix)?;
        let scan = row.scan.as_ref().filter(|scan| self.remembers(queue, scan));
        Some(Assigner {
            round: self,
            state,
            row_ix,
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

    /// Whether checks of other controllers have to come first.
    pub(crate) fn checks_pending(&self, queue: &Queue, row: &Row) -> bool {
        let used = queue.fact.as_ref().map_or(&[][..], |fact| &fact.checks);
        let other = |name: &Arc<str>| {
            self.world.checks.get(name).is_none_or(|check| matches!(check.kind, CheckKind::Other))
        };
        let ready = |name: &Arc<str>| {
            row.fact.checks.iter().any(|state| state.check == *name && state.phase == CheckPhase::Ready)
        };
        used.iter().any(|used| other(&used.check) && !ready(&used.check))
    }

    /// Whether a flavor's topology and a pod set's request go together [F-3d].
    pub(crate) fn topology_matches(
        &self,
        assigner: &Assigner<'_, '_>,
        (position, pod_set): (usize, &PodSet),
        group: &Group,
        flavor: &Flavor,
    ) -> Result<(), Reason> {
        if assigner.queue.federated {
            return Ok(());
        }
        let topology = flavor.topology.as_ref().and_then(|name| self.world.topologies.get(name));
        match (&pod_set.topology, topology) {
            (None, None) => Ok(()),
            (None, Some(_)) if assigner.queue.topology_only => Ok(()),
            (None, Some(_)) => Err(Reason::FlavorMismatch),
            (Some(_), None) if !self.concerns_pods(assigner, position, group) => Ok(()),
            (Some(_), None) => Err(Reason::FlavorMismatch),
            (Some(request), Some(topology)) => {
                let named = match &request.level {
                    TopologyLevel::Required(level) | TopologyLevel::Preferred(level) => Some(level),
                    TopologyLevel::Unconstrained | TopologyLevel::SlicesOnly => None,
                };
                let mut levels = request.slices.iter().map(|slice| &slice.level).chain(named);
                let known = levels.all(|level| topology.levels.contains(level));
                if known { Ok(()) } else { Err(Reason::FlavorMismatch) }
            }
        }
    }

    /// Whether a group covers anything that a pod of this pod set requests itself.
    fn concerns_pods(&self, assigner: &Assigner<'_, '_>, position: usize, group: &Group) -> bool {
        let names = &self.world.names.resources;
        let effective = assigner.row.requests.get(position).map(|pod| &pod.effective);
        let mut requested = effective.into_iter().flat_map(|effective| effective.iter());
        requested.any(|(name, _)| names.find(name).is_some_and(|ix| group.resources.contains(&ix)))
    }

    /// Notes which flavor's topology each pod set of a unit is placed in.
    pub(crate) fn note_topology_flavors(
        &self,
        assigner: &Assigner<'_, '_>,
        unit: &Unit,
        done: &[(ResIx, Choice)],
        assignment: &mut Assignment,
    ) {
        if assigner.queue.federated {
            return;
        }
        let names = &self.world.names.flavors;
        let placed = |flavor: u32| {
            self.world.flavors.get(names.text(flavor)).is_some_and(|flavor| flavor.topology.is_some())
        };
        let shared = done.iter().map(|(_, choice)| choice.flavor).find(|flavor| placed(*flavor));
        for position in &unit.pod_sets {
            let Some(pod_set) = assignment.pod_sets.get_mut(*position) else { continue };
            let own = pod_set.flavors.iter().map(|(_, choice)| choice.flavor).find(|flavor| placed(*flavor));
            pod_set.placed_in = own.or(shared);
        }
    }

    /// Whether the topology placement of an assignment succeeds in a state.
    pub(crate) fn places(&self, _state: &Overlay<'w>, _row: &Row, _assignment: &Assignment) -> bool {
        true
    }

    /// The use of a victim's LocalQueue, where that orders victims: admission fair sharing is on, both are of one queue
    /// and of different LocalQueues [P-2].
    pub(crate) fn local_use_between(&self, _preemptor: &Row, _victim: &Row) -> share::Use {
        share::Use::default()
    }
}

impl World {
    /// The queue that a row is pending in or holds quota of.
    pub(crate) fn queue_of(&self, row: &Row) -> Option<CqIx> {
        use crate::world::rows::Place;
        match row.place {
            Place::Heap(queue) | Place::Parked(queue) | Place::Held(queue) => Some(queue),
            Place::Outside(_) | Place::Finished => None,
        }
    }
}
