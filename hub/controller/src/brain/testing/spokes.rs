//! A spoke in memory: it answers orders as an agent does, or not, as the test wants.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use fairlead_model::{NodeClass, PlacementId, Reason, Resources, Shape};
use fairlead_session::{
    Command, CopyState, CopyStatus, Desired, Intent, Observation, Refusal, Report, Terminal, Versions,
};

use crate::ports::{Acknowledgement, SpokeEvent};

/// How a spoke behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// As an agent should.
    Willing,
    /// It prepares nothing, for this reason.
    Refuses(Reason),
    /// It prepares, and refuses to start.
    RefusesStart(Reason),
    /// It prepares, and takes that back while the hub commits.
    ChangesItsMind(Reason),
    /// Its session is up and nothing comes from it.
    Hung,
}

pub(crate) struct SpokeSim {
    pub(crate) name: String,
    pub(crate) manner: Manner,
    pub(crate) connected: bool,
    /// Stops are proven at once; otherwise only when the test says so.
    pub(crate) stops_at_once: bool,
    pub(crate) entries: BTreeMap<PlacementId, Observation>,
    /// Manifests of the copies that were started, in order.
    pub(crate) started: Vec<Intent>,
    pub(crate) acknowledged: Vec<Acknowledgement>,
    version: u64,
    news: VecDeque<SpokeEvent>,
}

