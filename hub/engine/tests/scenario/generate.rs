//! Random scenarios that shrink: small numbers, few names.

use std::fmt;
use std::sync::Arc;

use fairlead_engine::fact::{
    BorrowWithinCohort, ClusterQueue, Cohort, Container, Flavor, FlavorQuotas, Fungibility,
    FungibilityPreference, LocalQueue, Namespace, PodSet, PodTemplate, Preemption, QueueingStrategy, Quota,
    ResourceGroup, StopPolicy, VictimPolicy, Weight, WhenCan, Workload,
};
use fairlead_engine::policy::FairStrategy;
use fairlead_engine::{Fact, Policy};
use fairlead_model::{
    Amount, LabelSelector, Labels, NodeConstraints, NodeTerm, ObjectKey, Operator, Requirement, Taint,
    TaintEffect, Toleration,
};
use proptest::prelude::*;
use proptest::sample::select;

use super::make;

/// What a scenario may contain.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scope {
    /// ClusterQueues may preempt.
    pub(crate) preemption: bool,
    /// Fair sharing is on.
    pub(crate) fair: bool,
    /// Workloads may be admitted in part.
    pub(crate) partial: bool,
}

/// Something that happens before a run of rounds.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A workload is created.
    Create(Workload),
    /// The n-th of those created, counted around, ends.
    Finish(usize),
    /// The n-th of those created, counted around, is deleted.
    Delete(usize),
    /// A ClusterQueue is as given.
    Change(ClusterQueue),
    /// Two rounds are played, and evicted workloads give back what they hold after each if the flag is set.
    Rounds(bool),
}

/// Facts, and what happens then.
#[derive(Clone)]
pub(crate) struct Scenario {
    pub(crate) policy: Policy,
    pub(crate) setup: Vec<Fact>,
    pub(crate) steps: Vec<Step>,
}

/// A shrunk scenario is read by people: one line per thing.
impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}", self.policy)?;
        for fact in &self.setup {
            match fact {
                Fact::Namespace(_) | Fact::LocalQueue(_) => {}
                Fact::ClusterQueue(queue) => writeln!(f, "{}", line(queue))?,
                Fact::Cohort(it) => {
                    writeln!(f, "{} in {:?} {} {:?}", it.name, it.parent, groups(&it.groups), it.weight)?;
                }
                Fact::Flavor(it) => writeln!(f, "{} {:?} {:?}", it.name, it.node_labels, it.taints)?,
                other => writeln!(f, "{other:?}")?,
            }
        }
        for step in &self.steps {
            match step {
                Step::Create(it) => {
                    writeln!(f, "create {} in {} priority {}{}", it.key, it.queue, it.priority, pods(it))?;
                }
                Step::Change(queue) => writeln!(f, "change {}", line(queue))?,
                other => writeln!(f, "{other:?}")?,
            }
        }
        Ok(())
    }
}

fn line(it: &ClusterQueue) -> String {
    let (groups, name, cohort) = (groups(&it.groups), &it.name, &it.cohort);
    format!(
        "{name} in {cohort:?} {groups}\n   {:?} {:?}\n   {:?} {:?}",
        it.strategy, it.weight, it.fungibility, it.preemption
    )
}

fn groups(groups: &[ResourceGroup]) -> String {
    let flavors = groups.iter().flat_map(|group| &group.flavors);
    let cells = flavors.flat_map(|it| it.quotas.iter().map(|quota| (Arc::clone(&it.flavor), quota)));
    let limit = |limit: Option<Amount>| limit.map_or_else(|| "-".to_owned(), |limit| limit.to_string());
    let text = |(flavor, it): (Arc<str>, &Quota)| {
        format!(" {flavor}/{}={}+{}/{}", it.resource, it.nominal, limit(it.borrowing), limit(it.lending))
    };
    cells.map(text).collect()
}

fn pods(workload: &Workload) -> String {
    let text = |it: &PodSet| {
        let template = &it.template;
        let nodes = if template.nodes == NodeConstraints::ANY {
            String::new()
        } else {
            format!(" {:?}", template.nodes)
        };
        format!(" [{}x {} at least {:?}{nodes}]", it.count, template.containers[0].requests, it.min_count)
    };
    workload.pod_sets.iter().map(text).collect()
}

