//! Preemption under fair sharing [P-6].

use std::collections::{BTreeMap, BTreeSet};

use fairlead_engine::fact::{PreemptionCause, VictimPolicy};
use fairlead_engine::policy::FairStrategy;
use fairlead_model::Uid;

use super::Name;
use super::facts::Node;
use super::share::Share;
use super::tree::{State, Victim};
use super::victims::Seeker;

/// [P-6] First with the first strategy, then, for what failed it, with the second.
pub(super) fn find(seeker: &Seeker<'_>, strategies: &[FairStrategy]) -> Vec<Victim> {
    let mut search = Search { seeker, victims: Vec::new(), left: sorted(seeker, candidates(seeker)) };
    let first = strategies.first().copied().unwrap_or(FairStrategy::LessThanOrEqualToFinalShare);
    let mut retry = Vec::new();
    let mut done = search.first_pass(first, &mut retry);
    if !done && strategies.len() > 1 {
        search.left = sorted(seeker, retry);
        done = search.second_pass();
    }
    if done { seeker.fill_back(search.victims, true) } else { Vec::new() }
}

/// [P-6] Own workloads by one policy, those of ClusterQueues that borrow something contested by the other.
fn candidates(seeker: &Seeker<'_>) -> Vec<Uid> {
    let (state, leaf) = (seeker.state, seeker.leaf());
    let mut found = seeker.takeable(&seeker.queue.name, seeker.queue.preemption.within_queue);
    if seeker.queue.preemption.reclaim == VictimPolicy::Never {
        return found;
    }
    for queue in state.queues_below(&state.root(&leaf)) {
        if queue != seeker.queue.name && state.borrows_any(&Node::Queue(queue.clone()), &seeker.contested) {
            found.extend(seeker.takeable(&queue, seeker.queue.preemption.reclaim));
        }
    }
    found
}

/// [P-2] By ClusterQueue, best candidate first.
fn sorted(seeker: &Seeker<'_>, candidates: Vec<Uid>) -> BTreeMap<Name, Vec<Uid>> {
    let mut by_queue: BTreeMap<Name, Vec<Uid>> = BTreeMap::new();
    for uid in candidates {
        by_queue.entry(seeker.state.held[&uid].queue.clone()).or_default().push(uid);
    }
    for uids in by_queue.values_mut() {
        uids.sort_by(|a, b| seeker.candidate_order(a, b));
    }
    by_queue
}

struct Search<'a> {
    seeker: &'a Seeker<'a>,
    victims: Vec<Victim>,
    /// Candidates that are left, by ClusterQueue.
    left: BTreeMap<Name, Vec<Uid>>,
}

