//! What the brain answers when asked how things stand. It reads and changes nothing, and is asked between turns.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_api::conditions::{WorkloadCondition, find};
use fairlead_engine::fact;
use fairlead_model::{ObjectKey, RunId};
use fairlead_placement::State;
use serde_json::Value;

use super::Brain;
use super::queues::is_deleting;
use super::run::{Run, Workload};
use super::tally::{Standing, Tally};
use crate::jobs::json;
use crate::measure::{
    ClusterGauges, ClusterQueueGauges, Counts, Gauges, LocalQueueGauges, PendingWorkload, QueueStatus,
};

/// Workloads of each ClusterQueue and each LocalQueue.
type Counted = (BTreeMap<Arc<str>, Counts>, BTreeMap<ObjectKey, Counts>);

impl Brain {
    /// How things stand. Costs as much as there are workloads.
    pub fn gauges(&self) -> Gauges {
        if !self.is_ready() {
            return Gauges::default();
        }
        let (mut by_cluster_queue, mut by_local_queue) = self.counted();
        let mut lines = self.world.lines();
        let mut active: BTreeMap<ObjectKey, usize> = BTreeMap::new();
        for line in lines.values() {
            active.extend(line.active_by_local_queue.iter().map(|(key, count)| (key.clone(), *count)));
        }
        let cluster_queues = self.catalog.cluster_queues.iter().map(|(key, kept)| {
            let line = lines.remove(&key.name).unwrap_or_default();
            let mut counts = by_cluster_queue.remove(&key.name).unwrap_or_default();
            split_pending(&mut counts, line.active);
            let status = match self.is_cluster_queue_active(&kept.object) {
                _ if is_deleting(&kept.object) => QueueStatus::Terminating,
                true => QueueStatus::Active,
                false => QueueStatus::Pending,
            };
            ClusterQueueGauges { name: Arc::clone(&key.name), status, counts, line }
        });
        let cluster_queues = cluster_queues.collect();
        let local_queues = self.catalog.local_queues.iter().map(|(key, kept)| {
            let mut counts = by_local_queue.remove(key).unwrap_or_default();
            split_pending(&mut counts, active.get(key).copied().unwrap_or(0));
            let labels = json::entries(&kept.object.json, &["metadata", "labels"]);
            LocalQueueGauges {
                key: key.clone(),
                labels: labels.map(|(key, value)| (key.into(), value.into())).collect(),
                cluster_queue: self.catalog.cluster_queue_of(key).unwrap_or_default(),
                active: self.is_local_queue_active(&kept.object),
                counts,
            }
        });
        Gauges {
            cluster_queues,
            local_queues: local_queues.collect(),
            nodes: self.world.nodes(),
            clusters: self.cluster_gauges(),
            placements: self.placements(),
        }
    }

    fn counted(&self) -> Counted {
        let mut counted = Counted::default();
        for run in self.runs.ids().filter_map(|id| self.runs.get(id)) {
            let Some((tally, workload)) = run.tally.as_ref().zip(run.workload.as_ref()) else {
                self.count_finished(run, &mut counted);
                continue;
            };
            let queues = [
                counted.0.entry(Arc::clone(&tally.cluster_queue)).or_default(),
                counted.1.entry(tally.local_queue.clone()).or_default(),
            ];
            for counts in queues {
                count(counts, tally, run, workload);
            }
        }
        counted
    }

    fn count_finished(&self, run: &Run, counted: &mut Counted) {
        let Some(workload) =
            run.workload.as_ref().filter(|workload| workload.is(WorkloadCondition::Finished))
        else {
            return;
        };
        let local = ObjectKey::new(Arc::clone(&workload.key.namespace), workload.queue());
        let admission =
            workload.status.admission.as_ref().map(|admission| admission.cluster_queue.as_str().into());
        let queue = admission.or_else(|| self.catalog.cluster_queue_of(&local)).unwrap_or_default();
        for counts in [counted.0.entry(queue).or_default(), counted.1.entry(local).or_default()] {
            counts.finished = counts.finished.saturating_add(1);
        }
    }

    fn cluster_gauges(&self) -> Vec<ClusterGauges> {
        let spokes = self.spokes.values().filter_map(|spoke| Some((spoke, spoke.cluster.as_ref()?)));
        spokes
            .map(|(spoke, cluster)| ClusterGauges {
                name: Arc::clone(&cluster.key.name),
                connected: spoke.connected,
                presence: match spoke.presence(self.now.mono) {
                    fact::Presence::Fresh => "Fresh",
                    fact::Presence::Suspect => "Suspect",
                    fact::Presence::Lost => "Lost",
                    fact::Presence::NotReady => "NotReady",
                },
                last_heartbeat_ms: spoke.last_heartbeat.map(|at| at.0),
                certificate_expires: spoke.certificate_expires,
                clock_offset_ms: spoke.clock_offset_ms,
                open_placements: u64::try_from(spoke.promises.len()).unwrap_or(u64::MAX),
            })
            .collect()
    }

