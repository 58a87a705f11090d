//! The record of one spoke: its Cluster object, its session, its inventory, its capacity.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairlead_api::labels;
use fairlead_engine::fact;
use fairlead_model::{Millis, PlacementId, RunId, SpokeId};
use fairlead_placement::{Heartbeats, Presence};
use fairlead_session::{Observation, Report, Versions};

use super::ledger::Slot;
use crate::jobs::json;
use crate::ports::Object;

/// One spoke.
#[derive(Debug)]
pub(crate) struct Spoke {
    pub(crate) id: SpokeId,
    /// Its Cluster object; a session may be up before that is seen.
    pub(crate) cluster: Option<Object>,
    /// A session is up.
    pub(crate) connected: bool,
    /// Its whole inventory is known in this session.
    pub(crate) complete: bool,
    /// It let a `Prepare` go unanswered and has said nothing since.
    pub(crate) silent: bool,
    pub(crate) beats: Heartbeats,
    /// Wall clock of the last heartbeat.
    pub(crate) last_heartbeat: Option<Millis>,
    pub(crate) versions: Versions,
    pub(crate) clock_offset_ms: i64,
    pub(crate) certificate_expires: Option<i64>,
    pub(crate) report: Option<Report>,
    /// What it has, by what it said in this session.
    pub(crate) entries: BTreeMap<PlacementId, Observation>,
    /// Open promises to it.
    pub(crate) promises: BTreeMap<PlacementId, RunId>,
    /// Runs that may not choose it for a while.
    pub(crate) shunned_by: BTreeSet<RunId>,
    pub(crate) slot: Slot,
    /// Monotonic time of the last write of its numbers.
    pub(crate) numbers_written: Option<Millis>,
    pub(crate) wake: Option<Millis>,
}

impl Spoke {
    pub(crate) fn new(id: SpokeId, suspect_ms: i64) -> Self {
        Self {
            id,
            cluster: None,
            connected: false,
            complete: false,
            silent: false,
            beats: Heartbeats::new(suspect_ms),
            last_heartbeat: None,
            versions: Versions::default(),
            clock_offset_ms: 0,
            certificate_expires: None,
            report: None,
            entries: BTreeMap::new(),
            promises: BTreeMap::new(),
            shunned_by: BTreeSet::new(),
            slot: Slot::default(),
            numbers_written: None,
            wake: None,
        }
    }

    /// Its name, as long as its Cluster object is there.
    pub(crate) fn name(&self) -> Arc<str> {
        self.cluster.as_ref().map_or_else(|| self.id.as_str().into(), |cluster| Arc::clone(&cluster.key.name))
    }

    /// The cloud it says it is in, by its Cluster's labels or else by its nodes.
    pub(crate) fn cloud(&self) -> Option<String> {
        let labelled = self
            .cluster
            .as_ref()
            .and_then(|cluster| json::text(&cluster.json, &["spec", "labels", labels::CLOUD]));
        let reported = self.report.as_ref().and_then(|report| {
            report.empty.iter().find_map(|shape| shape.class.labels.get(labels::CLOUD)).map(|cloud| &**cloud)
        });
        labelled.or(reported).map(str::to_owned)
    }

    /// Whether something may be asked of it now, and what the engine is to think of it.
    ///
    /// No session, no inventory, no capacity or no answer to the last question: nothing new goes there. Missing
    /// heartbeats say the same under another name. What runs there is not touched by any of it.
    pub(crate) fn presence(&self, now: Millis) -> fact::Presence {
        let answers = self.connected && self.complete && self.report.is_some() && !self.silent;
        match self.beats.presence(now) {
            Presence::Suspect => fact::Presence::Suspect,
            Presence::Fresh if answers => fact::Presence::Fresh,
            Presence::Fresh | Presence::Unseen => fact::Presence::NotReady,
        }
    }
}
