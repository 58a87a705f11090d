//! Short ways to say what a small world is like, for tests that tell one story each.
#![expect(dead_code, reason = "each test binary uses its own part")]
#![expect(clippy::panic, clippy::expect_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_engine::fact::{
    AdmissionCheck, CheckKind, CheckUse, Cluster, ClusterQueue, ClusterReport, Container, DispatchPolicy,
    Flavor, FlavorQuotas, LocalQueue, Mode, Namespace, PodSet, PodSetAssignment, PodTemplate, Preemption,
    Presence, Quota, Reservation, ResourceGroup, StopPolicy, Weight, Workload,
};
use fairlead_engine::{Budget, Changed, Fact, Head, Plan, Policy, Settings, World, check, decide};
use fairlead_model::{
    Amount, LabelSelector, Labels, Millis, NodeClass, ObjectKey, PlacementId, Resources, Shape, SpokeId, Uid,
};

/// The namespace of everything here.
pub(crate) const NAMESPACE: &str = "team";
/// The time of every decision unless a test says otherwise.
pub(crate) const NOW: Millis = Millis(1_000_000);

/// Amounts by name.
pub(crate) fn resources(amounts: &[(&str, i64)]) -> Resources {
    amounts.iter().map(|(name, amount)| (Arc::from(*name), *amount)).collect()
}

/// Labels.
pub(crate) fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| (Arc::from(*key), Arc::from(*value))).collect()
}

/// A ClusterQueue with `cpu` quotas by flavor, in millicores.
pub(crate) fn queue(name: &str, flavors: &[(&str, i64)]) -> ClusterQueue {
    let quota = |nominal: i64| Quota {
        resource: "cpu".into(),
        nominal: Amount::Finite(nominal),
        borrowing: None,
        lending: None,
    };
    let flavors = flavors
        .iter()
        .map(|(flavor, nominal)| FlavorQuotas { flavor: (*flavor).into(), quotas: vec![quota(*nominal)] })
        .collect();
    ClusterQueue {
        name: name.into(),
        groups: vec![ResourceGroup { resources: vec!["cpu".into()], flavors }],
        namespaces: Some(LabelSelector::default()),
        ..ClusterQueue::default()
    }
}

/// A ClusterQueue whose work is dispatched to spokes.
pub(crate) fn federated(name: &str, flavors: &[(&str, i64)]) -> ClusterQueue {
    let dispatch = CheckUse { check: "dispatch".into(), flavors: Vec::new() };
    ClusterQueue { checks: vec![dispatch], ..queue(name, flavors) }
}

/// A ClusterQueue with rules of preemption.
pub(crate) fn with_preemption(queue: ClusterQueue, preemption: Preemption) -> ClusterQueue {
    ClusterQueue { preemption, ..queue }
}

/// A workload with one pod set of `count` pods of `cpu` millicores each.
pub(crate) fn workload(name: &str, queue: &str, (count, cpu): (u32, i64)) -> Workload {
    let container = Container { requests: resources(&[("cpu", cpu)]), ..Container::default() };
    let template = PodTemplate { containers: vec![container], ..PodTemplate::default() };
    let main =
        PodSet { name: "main".into(), count, min_count: None, template: Arc::new(template), topology: None };
    Workload::new(Uid::from(name), ObjectKey::new(NAMESPACE, name), queue.into(), Millis(0), [main])
}

/// The same with another template.
pub(crate) fn with_template(mut workload: Workload, change: impl FnOnce(&mut PodTemplate)) -> Workload {
    let mut pod_sets = workload.pod_sets.to_vec();
    if let Some(pod_set) = pod_sets.first_mut() {
        let mut template = (*pod_set.template).clone();
        change(&mut template);
        pod_set.template = Arc::new(template);
    }
    workload.pod_sets = pod_sets.into();
    workload
}

/// The same, holding `cpu` of a flavor.
pub(crate) fn holding(workload: Workload, queue: &str, (flavor, cpu): (&str, i64)) -> Workload {
    let count = workload.pod_sets.first().map_or(1, |pod_set| pod_set.count);
    let assignment = PodSetAssignment {
        name: "main".into(),
        count,
        flavors: BTreeMap::from([(Arc::from("cpu"), Arc::from(flavor))]),
        usage: resources(&[("cpu", cpu)]),
        topology: None,
    };
    let reservation = Reservation {
        cluster_queue: queue.into(),
        at: Millis(1),
        pod_sets: Arc::from([assignment]),
        spoke: None,
        placement: None,
        admitted: true,
    };
    Workload { reservation: Some(reservation), ..workload }
}

/// The same, promised to a spoke.
pub(crate) fn promised(mut workload: Workload, spoke: &str, placement: Option<&str>) -> Workload {
    if let Some(reservation) = &mut workload.reservation {
        reservation.spoke = Some(SpokeId::from(spoke));
        reservation.placement = placement.map(PlacementId::from);
    }
    workload
}

