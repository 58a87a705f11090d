//! A scrape of everything: every family, clean names, bounded and forgotten labels.

use std::collections::BTreeMap;

use fairlead_controller::measure::{ClusterGauges, ClusterQueueGauges, Counts, QueueStatus, Subject};
use fairlead_engine::{CellView, Line};
use fairlead_model::{Amount, ObjectKey, Operator, Requirement};

use super::*;

/// Families of Kueue's (spec/11.1) that a hub has.
const KUEUES: &str = "
admission_attempts_total admission_attempt_duration_seconds admission_cycle_preemption_skips pending_workloads
pending_scheduling_hashes unadmitted_workloads reserving_active_workloads admitted_active_workloads finished_workloads
quota_reserved_workloads_total admitted_workloads_total finished_workloads_total quota_reserved_wait_time_seconds
admission_wait_time_seconds admission_checks_wait_time_seconds ready_wait_time_seconds
admitted_until_ready_wait_time_seconds execution_time_seconds evicted_workloads_total evicted_workloads_once_total
preempted_workloads_total pods_ready_to_evicted_time_seconds workload_eviction_latency_seconds cluster_queue_status
cluster_queue_info cluster_queue_resource_pending cluster_queue_nominal_quota cluster_queue_borrowing_limit
cluster_queue_lending_limit cluster_queue_resource_reservation cluster_queue_resource_usage cluster_queue_weighted_share
local_queue_pending_workloads local_queue_reserving_active_workloads local_queue_admitted_active_workloads
local_queue_finished_workloads local_queue_quota_reserved_workloads_total local_queue_admitted_workloads_total
local_queue_finished_workloads_total local_queue_quota_reserved_wait_time_seconds local_queue_admission_wait_time_seconds
local_queue_admission_checks_wait_time_seconds local_queue_ready_wait_time_seconds
local_queue_admitted_until_ready_wait_time_seconds local_queue_execution_time_seconds
local_queue_evicted_workloads_total local_queue_status local_queue_resource_reservation local_queue_resource_usage
local_queue_unadmitted_workloads cohort_info cohort_weighted_share cohort_subtree_quota
cohort_subtree_resource_reservations cohort_subtree_admitted_workloads_total cohort_subtree_admitted_active_workloads
workload_creation_latency_seconds build_info";

fn everything() -> Shown {
    Shown { resources: true, local_queues: Some(LabelSelector::default()), cohorts: true }
}

fn metrics(shown: Shown) -> Metrics {
    Metrics::new(Build { version: "v0.1.0", commit: "abc", date: "" }, shown).unwrap()
}

fn subject() -> Subject {
    Subject {
        cluster_queue: "cq".into(),
        local_queue: ObjectKey::new("team", "q"),
        priority_class: "high".into(),
    }
}

fn happenings() -> Vec<Measurement> {
    let of = subject;
    vec![
        Measurement::Attempt { admitted: true, skipped: [("cq".into(), 2)].into() },
        Measurement::Created { job_kind: "Job".into(), took_ms: 30 },
        Measurement::QuotaReserved { of: of(), waited_ms: 1_500 },
        Measurement::Admitted { of: of(), cluster: Some("east".into()), waited_ms: 3_000, checks_ms: 1_500 },
        Measurement::PodsReady { of: of(), waited_ms: 9_000, started_ms: 6_000 },
        Measurement::Evicted {
            of: of(),
            reason: "Preempted".into(),
            cause: "".into(),
            first: true,
            ready_ms: Some(60_000),
        },
        Measurement::Released { cluster_queue: "cq".into(), reason: "Preempted".into(), took_ms: 2_000 },
        Measurement::Preempted { by: "cq".into(), reason: "InClusterQueue".into() },
        Measurement::Finished { of: of(), ran_ms: Some(100_000) },
        Measurement::Prepared {
            cluster_queue: "cq".into(),
            cluster: "east".into(),
            result: "Accepted",
            took_ms: 4,
        },
        Measurement::Committed { cluster: "east".into(), took_ms: 12 },
    ]
}

fn counts() -> Counts {
    let sums = || BTreeMap::from([(("default".into(), "cpu".into()), 1_500)]);
    Counts {
        reserving: 2,
        admitted: 1,
        finished: 3,
        active: 4,
        inadmissible: 5,
        unadmitted: [(("Pending".into(), "WaitingForQuota".into()), 9)].into(),
        reserved: sums(),
        used: sums(),
    }
}

