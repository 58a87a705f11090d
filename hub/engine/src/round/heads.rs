//! Takes the heads, checks them and nominates what each could get.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_model::{ObjectKey, Reason};

use super::Round;
use super::assign::Assigner;
use super::entry::{Assignment, Entry, Mode, Target};
use super::explain;
use super::overlay::Overlay;
use crate::fact::{CheckPhase, PodSet};
use crate::memory::Requeue;
use crate::names::{CqIx, RowIx};
use crate::plan::{Head, Outcome};
use crate::world::rows::{OrderKey, Queue};
use crate::{Budget, Plan};

/// The entries of a round.
#[derive(Debug, Default)]
pub(crate) struct Nominated {
    pub(crate) entries: Vec<Entry>,
    /// The budget cut heads off, or a head was parked and another comes up.
    pub(crate) unfinished: bool,
}

/// Why a head is turned away.
struct Objection {
    outcome: Outcome,
    reason: Reason,
    detail: Arc<str>,
}

impl<'w> Round<'w> {
    /// Takes one head from every active queue and finds out what it could get. Heads that fail the checks of are
    /// written into the plan at once.
    pub(crate) fn nominate(&self, base: &Overlay<'w>, budget: Budget, plan: &mut Plan) -> Nominated {
        self.tell_outside(plan);
        self.tell_blocked(plan);
        let mut nominated = Nominated { entries: self.second_pass(base), unfinished: false };
        let mut left = budget.heads.saturating_sub(crate::names::next(plan.heads.len()));
        for (queue_ix, row_ix) in self.heads() {
            if left == 0 || self.spent().what_ifs >= budget.what_ifs {
                nominated.unfinished = true;
                return nominated;
            }
            left = left.saturating_sub(1);
            match self.objection(queue_ix, row_ix) {
                Some(objection) => nominated.unfinished |= self.turn_away(queue_ix, row_ix, objection, plan),
                None => nominated.entries.extend(self.entry(base, row_ix)),
            }
        }
        nominated
    }

    /// The heads in the order of their queues' names, each with its queue.
    fn heads(&self) -> Vec<(CqIx, RowIx)> {
        let admits =
            |queue: &Queue| queue.fact.is_some() && queue.inactive.is_none() && !self.is_blocked(queue);
        let active = self.world.queues_by_name().filter(|(_, queue)| admits(queue));
        active.filter_map(|(ix, queue)| Some((ix, self.world.head(queue)?))).collect()
    }

    /// Whether a queue waits for the pods of what it admitted last [W-1].
    fn is_blocked(&self, queue: &Queue) -> bool {
        self.world.settings.block_admission && queue.unready > 0
    }

    /// Tells the first workload of each blocked queue what it waits for. It stays where it is: the queue goes on as soon
    /// as a fact says that the pods are ready.
    fn tell_blocked(&self, plan: &mut Plan) {
        if self.number > 0 {
            return;
        }
        let blocked = self
            .world
            .queues_by_name()
            .filter(|(_, queue)| queue.fact.is_some() && queue.inactive.is_none() && self.is_blocked(queue));
        for (queue_ix, queue) in blocked {
            let Some(row) = self.world.head(queue).and_then(|ix| self.world.row(ix)) else { continue };
            plan.heads.push(Head {
                uid: row.fact.uid.clone(),
                key: row.fact.key(),
                cluster_queue: Arc::clone(&queue.name),
                root: self.root_of(queue_ix, queue),
                round: self.number,
                entered: false,
                outcome: Outcome::Blocked,
                verdict: explain::plain(Reason::WaitingForPodsReady, &queue.name),
            });
        }
    }

    fn entry(&self, base: &Overlay<'w>, row_ix: RowIx) -> Option<Entry> {
        let assigner = self.assigner(base, row_ix)?;
        let (assignment, targets) = self.best_assignment(&assigner);
        Some(Entry {
            row: row_ix,
            queue: assigner.queue_ix,
            tree: assigner.tree_ix,
            node: assigner.node,
            assignment,
            targets,
            second_pass: false,
        })
    }

    /// The full size if it fits or can preempt, else the largest part that does [F-9].
    pub(crate) fn best_assignment(&self, assigner: &Assigner<'_, 'w>) -> (Assignment, Vec<Target>) {
        let (mut best, mut targets) = self.with_targets(assigner, None);
        if best.mode() < Mode::Deferred
            && targets.is_empty()
            && let Some(part) = self.largest_part(assigner)
        {
            (best, targets) = part;
        }
        self.place_after(assigner, &mut best, &targets);
        (best, targets)
    }

    fn with_targets(&self, assigner: &Assigner<'_, 'w>, counts: Option<&[u32]>) -> (Assignment, Vec<Target>) {
        let assignment = assigner.assign(counts);
        let needs = assignment.mode() == Mode::Preempt;
        let targets = if needs { self.find_targets(assigner, &assignment) } else { Vec::new() };
        (assignment, targets)
    }

    /// Searches by halves for the smallest reduction with which a workload fits or can preempt. It takes feasibility to
    /// grow with the reduction, as Kueue does (quirk 9).
    fn largest_part(&self, assigner: &Assigner<'_, 'w>) -> Option<(Assignment, Vec<Target>)> {
        let pod_sets = &assigner.row.gang.pod_sets;
        let reducible =
            |pod_set: &PodSet| pod_set.min_count.map_or(0, |least| pod_set.count.saturating_sub(least));
        let total: u32 = pod_sets.iter().map(reducible).fold(0, u32::saturating_add);
        if total == 0 {
            return None;
        }
        let (mut low, mut high) = (0, total.saturating_add(1));
        let mut best = None;
        while low < high {
            let middle = low.midpoint(high);
            let counts: Vec<u32> = pod_sets
                .iter()
                .map(|pod_set| reduced(pod_set.count, reducible(pod_set), (middle, total)))
                .collect();
            let found = self.with_targets(assigner, Some(&counts));
            if found.0.mode() >= Mode::Deferred || !found.1.is_empty() {
                best = Some(found);
                high = middle;
            } else {
                low = middle.saturating_add(1);
            }
        }
        best
    }