/// Random scenarios within a scope.
pub(crate) fn scenario(scope: Scope) -> impl Strategy<Value = Scenario> {
    let cohorts = prop::collection::vec(cohort(), 0..=3);
    let queues = (cohorts, prop::collection::vec(queue(scope), 1..=4));
    let shape = (queues, prop::collection::vec(any::<(bool, bool)>(), 3), policy(scope));
    shape.prop_flat_map(move |((cohorts, queues), flavors, policy)| {
        let count = queues.len();
        let changes = prop::collection::vec(queue(scope), count);
        let steps = prop::collection::vec(step(scope, count), 1..=24);
        (Just((cohorts, queues, flavors, policy)), changes, steps).prop_map(|(base, changes, steps)| {
            let (cohorts, queues, flavors, policy) = base;
            let setup = setup(&cohorts, &queues, &flavors);
            let changes: Vec<ClusterQueue> =
                (0..).zip(&changes).map(|(ix, it)| it.named(ix, &cohorts)).collect();
            Scenario { policy, setup, steps: number(steps, &changes) }
        })
    })
}

fn policy(scope: Scope) -> impl Strategy<Value = Policy> {
    let (final_share, initial) =
        (FairStrategy::LessThanOrEqualToFinalShare, FairStrategy::LessThanInitialShare);
    let strategies = select(vec![vec![final_share, initial], vec![final_share], vec![initial]]);
    strategies.prop_map(move |it| Policy { fair_sharing: scope.fair.then_some(it), ..Policy::default() })
}

/// A Cohort by the position of its parent among those before it, with quota of its own.
type CohortDraft = (usize, Option<(i64, Limits)>, i64);
/// Borrowing and lending limit.
type Limits = (Option<i64>, Option<i64>);

fn cohort() -> impl Strategy<Value = CohortDraft> {
    (0..4_usize, prop::option::of((0..=6_i64, limits())), weight())
}

fn limits() -> impl Strategy<Value = Limits> {
    (prop::option::weighted(0.3, 0..=5_i64), prop::option::weighted(0.3, 0..=5_i64))
}

fn weight() -> impl Strategy<Value = i64> {
    select(vec![1_000_000_000, 1_000_000_000, 2_000_000_000, 500_000_000, 0])
}

#[derive(Clone, Debug)]
struct QueueDraft {
    cohort: usize,
    /// Per flavor CPU and memory quota.
    flavors: Vec<((i64, Limits), (i64, Limits))>,
    fungibility: Fungibility,
    preemption: Preemption,
    strict: bool,
    weight: i64,
}

fn queue(scope: Scope) -> impl Strategy<Value = QueueDraft> {
    let cell = || (0..=9_i64, limits());
    let flavors = prop::collection::vec((cell(), cell()), 1..=3);
    let preemption =
        if scope.preemption { preemption().boxed() } else { Just(Preemption::default()).boxed() };
    (0..4_usize, flavors, fungibility(), preemption, any::<bool>(), weight()).prop_map(
        |(cohort, flavors, fungibility, preemption, strict, weight)| QueueDraft {
            cohort,
            flavors,
            fungibility,
            preemption,
            strict,
            weight,
        },
    )
}

fn fungibility() -> impl Strategy<Value = Fungibility> {
    let when = || select(vec![WhenCan::MayStopSearch, WhenCan::TryNextFlavor]);
    let better = select(vec![
        FungibilityPreference::BorrowingOverPreemption,
        FungibilityPreference::PreemptionOverBorrowing,
    ]);
    (when(), when(), better).prop_map(|(when_can_borrow, when_can_preempt, preference)| Fungibility {
        when_can_borrow,
        when_can_preempt,
        preference,
    })
}