fn gauges() -> Gauges {
    let cell = CellView {
        flavor: "default".into(),
        resource: "cpu".into(),
        nominal: Amount::Finite(8_000),
        borrowing: None,
        lending: Some(Amount::Finite(500)),
        subtree: Amount::Finite(8_000),
        reserved: 1_500,
    };
    let node = |name: &str, is_queue, parent: Option<&str>| NodeView {
        name: name.into(),
        is_queue,
        parent: parent.map(Arc::from),
        root: "all".into(),
        share: if is_queue { None } else { Some(7) },
        cells: vec![cell.clone()],
    };
    let line = Line {
        active: 4,
        parked: 5,
        active_classes: 2,
        parked_classes: 1,
        requested: [("memory".into(), 1024)].into(),
        ..Line::default()
    };
    Gauges {
        cluster_queues: vec![ClusterQueueGauges {
            name: "cq".into(),
            status: QueueStatus::Active,
            counts: counts(),
            line,
        }],
        local_queues: vec![LocalQueueGauges {
            key: ObjectKey::new("team", "q"),
            labels: [("seen".into(), "yes".into())].into(),
            cluster_queue: "cq".into(),
            active: true,
            counts: counts(),
        }],
        nodes: vec![
            node("all", false, None),
            node("pool", false, Some("all")),
            node("cq", true, Some("pool")),
        ],
        clusters: vec![ClusterGauges {
            name: "east".into(),
            connected: true,
            presence: "Fresh",
            last_heartbeat_ms: Some(1_800_000_000_500),
            certificate_expires: Some(1_800_000_000),
            clock_offset_ms: -250,
            open_placements: 1,
        }],
        placements: [("Running", 1)].into(),
    }
}

/// A scrape after a first one, which learns who stands where, and everything that can happen.
fn scrape(metrics: &Metrics, gauges: &Gauges) -> String {
    metrics.text(Some(gauges)).unwrap();
    for happened in happenings() {
        metrics.record(&happened, Duration::from_millis(5));
    }
    metrics.text(Some(gauges)).unwrap()
}

fn has(text: &str, line: &str) {
    assert!(text.lines().any(|found| found == line), "{line}\nis not in\n{text}");
}

#[test]
fn a_scrape_has_every_family_with_kueues_labels() {
    let text = scrape(&metrics(everything()), &gauges());
    for family in KUEUES.split_whitespace() {
        assert!(text.contains(&format!("\n# TYPE kueue_{family} ")), "{family} is missing");
    }
    let leader = "replica_role=\"leader\"";
    for line in [
        format!("kueue_pending_workloads{{cluster_queue=\"cq\",status=\"active\",{leader}}} 4"),
        format!("kueue_pending_workloads{{cluster_queue=\"cq\",status=\"inadmissible\",{leader}}} 5"),
        format!("kueue_admitted_workloads_total{{cluster_queue=\"cq\",priority_class=\"high\",{leader}}} 1"),
        format!(
            "kueue_evicted_workloads_total{{cluster_queue=\"cq\",priority_class=\"high\",reason=\"Preempted\",underlying_cause=\"\",{leader}}} 1"
        ),
        format!("kueue_cluster_queue_status{{cluster_queue=\"cq\",status=\"active\",{leader}}} 1"),
        format!("kueue_cluster_queue_status{{cluster_queue=\"cq\",status=\"pending\",{leader}}} 0"),
        format!(
            "kueue_cluster_queue_nominal_quota{{cluster_queue=\"cq\",cohort=\"pool\",flavor=\"default\",resource=\"cpu\",{leader}}} 8"
        ),
        format!(
            "kueue_cluster_queue_borrowing_limit{{cluster_queue=\"cq\",cohort=\"pool\",flavor=\"default\",resource=\"cpu\",{leader}}} +Inf"
        ),
        format!(
            "kueue_cluster_queue_resource_usage{{cluster_queue=\"cq\",cohort=\"pool\",flavor=\"default\",resource=\"cpu\",{leader}}} 1.5"
        ),
        format!("kueue_cluster_queue_weighted_share{{cluster_queue=\"cq\",cohort=\"pool\",{leader}}} NaN"),
        format!(
            "kueue_cluster_queue_info{{cluster_queue=\"cq\",parent_cohort=\"pool\",root_cohort=\"all\",{leader}}} 1"
        ),
        format!("kueue_cohort_subtree_admitted_active_workloads{{cohort=\"all\",{leader}}} 1"),
        format!(
            "kueue_cohort_subtree_admitted_workloads_total{{cohort=\"all\",priority_class=\"high\",{leader}}} 1"
        ),
        format!("kueue_local_queue_status{{active=\"True\",name=\"q\",namespace=\"team\",{leader}}} 1"),
        format!("kueue_admission_cycle_preemption_skips{{cluster_queue=\"cq\",{leader}}} 2"),
        format!(
            "kueue_admission_wait_time_seconds_bucket{{cluster_queue=\"cq\",priority_class=\"high\",{leader},le=\"2.5\"}} 0"
        ),
        format!(
            "kueue_admission_wait_time_seconds_bucket{{cluster_queue=\"cq\",priority_class=\"high\",{leader},le=\"5\"}} 1"
        ),
        format!("multikueue_workloads_admitted_total{{cluster=\"east\",cluster_queue=\"cq\",{leader}}} 1"),
        format!("fairlead_cluster_connected{{cluster=\"east\",{leader}}} 1"),
        format!("fairlead_clock_offset_seconds{{cluster=\"east\",{leader}}} -0.25"),
        format!("fairlead_placements{{state=\"Running\",{leader}}} 1"),
    ] {
        has(&text, &line);
    }
    let build = text.lines().find(|line| line.starts_with("kueue_build_info{")).unwrap();
    assert!(build.contains("git_version=\"v0.1.0\"") && !build.contains("replica_role"), "{build}");
}

