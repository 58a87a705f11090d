//! A hub, a spoke and two queues of frames between them; brain and agent are played by the test.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fairlead_model::{Epoch, Floor, Incarnation, Leadership, Millis, Nonce, Now, PlacementId, RunId, Term};
use fairlead_session::{
    Command, CopyState, CopyStatus, Desired, Goodbye, HubConfig, HubFrame, HubInput, HubOutput, HubSession,
    Intent, Observation, SessionEvent, SpokeConfig, SpokeFrame, SpokeInput, SpokeOutput, SpokeSession,
    StopCause, Versions,
};

pub(crate) const WINDOW: usize = 4;

pub(crate) fn leader(term: u64) -> Leadership {
    leader_with(1, term, "a")
}

pub(crate) fn leader_with(incarnation: u64, term: u64, nonce: &str) -> Leadership {
    Leadership { incarnation: Incarnation(incarnation), term: Term(term), nonce: Nonce(nonce.into()) }
}

pub(crate) fn key(i: u64) -> PlacementId {
    PlacementId::of(Epoch::new(1, i))
}

pub(crate) fn command(i: u64, revision: u64, desired: Desired) -> Command {
    Command { run: RunId::new(format!("run-{i}")), epoch: Epoch::new(1, i), revision, desired }
}

pub(crate) fn start(i: u64, revision: u64) -> Command {
    let intent = Intent {
        kind: "batch/v1/Job".into(),
        namespace: "team".into(),
        name: format!("job-{i}").into(),
        manifest: vec![b'x'; 100].into(),
        demand: Vec::new(),
    };
    command(i, revision, Desired::Start(intent))
}

pub(crate) fn stop(i: u64, revision: u64) -> Command {
    command(i, revision, Desired::Stop(StopCause::Deleted))
}

pub(crate) fn observation(i: u64, boot: u64, version: u64, state: CopyState) -> Observation {
    Observation {
        run: RunId::new(format!("run-{i}")),
        epoch: Epoch::new(1, i),
        boot,
        version,
        namespace: "team".into(),
        name: format!("job-{i}").into(),
        state,
    }
}

pub(crate) fn live(i: u64, boot: u64, version: u64) -> Observation {
    observation(i, boot, version, CopyState::Live(CopyStatus { active: 1, ..CopyStatus::default() }))
}

pub(crate) fn stopped(i: u64, boot: u64, version: u64) -> Observation {
    observation(i, boot, version, CopyState::Stopped(CopyStatus::default()))
}

/// What a brain would know and want.
#[derive(Default)]
pub(crate) struct Brain {
    pub(crate) wanted: BTreeMap<PlacementId, Command>,
    /// Inventory by all events ever.
    pub(crate) view: BTreeMap<PlacementId, Observation>,
    /// Inventory by the events of this session alone.
    pub(crate) fresh: BTreeMap<PlacementId, Observation>,
    pub(crate) complete: bool,
    pub(crate) up: bool,
    pub(crate) events: Vec<SessionEvent>,
}

/// What an agent would know and do.
#[derive(Default)]
pub(crate) struct Agent {
    pub(crate) has: BTreeMap<PlacementId, Observation>,
    pub(crate) in_force: BTreeMap<PlacementId, Command>,
    /// Every order that was ever handed over, in order.
    pub(crate) orders: Vec<PlacementId>,
    pub(crate) established: Option<Leadership>,
    pub(crate) stored: Floor,
    /// Whether floors are stored at once.
    pub(crate) hold_floor: bool,
    pub(crate) held: Vec<Floor>,
    pub(crate) acknowledged: BTreeSet<PlacementId>,
    pub(crate) voids: u32,
    pub(crate) closed: Vec<Goodbye>,
}

