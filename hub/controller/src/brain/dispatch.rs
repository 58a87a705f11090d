//! Promises: feeding their machines and carrying out what follows.

use std::sync::Arc;

use fairlead_model::{Millis, PlacementId, SpokeId};
use fairlead_placement::{
    self as placement, Event, Mark, Order, Placement, Promise, Sighting, State, StopCause, step,
};
use fairlead_session::{Command, CopyState, Desired, Intent, Observation};
use serde_json::Value;

use super::events::Said;
use super::run::{Grant, Promised, Run, admitted_part};
use super::{Brain, Effect};
use crate::jobs::affinity::PlaceLabels;
use crate::jobs::copy::{Place, copy_of};
use crate::measure::Measurement;
use crate::ports::Acknowledgement;

impl Brain {
    /// Promises a run to a spoke: the first order is to prepare it there.
    pub(crate) fn promise(&mut self, run: &mut Run, spoke: &SpokeId, grant: Grant) {
        self.epochs = self.epochs.saturating_add(1);
        let epoch = fairlead_model::Epoch { term: self.config.leadership.term, seq: self.epochs };
        let promise = Promise { run: run.id.clone(), spoke: spoke.clone(), epoch };
        let cluster = self.spoke_mut(spoke).name();
        let intent = self.intent_of(run, spoke, &grant);
        let placement = Placement::new(promise);
        self.adopt(run, Promised { placement, cluster, grant, intent, orders: 0, copy: None });
        self.feed(run, &Event::Begin);
    }

    /// Feeds a run's promise one event and carries out what follows.
    pub(crate) fn feed(&mut self, run: &mut Run, event: &Event) {
        let Some(promised) = &mut run.promised else {
            return;
        };
        let placement::Step { next, effects } = step(promised.placement.clone(), event, self.now);
        let happened = measured(promised, &next, self.now.wall);
        self.out.extend(happened.map(Effect::Measure));
        promised.placement = next;
        for effect in effects {
            self.follow(run, effect);
        }
    }

    fn follow(&mut self, run: &mut Run, effect: placement::Effect) {
        match effect {
            placement::Effect::Order(order) => self.order(run, order),
            placement::Effect::Withdraw => {
                if let Some((spoke, placement)) = address(run) {
                    self.out.push(Effect::Withdraw { spoke, placement });
                }
            }
            placement::Effect::Acknowledge(mark) => self.acknowledge(run, mark),
            placement::Effect::ReportVanished => {
                let note =
                    "The copy vanished from its cluster without an order of the hub; its quota stays held";
                self.tell_once(run, fairlead_model::Reason::CopyVanished, note);
            }
            // What these ask for is found by reconciling.
            placement::Effect::Commit | placement::Effect::StoreResult | placement::Effect::Release => {
                self.tell_refusal(run);
            }
        }
        self.dirty.insert(run.id.clone());
    }

    fn tell_refusal(&mut self, run: &Run) {
        let Some(promised) = &run.promised else {
            return;
        };
        if let Some(placement::Closing::Refused { reason, detail }) = promised.closing() {
            let note = format!("Cluster {} refused: {detail}", promised.cluster);
            self.tell(run, Said { warning: true, reason: reason.token(), action: "Prepare", note: &note });
        }
    }

    fn order(&mut self, run: &mut Run, order: Order) {
        if run.promised.as_ref().is_some_and(|promised| promised.intent.is_none()) && order == Order::Start {
            let grant = run.promised.as_ref().map(|promised| promised.grant.clone());
            let spoke = run.promised.as_ref().map(|promised| promised.placement.promise().spoke.clone());
            let intent = grant.zip(spoke).and_then(|(grant, spoke)| self.intent_of(run, &spoke, &grant));
            if let Some(promised) = &mut run.promised {
                promised.intent = intent;
            }
        }
        let term = self.config.leadership.term.0;
        let Some(promised) = &mut run.promised else {
            return;
        };
        let desired = match (order, &promised.intent) {
            (Order::Prepare, Some(intent)) => Desired::Prepare(intent.clone()),
            (Order::Start, Some(intent)) => Desired::Start(intent.clone()),
            // Without its job there is nothing to start; its deletion is under way.
            (Order::Prepare | Order::Start, None) => return,
            (Order::Keep, _) => Desired::Keep,
            (Order::Stop(cause), _) => Desired::Stop(cause_of(cause)),
        };
        promised.orders = promised.orders.saturating_add(1);
        let promise = promised.placement.promise();
        let command = Command {
            run: promise.run.clone(),
            epoch: promise.epoch,
            // Revisions of a later leader are above all of an earlier one's.
            revision: term.checked_shl(32).unwrap_or(0) | u64::from(promised.orders),
            desired,
        };
        self.out.push(Effect::Command { spoke: promise.spoke.clone(), placement: promise.id(), command });
    }

    fn acknowledge(&mut self, run: &Run, mark: Mark) {
        let Some(promised) = &run.promised else {
            return;
        };
        let promise = promised.placement.promise();
        let ack = Acknowledgement {
            placement: promise.id(),
            epoch: promise.epoch,
            boot: mark.boot,
            version: mark.version,
        };
        self.out.push(Effect::Acknowledge { spoke: promise.spoke.clone(), ack });
    }

