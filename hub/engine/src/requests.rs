//! From a pod template to charged amounts [F-1]: what one pod requests by Kubernetes' own rules, and what quota counts
//! after exclusions and transformations.

use std::sync::Arc;

use fairlead_model::{ResourceName, Resources};

use crate::fact::{Container, LimitRange, LimitType, PodTemplate};
use crate::policy::{Factor, RequestRules, TransformationStrategy};

/// One billion: the denominator of [`Factor`].
const BILLION: i128 = 1_000_000_000;

/// What surrounds a template: the LimitRanges of its namespace and the overhead of its RuntimeClass.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Surroundings<'a> {
    pub(crate) limit_ranges: &'a [&'a LimitRange],
    pub(crate) overhead: Option<&'a Resources>,
}

/// What one pod of a template comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PodRequests {
    /// Kubernetes' effective request of one pod, without `pods`.
    pub(crate) effective: Resources,
    /// What quota counts for one pod.
    pub(crate) charged: Resources,
    /// Why the template cannot be admitted; empty if it can.
    pub(crate) invalid: Option<Arc<str>>,
}

/// Computes what one pod comes to.
pub(crate) fn pod_requests(
    template: &PodTemplate,
    around: Surroundings<'_>,
    rules: &RequestRules,
) -> PodRequests {
    let template = adjusted(template, around);
    let claims =
        template.claims.then(|| Arc::from("resource claims are not counted, so such pods are not admitted"));
    let invalid =
        claims.or_else(|| over_limits(&template)).or_else(|| out_of_range(&template, around.limit_ranges));
    let effective = effective(&template);
    let charged = charge(&effective, rules);
    PodRequests { effective, charged, invalid }
}

/// Fills overhead from the RuntimeClass, defaults from LimitRanges, and requests from limits, in this order.
fn adjusted(template: &PodTemplate, around: Surroundings<'_>) -> PodTemplate {
    let mut template = template.clone();
    if template.overhead.is_none() {
        template.overhead = around.overhead.cloned();
    }
    for item in around.limit_ranges.iter().flat_map(|range| &range.items) {
        if item.kind == LimitType::Container {
            for container in template.containers.iter_mut().chain(&mut template.init_containers) {
                fill(&mut container.limits, &item.default);
                fill(&mut container.requests, &item.default_request);
            }
        }
    }
    for container in
        template.containers.iter_mut().chain(&mut template.init_containers).chain(&mut template.pod)
    {
        let limits = container.limits.clone();
        fill(&mut container.requests, &limits);
    }
    template
}

/// Adds the amounts whose names are missing.
fn fill(target: &mut Resources, defaults: &Resources) {
    for (name, amount) in defaults.iter() {
        if !target.contains(name) {
            target.set(Arc::clone(name), amount);
        }
    }
}

/// Raises every amount to at least the other's.
fn raise(target: &mut Resources, other: &Resources) {
    for (name, amount) in other.iter() {
        if !target.contains(name) || target.get(name) < amount {
            target.set(Arc::clone(name), amount);
        }
    }
}

/// Kubernetes' rule: the larger of what runs side by side and what each init container needs beside the sidecars
/// before it; requests of the pod as a whole stand for its containers'; overhead comes on top.
pub(crate) fn effective(template: &PodTemplate) -> Resources {
    let mut together = Resources::new();
    for container in &template.containers {
        together.add(&container.requests);
    }
    let mut sidecars = Resources::new();
    let mut starting = Resources::new();
    for container in &template.init_containers {
        let mut needed = sidecars.clone();
        needed.add(&container.requests);
        if container.sidecar {
            sidecars = needed.clone();
        }
        raise(&mut starting, &needed);
    }
    together.add(&sidecars);
    raise(&mut together, &starting);
    for (name, amount) in template.pod.iter().flat_map(|pod| pod.requests.iter()) {
        together.set(Arc::clone(name), amount);
    }
    if let Some(overhead) = &template.overhead {
        together.add(overhead);
    }
    together
}

