//! What comes from spokes, and their Cluster objects.

use fairlead_engine::{Fact, fact};
use fairlead_model::{PlacementId, Reason, RunId, SpokeId};
use fairlead_placement::Event;
use fairlead_session::{CopyState, Observation, Report};

use super::spoke::Spoke;
use super::wakes::Wake;
use super::{Brain, Effect};
use crate::ports::{Acknowledgement, Kind, Object, SpokeEvent};

impl Brain {
    /// The record of a spoke, made where there is none.
    pub(crate) fn spoke_mut(&mut self, id: &SpokeId) -> &mut Spoke {
        let suspect_ms = self.config.suspect_ms;
        self.spokes.entry(id.clone()).or_insert_with(|| Spoke::new(id.clone(), suspect_ms))
    }

    /// Takes in what the gateway says of a spoke. Whatever comes from it proves that it answers.
    pub(crate) fn spoke_event(&mut self, id: &SpokeId, event: SpokeEvent) {
        let now = self.now;
        let spoke = self.spoke_mut(id);
        let was_silent = std::mem::replace(&mut spoke.silent, false);
        match event {
            SpokeEvent::Connected { versions, clock_offset_ms, certificate_expires } => {
                spoke.connected = true;
                spoke.complete = false;
                spoke.entries.clear();
                spoke.beats.beat(now.mono);
                spoke.last_heartbeat = Some(now.wall);
                spoke.versions = versions;
                spoke.clock_offset_ms = clock_offset_ms;
                spoke.certificate_expires = Some(certificate_expires);
                self.lift_exclusions(id, |_| true);
            }
            // The frequent ones say nothing about the spoke itself, but that it answers again.
            SpokeEvent::Observed(placement, observation) => {
                self.entry_seen(id, placement, observation);
                if !was_silent {
                    return;
                }
            }
            SpokeEvent::Forgotten(placement) => {
                spoke.entries.remove(&placement);
                self.lift_exclusions(id, |reason| reason == Reason::Busy);
                if !was_silent {
                    return;
                }
            }
            SpokeEvent::InventoryComplete => self.inventory_complete(id),
            SpokeEvent::Report(report) => self.reported(id, report),
            SpokeEvent::Heartbeat => {
                spoke.beats.beat(now.mono);
                spoke.last_heartbeat = Some(now.wall);
            }
            SpokeEvent::Disconnected => {
                spoke.connected = false;
                spoke.complete = false;
                self.feed_all(id, |_| Event::Disconnected);
            }
        }
        self.spoke_changed(id);
    }

    /// Feeds an event to every promise that a spoke holds.
    fn feed_all(&mut self, id: &SpokeId, event: impl Fn(bool) -> Event) {
        let spoke = self.spoke_mut(id);
        let promises: Vec<(RunId, bool)> = spoke
            .promises
            .iter()
            .map(|(placement, run)| (run.clone(), spoke.entries.contains_key(placement)))
            .collect();
        for (run, present) in promises {
            self.with_run(&run, |brain, run| brain.feed(run, &event(present)));
        }
    }

    fn inventory_complete(&mut self, id: &SpokeId) {
        self.spoke_mut(id).complete = true;
        self.feed_all(id, |present| Event::Inventory { present });
        if self.is_ready() {
            self.review_entries(id);
        }
    }

    fn entry_seen(&mut self, id: &SpokeId, placement: PlacementId, observation: Observation) {
        let run = self.runs.by_placement.get(&placement).cloned();
        let known = run.and_then(|run| self.with_run(&run, |brain, run| brain.observed(run, &observation)));
        if known.is_none() && self.is_ready() && self.spoke_mut(id).complete {
            self.unknown_entry(id, &placement, &observation);
        }
        self.spoke_mut(id).entries.insert(placement, observation);
    }

    /// With every list complete, an entry that no object of the hub accounts for is unknown.
    pub(crate) fn review_unknown_entries(&mut self) {
        let spokes: Vec<SpokeId> = self.spokes.keys().cloned().collect();
        for id in spokes {
            if self.spoke_mut(&id).complete {
                self.review_entries(&id);
            }
        }
    }

    fn review_entries(&mut self, id: &SpokeId) {
        let entries = self.spoke_mut(id).entries.clone();
        for (placement, observation) in entries {
            if !self.runs.by_placement.contains_key(&placement) {
                self.unknown_entry(id, &placement, &observation);
            }
        }
    }

    /// The ruling for an entry that the hub does not know: what has no copy is acknowledged, so that the spoke
    /// forgets it; a copy is kept and reported. Absence here is never an order to delete.
    fn unknown_entry(&mut self, id: &SpokeId, placement: &PlacementId, observation: &Observation) {
        match observation.state {
            CopyState::Accepted | CopyState::Refused(_) | CopyState::Stopped(_) => {
                let ack = Acknowledgement {
                    placement: placement.clone(),
                    epoch: observation.epoch,
                    boot: observation.boot,
                    version: observation.version,
                };
                self.out.push(Effect::Acknowledge { spoke: id.clone(), ack });
                self.out.push(Effect::Withdraw { spoke: id.clone(), placement: placement.clone() });
            }
            CopyState::Live(_) | CopyState::Stopping(_) | CopyState::Vanished => {
                let name = self.spoke_mut(id).name();
                let (space, job) = (&observation.namespace, &observation.name);
                self.warn(format!(
                    "cluster {name} holds {space}/{job} as {placement}, which this hub does not know; it is kept"
                ));
            }
        }
    }

    fn reported(&mut self, id: &SpokeId, report: Report) {
        let fact = fact::ClusterReport {
            spoke: id.clone(),
            free: report.free.clone().into(),
            empty: report.empty.clone().into(),
            bound: report.bound.clone(),
        };
        let spoke = self.spoke_mut(id);
        let changed = spoke.report.as_ref().is_none_or(|old| old.free != report.free);
        spoke.report = Some(report);
        self.absorb(Fact::Report(fact));
        if changed {
            self.lift_exclusions(id, |reason| reason == Reason::NoRoom);
        }
    }

    /// Tells the engine and the Cluster's status what has become of a spoke, and arms its next timer.
    pub(crate) fn spoke_changed(&mut self, id: &SpokeId) {
        self.tell_engine_of_spoke(id);
        let Some(spoke) = self.spokes.get_mut(id) else {
            return;
        };
        if let Some(cluster) = &spoke.cluster {
            self.sums.touch(Kind::Cluster, cluster.key.clone());
        }
        let next = spoke.beats.deadline().filter(|deadline| *deadline > self.now.mono);
        self.wakes.reset(&Wake::Spoke(id.clone()), spoke.wake, next);
        spoke.wake = next;
    }

    /// A Cluster object is as given.
    pub(crate) fn cluster_seen(&mut self, object: &Object) {
        let id = SpokeId::new(object.uid.as_str());
        self.spoke_mut(&id).cluster = Some(object.clone());
        self.spoke_changed(&id);
    }

    /// A Cluster object is gone. Its promises stay: what runs there is not known to have stopped.
    pub(crate) fn cluster_gone(&mut self, id: &SpokeId) {
        if let Some(spoke) = self.spokes.get_mut(id) {
            spoke.cluster = None;
        }
        self.absorb(Fact::ClusterGone(id.clone()));
    }
}