fn preemption() -> impl Strategy<Value = Preemption> {
    let own = vec![VictimPolicy::Never, VictimPolicy::LowerPriority, VictimPolicy::LowerOrNewerEqualPriority];
    let mut reclaim = own.clone();
    reclaim.push(VictimPolicy::Any);
    let borrow = prop::option::of(prop::option::of(0..=2_i64));
    (select(own), select(reclaim), borrow).prop_map(|(within_queue, reclaim, borrow)| Preemption {
        within_queue,
        reclaim,
        borrow: borrow
            .filter(|_| reclaim != VictimPolicy::Never)
            .map(|max_priority| BorrowWithinCohort { max_priority }),
    })
}

#[derive(Clone, Debug)]
enum StepDraft {
    Create(usize, i64, Vec<PodSetDraft>, bool),
    Finish(usize),
    Delete(usize),
    Change(usize),
    Rounds(bool),
}

/// Count, CPU, memory, pods that may be missing, tolerates, selects.
type PodSetDraft = (u32, i64, i64, u32, bool, Option<bool>);

fn step(scope: Scope, queues: usize) -> impl Strategy<Value = StepDraft> {
    let spare = if scope.partial { 3_u32 } else { 0 };
    let pod_set = (
        1..=4_u32,
        0..=4_i64,
        0..=4_i64,
        0..=spare,
        any::<bool>(),
        prop::option::weighted(0.2, any::<bool>()),
    );
    let create = (0..queues, 0..=3_i64, prop::collection::vec(pod_set, 1..=2), prop::bool::weighted(0.05));
    prop_oneof![
        8 => create.prop_map(|(queue, priority, pod_sets, foreign)| {
            StepDraft::Create(queue, priority, pod_sets, foreign)
        }),
        2 => (0..24_usize).prop_map(StepDraft::Finish),
        1 => (0..24_usize).prop_map(StepDraft::Delete),
        1 => (0..queues).prop_map(StepDraft::Change),
        4 => any::<bool>().prop_map(StepDraft::Rounds),
    ]
}

/// Gives workloads their names, ages and uids; uids are not in the order of creation.
fn number(steps: Vec<StepDraft>, changes: &[ClusterQueue]) -> Vec<Step> {
    let mut created = 0_i64;
    let step = |draft| match draft {
        StepDraft::Finish(ix) => Step::Finish(ix),
        StepDraft::Delete(ix) => Step::Delete(ix),
        StepDraft::Rounds(release) => Step::Rounds(release),
        StepDraft::Change(ix) => Step::Change(changes[ix].clone()),
        StepDraft::Create(queue, priority, pod_sets, foreign) => {
            created += 1;
            let name = format!("w{:02}-{created}", created * 7 % 24);
            let base = make::workload(&name, &format!("q{queue}"), (priority, created * 1000), 0);
            let namespace = if foreign { "other" } else { "ns" };
            Step::Create(Workload {
                key: ObjectKey::new(namespace, name),
                pod_sets: (0..).zip(pod_sets).map(|(ix, draft)| pod_set(ix, draft)).collect(),
                ..base
            })
        }
    };
    steps.into_iter().map(step).chain([Step::Rounds(true), Step::Rounds(true)]).collect()
}

fn pod_set(ix: usize, (count, cpu, memory, spare, tolerates, selects): PodSetDraft) -> PodSet {
    let amounts = [("cpu", cpu), ("memory", memory)].into_iter().filter(|(_, amount)| *amount > 0);
    let requests = amounts.map(|(name, amount)| (Arc::from(name), amount)).collect();
    let toleration = Toleration { key: "spot".into(), exists: true, value: "".into(), effect: None };
    let term = |zone: &str| NodeTerm {
        expressions: vec![Requirement {
            key: "zone".into(),
            operator: Operator::In,
            values: vec![zone.into()],
        }],
        fields: Vec::new(),
    };
    let nodes = NodeConstraints {
        selector: if selects == Some(true) {
            Labels::from([("zone".into(), "a".into())])
        } else {
            Labels::new()
        },
        affinity: (selects == Some(false)).then(|| vec![term("b"), term("c")]),
        tolerations: if tolerates { vec![toleration] } else { Vec::new() },
    };
    let container = Container { requests, ..Container::default() };
    let template = PodTemplate { containers: vec![container], nodes, ..PodTemplate::default() };
    PodSet {
        name: format!("ps{ix}").into(),
        count,
        min_count: (spare > 0 && ix == 0).then(|| count.saturating_sub(spare).max(1)),
        template: template.into(),
        topology: None,
    }
}