/// The rules of `promtool check metrics` that a name, a help text or a label can break.
#[test]
fn names_help_and_units_are_as_prometheus_wants_them() {
    let text = scrape(&metrics(everything()), &gauges());
    let helped: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# HELP ")?.split_once(' '))
        .map(|(name, _)| name)
        .collect();
    let mut seen = BTreeSet::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').unwrap();
        assert!(seen.insert(name), "{name} is there twice");
        assert!(helped.contains(name), "{name} has no help");
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name} is a {kind}");
        assert!(!name.ends_with("_count") && !name.ends_with("_sum") && !name.ends_with("_bucket"), "{name}");
        assert!(
            name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'),
            "{name}"
        );
        let parts: Vec<&str> = name.split('_').collect();
        for unit in [
            "ms",
            "milliseconds",
            "minutes",
            "hours",
            "kb",
            "mb",
            "gb",
            "percent",
            "sec",
            "gauge",
            "counter",
            "histogram",
        ] {
            assert!(!parts.contains(&unit), "{name} has {unit} in it");
        }
        assert!(kind != "histogram" || name.ends_with("_seconds"), "{name} has no unit");
    }
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let labels =
            line.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map_or("", |(labels, _)| labels);
        let camel = labels.split('=').any(|name| {
            name.rsplit(',')
                .next()
                .unwrap_or("")
                .bytes()
                .any(|b| b.is_ascii_uppercase() && !name.contains('"'))
        });
        assert!(!camel, "{line}");
    }
}

#[test]
fn only_selected_local_queues_are_shown_and_the_choice_can_change() {
    let other = |labels: LabelSelector| Shown { local_queues: Some(labels), ..everything() };
    let selector = |value: &str| LabelSelector {
        requirements: vec![Requirement {
            key: "seen".into(),
            operator: Operator::In,
            values: vec![value.into()],
        }],
    };
    let metrics = metrics(other(selector("no")));
    assert!(!scrape(&metrics, &gauges()).contains("local_queue_"), "neither levels nor counters");
    metrics.show(other(selector("yes")));
    let text = scrape(&metrics, &gauges());
    assert!(
        text.contains("kueue_local_queue_pending_workloads{")
            && text.contains("kueue_local_queue_admitted_workloads_total{")
    );
    metrics.show(Shown { local_queues: None, ..everything() });
    assert!(!scrape(&metrics, &gauges()).contains("local_queue_"));
    metrics.show(Shown { resources: false, cohorts: false, ..everything() });
    let text = scrape(&metrics, &gauges());
    assert!(!text.contains("nominal_quota") && !text.contains("cohort_info"));
}

#[test]
fn a_queue_that_is_gone_leaves_no_series_behind() {
    let metrics = metrics(everything());
    scrape(&metrics, &gauges());
    let empty = Gauges::default();
    let text = metrics.text(Some(&empty)).unwrap();
    let left: Vec<&str> =
        text.lines().filter(|line| line.contains("\"cq\"") && !line.contains("preemption_skips")).collect();
    assert_eq!(left, Vec::<&str>::new());
}

#[test]
fn a_process_that_does_not_lead_shows_no_levels() {
    let text = metrics(everything()).text(None).unwrap();
    assert!(text.contains("kueue_build_info{") && !text.contains("replica_role"), "{text}");
}