pub(crate) struct World {
    pub(crate) hub: HubSession,
    pub(crate) spoke: SpokeSession,
    pub(crate) up: VecDeque<SpokeFrame>,
    pub(crate) down: VecDeque<HubFrame>,
    pub(crate) brain: Brain,
    pub(crate) agent: Agent,
    pub(crate) mono: i64,
    pub(crate) entries_sent: (u32, u32),
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            hub: hub(leader(1)),
            spoke: spoke(Floor::default(), 1),
            up: VecDeque::new(),
            down: VecDeque::new(),
            brain: Brain::default(),
            agent: Agent::default(),
            mono: 0,
            entries_sent: (0, 0),
        }
    }

    pub(crate) fn now(&self) -> Now {
        Now { wall: Millis(1_000_000 + self.mono), mono: Millis(self.mono) }
    }

    pub(crate) fn hub(&mut self, input: HubInput) {
        for output in self.hub.handle(input, self.now()) {
            match output {
                HubOutput::Send(frame) => {
                    self.entries_sent.1 += u32::from(matches!(frame, HubFrame::Command(..)));
                    self.down.push_back(frame);
                }
                HubOutput::Close => {}
                HubOutput::Event(event) => self.brain_hears(event),
            }
        }
    }

    fn brain_hears(&mut self, event: SessionEvent) {
        let brain = &mut self.brain;
        match &event {
            SessionEvent::Connected { .. } => {
                assert!(!brain.up, "Connected twice");
                (brain.up, brain.complete) = (true, false);
                brain.fresh.clear();
            }
            SessionEvent::Disconnected(_) => {
                assert!(brain.up, "Disconnected without Connected");
                brain.up = false;
            }
            SessionEvent::Observed(placement, observation) => {
                assert!(brain.up);
                brain.view.insert(placement.clone(), observation.clone());
                brain.fresh.insert(placement.clone(), observation.clone());
            }
            SessionEvent::Forgotten(placement) => {
                brain.view.remove(placement);
                brain.fresh.remove(placement);
            }
            SessionEvent::InventoryComplete => {
                assert!(!brain.complete, "InventoryComplete twice");
                brain.complete = true;
                assert_eq!(brain.fresh, brain.view, "events of one session tell the whole inventory");
            }
            SessionEvent::Report(_) | SessionEvent::Heartbeat(_) => assert!(brain.up),
            SessionEvent::Refused(_) => assert!(!brain.up),
        }
        brain.events.push(event);
    }

    pub(crate) fn spoke(&mut self, input: SpokeInput) {
        for output in self.spoke.handle(input, self.now()) {
            self.agent_hears(output);
        }
    }

    fn agent_hears(&mut self, output: SpokeOutput) {
        let agent = &mut self.agent;
        match output {
            SpokeOutput::Send(frame) => {
                self.entries_sent.0 += u32::from(matches!(frame, SpokeFrame::Observe(..)));
                self.up.push_back(frame);
            }
            SpokeOutput::StoreFloor(floor) if agent.hold_floor => agent.held.push(floor),
            SpokeOutput::StoreFloor(floor) => {
                agent.stored = floor.clone();
                self.spoke(SpokeInput::FloorStored(floor));
            }
            SpokeOutput::Established(leadership) => {
                assert!(agent.established.is_none());
                assert_eq!(agent.stored, Floor::from(&leadership), "obeyed before the floor was durable");
                agent.established = Some(leadership);
            }
            SpokeOutput::Command(placement, command) => {
                assert!(agent.established.is_some(), "an order outside of a session");
                agent.orders.push(placement.clone());
                agent.in_force.insert(placement, command);
            }
            SpokeOutput::Withdrawn(placement) => {
                assert!(agent.established.is_some());
                agent.in_force.remove(&placement);
            }
            SpokeOutput::Void => {
                assert!(agent.established.take().is_some(), "Void without a session");
                agent.in_force.clear();
                agent.voids += 1;
            }
            SpokeOutput::Acknowledged { placement, epoch, boot, version } => {
                let newest = &agent.has[&placement];
                assert_eq!((newest.epoch, newest.boot, newest.version), (epoch, boot, version));
                agent.acknowledged.insert(placement);
            }
            SpokeOutput::Close(goodbye) => agent.closed.push(goodbye),
        }
    }

    pub(crate) fn connect(&mut self) {
        self.up.clear();
        self.down.clear();
        self.hub(HubInput::Connected);
        self.spoke(SpokeInput::Connected);
    }

    pub(crate) fn cut(&mut self) {
        self.up.clear();
        self.down.clear();
        self.spoke(SpokeInput::Disconnected);
        self.hub(HubInput::Disconnected);
    }

    pub(crate) fn deliver_up(&mut self) -> bool {
        let frame = self.up.pop_front();
        frame.map(|frame| self.hub(HubInput::Frame(frame))).is_some()
    }

    pub(crate) fn deliver_down(&mut self) -> bool {
        let frame = self.down.pop_front();
        frame.map(|frame| self.spoke(SpokeInput::Frame(frame))).is_some()
    }

    /// Delivers so many frames up and so many down, as far as there are any.
    pub(crate) fn deliver(&mut self, up: usize, down: usize) {
        let delivered = (0..up).all(|_| self.deliver_up()) & (0..down).all(|_| self.deliver_down());
        assert!(delivered || self.up.is_empty() || self.down.is_empty());
    }

    pub(crate) fn settle(&mut self) {
        while self.deliver_up() || self.deliver_down() {}
    }

    pub(crate) fn want(&mut self, i: u64, command: Command) {
        self.brain.wanted.insert(key(i), command.clone());
        self.hub(HubInput::Command(key(i), command));
    }

    pub(crate) fn want_nothing(&mut self, i: u64) {
        self.brain.wanted.remove(&key(i));
        self.hub(HubInput::Withdraw(key(i)));
    }

    pub(crate) fn have(&mut self, i: u64, observation: Observation) {
        self.agent.has.insert(key(i), observation.clone());
        self.agent.acknowledged.remove(&key(i));
        self.spoke(SpokeInput::Observe(key(i), observation));
    }

    pub(crate) fn have_nothing(&mut self, i: u64) {
        self.agent.has.remove(&key(i));
        self.agent.acknowledged.remove(&key(i));
        self.spoke(SpokeInput::Forget(key(i)));
    }

    /// The brain makes durable what it knows of a placement.
    pub(crate) fn acknowledge(&mut self, i: u64) {
        if let Some(o) = self.brain.view.get(&key(i)).cloned() {
            let (epoch, boot, version) = (o.epoch, o.boot, o.version);
            self.hub(HubInput::Acknowledge { placement: key(i), epoch, boot, version });
        }
    }

    /// A new leader: it knows what is wanted, and nothing of inventories.
    pub(crate) fn restart_hub(&mut self, leadership: Leadership) {
        self.cut();
        self.hub = hub(leadership);
        self.brain.view.clear();
        self.brain.up = false;
        for (placement, command) in self.brain.wanted.clone() {
            self.hub(HubInput::Command(placement, command));
        }
    }

    /// A new agent process: it has its stored floor, and finds its copies again.
    pub(crate) fn restart_agent(&mut self, boot: u64) {
        self.cut();
        self.spoke = spoke(self.agent.stored.clone(), boot);
        self.agent.established = None;
        self.agent.in_force.clear();
        self.agent.held.clear();
        for (version, (placement, mut found)) in (1..).zip(self.agent.has.clone()) {
            (found.boot, found.version) = (boot, version);
            self.agent.has.insert(placement.clone(), found.clone());
            self.spoke(SpokeInput::Observe(placement, found));
        }
        self.agent.acknowledged.clear();
    }

    /// Keys of observations that are under way, in whichever direction.
    pub(crate) fn flying_observations(&self) -> BTreeSet<PlacementId> {
        let up = self.up.iter().filter_map(|frame| match frame {
            SpokeFrame::Observe(placement, _) => Some(placement.clone()),
            _ => None,
        });
        let down = self.down.iter().filter_map(|frame| match frame {
            HubFrame::ObservationReceived(placement, _, _) => Some(placement.clone()),
            _ => None,
        });
        up.chain(down).collect()
    }

    /// Keys of commands that are under way, in whichever direction.
    pub(crate) fn flying_commands(&self) -> BTreeSet<PlacementId> {
        let down = self.down.iter().filter_map(|frame| match frame {
            HubFrame::Command(placement, _) => Some(placement.clone()),
            _ => None,
        });
        let up = self.up.iter().filter_map(|frame| match frame {
            SpokeFrame::CommandReceived(placement, _) => Some(placement.clone()),
            _ => None,
        });
        up.chain(down).collect()
    }

    /// Both maps agree, on the wire's two ends and in the heads of brain and agent.
    pub(crate) fn assert_in_step(&self) {
        assert!(self.brain.up && self.brain.complete);
        let hub: BTreeMap<_, _> = self.hub.observations().map(|(k, v)| (k.clone(), v.clone())).collect();
        assert_eq!(hub, self.agent.has);
        assert_eq!(self.brain.view, self.agent.has);
        assert_eq!(self.brain.fresh, self.agent.has);
        let spoke: BTreeMap<_, _> = self.spoke.commands().map(|(k, v)| (k.clone(), v.clone())).collect();
        assert_eq!(spoke, self.brain.wanted);
        assert_eq!(self.agent.in_force, self.brain.wanted);
    }
}

fn hub(leadership: Leadership) -> HubSession {
    HubSession::new(HubConfig { window: WINDOW, ..HubConfig::new(leadership, Versions::default()) })
}

fn spoke(floor: Floor, boot: u64) -> SpokeSession {
    SpokeSession::new(SpokeConfig { window: WINDOW, ..SpokeConfig::new(floor, boot) })
}