    /// What the spoke has to know to make the copy.
    fn intent_of(&self, run: &Run, spoke: &SpokeId, grant: &Grant) -> Option<Intent> {
        let job = run.job.as_ref()?;
        let flavors = grant.pod_sets.iter().flat_map(|set| set.flavors.values());
        let additions = self.additions_of(run).ok()?;
        let mut flavors = self.flavor_specs(flavors.map(|flavor| &**flavor));
        flavors.push(additions.as_flavor());
        let count = admitted_part(run, grant.pod_sets.first().map(|set| i64::from(set.count)));
        let place = Place { labels: self.place_labels(spoke), flavors, count };
        let mut copy = copy_of(&job.json, &place);
        if let Some(template) = copy.pointer_mut("/spec/template").and_then(Value::as_object_mut) {
            additions.stamp(template);
        }
        let manifest = serde_json::to_vec(&copy).ok()?;
        Some(Intent {
            kind: Arc::from("batch/v1/Job"),
            namespace: Arc::clone(&run.key.namespace),
            name: Arc::clone(&run.key.name),
            manifest: manifest.into(),
            demand: grant.demand.to_vec(),
        })
    }

    fn place_labels(&self, spoke: &SpokeId) -> PlaceLabels {
        let mut labels = PlaceLabels::new();
        if let Some(spoke) = self.spokes.get(spoke) {
            labels.insert(fairlead_api::labels::CLUSTER, spoke.name().to_string());
            if let Some(cloud) = spoke.cloud() {
                labels.insert(fairlead_api::labels::CLOUD, cloud);
            }
        }
        labels
    }

    /// Takes in what a spoke says it has of a run's promise.
    pub(crate) fn observed(&mut self, run: &mut Run, observation: &Observation) {
        let Some(promised) = &mut run.promised else {
            return;
        };
        let promise = promised.placement.promise();
        if promise.epoch != observation.epoch || promise.run != observation.run {
            let (id, epoch) = (promise.id(), observation.epoch);
            self.warn(format!("a spoke reports {id} with another epoch, {epoch}, or run; it is ignored"));
            return;
        }
        let (sighting, copy) = sighting_of(&observation.state);
        if let Some(copy) = copy
            && promised.copy.as_ref() != Some(copy)
        {
            promised.copy = Some(copy.clone());
            run.unshown_since = run.unshown_since.or(Some(self.now.mono));
        }
        let mark = Mark { boot: observation.boot, version: observation.version };
        self.feed(run, &Event::Seen(sighting, mark));
        self.dirty.insert(run.id.clone());
    }

    /// A spoke let a question go unanswered: nothing new goes there until it says something, and whoever else
    /// waits for its answer tries elsewhere at once.
    pub(crate) fn mark_silent(&mut self, id: &SpokeId, run: &Run) {
        let closed = run
            .promised
            .as_ref()
            .is_none_or(|promised| matches!(promised.closing(), Some(placement::Closing::NoAnswer)));
        if !closed {
            return;
        }
        let spoke = self.spoke_mut(id);
        spoke.silent = true;
        let waiting: Vec<_> = spoke.promises.values().cloned().collect();
        let preparing = |id: &fairlead_model::RunId| {
            self.runs
                .get(id)
                .and_then(|run| run.promised.as_ref())
                .is_some_and(|promised| matches!(promised.state(), State::Preparing { .. }))
        };
        let waiting: Vec<_> = waiting.into_iter().filter(preparing).collect();
        self.dirty.extend(waiting);
        self.spoke_changed(id);
    }
}

/// What a step of a promise means for measurements.
fn measured(promised: &Promised, next: &Placement, now: Millis) -> Option<Measurement> {
    let cluster = Arc::clone(&promised.cluster);
    let took_ms = now.since(promised.grant.at).max(0);
    let result = match (promised.state(), next.state()) {
        (State::Preparing { .. }, State::Accepted) => "Accepted",
        (State::Preparing { .. }, State::Closed(placement::Closing::Refused { reason, .. })) => {
            reason.token()
        }
        (State::Preparing { .. }, State::Closed(placement::Closing::NoAnswer)) => "NoAnswer",
        (State::Accepted, State::Starting) => return Some(Measurement::Committed { cluster, took_ms }),
        _ => return None,
    };
    let cluster_queue = Arc::clone(&promised.grant.cluster_queue);
    Some(Measurement::Prepared { cluster_queue, cluster, result, took_ms })
}

fn address(run: &Run) -> Option<(SpokeId, PlacementId)> {
    let promise = run.promised.as_ref()?.placement.promise();
    Some((promise.spoke.clone(), promise.id()))
}

const fn cause_of(cause: StopCause) -> fairlead_session::StopCause {
    match cause {
        StopCause::Deleted => fairlead_session::StopCause::Deleted,
        StopCause::Evicted => fairlead_session::StopCause::Evicted,
        StopCause::Retired => fairlead_session::StopCause::Retired,
    }
}

fn sighting_of(state: &CopyState) -> (Sighting, Option<&fairlead_session::CopyStatus>) {
    match state {
        CopyState::Accepted => (Sighting::Accepted, None),
        CopyState::Refused(refusal) => {
            (Sighting::Refused { reason: refusal.reason, detail: Arc::clone(&refusal.detail) }, None)
        }
        CopyState::Live(copy) if copy.terminal.is_some() => (Sighting::Ended, Some(copy)),
        CopyState::Live(copy) => (Sighting::Live, Some(copy)),
        CopyState::Stopping(_) => (Sighting::Stopping, None),
        CopyState::Stopped(copy) if copy.terminal.is_some() => {
            (Sighting::Stopped { ended: true }, Some(copy))
        }
        CopyState::Stopped(_) => (Sighting::Stopped { ended: false }, None),
        CopyState::Vanished => (Sighting::Vanished, None),
    }
}
