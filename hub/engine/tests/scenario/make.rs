//! Facts in few words.

use std::sync::Arc;

use fairlead_engine::Fact;
use fairlead_engine::fact::{
    ClusterQueue, Container, Flavor, FlavorQuotas, LocalQueue, Namespace, PodSet, PodTemplate, Preemption,
    Quota, ResourceGroup, StopPolicy, VictimPolicy, Weight, Workload,
};
use fairlead_model::{Amount, LabelSelector, Labels, Millis, ObjectKey};

/// A key in the namespace that every ClusterQueue takes.
pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::new("ns", name)
}

/// Quota of one resource.
pub(crate) fn quota(resource: &str, nominal: i64) -> Quota {
    Quota { resource: resource.into(), nominal: Amount::Finite(nominal), borrowing: None, lending: None }
}

/// Everything that a ClusterQueue with one flavor and CPU quota needs: namespace, flavor, LocalQueue of its name.
pub(crate) fn lone_queue(name: &str, cohort: Option<&str>, nominal: i64) -> Vec<Fact> {
    let flavors = vec![FlavorQuotas { flavor: "default".into(), quotas: vec![quota("cpu", nominal)] }];
    let groups = vec![ResourceGroup { resources: vec!["cpu".into()], flavors }];
    let queue = ClusterQueue {
        name: name.into(),
        cohort: cohort.map(Arc::from),
        groups,
        namespaces: Some(LabelSelector::default()),
        ..ClusterQueue::default()
    };
    let local = LocalQueue {
        key: key(name),
        cluster_queue: name.into(),
        stop: StopPolicy::None,
        weight: Weight::default(),
    };
    vec![
        Fact::Namespace(Namespace { name: "ns".into(), labels: Labels::new() }),
        Fact::Flavor(Flavor { name: "default".into(), ..Flavor::default() }),
        Fact::ClusterQueue(queue),
        Fact::LocalQueue(local),
    ]
}

/// Rules that let a ClusterQueue preempt lower priorities at home and anybody who borrows.
pub(crate) const fn preempting() -> Preemption {
    Preemption { within_queue: VictimPolicy::LowerPriority, reclaim: VictimPolicy::Any, borrow: None }
}

/// A pending workload with one pod set; times are in milliseconds, `name` is its uid too.
pub(crate) fn workload(name: &str, queue: &str, (priority, created): (i64, i64), cpu: i64) -> Workload {
    let container =
        Container { requests: [(Arc::from("cpu"), cpu)].into_iter().collect(), ..Container::default() };
    let template = Arc::new(PodTemplate { containers: vec![container], ..PodTemplate::default() });
    let pod_set = PodSet { name: "main".into(), count: 1, min_count: None, template, topology: None };
    Workload { priority, ..Workload::new(name.into(), key(name), queue.into(), Millis(created), [pod_set]) }
}