impl SpokeSim {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            manner: Manner::Willing,
            connected: false,
            stops_at_once: true,
            entries: BTreeMap::new(),
            started: Vec::new(),
            acknowledged: Vec::new(),
            version: 0,
            news: VecDeque::new(),
        }
    }

    /// What a new session says.
    pub(crate) fn connect(&mut self) -> Vec<SpokeEvent> {
        self.connected = true;
        self.news.clear();
        let versions = Versions { fairlead: "0.1.0".into(), kubernetes: "v1.36.3".into() };
        let connected =
            SpokeEvent::Connected { versions, clock_offset_ms: 3, certificate_expires: 2_000_000_000 };
        let entries = self.entries.iter().map(|(id, entry)| SpokeEvent::Observed(id.clone(), entry.clone()));
        let mut events = vec![connected];
        events.extend(entries);
        events.push(SpokeEvent::InventoryComplete);
        events.push(SpokeEvent::Report(self.report()));
        events
    }

    /// One empty node with 8 cpus.
    pub(crate) fn report(&self) -> Report {
        let node: Resources = [("cpu".into(), 8_000), ("pods".into(), 110)].into_iter().collect();
        let class = NodeClass {
            labels: [("fairlead.dev/cluster".into(), self.name.as_str().into())].into(),
            taints: Vec::new(),
        };
        let shape = Shape { class: Arc::new(class), free: node, count: 1 };
        Report {
            version: self.version,
            free: vec![shape.clone()],
            empty: vec![shape],
            bound: BTreeMap::new(),
            nodes: 1,
        }
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = SpokeEvent> + use<> {
        let hears = self.connected && self.manner != Manner::Hung;
        let news = std::mem::take(&mut self.news);
        news.into_iter().filter(move |_| hears)
    }

    pub(crate) fn say(&mut self, event: SpokeEvent) {
        self.news.push_back(event);
    }

    pub(crate) fn command(&mut self, id: PlacementId, command: Command) {
        if !self.connected || self.manner == Manner::Hung {
            return;
        }
        let place = (id, command.clone());
        match command.desired {
            Desired::Prepare(intent) => match self.manner {
                Manner::Refuses(reason) => self.observe(place, &intent, refused(reason)),
                Manner::ChangesItsMind(reason) => {
                    self.observe(place.clone(), &intent, CopyState::Accepted);
                    self.observe(place, &intent, refused(reason));
                }
                _ => self.observe(place, &intent, CopyState::Accepted),
            },
            Desired::Start(intent) => match self.manner {
                Manner::RefusesStart(reason) => self.observe(place, &intent, refused(reason)),
                // What was refused stays refused, and what lives is not made again.
                _ if self.is_refused(&place.0) || self.is_live(&place.0) => {}
                _ => {
                    self.started.push(intent.clone());
                    let copy = CopyStatus { active: 1, ..CopyStatus::default() };
                    self.observe(place, &intent, CopyState::Live(copy));
                }
            },
            Desired::Keep => {}
            Desired::Stop(_) => self.stop(place),
        }
    }

    fn stop(&mut self, (id, command): (PlacementId, Command)) {
        let copy = match self.entries.get(&id).map(|entry| entry.state.clone()) {
            Some(CopyState::Live(copy) | CopyState::Stopping(copy) | CopyState::Stopped(copy)) => copy,
            _ => CopyStatus::default(),
        };
        let nothing = Intent {
            kind: "batch/v1/Job".into(),
            namespace: "team".into(),
            name: "".into(),
            manifest: Vec::new().into(),
            demand: Vec::new(),
        };
        let gone = self.stops_at_once || !self.is_live(&id);
        let state = if gone { CopyState::Stopped(copy) } else { CopyState::Stopping(copy) };
        self.observe((id, command), &nothing, state);
    }

    fn is_refused(&self, id: &PlacementId) -> bool {
        self.entries.get(id).is_some_and(|entry| matches!(entry.state, CopyState::Refused(_)))
    }

    fn is_live(&self, id: &PlacementId) -> bool {
        self.entries
            .get(id)
            .is_some_and(|entry| matches!(entry.state, CopyState::Live(_) | CopyState::Stopping(_)))
    }

    fn observe(&mut self, (id, command): (PlacementId, Command), intent: &Intent, state: CopyState) {
        self.version += 1;
        let observation = Observation {
            run: command.run,
            epoch: command.epoch,
            boot: 1,
            version: self.version,
            namespace: Arc::clone(&intent.namespace),
            name: Arc::clone(&intent.name),
            state,
        };
        self.entries.insert(id.clone(), observation.clone());
        self.say(SpokeEvent::Observed(id, observation));
    }

    /// Changes the one live or stopping copy.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut CopyStatus) -> Option<CopyState>) {
        let live = self
            .entries
            .iter_mut()
            .find(|(_, entry)| matches!(entry.state, CopyState::Live(_) | CopyState::Stopping(_)));
        let (id, entry) = live.expect("a live copy");
        let (CopyState::Live(copy) | CopyState::Stopping(copy)) = &mut entry.state else { unreachable!() };
        let mut copy = copy.clone();
        let stopping = matches!(entry.state, CopyState::Stopping(_));
        let next = change(&mut copy);
        entry.state =
            next.unwrap_or(if stopping { CopyState::Stopping(copy) } else { CopyState::Live(copy) });
        self.version += 1;
        entry.version = self.version;
        let event = SpokeEvent::Observed(id.clone(), entry.clone());
        self.say(event);
    }

    /// Ends the first copy that still runs or is being stopped.
    pub(crate) fn end_running(&mut self, end: impl FnOnce(&Observation) -> CopyState) {
        let running = self.entries.iter_mut().find(|(_, entry)| {
            matches!(entry.state, CopyState::Stopping(_))
                || matches!(&entry.state, CopyState::Live(copy) if copy.terminal.is_none())
        });
        let Some((id, entry)) = running else { return };
        self.version += 1;
        entry.state = end(entry);
        entry.version = self.version;
        let event = SpokeEvent::Observed(id.clone(), entry.clone());
        self.say(event);
    }

    /// The copy's pods are ready.
    pub(crate) fn ready(&mut self) {
        self.change(|copy| {
            copy.ready = copy.active;
            copy.start_time = Some(fairlead_model::Millis(1_800_000_000_000));
            None
        });
    }

    /// The pods of every live copy are ready.
    pub(crate) fn all_ready(&mut self) {
        for (id, entry) in &mut self.entries {
            let CopyState::Live(copy) = &mut entry.state else { continue };
            copy.ready = copy.active;
            self.version += 1;
            entry.version = self.version;
            self.news.push_back(SpokeEvent::Observed(id.clone(), entry.clone()));
        }
    }

    /// The copy ends.
    pub(crate) fn finish(&mut self, succeeded: bool) {
        self.change(|copy| {
            *copy = ended(succeeded);
            None
        });
    }

    /// The copy's containers have stopped.
    pub(crate) fn prove_stop(&mut self) {
        self.change(|copy| Some(CopyState::Stopped(copy.clone())));
    }

    /// The copy is gone, and nobody knows why.
    pub(crate) fn vanish(&mut self) {
        self.change(|_| Some(CopyState::Vanished));
    }

    pub(crate) fn withdraw(&mut self, id: &PlacementId) {
        if self.entries.get(id).is_some_and(|entry| entry.state == CopyState::Accepted) {
            self.entries.remove(id);
            self.say(SpokeEvent::Forgotten(id.clone()));
        }
    }

    pub(crate) fn acknowledged(&mut self, ack: &Acknowledgement) {
        self.acknowledged.push(ack.clone());
        let over = self.entries.get(&ack.placement).is_some_and(|entry| {
            entry.version == ack.version
                && matches!(entry.state, CopyState::Stopped(_) | CopyState::Refused(_))
        });
        if over {
            self.entries.remove(&ack.placement);
            self.say(SpokeEvent::Forgotten(ack.placement.clone()));
        }
    }

    /// Copies that exist.
    pub(crate) fn copies(&self) -> usize {
        self.entries.keys().filter(|id| self.is_live(id)).count()
    }
}

pub(crate) fn ended(succeeded: bool) -> CopyStatus {
    let terminal = Terminal {
        succeeded,
        reason: if succeeded { "CompletionsReached" } else { "BackoffLimitExceeded" }.into(),
        message: "the end".into(),
        completion_time: succeeded.then_some(fairlead_model::Millis(1_800_000_001_000)),
    };
    CopyStatus {
        succeeded: u32::from(succeeded),
        failed: u32::from(!succeeded),
        start_time: Some(fairlead_model::Millis(1_800_000_000_000)),
        terminal: Some(terminal),
        ..CopyStatus::default()
    }
}

fn refused(reason: Reason) -> CopyState {
    CopyState::Refused(Refusal { reason, detail: format!("{reason} it is").into() })
}