fn setup(cohorts: &[CohortDraft], queues: &[QueueDraft], flavors: &[(bool, bool)]) -> Vec<Fact> {
    let mut facts = Vec::new();
    for (ix, (tainted, labelled)) in flavors.iter().enumerate() {
        let taint = Taint { key: "spot".into(), value: "".into(), effect: TaintEffect::NoSchedule };
        let zone = if ix == 0 { "a" } else { "b" };
        facts.push(Fact::Flavor(Flavor {
            name: format!("f{ix}").into(),
            node_labels: if *labelled { Labels::from([("zone".into(), zone.into())]) } else { Labels::new() },
            taints: if *tainted && ix > 0 { vec![taint] } else { Vec::new() },
            ..Flavor::default()
        }));
    }
    for (name, team) in [("ns", "ours"), ("other", "theirs")] {
        let labels = Labels::from([("team".into(), team.into())]);
        facts.push(Fact::Namespace(Namespace { name: name.into(), labels }));
    }
    for (ix, (parent, own, weight)) in cohorts.iter().enumerate() {
        let quotas = |(nominal, limits): &(i64, Limits)| vec![limited("cpu", *nominal, *limits)];
        let flavors =
            own.iter().map(|own| FlavorQuotas { flavor: "f0".into(), quotas: quotas(own) }).collect();
        let own = own.map(|_| ResourceGroup { resources: vec!["cpu".into()], flavors });
        facts.push(Fact::Cohort(Cohort {
            name: format!("c{ix}").into(),
            parent: (*parent < ix).then(|| format!("c{parent}").into()),
            groups: own.into_iter().collect(),
            weight: Weight(*weight),
        }));
    }
    for (ix, draft) in queues.iter().enumerate() {
        facts.push(Fact::ClusterQueue(draft.named(ix, cohorts)));
        let name = format!("q{ix}");
        for namespace in ["ns", "other"] {
            facts.push(Fact::LocalQueue(LocalQueue {
                key: ObjectKey::new(namespace, name.clone()),
                cluster_queue: name.clone().into(),
                stop: StopPolicy::None,
                weight: Weight::default(),
            }));
        }
    }
    facts
}

fn limited(resource: &str, nominal: i64, (borrowing, lending): Limits) -> Quota {
    Quota {
        borrowing: borrowing.map(Amount::Finite),
        lending: lending.map(Amount::Finite),
        ..make::quota(resource, nominal)
    }
}

impl QueueDraft {
    fn named(&self, ix: usize, cohorts: &[CohortDraft]) -> ClusterQueue {
        let ours = Requirement { key: "team".into(), operator: Operator::In, values: vec!["ours".into()] };
        // Limits without a Cohort to borrow from or lend to are refused by validation.
        let alone = self.cohort > cohorts.len();
        let cell = |resource, (nominal, limits): (i64, Limits)| {
            limited(resource, nominal, if alone { (None, None) } else { limits })
        };
        let flavors = self.flavors.iter().enumerate().map(|(flavor, (cpu, memory))| FlavorQuotas {
            flavor: format!("f{flavor}").into(),
            quotas: vec![cell("cpu", *cpu), cell("memory", *memory)],
        });
        let group =
            ResourceGroup { resources: vec!["cpu".into(), "memory".into()], flavors: flavors.collect() };
        ClusterQueue {
            name: format!("q{ix}").into(),
            // One past the Cohorts that are objects is a Cohort that is only named.
            cohort: (!alone).then(|| format!("c{}", self.cohort).into()),
            groups: vec![group],
            strategy: if self.strict {
                QueueingStrategy::StrictFifo
            } else {
                QueueingStrategy::BestEffortFifo
            },
            namespaces: Some(LabelSelector { requirements: vec![ours] }),
            fungibility: self.fungibility,
            preemption: self.preemption,
            weight: Weight(self.weight),
            ..ClusterQueue::default()
        }
    }
}