/// A container (or the pod) that requests more than its own limit.
fn over_limits(template: &PodTemplate) -> Option<Arc<str>> {
    let all = template.init_containers.iter().chain(&template.containers).chain(&template.pod);
    let over = |container: &Container| {
        let mut names = container.requests.iter().filter(|(name, _)| container.limits.contains(name));
        names
            .find(|(name, amount)| *amount > container.limits.get(name))
            .map(|(name, amount)| (Arc::clone(name), amount, container.limits.get(name)))
    };
    all.into_iter().find_map(over).map(|(name, request, limit)| {
        Arc::from(format!("requests {name}={request} above its own limit {limit}"))
    })
}

/// A container or pod outside the bounds of a LimitRange.
fn out_of_range(template: &PodTemplate, ranges: &[&LimitRange]) -> Option<Arc<str>> {
    let total = effective(template);
    for item in ranges.iter().flat_map(|range| &range.items) {
        let found = match item.kind {
            LimitType::Container => {
                template.init_containers.iter().chain(&template.containers).find_map(|container| {
                    let mut most = container.requests.clone();
                    raise(&mut most, &container.limits);
                    greater(&most, &item.max).or_else(|| greater(&item.min, &least(container)))
                })
            }
            LimitType::Pod => greater(&total, &item.max).or_else(|| greater(&item.min, &total)),
        };
        if let Some(name) = found {
            return Some(Arc::from(format!("{name} is outside the bounds of a LimitRange")));
        }
    }
    None
}

/// The smaller of request and limit, by name.
fn least(container: &Container) -> Resources {
    let mut least = container.requests.clone();
    for (name, amount) in container.limits.iter() {
        if !least.contains(name) || least.get(name) > amount {
            least.set(Arc::clone(name), amount);
        }
    }
    least
}

/// The first name that both have and whose amount is greater in `a`.
fn greater(a: &Resources, b: &Resources) -> Option<ResourceName> {
    let mut both = a.iter().filter(|(name, _)| b.contains(name));
    both.find(|(name, amount)| *amount > b.get(name)).map(|(name, _)| Arc::clone(name))
}

/// Exclusions and transformations, on whole amounts in billionths of a base unit.
fn charge(effective: &Resources, rules: &RequestRules) -> Resources {
    let excluded = |name: &str| rules.exclude_prefixes.iter().any(|prefix| name.starts_with(&**prefix));
    let kept = || effective.iter().filter(|(name, _)| !excluded(name));
    let mut direct = Resources::new();
    let mut generated: Vec<(ResourceName, i128)> = Vec::new();
    for (name, amount) in kept() {
        let Some(rule) = rules.transformations.iter().find(|rule| rule.input == *name) else {
            direct.set(Arc::clone(name), amount);
            continue;
        };
        if rule.strategy == TransformationStrategy::Retain {
            direct.set(Arc::clone(name), amount);
        }
        let times = rule
            .multiply_by
            .as_deref()
            .filter(|by| effective.contains(by))
            .map(|by| base(by, effective.get(by)));
        for (output, factor) in &rule.outputs {
            let amount = scale(base(name, amount), times, *factor);
            match generated.iter_mut().find(|(name, _)| name == output) {
                Some((_, sum)) => *sum = sum.saturating_add(amount),
                None => generated.push((Arc::clone(output), amount)),
            }
        }
    }
    for (name, billionths) in generated {
        let total = direct.get(&name).saturating_add(smallest(&name, billionths.max(0)));
        direct.set(name, total);
    }
    direct.iter().map(|(name, amount)| (Arc::clone(name), amount.max(0))).collect()
}

/// Input times multiplier times factor, all in billionths.
fn scale(input: i128, times: Option<i128>, factor: Factor) -> i128 {
    let product = input.saturating_mul(factor.0) / BILLION;
    times.map_or(product, |times| product.saturating_mul(times) / BILLION)
}

/// An amount in billionths of the resource's base unit (a whole CPU, one of anything else).
fn base(name: &str, amount: i64) -> i128 {
    let unit = if name == "cpu" { BILLION / 1000 } else { BILLION };
    i128::from(amount).saturating_mul(unit)
}

/// Billionths of the base unit as the resource's smallest unit, rounded up.
fn smallest(name: &str, billionths: i128) -> i64 {
    let unit = if name == "cpu" { BILLION / 1000 } else { BILLION };
    let up = billionths.saturating_add(unit.saturating_sub(1)) / unit;
    i64::try_from(up).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "requests_tests.rs"]
mod tests;