    fn placements(&self) -> BTreeMap<&'static str, u64> {
        let states = ["Accepted", "Finished", "Preparing", "Running", "Starting", "Stopping", "Vanished"];
        let mut counts: BTreeMap<&'static str, u64> = states.into_iter().map(|state| (state, 0)).collect();
        for run in self.runs.ids().filter_map(|id| self.runs.get(id)) {
            let state = match run.promised.as_ref().map(super::run::Promised::state) {
                Some(State::Preparing { .. }) => "Preparing",
                Some(State::Accepted) => "Accepted",
                Some(State::Starting) => "Starting",
                Some(State::Running) => "Running",
                Some(State::Finished { .. }) => "Finished",
                Some(State::Vanished) => "Vanished",
                Some(State::Stopping(_)) => "Stopping",
                Some(State::Closed(_)) | None => continue,
            };
            let sum = counts.entry(state).or_default();
            *sum = sum.saturating_add(1);
        }
        counts
    }

    /// Pending workloads of a ClusterQueue in queue order, from the one at `offset` on, at most `limit`; none when there
    /// is no such queue.
    pub fn pending_in_cluster_queue(
        &self,
        name: &str,
        offset: u32,
        limit: u32,
    ) -> Option<Vec<PendingWorkload>> {
        self.catalog.cluster_queues.get(&ObjectKey::new("", name))?;
        Some(self.page(name, |_| true, offset, limit))
    }

    /// The same for a LocalQueue.
    pub fn pending_in_local_queue(
        &self,
        key: &ObjectKey,
        offset: u32,
        limit: u32,
    ) -> Option<Vec<PendingWorkload>> {
        self.catalog.local_queues.get(key)?;
        let queue = self.catalog.cluster_queue_of(key).unwrap_or_default();
        Some(self.page(&queue, |local| local == key, offset, limit))
    }

    fn page(
        &self,
        cluster_queue: &str,
        wanted: impl Fn(&ObjectKey) -> bool,
        offset: u32,
        limit: u32,
    ) -> Vec<PendingWorkload> {
        let mut before: BTreeMap<ObjectKey, u32> = BTreeMap::new();
        let mut page = Vec::new();
        let mut left_out = offset;
        for (position, one) in (0_u32..).zip(self.world.line(cluster_queue).unwrap_or_default()) {
            let local = ObjectKey::new(Arc::clone(&one.key.namespace), Arc::clone(&one.local_queue));
            let of_local = before.entry(local.clone()).or_default();
            let in_local = *of_local;
            *of_local = of_local.saturating_add(1);
            if !wanted(&local) {
                continue;
            }
            if left_out > 0 {
                left_out = left_out.saturating_sub(1);
                continue;
            }
            if page.len() >= usize::try_from(limit).unwrap_or(usize::MAX) {
                break;
            }
            let workload = self.runs.by_workload.get(&one.uid).and_then(|id| self.workload_of(id));
            page.extend(workload.map(|workload| shown(workload, &one.local_queue, (position, in_local))));
        }
        page
    }

    fn workload_of(&self, id: &RunId) -> Option<&Workload> {
        self.runs.get(id)?.workload.as_ref()
    }
}

fn shown(workload: &Workload, local_queue: &Arc<str>, positions: (u32, u32)) -> PendingWorkload {
    let at = |field: &str| json::at(&workload.json, &["metadata", field]).cloned();
    let priority = json::integer(&workload.json, &["spec", "priority"]).unwrap_or(0);
    PendingWorkload {
        key: workload.key.clone(),
        owner_references: at("ownerReferences").unwrap_or_else(|| Value::Array(Vec::new())),
        created: at("creationTimestamp").as_ref().and_then(Value::as_str).unwrap_or_default().into(),
        priority: i32::try_from(priority).unwrap_or(0),
        local_queue: Arc::clone(local_queue),
        position_in_cluster_queue: positions.0,
        position_in_local_queue: positions.1,
    }
}

/// Adds one workload.
fn count(counts: &mut Counts, tally: &Tally, run: &Run, workload: &Workload) {
    let add = |sum: &mut u64| *sum = sum.saturating_add(1);
    match tally.standing {
        Standing::Pending => {
            // Between the engine's word and the stored one it is in no line, and not inadmissible either.
            let on_its_way = run.promised.is_some() || run.held.is_some();
            add(if on_its_way { &mut counts.active } else { &mut counts.inadmissible });
            let reserved = find(&workload.status.conditions, WorkloadCondition::QuotaReserved.as_str());
            let reason = reserved.map_or("Pending", |condition| condition.reason.as_str());
            let cause = run.verdict.as_ref().map_or("", |verdict| verdict.reason.token());
            add(counts.unadmitted.entry((reason.into(), cause.into())).or_default());
        }
        Standing::Reserving => add(&mut counts.reserving),
        Standing::Admitted => {
            add(&mut counts.reserving);
            add(&mut counts.admitted);
        }
    }
    for (key, amount) in &tally.usage {
        let targets: &mut [&mut BTreeMap<_, i64>] = if tally.standing == Standing::Admitted {
            &mut [&mut counts.reserved, &mut counts.used]
        } else {
            &mut [&mut counts.reserved]
        };
        for sums in targets {
            let sum = sums.entry(key.clone()).or_insert(0);
            *sum = sum.saturating_add(*amount);
        }
    }
}

/// Of those that wait, `active` will be looked at.
fn split_pending(counts: &mut Counts, active: usize) {
    let active = u64::try_from(active).unwrap_or(u64::MAX).min(counts.inadmissible);
    counts.active = counts.active.saturating_add(active);
    counts.inadmissible = counts.inadmissible.saturating_sub(active);
}
