//! Levels as families: made anew for each scrape, so that what is gone leaves nothing behind.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_controller::measure::{
    ClusterGauges, ClusterQueueGauges, Counts, Gauges, LocalQueueGauges, QueueStatus,
};
use fairlead_engine::NodeView;
use fairlead_model::Amount;
use prometheus::{GaugeVec, Opts, Registry};

use super::Shown;

/// Thousandths: CPU is counted in them and shown in whole CPUs.
const CPU: &str = "cpu";

/// Families by name, in the making.
struct Families<'r> {
    registry: &'r Registry,
    known: BTreeMap<&'static str, GaugeVec>,
}

impl Families<'_> {
    /// Sets one value. `labels` are names and values.
    fn set(
        &mut self,
        (name, help): (&'static str, &'static str),
        labels: &[(&'static str, &str)],
        value: f64,
    ) -> prometheus::Result<()> {
        if !self.known.contains_key(name) {
            let names: Vec<&str> = labels.iter().map(|(name, _)| *name).collect();
            let family = GaugeVec::new(Opts::new(name, help), &names)?;
            self.registry.register(Box::new(family.clone()))?;
            self.known.insert(name, family);
        }
        let values: Vec<&str> = labels.iter().map(|(_, value)| *value).collect();
        if let Some(family) = self.known.get(name) {
            family.get_metric_with_label_values(&values)?.set(value);
        }
        Ok(())
    }
}

/// Registers the levels of this moment.
pub(super) fn register(registry: &Registry, gauges: &Gauges, shown: &Shown) -> prometheus::Result<()> {
    let mut families = Families { registry, known: BTreeMap::new() };
    let nodes: BTreeMap<(bool, &str), &NodeView> =
        gauges.nodes.iter().map(|node| ((node.is_queue, &*node.name), node)).collect();
    for queue in &gauges.cluster_queues {
        cluster_queue(&mut families, queue)?;
        if let Some(node) = nodes.get(&(true, &*queue.name)) {
            placed(&mut families, queue, node, shown)?;
        }
    }
    for queue in gauges.local_queues.iter().filter(|queue| shown.takes(queue)) {
        local_queue(&mut families, queue)?;
    }
    if shown.cohorts {
        let admitted = admitted_below(gauges);
        for node in gauges.nodes.iter().filter(|node| !node.is_queue) {
            cohort(&mut families, node, admitted.get(&node.name).copied().unwrap_or(0))?;
        }
    }
    for one in &gauges.clusters {
        cluster(&mut families, one)?;
    }
    for (state, count) in &gauges.placements {
        let family = ("fairlead_placements", "Placements that are not closed, by state.");
        families.set(family, &[("state", state)], number(*count))?;
    }
    Ok(())
}

fn cluster_queue(families: &mut Families<'_>, queue: &ClusterQueueGauges) -> prometheus::Result<()> {
    let (of, counts, line) = (("cluster_queue", &*queue.name), &queue.counts, &queue.line);
    let pending = ("kueue_pending_workloads", "Workloads that wait, by whether they will be looked at.");
    families.set(pending, &[of, ("status", "active")], number(counts.active))?;
    families.set(pending, &[of, ("status", "inadmissible")], number(counts.inadmissible))?;
    let classes = ("kueue_pending_scheduling_hashes", "Classes of equivalent workloads that wait.");
    families.set(classes, &[of, ("status", "active")], count(line.active_classes))?;
    families.set(classes, &[of, ("status", "inadmissible")], count(line.parked_classes))?;
    let reserving = ("kueue_reserving_active_workloads", "Workloads that hold quota.");
    families.set(reserving, &[of], number(counts.reserving))?;
    let admitted = ("kueue_admitted_active_workloads", "Workloads that are admitted and have not finished.");
    families.set(admitted, &[of], number(counts.admitted))?;
    families.set(
        ("kueue_finished_workloads", "Finished workloads that are still there."),
        &[of],
        number(counts.finished),
    )?;
    for ((reason, cause), waiting) in &counts.unadmitted {
        let family = ("kueue_unadmitted_workloads", "Workloads that are not admitted, by why.");
        families.set(family, &[of, ("reason", reason), ("underlying_cause", cause)], number(*waiting))?;
    }
    for (resource, amount) in &line.requested {
        let family = ("kueue_cluster_queue_resource_pending", "What waiting workloads ask for.");
        families.set(family, &[of, ("resource", resource)], units(resource, *amount))?;
    }
    let family = ("kueue_cluster_queue_status", "The status of a ClusterQueue: the one that holds is 1.");
    let all = [QueueStatus::Pending, QueueStatus::Active, QueueStatus::Terminating];
    for (state, name) in all.into_iter().zip(["pending", "active", "terminated"]) {
        families.set(family, &[of, ("status", name)], f64::from(u8::from(queue.status == state)))?;
    }
    Ok(())
}

/// What depends on the tree that a ClusterQueue stands in.
fn placed(
    families: &mut Families<'_>,
    queue: &ClusterQueueGauges,
    node: &NodeView,
    shown: &Shown,
) -> prometheus::Result<()> {
    let of = ("cluster_queue", &*queue.name);
    let parent = node.parent.as_deref().unwrap_or_default();
    let root = if node.parent.is_some() { &*node.root } else { "" };
    let info = ("kueue_cluster_queue_info", "Where a ClusterQueue stands: always 1.");
    families.set(info, &[of, ("parent_cohort", parent), ("root_cohort", root)], 1.0)?;
    if !shown.resources {
        return Ok(());
    }
    let share =
        ("kueue_cluster_queue_weighted_share", "The weighted share of a ClusterQueue; NaN with weight zero.");
    families.set(share, &[of, ("cohort", parent)], share_of(node))?;
    for cell in &node.cells {
        let labels = [("cohort", parent), of, ("flavor", &*cell.flavor), ("resource", &*cell.resource)];
        let limit =
            |amount: Option<Amount>| amount.map_or(f64::INFINITY, |amount| quota(&cell.resource, amount));
        let nominal = ("kueue_cluster_queue_nominal_quota", "Quota of its own.");
        families.set(nominal, &labels, quota(&cell.resource, cell.nominal))?;
        let borrowing =
            ("kueue_cluster_queue_borrowing_limit", "How much more may be borrowed; +Inf without limit.");
        families.set(borrowing, &labels, limit(cell.borrowing))?;
        let lending = ("kueue_cluster_queue_lending_limit", "How much may be lent; +Inf without limit.");
        families.set(lending, &labels, limit(cell.lending))?;
    }
    let (reserved, used) = (by_resource(node, &queue.counts.reserved), by_resource(node, &queue.counts.used));
    for (name, sums) in [
        (("kueue_cluster_queue_resource_reservation", "Quota that is reserved."), reserved),
        (("kueue_cluster_queue_resource_usage", "Quota that admitted workloads use."), used),
    ] {
        for ((flavor, resource), amount) in sums {
            let labels = [("cohort", parent), of, ("flavor", &*flavor), ("resource", &*resource)];
            families.set(name, &labels, units(&resource, amount))?;
        }
    }
    Ok(())
}

type Sums = BTreeMap<(Arc<str>, Arc<str>), i64>;

/// Every quota of the queue, used or not, and what else is in use.
fn by_resource(node: &NodeView, sums: &Sums) -> Sums {
    let declared = node.cells.iter().map(|cell| ((Arc::clone(&cell.flavor), Arc::clone(&cell.resource)), 0));
    let mut all: Sums = declared.collect();
    all.extend(sums.iter().map(|(key, amount)| (key.clone(), *amount)));
    all
}

fn local_queue(families: &mut Families<'_>, queue: &LocalQueueGauges) -> prometheus::Result<()> {
    let (name, namespace) = (("name", &*queue.key.name), ("namespace", &*queue.key.namespace));
    let Counts { active, inadmissible, reserving, admitted, finished, unadmitted, .. } = &queue.counts;
    let pending =
        ("kueue_local_queue_pending_workloads", "Workloads that wait, by whether they will be looked at.");
    families.set(pending, &[name, namespace, ("status", "active")], number(*active))?;
    families.set(pending, &[name, namespace, ("status", "inadmissible")], number(*inadmissible))?;
    for (family, value) in [
        (("kueue_local_queue_reserving_active_workloads", "Workloads that hold quota."), reserving),
        (("kueue_local_queue_admitted_active_workloads", "Workloads that are admitted."), admitted),
        (("kueue_local_queue_finished_workloads", "Finished workloads that are still there."), finished),
    ] {
        families.set(family, &[name, namespace], number(*value))?;
    }
    let status = ("kueue_local_queue_status", "Whether a LocalQueue is active: the one that holds is 1.");
    for (value, holds) in [("True", queue.active), ("False", !queue.active), ("Unknown", false)] {
        families.set(status, &[name, namespace, ("active", value)], f64::from(u8::from(holds)))?;
    }
    let behind = ("cluster_queue", &*queue.cluster_queue);
    for ((reason, cause), waiting) in unadmitted {
        let family = ("kueue_local_queue_unadmitted_workloads", "Workloads that are not admitted, by why.");
        let labels = [name, namespace, behind, ("reason", &**reason), ("underlying_cause", &**cause)];
        families.set(family, &labels, number(*waiting))?;
    }
    for (family, sums) in [
        (("kueue_local_queue_resource_reservation", "Quota that is reserved."), &queue.counts.reserved),
        (("kueue_local_queue_resource_usage", "Quota that admitted workloads use."), &queue.counts.used),
    ] {
        for ((flavor, resource), amount) in sums {
            let labels = [name, namespace, ("flavor", &**flavor), ("resource", &**resource)];
            families.set(family, &labels, units(resource, *amount))?;
        }
    }
    Ok(())
}

/// Admitted workloads of each Cohort and all below it.
fn admitted_below(gauges: &Gauges) -> BTreeMap<Arc<str>, u64> {
    let ancestry = super::ancestry(&gauges.nodes);
    let mut admitted: BTreeMap<Arc<str>, u64> = BTreeMap::new();
    for queue in &gauges.cluster_queues {
        for cohort in ancestry.get(&queue.name).into_iter().flatten() {
            let sum = admitted.entry(Arc::clone(cohort)).or_default();
            *sum = sum.saturating_add(queue.counts.admitted);
        }
    }
    admitted
}

fn cohort(families: &mut Families<'_>, node: &NodeView, admitted: u64) -> prometheus::Result<()> {
    let of = ("cohort", &*node.name);
    let parent = node.parent.as_deref().unwrap_or_default();
    let info = ("kueue_cohort_info", "Where a Cohort stands: always 1.");
    families.set(info, &[of, ("parent_cohort", parent), ("root_cohort", &node.root)], 1.0)?;
    let share = ("kueue_cohort_weighted_share", "The weighted share of a Cohort; NaN with weight zero.");
    families.set(share, &[of], share_of(node))?;
    for cell in &node.cells {
        let labels = [of, ("flavor", &*cell.flavor), ("resource", &*cell.resource)];
        let subtree = ("kueue_cohort_subtree_quota", "Quota of a Cohort and all below it.");
        families.set(subtree, &labels, quota(&cell.resource, cell.subtree))?;
        let reserved = (
            "kueue_cohort_subtree_resource_reservations",
            "Quota that is reserved in a Cohort and below it.",
        );
        families.set(reserved, &labels, units(&cell.resource, cell.reserved))?;
    }
    let family = (
        "kueue_cohort_subtree_admitted_active_workloads",
        "Admitted workloads of a Cohort and all below it.",
    );
    families.set(family, &[of], number(admitted))
}

fn cluster(families: &mut Families<'_>, one: &ClusterGauges) -> prometheus::Result<()> {
    let of = ("cluster", &*one.name);
    let connected = ("fairlead_cluster_connected", "Whether the cluster's session is up.");
    families.set(connected, &[of], f64::from(u8::from(one.connected)))?;
    let presence =
        ("fairlead_cluster_presence", "What the hub knows of a cluster's life: the one that holds is 1.");
    for name in ["Fresh", "Lost", "NotReady", "Suspect"] {
        families.set(presence, &[of, ("presence", name)], f64::from(u8::from(one.presence == name)))?;
    }
    if let Some(at) = one.last_heartbeat_ms {
        let family =
            ("fairlead_cluster_last_heartbeat_timestamp_seconds", "When the cluster was heard of last.");
        families.set(family, &[of], millis(at))?;
    }
    if let Some(at) = one.certificate_expires {
        let family = ("fairlead_certificate_expiry_timestamp_seconds", "When a certificate ends.");
        families.set(family, &[of, ("side", "spoke")], millis(at.saturating_mul(1000)))?;
    }
    let offset = ("fairlead_clock_offset_seconds", "By how much the cluster's clock is ahead of the hub's.");
    families.set(offset, &[of], millis(one.clock_offset_ms))?;
    let open = ("fairlead_cluster_open_placements", "Promises to the cluster that are open.");
    families.set(open, &[of], number(one.open_placements))
}

fn share_of(node: &NodeView) -> f64 {
    node.share.map_or(f64::NAN, wide)
}

fn quota(resource: &str, amount: Amount) -> f64 {
    match amount {
        Amount::Finite(amount) => units(resource, amount),
        Amount::Unlimited => f64::INFINITY,
    }
}

/// An amount in whole units: CPUs, bytes, devices.
fn units(resource: &str, amount: i64) -> f64 {
    if resource == CPU { wide(amount) / 1000.0 } else { wide(amount) }
}

fn millis(ms: i64) -> f64 {
    wide(ms) / 1000.0
}

fn number(count: u64) -> f64 {
    wide(i64::try_from(count).unwrap_or(i64::MAX))
}

fn count(count: usize) -> f64 {
    wide(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Prometheus knows floats only: beyond 2^53 they are near, not exact.
#[expect(clippy::cast_precision_loss, reason = "a measurement, not an amount that is counted with")]
const fn wide(number: i64) -> f64 {
    number as f64
}
