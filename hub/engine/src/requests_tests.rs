//! Tests of [F-1].

use super::*;
use crate::fact::LimitRangeItem;
use crate::policy::Transformation;

fn resources(amounts: &[(&str, i64)]) -> Resources {
    amounts.iter().map(|(name, amount)| (Arc::from(*name), *amount)).collect()
}

fn container(requests: &[(&str, i64)], limits: &[(&str, i64)], sidecar: bool) -> Container {
    Container { requests: resources(requests), limits: resources(limits), sidecar }
}

fn compute(template: &PodTemplate) -> PodRequests {
    pod_requests(template, Surroundings::default(), &RequestRules::default())
}

#[test]
fn f1_init_containers_and_sidecars_count_as_kubernetes_counts_them() {
    let template = PodTemplate {
        containers: vec![container(&[("cpu", 1000)], &[], false)],
        init_containers: vec![
            container(&[("cpu", 500)], &[], true),
            container(&[("cpu", 2000)], &[], false),
            container(&[("cpu", 100)], &[], true),
        ],
        overhead: Some(resources(&[("cpu", 50)])),
        ..PodTemplate::default()
    };
    assert_eq!(compute(&template).effective, resources(&[("cpu", 2550)]));
}

#[test]
fn f1_limits_stand_in_for_requests_and_pod_level_requests_replace() {
    let template = PodTemplate {
        containers: vec![container(&[], &[("cpu", 700), ("memory", 5)], false)],
        pod: Some(container(&[("cpu", 900)], &[], false)),
        ..PodTemplate::default()
    };
    assert_eq!(compute(&template).effective, resources(&[("cpu", 900), ("memory", 5)]));
}

#[test]
fn q14_a_request_above_its_limit_or_a_limit_range_is_named() {
    let template = PodTemplate {
        containers: vec![container(&[("cpu", 5)], &[("cpu", 4)], false)],
        ..PodTemplate::default()
    };
    assert!(compute(&template).invalid.is_some());
    let range = LimitRange {
        key: fairlead_model::ObjectKey::new("ns", "r"),
        items: vec![LimitRangeItem {
            kind: LimitType::Container,
            max: resources(&[("cpu", 3000)]),
            min: Resources::new(),
            default: resources(&[("cpu", 2000)]),
            default_request: resources(&[("cpu", 500)]),
        }],
    };
    let around = Surroundings { limit_ranges: &[&range], overhead: None };
    let plain = PodTemplate { containers: vec![container(&[], &[], false)], ..PodTemplate::default() };
    let computed = pod_requests(&plain, around, &RequestRules::default());
    assert_eq!((computed.effective, computed.invalid), (resources(&[("cpu", 500)]), None));
    let big = PodTemplate { containers: vec![container(&[("cpu", 2500)], &[("cpu", 3500)], false)], ..plain };
    assert!(pod_requests(&big, around, &RequestRules::default()).invalid.is_some());
}

#[test]
fn f1_transformations_sum_multiply_clamp_and_round_up() {
    let rule = |input: &str, strategy, multiply_by: Option<&str>, outputs: &[(&str, i128)]| Transformation {
        input: input.into(),
        strategy,
        multiply_by: multiply_by.map(Arc::from),
        outputs: outputs.iter().map(|(name, factor)| (Arc::from(*name), Factor(*factor))).collect(),
    };
    let rules = RequestRules {
        exclude_prefixes: vec!["net/".into()],
        transformations: vec![
            rule(
                "mig",
                TransformationStrategy::Replace,
                None,
                &[("credits", 2_500_000_000), ("memory", 10 * BILLION)],
            ),
            rule("gpu", TransformationStrategy::Retain, Some("replicas"), &[("credits", BILLION)]),
            rule("cpu", TransformationStrategy::Retain, None, &[("allowance", -BILLION)]),
        ],
        ignore_undeclared: false,
    };
    let effective =
        resources(&[("cpu", 1500), ("gpu", 2), ("memory", 7), ("mig", 3), ("net/nic", 1), ("replicas", 4)]);
    let charged = charge(&effective, &rules);
    let expected =
        [("allowance", 0), ("cpu", 1500), ("credits", 16), ("gpu", 2), ("memory", 37), ("replicas", 4)];
    assert_eq!(charged, resources(&expected));
}
