//! Records of decisions: what was recorded is decided again, wherever the record begins, and no damage goes unseen.

#[path = "scenario/generate.rs"]
mod generate;
#[path = "scenario/make.rs"]
mod make;

use std::sync::Arc;

use fairlead_engine::fact::{Eviction, EvictionCause, Node, RunningPod, Workload};
use fairlead_engine::policy::AdmissionFairSharing;
use fairlead_engine::record::{Fault, Player, Recorder, Report, plan_hash, replay};
use fairlead_engine::{Budget, Fact, Plan, Policy, Settings, World, decide};
use fairlead_model::{Millis, ObjectKey, Uid};
use proptest::prelude::*;

use generate::{Scenario, Scope, Step, scenario};
use make::{lone_queue, preempting, workload};

/// A world whose every step is recorded, from one or more beginnings.
struct Taped {
    world: World,
    policy: Policy,
    now: Millis,
    tapes: Vec<Recorder>,
    hashes: Vec<u128>,
    workloads: Vec<Workload>,
    leaving: Vec<(Uid, Millis)>,
    /// Another record begins with the next decision.
    cuts: bool,
}

impl Taped {
    fn new(settings: Settings, policy: Policy) -> Self {
        let mut world = World::new(settings);
        let tapes = vec![Recorder::begin(&world.snapshot(), 0)];
        Self {
            cuts: false,
            world,
            policy,
            now: Millis(1_000_000),
            tapes,
            hashes: Vec::new(),
            workloads: Vec::new(),
            leaving: Vec::new(),
        }
    }

    fn tell(&mut self, fact: Fact) {
        self.tapes.iter_mut().for_each(|tape| tape.fact(&fact, self.now));
        let _changed = self.world.absorb(fact, self.now);
    }

    fn round(&mut self) -> Plan {
        self.now = self.now.plus(1000);
        let _changed = self.world.advance(self.now);
        self.world.sample();
        for tape in &mut self.tapes {
            tape.advanced(self.now);
            tape.sampled();
        }
        let snapshot = self.world.snapshot();
        if std::mem::take(&mut self.cuts) {
            let first = self.hashes.len() as u64;
            self.tapes.push(Recorder::begin(&snapshot, first));
        }
        let plan = decide(&snapshot, &self.policy, self.now, Budget::default());
        self.world.commit(&plan);
        for tape in &mut self.tapes {
            tape.decided(&self.policy, Budget::default(), &plan);
            tape.committed();
        }
        self.hashes.push(plan_hash(&plan));
        self.leaving.extend(plan.evictions.iter().map(|it| (it.uid.clone(), self.now)));
        plan
    }

    fn release(&mut self) {
        for (uid, at) in std::mem::take(&mut self.leaving) {
            let Some(known) = self.workloads.iter_mut().find(|it| it.uid == uid) else { continue };
            known.evicted = Some(Eviction { cause: EvictionCause::Preempted, at });
            let fact = Fact::Workload(Arc::new(known.clone()));
            self.tell(fact);
        }
    }

    fn step(&mut self, step: &Step) {
        let nth =
            |ix: usize, there: &[Workload]| (!there.is_empty()).then(|| there[ix % there.len()].clone());
        match step {
            Step::Create(it) => {
                self.workloads.push(it.clone());
                self.tell(Fact::Workload(Arc::new(it.clone())));
            }
            Step::Finish(ix) => {
                if let Some(it) = nth(*ix, &self.workloads) {
                    self.workloads.retain(|other| other.uid != it.uid);
                    self.tell(Fact::Workload(Arc::new(Workload { finished: true, ..it })));
                }
            }
            Step::Delete(ix) => {
                if let Some(it) = nth(*ix, &self.workloads) {
                    self.workloads.retain(|other| other.uid != it.uid);
                    self.tell(Fact::WorkloadGone(it.uid));
                }
            }
            Step::Change(queue) => self.tell(Fact::ClusterQueue(queue.clone())),
            Step::Rounds(release) => {
                for _ in 0..2 {
                    self.round();
                    if *release {
                        self.release();
                    }
                }
            }
        }
    }

    fn records(&mut self) -> Vec<Vec<u8>> {
        self.tapes.iter_mut().map(Recorder::take).collect()
    }
}

/// Plays a scenario and records it, from its start and from the decisions after each of the given steps on.
fn tape(scenario: &Scenario, settings: Settings, cuts: impl Fn(usize) -> bool) -> Taped {
    let mut taped = Taped::new(settings, scenario.policy.clone());
    scenario.setup.iter().for_each(|fact| taped.tell(fact.clone()));
    for (ix, step) in scenario.steps.iter().enumerate() {
        taped.cuts |= cuts(ix);
        taped.step(step);
    }
    taped
}

