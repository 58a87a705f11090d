//! The shapes: trees of queues, and workloads that fill them.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_engine::fact::{
    ClusterQueue, Cohort, Container, Eviction, EvictionCause, Flavor, FlavorQuotas, LocalQueue, Namespace,
    PodSet, PodSetAssignment, PodTemplate, Preemption, Quota, Reservation, ResourceGroup, StopPolicy, Weight,
    Workload,
};
use fairlead_engine::{Budget, Fact, Plan, Policy, Settings, World, decide};
use fairlead_model::{Amount, LabelSelector, Labels, Millis, ObjectKey, Resources};

use crate::make::workload;
use crate::reference::{Reference, RoundPlan};

/// The resources that every queue has quota for.
const RESOURCES: [&str; 3] = ["cpu", "memory", "nvidia.com/gpu"];

/// When everything happens.
pub(crate) const NOW: Millis = Millis(1_000_000_000);

/// ClusterQueues `q0…`, ten to a Cohort, ten Cohorts to a Cohort, and so on to one root; one flavor.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// How many.
    pub(crate) queues: usize,
    /// Nominal quota of each, of each resource.
    pub(crate) nominal: i64,
    /// Whether they share a tree.
    pub(crate) cohorts: bool,
    /// Their rules of preemption.
    pub(crate) preemption: Preemption,
}

impl Shape {
    /// Everything but workloads.
    pub(crate) fn facts(&self) -> Vec<Fact> {
        let mut facts = vec![
            Fact::Namespace(Namespace { name: "ns".into(), labels: Labels::new() }),
            Fact::Flavor(Flavor { name: "default".into(), ..Flavor::default() }),
        ];
        if self.cohorts {
            facts.extend(cohorts(self.queues));
        }
        facts.extend((0..self.queues).flat_map(|ix| self.queue(ix)));
        facts
    }

    fn queue(&self, ix: usize) -> [Fact; 2] {
        let name: Arc<str> = format!("q{ix}").into();
        let quota = |resource: &str| Quota {
            resource: resource.into(),
            nominal: Amount::Finite(self.nominal),
            borrowing: None,
            lending: None,
        };
        let quotas = RESOURCES.iter().map(|resource| quota(resource)).collect();
        let group = ResourceGroup {
            resources: RESOURCES.iter().map(|name| Arc::from(*name)).collect(),
            flavors: vec![FlavorQuotas { flavor: "default".into(), quotas }],
        };
        let queue = ClusterQueue {
            name: Arc::clone(&name),
            cohort: self.cohorts.then(|| format!("c0-{}", ix / 10).into()),
            groups: vec![group],
            namespaces: Some(LabelSelector::default()),
            preemption: self.preemption,
            ..ClusterQueue::default()
        };
        let local = LocalQueue {
            key: ObjectKey::new("ns", Arc::clone(&name)),
            cluster_queue: name,
            stop: StopPolicy::None,
            weight: Weight::default(),
        };
        [Fact::ClusterQueue(queue), Fact::LocalQueue(local)]
    }
}

fn cohorts(queues: usize) -> Vec<Fact> {
    let (mut facts, mut level, mut count) = (Vec::new(), 0, queues.div_ceil(10));
    loop {
        for ix in 0..count {
            let parent = (count > 1).then(|| format!("c{}-{}", level + 1, ix / 10).into());
            facts.push(Fact::Cohort(Cohort {
                name: format!("c{level}-{ix}").into(),
                parent,
                ..Cohort::default()
            }));
        }
        if count == 1 {
            return facts;
        }
        (level, count) = (level + 1, count.div_ceil(10));
    }
}

/// A workload of one pod with a template of its own, as each comes from its own object; `amount` of each resource.
pub(crate) fn job(name: &str, queue: usize, (priority, created): (i64, i64), amount: i64) -> Workload {
    let base = workload(name, &format!("q{queue}"), (priority, created), amount);
    let requests: Resources = RESOURCES.iter().map(|name| (Arc::from(*name), amount)).collect();
    let container = Container { requests, ..Container::default() };
    let template = Arc::new(PodTemplate { containers: vec![container], ..PodTemplate::default() });
    let pod_set = PodSet { template, ..base.pod_sets[0].clone() };
    Workload { pod_sets: Arc::from([pod_set]), ..base }
}

/// The same, holding quota of its queue since `at`.
pub(crate) fn admitted(name: &str, queue: usize, (priority, at): (i64, i64), amount: i64) -> Workload {
    let base = job(name, queue, (priority, at), amount);
    let assignment = PodSetAssignment {
        name: Arc::clone(&base.pod_sets[0].name),
        count: 1,
        flavors: RESOURCES.iter().map(|name| (Arc::from(*name), Arc::from("default"))).collect(),
        usage: RESOURCES.iter().map(|name| (Arc::from(*name), amount)).collect(),
        topology: None,
    };
    let reservation = Reservation {
        cluster_queue: Arc::clone(&base.queue),
        at: Millis(at),
        pod_sets: Arc::from([assignment]),
        spoke: None,
        placement: None,
        admitted: true,
    };
    Workload { reservation: Some(reservation), ..base }
}

/// A world that was told these facts and has settled.
pub(crate) fn told(facts: impl IntoIterator<Item = Fact>) -> World {
    let mut world = World::new(Settings::default());
    tell(&mut world, facts);
    let _settled = world.snapshot();
    world
}

/// Tells a world facts.
pub(crate) fn tell(world: &mut World, facts: impl IntoIterator<Item = Fact>) {
    for fact in facts {
        let _changed = world.absorb(fact, NOW);
    }
}

/// A workload as a fact.
pub(crate) fn fact(workload: Workload) -> Fact {
    Fact::Workload(Arc::new(workload))
}

/// One round.
pub(crate) fn round(world: &mut World, policy: &Policy) -> Plan {
    decide(&world.snapshot(), policy, NOW, Budget::default())
}

/// Plays a small instance on the engine and on the reference, both told the same, and panics unless they decide the
/// same in every round: only then is a row of that shape worth timing. Victims leave after the round that chose them.
pub(crate) fn compare(facts: Vec<Fact>, policy: &Policy) {
    let mut world = World::new(Settings::default());
    let mut reference = Reference::new(policy.clone());
    let mut workloads = BTreeMap::new();
    for fact in facts {
        if let Fact::Workload(workload) = &fact {
            workloads.insert(workload.uid.clone(), Arc::clone(workload));
        }
        tell(&mut world, [fact.clone()]);
        reference.absorb(fact);
    }
    for number in 0..6 {
        let plan = round(&mut world, policy);
        assert_eq!(
            RoundPlan::of(&plan),
            reference.play(NOW),
            "round {number}: the engine's, the reference's"
        );
        world.commit(&plan);
        for victim in &plan.evictions {
            let evicted = Some(Eviction { cause: EvictionCause::Preempted, at: NOW });
            let left = Workload { evicted, reservation: None, ..(*workloads[&victim.uid]).clone() };
            tell(&mut world, [fact(left.clone())]);
            reference.absorb(fact(left));
        }
    }
}