/// `count` nodes with this much of cpu free and the cluster's own label.
pub(crate) fn shape(cluster: &str, cpu: i64, count: u32) -> Shape {
    let labels = labels(&[("fairlead.dev/cluster", cluster)]);
    let class = NodeClass { labels, taints: Vec::new() };
    Shape { class: Arc::new(class), free: resources(&[("cpu", cpu), ("pods", 110)]), count }
}

/// A world with a policy.
pub(crate) struct Hub {
    pub(crate) world: World,
    pub(crate) policy: Policy,
}

impl Hub {
    /// A world with a namespace, a dispatch check and these flavors and queues; each queue has a LocalQueue of its name.
    pub(crate) fn new(flavors: &[Flavor], queues: &[ClusterQueue]) -> Self {
        Self::with(Settings::default(), flavors, queues)
    }

    /// The same with settings.
    pub(crate) fn with(settings: Settings, flavors: &[Flavor], queues: &[ClusterQueue]) -> Self {
        let mut hub = Self { world: World::new(settings), policy: Policy::default() };
        hub.tell(Fact::Namespace(Namespace { name: NAMESPACE.into(), labels: Labels::new() }));
        let dispatch = CheckKind::Dispatch(DispatchPolicy::default());
        hub.tell(Fact::Check(AdmissionCheck { name: "dispatch".into(), kind: dispatch, usable: true }));
        for flavor in flavors {
            hub.tell(Fact::Flavor(flavor.clone()));
        }
        for queue in queues {
            hub.tell(Fact::ClusterQueue(queue.clone()));
            hub.open(&queue.name, StopPolicy::None);
        }
        hub
    }

    /// Sets the LocalQueue of a ClusterQueue's name.
    pub(crate) fn open(&mut self, queue: &Arc<str>, stop: StopPolicy) {
        let key = ObjectKey::new(NAMESPACE, Arc::clone(queue));
        self.tell(Fact::LocalQueue(LocalQueue {
            key,
            cluster_queue: Arc::clone(queue),
            stop,
            weight: Weight::default(),
        }));
    }

    pub(crate) fn tell(&mut self, fact: Fact) {
        let _changed: Changed = self.world.absorb(fact, NOW);
    }

    pub(crate) fn submit(&mut self, workload: Workload) {
        self.tell(Fact::Workload(Arc::new(workload)));
    }

    /// A connected spoke whose uid is its name, with free and empty nodes.
    pub(crate) fn connect(&mut self, name: &str, free: &[Shape], empty: &[Shape]) {
        self.tell(Fact::Cluster(spoke(name)));
        self.report(name, free, empty, BTreeMap::new());
    }

    pub(crate) fn report(
        &mut self,
        name: &str,
        free: &[Shape],
        empty: &[Shape],
        bound: BTreeMap<PlacementId, Resources>,
    ) {
        let spoke = SpokeId::from(name);
        self.tell(Fact::Report(ClusterReport { spoke, free: free.into(), empty: empty.into(), bound }));
    }

    /// One round, checked by the linter and taken over.
    pub(crate) fn round(&mut self) -> Plan {
        let snapshot = self.world.snapshot();
        let plan = decide(&snapshot, &self.policy, NOW, Budget::default());
        assert_eq!(check(&snapshot, &plan), Vec::new());
        self.world.commit(&plan);
        plan
    }

    /// Rounds until nothing happens; all plans.
    pub(crate) fn rounds(&mut self) -> Vec<Plan> {
        let mut plans = Vec::new();
        for _ in 0..100 {
            let plan = self.round();
            let quiet = plan.quiet;
            plans.push(plan);
            if quiet {
                return plans;
            }
        }
        panic!("rounds do not become quiet");
    }
}

/// A connected spoke.
pub(crate) fn spoke(name: &str) -> Cluster {
    Cluster {
        spoke: SpokeId::from(name),
        name: name.into(),
        labels: labels(&[("fairlead.dev/cluster", name)]),
        cordoned: false,
        presence: Presence::Fresh,
        mode: Mode::Reported,
        elastic: false,
    }
}

/// A flavor without labels.
pub(crate) fn flavor(name: &str) -> Flavor {
    Flavor { name: name.into(), ..Flavor::default() }
}

/// What was said of a workload.
pub(crate) fn head<'p>(plan: &'p Plan, name: &str) -> &'p Head {
    plan.heads.iter().find(|head| *head.key.name == *name).expect("the workload was looked at")
}

/// Names of admitted workloads, each with its spoke.
pub(crate) fn admitted(plan: &Plan) -> Vec<(&str, Option<&str>)> {
    plan.admissions.iter().map(|it| (&*it.key.name, it.spoke.as_ref().map(SpokeId::as_str))).collect()
}