/// A world that was told these facts.
fn told(facts: impl IntoIterator<Item = Fact>) -> World {
    let mut world = World::new(Settings::default());
    for fact in facts {
        let _changed = world.absorb(fact, Millis(0));
    }
    world
}

fn sharing() -> Settings {
    let sharing =
        AdmissionFairSharing { half_life_ms: 10_000, sampling_ms: 1000, resource_weights: Vec::new() };
    Settings { admission_fair_sharing: Some(sharing), ..Settings::default() }
}

const EVERYTHING: Scope = Scope { preemption: true, fair: false, partial: true };

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 128,
        max_shrink_iters: 4000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_record_is_decided_again_from_its_start(scenario in scenario(EVERYTHING)) {
        let mut taped = tape(&scenario, Settings::default(), |_| false);
        let record = taped.records().remove(0);
        let decisions = u64::try_from(taped.hashes.len()).unwrap();
        prop_assert_eq!(replay(&record), Ok(Report { first: 0, decisions, differs: None }));
        let mut player = Player::new(&record).unwrap();
        let mut hashes = Vec::new();
        while let Some(decided) = player.decide().unwrap() {
            hashes.push(decided.hash);
        }
        prop_assert_eq!(hashes, taped.hashes);
    }

    /// What rounds remember is in the checkpoint: who was tried, who waits for victims, who made way.
    #[test]
    fn a_record_that_begins_in_the_middle_comes_to_the_same(
        scenario in scenario(EVERYTHING), every in 1..4_usize
    ) {
        check_cuts(&scenario, &Settings::default(), every)?;
    }

    #[test]
    fn a_record_that_begins_in_the_middle_comes_to_the_same_under_fair_sharing(
        scenario in scenario(Scope { fair: true, ..EVERYTHING }), every in 1..4_usize
    ) {
        check_cuts(&scenario, &sharing(), every)?;
    }

    /// A checkpoint of what was made from a checkpoint says the same.
    #[test]
    fn a_checkpoint_of_a_restored_world_is_the_same_bytes(scenario in scenario(EVERYTHING)) {
        let mut taped = tape(&scenario, sharing(), |_| false);
        let first = Recorder::begin(&taped.world.snapshot(), 0).take();
        let player = Player::new(&first).unwrap();
        let mut again = player.world().clone();
        prop_assert_eq!(again.usage(), taped.world.usage());
        prop_assert_eq!(again.pending(), taped.world.pending());
        prop_assert_eq!(Recorder::begin(&again.snapshot(), 0).take(), first);
    }

    #[test]
    fn no_changed_byte_goes_unseen(scenario in scenario(EVERYTHING), change in 1..=255_u8) {
        let mut taped = tape(&scenario, Settings::default(), |_| false);
        let record = taped.records().remove(0);
        for at in (0..record.len()).step_by(record.len() / 64 + 1) {
            let mut damaged = record.clone();
            damaged[at] ^= change;
            prop_assert!(replay(&damaged).is_err(), "byte {at} of {} was changed", record.len());
        }
    }

    /// Whatever is read: an error, and no more memory than the bytes themselves account for.
    #[test]
    fn any_bytes_are_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..200), known in any::<bool>()) {
        if known {
            bytes.splice(0..0, *b"FLRR\x01");
        }
        prop_assert!(replay(&bytes).is_err());
    }
}

fn check_cuts(scenario: &Scenario, settings: &Settings, every: usize) -> Result<(), TestCaseError> {
    let mut taped = tape(scenario, settings.clone(), |ix| ix % every == 0);
    let all = taped.hashes.len() as u64;
    for record in taped.records() {
        let report = replay(&record);
        let first = report.as_ref().map_or(0, |report| report.first);
        prop_assert_eq!(report, Ok(Report { first, decisions: all - first, differs: None }));
    }
    Ok(())
}

/// A queue for two of three workloads, the third of which preempts.
fn small() -> Taped {
    let mut taped = Taped::new(Settings::default(), Policy::default());
    for fact in lone_queue("q", None, 2) {
        taped.tell(match fact {
            Fact::ClusterQueue(queue) => {
                Fact::ClusterQueue(fairlead_engine::fact::ClusterQueue { preemption: preempting(), ..queue })
            }
            other => other,
        });
    }
    for (name, priority) in [("a", 0), ("b", 0), ("c", 5)] {
        taped.step(&Step::Create(workload(name, "q", (priority, 1000), 1)));
        taped.step(&Step::Rounds(false));
    }
    taped
}

