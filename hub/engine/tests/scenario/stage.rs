//! The stage: the engine and the reference hear the same facts and play the same rounds.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_engine::fact::{Eviction, EvictionCause, Workload};
use fairlead_engine::{Budget, Fact, Plan, Policy, Settings, World, decide};
use fairlead_model::{Millis, Uid};

use super::{Scenario, Step};
use crate::reference::{Reference, RoundPlan, UsageByNode};

/// A world that was told these facts.
pub(crate) fn told(facts: impl IntoIterator<Item = Fact>) -> World {
    let mut world = World::new(Settings::default());
    for fact in facts {
        let _changed = world.absorb(fact, Millis(0));
    }
    world
}

/// Both sides of a comparison, and the outside world that tells them facts.
pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) reference: Reference,
    pub(crate) policy: Policy,
    pub(crate) now: Millis,
    /// Workloads that exist, in the order of creation.
    pub(crate) workloads: Vec<Workload>,
    /// Victims that have not given back their quota, with the time they were told to go.
    pub(crate) leaving: BTreeMap<Uid, Millis>,
}

impl Stage {
    /// Both sides with the scenario's facts; nothing has happened yet.
    pub(crate) fn set(scenario: &Scenario) -> Self {
        let mut stage = Self {
            world: World::new(Settings::default()),
            reference: Reference::new(scenario.policy.clone()),
            policy: scenario.policy.clone(),
            now: Millis(1_000_000),
            workloads: Vec::new(),
            leaving: BTreeMap::new(),
        };
        scenario.setup.iter().for_each(|fact| stage.tell(fact.clone()));
        stage
    }

    /// Tells both sides a fact.
    pub(crate) fn tell(&mut self, fact: Fact) {
        let _changed = self.world.absorb(fact.clone(), self.now);
        self.reference.absorb(fact);
    }

    /// Does one step; `each_round` sees every plan before it is taken over.
    pub(crate) fn step(&mut self, step: &Step, each_round: &mut impl FnMut(&mut Self, &Plan)) {
        let nth = |stage: &Self, ix: usize| {
            let there = stage.workloads.len();
            (there > 0).then(|| stage.workloads[ix % there].clone())
        };
        match step {
            Step::Create(workload) => {
                self.workloads.push(workload.clone());
                self.tell(Fact::Workload(Arc::new(workload.clone())));
            }
            Step::Finish(ix) => {
                // Only what holds quota runs, and only what runs ends.
                if let Some(workload) = nth(self, *ix).filter(|it| self.holds(&it.uid)) {
                    self.remove(&workload.uid);
                    self.tell(Fact::Workload(Arc::new(Workload { finished: true, ..workload })));
                }
            }
            Step::Delete(ix) => {
                if let Some(workload) = nth(self, *ix) {
                    self.remove(&workload.uid);
                    self.tell(Fact::WorkloadGone(workload.uid));
                }
            }
            Step::Change(queue) => self.tell(Fact::ClusterQueue(queue.clone())),
            Step::Rounds(release) => {
                for _ in 0..2 {
                    self.round(each_round);
                    if *release {
                        self.release();
                    }
                }
            }
        }
    }

    fn remove(&mut self, uid: &Uid) {
        self.workloads.retain(|it| it.uid != *uid);
        self.leaving.remove(uid);
    }

    fn holds(&self, uid: &Uid) -> bool {
        let pending = self.world.pending();
        let key = &self.workloads.iter().find(|it| it.uid == *uid).map(|it| it.key.clone());
        !pending
            .values()
            .any(|it| it.active.iter().chain(&it.parked).any(|other| Some(other) == key.as_ref()))
    }

    /// One round on both sides.
    pub(crate) fn round(&mut self, each_round: &mut impl FnMut(&mut Self, &Plan)) {
        self.now = self.now.plus(1000);
        let plan = decide(&self.world.snapshot(), &self.policy, self.now, Budget::default());
        each_round(self, &plan);
        self.world.commit(&plan);
        for eviction in &plan.evictions {
            self.leaving.insert(eviction.uid.clone(), self.now);
        }
    }

    /// Every victim gives back its quota and is queued again.
    pub(crate) fn release(&mut self) {
        for (uid, at) in std::mem::take(&mut self.leaving) {
            let Some(workload) = self.workloads.iter_mut().find(|it| it.uid == uid) else { continue };
            workload.evicted = Some(Eviction { cause: EvictionCause::Preempted, at });
            let workload = Arc::new(workload.clone());
            self.tell(Fact::Workload(workload));
        }
    }

    /// Panics unless the reference decides the same in this round, and holds and queues the same afterwards.
    ///
    /// Where the rules would go round in a circle the comparison ends, since the engine is to break out of it.
    pub(crate) fn compare(&mut self, plan: &Plan) {
        if self.reference.is_circling() {
            return;
        }
        let expected = self.reference.play(self.now);
        if self.reference.is_circling() {
            return;
        }
        assert_eq!(
            RoundPlan::of(plan),
            expected,
            "round at {:?}: the engine's plan, the reference's",
            self.now
        );
        let mut after = self.world.clone();
        after.commit(plan);
        let _settled = after.snapshot();
        assert_eq!(usage(&after), self.reference.usage(), "usage after the round at {:?}", self.now);
        let pending: BTreeMap<_, _> =
            after.pending().into_iter().map(|(queue, it)| (queue, (it.active, it.parked))).collect();
        assert_eq!(pending, self.reference.pending(), "queues after the round at {:?}", self.now);
    }
}

/// The engine's usage by ClusterQueue and by Cohort, in the reference's form.
pub(crate) fn usage(world: &World) -> (UsageByNode, UsageByNode) {
    let (queues, cohorts) = world.usage();
    let amounts = |all: BTreeMap<Arc<str>, fairlead_engine::QueueUsage>| -> UsageByNode {
        let flat = all.into_iter().map(|(node, usage)| {
            let pairs = usage.by_flavor.into_iter().flat_map(|(flavor, by_resource)| {
                by_resource.into_iter().map(move |(resource, (total, _))| ((flavor.clone(), resource), total))
            });
            (node, pairs.collect())
        });
        flat.filter(|(_, amounts): &(_, BTreeMap<_, i64>)| !amounts.is_empty()).collect()
    };
    (amounts(queues), amounts(cohorts))
}