    /// Tells of workloads that are in no queue, once per change.
    fn tell_outside(&self, plan: &mut Plan) {
        if self.number > 0 {
            return;
        }
        for row in self.world.untold.iter().filter_map(|ix| self.world.row(*ix)) {
            if let crate::world::rows::Place::Outside(reason) = row.place {
                plan.heads.push(Head {
                    uid: row.fact.uid.clone(),
                    key: row.fact.key(),
                    cluster_queue: "".into(),
                    root: "".into(),
                    round: self.number,
                    entered: false,
                    outcome: Outcome::Outside,
                    verdict: explain::outside(self.world, row, reason),
                });
            }
        }
    }

    /// Writes a head that was turned away into the plan; true when it is parked, so that another comes up.
    fn turn_away(&self, queue_ix: CqIx, row_ix: RowIx, objection: Objection, plan: &mut Plan) -> bool {
        let (Some(row), Some(queue)) = (self.world.row(row_ix), self.world.queue(queue_ix)) else {
            return false;
        };
        let Objection { outcome, reason, detail } = objection;
        plan.heads.push(Head {
            uid: row.fact.uid.clone(),
            key: row.fact.key(),
            cluster_queue: Arc::clone(&queue.name),
            root: self.root_of(queue_ix, queue),
            round: self.number,
            entered: false,
            outcome,
            verdict: explain::plain(reason, &detail),
        });
        let immediate = queue.is_strict() && outcome != Outcome::NamespaceMismatch;
        let uid = row.fact.uid.clone();
        plan.memory.requeues.push(Requeue {
            uid,
            immediate,
            sticky: false,
            class_failed: false,
            scan: None,
            swept: true,
        });
        !immediate
    }

    /// What stands against a head before anything is computed for it.
    fn objection(&self, queue_ix: CqIx, row_ix: RowIx) -> Option<Objection> {
        let row = self.world.row(row_ix)?;
        let against = |phase: CheckPhase| matches!(phase, CheckPhase::Retry | CheckPhase::Rejected);
        if let Some(check) = row.fact.rare().checks.iter().find(|state| against(state.phase)) {
            let (outcome, reason) = (Outcome::Rejected, Reason::PendingEvaluation);
            return Some(Objection { outcome, reason, detail: Arc::clone(&check.check) });
        }
        if !self.world.namespace_matches(queue_ix, row.fact.namespace()) {
            let (outcome, reason) = (Outcome::NamespaceMismatch, Reason::NamespaceMismatch);
            return Some(Objection { outcome, reason, detail: Arc::clone(row.fact.namespace()) });
        }
        let detail = row.gang.requests.iter().find_map(|pod| pod.invalid.clone())?;
        Some(Objection { outcome: Outcome::Rejected, reason: Reason::RequestsExceedLimits, detail })
    }

    /// Name of the root of a queue's tree.
    pub(crate) fn root_of(&self, queue_ix: CqIx, queue: &Queue) -> Arc<str> {
        self.world.tree_of(queue_ix).map_or_else(|| Arc::clone(&queue.name), |(_, _, tree)| tree.root_name())
    }
}

/// A pod set's count at one step of the reduction.
fn reduced(count: u32, reducible: u32, (step, of): (u32, u32)) -> u32 {
    let share = u64::from(reducible).saturating_mul(u64::from(step)).checked_div(u64::from(of)).unwrap_or(0);
    count.saturating_sub(u32::try_from(share).unwrap_or(u32::MAX))
}

impl crate::world::World {
    /// The workload that a queue offers next: with admission fair sharing the first of the LocalQueue that used
    /// least, which outranks everything else.
    pub(crate) fn head(&self, queue: &Queue) -> Option<RowIx> {
        if !self.is_usage_based(queue) {
            return queue.heap.first().map(|(_, row)| *row);
        }
        // A LocalQueue's first workload stands before its others, so only the first of each is compared.
        let mut firsts: BTreeMap<&ObjectKey, RowIx> = BTreeMap::new();
        for (_, ix) in &queue.heap {
            let Some(row) = self.row(*ix) else { continue };
            firsts.entry(&row.fact.local).or_insert(*ix);
        }
        let key = |ix: &RowIx| self.row(*ix).map(|row| (self.use_of(row), row.order(), *ix));
        firsts.into_values().min_by_key(key)
    }

    /// Whether the LocalQueues of a queue take turns by their use.
    pub(crate) fn is_usage_based(&self, queue: &Queue) -> bool {
        self.settings.admission_fair_sharing.is_some()
            && queue.fact.as_ref().is_some_and(|fact| fact.usage_based)
    }

    /// Rows in queue order with admission fair sharing.
    pub(crate) fn by_use(&self, rows: &std::collections::BTreeSet<(OrderKey, RowIx)>) -> Vec<RowIx> {
        let mut ordered: Vec<_> = rows
            .iter()
            .map(|(order, ix)| (self.row(*ix).and_then(|row| self.use_of(row)), order, *ix))
            .collect();
        ordered.sort();
        ordered.into_iter().map(|(_, _, ix)| ix).collect()
    }
}