#[test]
fn every_single_byte_counts() {
    let record = small().records().remove(0);
    assert!(replay(&record).is_ok_and(|report| report.differs.is_none() && report.decisions == 6));
    for at in 0..record.len() {
        for change in [1, 0x80, 0xff] {
            let mut damaged = record.clone();
            damaged[at] ^= change;
            assert!(replay(&damaged).is_err(), "byte {at}");
        }
    }
}

#[test]
fn a_torn_end_is_told_and_what_comes_before_it_is_played() {
    let record = small().records().remove(0);
    let mut whole = 0;
    for end in 0..record.len() {
        match replay(&record[..end]) {
            // An end between two entries cannot be told from one that was meant.
            Ok(report) => whole = whole.max(report.decisions),
            Err(fault) => assert!(matches!(fault, Fault::Truncated | Fault::NotARecord), "{end}: {fault}"),
        }
    }
    assert_eq!(whole, 6);
    let mut player = Player::new(&record[..record.len() - 1]).unwrap();
    let mut decisions = 0;
    let fault = loop {
        match player.decide() {
            Ok(Some(decided)) => {
                assert!(decided.is_same());
                decisions += 1;
            }
            Ok(None) => break None,
            Err(fault) => break Some(fault),
        }
    };
    assert_eq!((decisions, fault), (6, Some(Fault::Truncated)));
}

#[test]
fn another_version_is_refused_by_number() {
    let mut record = small().records().remove(0);
    record[4] = 9;
    assert_eq!(replay(&record), Err(Fault::Version(9)));
}

/// The same decisions, but one fact says otherwise: the first decision that rests on it differs, by number.
#[test]
fn a_changed_fact_changes_the_decision_that_depends_on_it() {
    let play = |cpu: i64, claim: Option<&[u128]>| {
        let mut taped = Taped::new(Settings::default(), Policy::default());
        for fact in lone_queue("q", None, 3) {
            taped.tell(fact);
        }
        taped.step(&Step::Create(workload("a", "q", (0, 1000), 1)));
        taped.round();
        taped.step(&Step::Create(workload("b", "q", (0, 2000), cpu)));
        taped.round();
        if let Some([before, after, ..]) = claim {
            assert_eq!(*before, taped.hashes[0], "what was decided before the fact");
            assert_ne!(*after, taped.hashes[1], "what was decided after it");
        }
        taped.hashes
    };
    let two = play(2, None);
    assert_eq!(play(2, None), two);
    play(3, Some(&two));
}

/// A plan's hash is the same on every machine and by every later version; this one may change with the plan's content
/// only.
#[test]
fn hashes_cover_verdicts_and_leave_out_costs() {
    let mut world = told(lone_queue("q", None, 1));
    let _changed = world.absorb(Fact::Workload(Arc::new(workload("a", "q", (0, 0), 2))), Millis(0));
    let plan = decide(&world.snapshot(), &Policy::default(), Millis(5), Budget::default());
    let mut other = plan.clone();
    other.spent.what_ifs += 1;
    assert_eq!(plan_hash(&plan), plan_hash(&other));
    other.heads[0].verdict.message = "otherwise".into();
    assert_ne!(plan_hash(&plan), plan_hash(&other));
}

/// Nodes and pods of the hub's own cluster are part of a checkpoint too.
#[test]
fn nodes_and_pods_are_in_the_checkpoint() {
    let resources = |cpu: i64| [(Arc::from("cpu"), cpu)].into_iter().collect();
    let node = Node {
        name: "n1".into(),
        labels: [(Arc::from("rack"), Arc::from("r1"))].into_iter().collect(),
        taints: Vec::new(),
        allocatable: resources(4000),
        usable: true,
    };
    let pod =
        RunningPod { key: ObjectKey::new("kube-system", "p"), node: "n1".into(), requests: resources(100) };
    let mut world = told([Fact::Node(node), Fact::Pod(pod)]);
    let first = Recorder::begin(&world.snapshot(), 0).take();
    let mut again = Player::new(&first).unwrap().world().clone();
    assert_eq!(Recorder::begin(&again.snapshot(), 0).take(), first);
    let _changed = again.absorb(Fact::PodGone(ObjectKey::new("kube-system", "p")), Millis(0));
    assert_ne!(Recorder::begin(&again.snapshot(), 0).take(), first);
}