impl Search<'_> {
    /// The state without the victims so far and with the preemptor in.
    fn state(&self) -> State<'_> {
        let without = self.seeker.state.without(self.victims.iter().map(|(uid, _)| uid));
        without.with(&self.seeker.queue.name, &self.seeker.usage)
    }

    fn take(&mut self, uid: Uid, cause: PreemptionCause) -> bool {
        self.victims.push((uid, cause));
        let without = self.seeker.state.without(self.victims.iter().map(|(uid, _)| uid));
        self.seeker.fits(&without, true)
    }

    fn pop(&mut self, queue: &Name) -> Option<Uid> {
        let left = self.left.get_mut(queue).filter(|left| !left.is_empty())?;
        Some(left.remove(0))
    }

    /// [P-6] Strategy 1.
    fn first_pass(&mut self, strategy: FairStrategy, retry: &mut Vec<Uid>) -> bool {
        let mut pruned = BTreeSet::new();
        while let Some(queue) = self.next_queue(&mut pruned) {
            if queue == self.seeker.queue.name || !self.borrows() {
                let own = queue == self.seeker.queue.name;
                let cause =
                    if own { PreemptionCause::InClusterQueue } else { PreemptionCause::InCohortReclamation };
                let Some(uid) = self.pop(&queue) else { continue };
                if self.take(uid, cause) {
                    return true;
                }
            } else if self.by_share(strategy, &queue, retry) {
                return true;
            }
        }
        false
    }

    /// [P-6] The first candidate of a ClusterQueue that satisfies the strategy; true when the workload fits then.
    fn by_share(&mut self, strategy: FairStrategy, queue: &Name, retry: &mut Vec<Uid>) -> bool {
        let (mine, before) = self.shares(&self.state(), queue);
        while let Some(uid) = self.pop(queue) {
            let (_, after) = self.shares(&self.state().without([&uid]), queue);
            let hopeless = mine.infinite() && !before.infinite();
            let allowed = match strategy {
                FairStrategy::LessThanOrEqualToFinalShare => mine.compare(after).is_le(),
                FairStrategy::LessThanInitialShare => mine.compare(before).is_lt(),
            };
            if allowed && !hopeless {
                return self.take(uid, PreemptionCause::InCohortFairSharing);
            }
            retry.push(uid);
        }
        false
    }

    /// [P-6] Strategy 2: at most one workload per ClusterQueue.
    fn second_pass(&mut self) -> bool {
        let mut pruned = BTreeSet::new();
        while let Some(queue) = self.next_queue(&mut pruned) {
            let (mine, before) = self.shares(&self.state(), &queue);
            if mine.compare(before).is_lt()
                && let Some(uid) = self.pop(&queue)
                && self.take(uid, PreemptionCause::InCohortFairSharing)
            {
                return true;
            }
            self.left.remove(&queue);
        }
        false
    }

    /// [P-6] Whether the preemptor's ClusterQueue, the workload included, is above nominal in anything contested.
    fn borrows(&self) -> bool {
        self.state().borrows_any(&self.seeker.leaf(), &self.seeker.contested)
    }

    /// [P-6] Shares of the children, on either side, of the lowest Cohort that both have in common.
    fn shares(&self, state: &State<'_>, queue: &Name) -> (Share, Share) {
        let path = |leaf: Node| {
            let above = state.ancestors(&leaf).unwrap_or_default();
            std::iter::once(leaf).chain(above).collect::<Vec<_>>()
        };
        let (mine, theirs) = (path(self.seeker.leaf()), path(Node::Queue(queue.clone())));
        let almost = |path: &[Node], other: &[Node]| {
            path.iter().take_while(|node| !other.contains(node)).last().map(|node| state.share(node))
        };
        let share =
            |path: &[Node], other: &[Node]| almost(path, other).unwrap_or_else(|| state.share(&path[0]));
        (share(&mine, &theirs), share(&theirs, &mine))
    }

    /// [P-6] The next target: from the root always into the child with the highest share.
    fn next_queue(&self, pruned: &mut BTreeSet<Node>) -> Option<Name> {
        let state = self.state();
        let root = state.root(&self.seeker.leaf());
        if let Node::Queue(name) = &root {
            return self.left.get(name).is_some_and(|left| !left.is_empty()).then(|| name.clone());
        }
        while !pruned.contains(&root) {
            if let Some(queue) = self.descend(&state, &root, pruned) {
                return Some(queue);
            }
        }
        None
    }

    fn descend(&self, state: &State<'_>, cohort: &Node, pruned: &mut BTreeSet<Node>) -> Option<Name> {
        let path = state.ancestors(&self.seeker.leaf()).unwrap_or_default();
        let mut best_queue: Option<(Share, Name)> = None;
        let mut best_cohort: Option<(Share, Node)> = None;
        for child in state.children(cohort) {
            if pruned.contains(&child) {
                continue;
            }
            let share = state.share(&child);
            match &child {
                Node::Cohort(_) if !share.borrows && !path.contains(&child) => drop(pruned.insert(child)),
                Node::Cohort(_) => {
                    if best_cohort.as_ref().is_none_or(|(best, _)| share.compare(*best).is_gt()) {
                        best_cohort = Some((share, child));
                    }
                }
                Node::Queue(name) => {
                    let head = self.left.get(name).and_then(|left| left.first());
                    let Some(head) = head.filter(|_| share.borrows || *name == self.seeker.queue.name) else {
                        pruned.insert(child);
                        continue;
                    };
                    let better = |(best, other): &(Share, Name)| {
                        let by_head = || self.seeker.candidate_order(&self.left[other][0], head);
                        share.compare(*best).then_with(by_head).is_gt()
                    };
                    if best_queue.as_ref().is_none_or(better) {
                        best_queue = Some((share, name.clone()));
                    }
                }
            }
        }
        match (best_cohort, best_queue) {
            (None, None) => {
                pruned.insert(cohort.clone());
                None
            }
            (Some((share, child)), Some((other, _))) if share.compare(other).is_ge() => {
                self.descend(state, &child, pruned)
            }
            (_, Some((_, name))) => Some(name),
            (Some((_, child)), None) => self.descend(state, &child, pruned),
        }
    }
}
