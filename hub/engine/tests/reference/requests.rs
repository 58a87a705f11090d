//! What a workload asks for [F-1], [T-9], and which pod sets are assigned together [F-2].

use std::collections::BTreeMap;

use fairlead_engine::fact::{ClusterQueue, Container, PodSet, PodTemplate, Workload};

use super::Name;

/// Amounts by resource.
pub(super) type ByResource = BTreeMap<Name, i64>;

/// [F-1] What one pod requests by Kubernetes' rule: per resource the larger of what the containers and sidecars need
/// together and what each init container needs beside the sidecars started before it; pod-level amounts instead
/// where given; overhead on top.
pub(super) fn pod_request(template: &PodTemplate) -> ByResource {
    let mut names: Vec<Name> = Vec::new();
    let everything = template.containers.iter().chain(&template.init_containers).chain(&template.pod);
    for (name, _) in everything.flat_map(|container| container.requests.iter()) {
        names.push(name.clone());
    }
    for (name, _) in template.overhead.iter().flat_map(fairlead_model::Resources::iter) {
        names.push(name.clone());
    }
    names.into_iter().map(|name| (name.clone(), pod_amount(template, &name))).collect()
}

fn pod_amount(template: &PodTemplate, name: &str) -> i64 {
    let amount = |container: &Container| container.requests.get(name);
    let sidecars = |upto: usize| -> i64 {
        let before = template.init_containers.iter().take(upto);
        before.filter(|container| container.sidecar).map(amount).sum()
    };
    let running: i64 = template.containers.iter().map(amount).sum::<i64>() + sidecars(usize::MAX);
    let starting = template.init_containers.iter().enumerate().map(|(ix, it)| sidecars(ix) + amount(it));
    let pod_level = template.pod.as_ref().filter(|pod| pod.requests.contains(name)).map(amount);
    let own = pod_level.unwrap_or_else(|| starting.max().unwrap_or(0).max(running));
    own + template.overhead.as_ref().map_or(0, |overhead| overhead.get(name))
}

/// [W-3] Pods of a pod set that are still needed.
pub(super) fn needed(workload: &Workload, pod_set: &PodSet) -> u32 {
    let reclaimed = workload.reclaimable.iter().filter(|(name, _)| *name == pod_set.name);
    pod_set.count.saturating_sub(reclaimed.map(|(_, count)| *count).sum())
}

/// [T-9] What a pod set of `count` pods is charged, `pods` included where the ClusterQueue covers it.
pub(super) fn total(queue: &ClusterQueue, pod_set: &PodSet, count: u32) -> ByResource {
    let mut total: ByResource = pod_request(&pod_set.template);
    for amount in total.values_mut() {
        *amount *= i64::from(count);
    }
    if covering_group(queue, "pods").is_some() {
        total.insert("pods".into(), i64::from(count));
    }
    total
}

/// The position of the resource group that covers a resource.
pub(super) fn covering_group(queue: &ClusterQueue, resource: &str) -> Option<usize> {
    queue.groups.iter().position(|group| group.resources.iter().any(|name| **name == *resource))
}

/// [F-2] Pod sets by unit, in order: those of one topology group are one unit.
pub(super) fn units(workload: &Workload) -> Vec<Vec<usize>> {
    let mut units: Vec<(Option<Name>, Vec<usize>)> = Vec::new();
    for (ix, pod_set) in workload.pod_sets.iter().enumerate() {
        let group = pod_set.topology.as_ref().and_then(|topology| topology.group.clone());
        match units.iter_mut().find(|(name, _)| group.is_some() && *name == group) {
            Some((_, members)) => members.push(ix),
            None => units.push((group, vec![ix])),
        }
    }
    units.into_iter().map(|(_, members)| members).collect()
}
