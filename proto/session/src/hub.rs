//! The hub's end: one per spoke, for as long as the hub leads.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;

use fairlead_model::{Claim, Epoch, Leadership, Millis, Now, PlacementId, Reason};

use crate::keyed::{Buckets, KeyedMap};
use crate::message::{
    Command, CopyState, CopyStatus, Goodbye, Hello, HubFrame, Observation, PROTOCOL, Report, SpokeFrame,
    Versions, Welcome,
};
use crate::outbox::{Changes, DEFAULT_WINDOW, Next, Outbox};
use crate::{DEFAULT_HEARTBEAT_MS, MISSED_HEARTBEATS, speaks};

/// What the hub's end needs to know.
#[derive(Clone, Debug)]
pub struct HubConfig {
    /// Who leads here.
    pub leadership: Leadership,
    /// Versions of the hub.
    pub versions: Versions,
    /// How often spokes send heartbeats, in milliseconds.
    pub heartbeat_ms: u32,
    /// How many commands may be under way.
    pub window: usize,
}

impl HubConfig {
    /// The defaults for a leader.
    pub const fn new(leadership: Leadership, versions: Versions) -> Self {
        Self { leadership, versions, heartbeat_ms: DEFAULT_HEARTBEAT_MS, window: DEFAULT_WINDOW }
    }
}

/// What happens to the hub's end.
#[derive(Clone, Debug)]
pub enum HubInput {
    /// The spoke has connected. It replaces a connection that is still open, which the gateway then closes.
    Connected,
    /// A frame from the present connection.
    Frame(SpokeFrame),
    /// The present connection has ended.
    Disconnected,
    /// The brain wants this of a placement. Kept, and sent when it can be.
    Command(PlacementId, Command),
    /// The brain wants nothing any more of a placement.
    Withdraw(PlacementId),
    /// An observation is durable. Repeated to a spoke that may have missed it, as long as it is the newest.
    Acknowledge {
        /// Whose observation.
        placement: PlacementId,
        /// Its epoch.
        epoch: Epoch,
        /// Boot of the agent that observed it.
        boot: u64,
        /// Version within the boot.
        version: u64,
    },
    /// The deadline has come.
    Tick,
}

/// What the hub's end asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HubOutput {
    /// Send this on the present connection.
    Send(HubFrame),
    /// Tell the brain.
    Event(SessionEvent),
    /// Close the present connection, after what was to be sent before. The machine has already let go of it.
    Close,
}

/// What the brain learns of a spoke. `Connected` opens a session and `Disconnected` closes it; in between, every
/// entry that the spoke has is `Observed` at least once before `InventoryComplete`, whether it travelled again
/// or was known to be unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// A session is up and its spoke obeys this hub. Nothing is known of its inventory yet.
    Connected {
        /// Protocol of the spoke.
        protocol: u32,
        /// Its versions.
        versions: Versions,
        /// Counts the agent's starts.
        boot: u64,
        /// UID of the spoke's kube-system namespace, as it reports it.
        cluster_uid: Arc<str>,
        /// Its wall clock less ours, in milliseconds (it includes the way here).
        clock_offset_ms: i64,
    },
    /// An entry is new, has changed, or is confirmed in this session.
    Observed(PlacementId, Observation),
    /// The spoke no longer has this entry.
    Forgotten(PlacementId),
    /// Every entry it has has been observed.
    InventoryComplete,
    /// Its capacity.
    Report(Report),
    /// A heartbeat, with the spoke's wall clock when it was sent.
    Heartbeat(Millis),
    /// The session has ended: Prepare and Start commands are void. With the reason, if one side gave any.
    Disconnected(Option<Goodbye>),
    /// No session came about, since one side refused the other.
    Refused(Goodbye),
}

/// The hub's end of the protocol with one spoke.
#[derive(Debug)]
pub struct HubSession {
    config: HubConfig,
    commands: KeyedMap<Command>,
    observations: KeyedMap<Observation>,
    /// The newest durable observation of entries that the spoke still has: (epoch, boot, version).
    durable: BTreeMap<PlacementId, (Epoch, u64, u64)>,
    heard: Millis,
    link: Link,
}

#[derive(Debug)]
enum Link {
    Down,
    AwaitHello,
    AwaitReady(Box<Opening>),
    Up(Box<Up>),
}

/// Between the exchange of hashes and `Ready`.
#[derive(Debug)]
struct Opening {
    hello: Hello,
    clock_offset_ms: i64,
    /// Buckets of commands that the spoke lacks.
    stale_commands: Buckets,
    /// Buckets of observations that the hub lacks.
    stale_observations: Buckets,
    changes: Changes,
}

#[derive(Debug)]
struct Up {
    outbox: Outbox,
    /// Entries whose bucket differs and which have not come again: gone, when the inventory is complete without
    /// them.
    unconfirmed: BTreeSet<PlacementId>,
    /// What the brain has heard of in this session; dropped when the inventory is complete.
    announced: Option<BTreeSet<PlacementId>>,
}

impl HubSession {
    /// An end without connection and with empty maps.
    pub const fn new(config: HubConfig) -> Self {
        Self {
            config,
            commands: KeyedMap::new(),
            observations: KeyedMap::new(),
            durable: BTreeMap::new(),
            heard: Millis(0),
            link: Link::Down,
        }
    }

    /// The commands in force, by placement.
    pub fn commands(&self) -> impl Iterator<Item = (&PlacementId, &Command)> {
        self.commands.iter()
    }

    /// What is known of the spoke's inventory, by placement.
    pub fn observations(&self) -> impl Iterator<Item = (&PlacementId, &Observation)> {
        self.observations.iter()
    }

    /// When to send [`HubInput::Tick`], on the monotonic clock: the end of the spoke's patience.
    pub fn next_deadline(&self) -> Option<Millis> {
        match self.link {
            Link::Down => None,
            Link::AwaitHello | Link::AwaitReady(_) | Link::Up(_) => Some(self.heard.plus(self.patience_ms())),
        }
    }

    fn patience_ms(&self) -> i64 {
        i64::from(self.config.heartbeat_ms).saturating_mul(i64::from(MISSED_HEARTBEATS))
    }

    /// Takes in one event and says what to do about it, in order.
    pub fn handle(&mut self, input: HubInput, now: Now) -> Vec<HubOutput> {
        let mut out = Vec::new();
        match input {
            HubInput::Connected => {
                self.leave(None, &mut out);
                self.heard = now.mono;
                self.link = Link::AwaitHello;
            }
            HubInput::Disconnected => self.leave(None, &mut out),
            HubInput::Frame(frame) => {
                self.heard = now.mono;
                self.frame(frame, now, &mut out);
            }
            HubInput::Command(placement, command) => self.command(&placement, command),
            HubInput::Withdraw(placement) => self.withdraw(&placement, &mut out),
            HubInput::Acknowledge { placement, epoch, boot, version } => {
                self.acknowledge(placement, (epoch, boot, version), &mut out);
            }
            HubInput::Tick => self.tick(now, &mut out),
        }
        self.pump(&mut out);
        out
    }

    fn tick(&mut self, now: Now, out: &mut Vec<HubOutput>) {
        if self.next_deadline().is_some_and(|deadline| now.mono >= deadline) {
            self.refuse(Reason::NoAnswer, "nothing was heard for three heartbeats", out);
        }
    }

    fn command(&mut self, placement: &PlacementId, command: Command) {
        if !self.commands.insert(placement, command) {
            return;
        }
        match &mut self.link {
            Link::Down | Link::AwaitHello => {}
            Link::AwaitReady(opening) => opening.changes.set(placement),
            Link::Up(up) => up.outbox.changed(placement),
        }
    }

    fn withdraw(&mut self, placement: &PlacementId, out: &mut Vec<HubOutput>) {
        if !self.commands.remove(placement) {
            return;
        }
        match &mut self.link {
            Link::Down | Link::AwaitHello => {}
            Link::AwaitReady(opening) => opening.changes.gone(placement),
            Link::Up(up) => {
                up.outbox.removed(placement);
                out.push(HubOutput::Send(HubFrame::Withdraw(placement.clone())));
            }
        }
    }

    fn acknowledge(&mut self, placement: PlacementId, which: (Epoch, u64, u64), out: &mut Vec<HubOutput>) {
        if self.observations.get(&placement).map(stamp) != Some(which) {
            return;
        }
        if matches!(self.link, Link::Up(_)) {
            let (epoch, boot, version) = which;
            out.push(HubOutput::Send(HubFrame::Acknowledge(placement.clone(), epoch, boot, version)));
        }
        self.durable.insert(placement, which);
    }

    fn frame(&mut self, frame: SpokeFrame, now: Now, out: &mut Vec<HubOutput>) {
        match (&mut self.link, frame) {
            (Link::Down, _) => {}
            (_, SpokeFrame::Goodbye(goodbye)) => {
                self.leave(Some(goodbye), out);
                out.push(HubOutput::Close);
            }
            (Link::AwaitHello, SpokeFrame::Hello(hello)) => self.hello(hello, now, out),
            (Link::AwaitReady(_), SpokeFrame::Ready) => self.ready(out),
            (Link::Up(_), SpokeFrame::Observe(placement, observation)) => {
                self.observe(placement, observation, out);
            }
            (Link::Up(_), SpokeFrame::Forget(placement)) => self.forget(&placement, out),
            (Link::Up(_), SpokeFrame::InventoryComplete) => self.inventory_complete(out),
            (Link::Up(up), SpokeFrame::CommandReceived(placement, _revision)) => {
                up.outbox.received(&placement);
            }
            (Link::Up(_), SpokeFrame::Report(report)) => {
                out.push(HubOutput::Event(SessionEvent::Report(report)));
            }
            (Link::Up(_), SpokeFrame::Heartbeat(number, sent)) => {
                out.push(HubOutput::Send(HubFrame::HeartbeatAck(number)));
                out.push(HubOutput::Event(SessionEvent::Heartbeat(sent)));
            }
            (Link::AwaitHello | Link::AwaitReady(_) | Link::Up(_), other) => {
                self.refuse(Reason::ProtocolViolation, &format!("{} out of turn", other.name()), out);
            }
        }
    }

    fn hello(&mut self, hello: Hello, now: Now, out: &mut Vec<HubOutput>) {
        if !speaks(PROTOCOL, hello.protocol) {
            let detail =
                format!("the hub speaks protocol {PROTOCOL} and the one before, not {}", hello.protocol);
            return self.refuse(Reason::UnsupportedProtocol, &detail, out);
        }
        // The spoke will judge for itself; this only saves it from a leader that already knows to be outdated.
        if hello.floor.judge(&self.config.leadership) == Claim::Stale {
            return self.refuse(Reason::StaleTerm, "the spoke has obeyed a later leader", out);
        }
        let (commands, observations) = (self.commands.hashes(), self.observations.hashes());
        self.link = Link::AwaitReady(Box::new(Opening {
            clock_offset_ms: hello.clock.since(now.wall),
            stale_commands: Buckets::differing(&commands, &hello.commands),
            stale_observations: Buckets::differing(&observations, &hello.observations),
            changes: Changes::default(),
            hello,
        }));
        out.push(HubOutput::Send(HubFrame::Welcome(Welcome {
            protocol: PROTOCOL,
            leadership: self.config.leadership.clone(),
            versions: self.config.versions.clone(),
            heartbeat_ms: self.config.heartbeat_ms,
            observations,
            commands,
        })));
    }

    fn ready(&mut self, out: &mut Vec<HubOutput>) {
        let Link::AwaitReady(opening) = mem::replace(&mut self.link, Link::Down) else {
            return;
        };
        let Opening { hello, clock_offset_ms, stale_commands, stale_observations, mut changes } = *opening;
        changes.set.extend(self.commands.keys_in(stale_commands).cloned());
        out.push(HubOutput::Event(SessionEvent::Connected {
            protocol: hello.protocol,
            versions: hello.versions,
            boot: hello.boot,
            cluster_uid: hello.cluster_uid,
            clock_offset_ms,
        }));
        out.extend(changes.gone.into_iter().map(|placement| HubOutput::Send(HubFrame::Withdraw(placement))));
        self.link = Link::Up(Box::new(Up {
            outbox: Outbox::new(self.config.window, changes.set),
            unconfirmed: self.observations.keys_in(stale_observations).cloned().collect(),
            announced: Some(BTreeSet::new()),
        }));
    }

    fn observe(&mut self, placement: PlacementId, observation: Observation, out: &mut Vec<HubOutput>) {
        let Link::Up(up) = &mut self.link else {
            return;
        };
        let (boot, version) = (observation.boot, observation.version);
        out.push(HubOutput::Send(HubFrame::ObservationReceived(placement.clone(), boot, version)));
        up.unconfirmed.remove(&placement);
        let news = up.announced.as_mut().is_some_and(|announced| announced.insert(placement.clone()));
        if self.durable.get(&placement).is_some_and(|which| *which != stamp(&observation)) {
            self.durable.remove(&placement);
        }
        let changed = self.observations.insert(&placement, observation.clone());
        if changed || news {
            out.push(HubOutput::Event(SessionEvent::Observed(placement, observation)));
        }
    }

    fn forget(&mut self, placement: &PlacementId, out: &mut Vec<HubOutput>) {
        if let Link::Up(up) = &mut self.link {
            up.unconfirmed.remove(placement);
        }
        self.durable.remove(placement);
        if self.observations.remove(placement) {
            out.push(HubOutput::Event(SessionEvent::Forgotten(placement.clone())));
        }
    }

    /// Drops what did not come again, confirms what did not need to, and repeats acknowledgements that may have
    /// been lost with the last connection.
    fn inventory_complete(&mut self, out: &mut Vec<HubOutput>) {
        let Link::Up(up) = &mut self.link else {
            return;
        };
        let (Some(announced), unconfirmed) = (up.announced.take(), mem::take(&mut up.unconfirmed)) else {
            return self.refuse(Reason::ProtocolViolation, "InventoryComplete came twice", out);
        };
        for placement in unconfirmed {
            self.forget(&placement, out);
        }
        for (placement, observation) in self.observations.iter().filter(|(key, _)| !announced.contains(*key))
        {
            out.push(HubOutput::Event(SessionEvent::Observed(placement.clone(), observation.clone())));
        }
        out.push(HubOutput::Event(SessionEvent::InventoryComplete));
        for (placement, which) in &self.durable {
            if self.observations.get(placement).is_some_and(|o| stamp(o) == *which && is_settled(&o.state)) {
                let (epoch, boot, version) = *which;
                out.push(HubOutput::Send(HubFrame::Acknowledge(placement.clone(), epoch, boot, version)));
            }
        }
    }

    fn refuse(&mut self, reason: Reason, detail: &str, out: &mut Vec<HubOutput>) {
        let goodbye = Goodbye {
            reason,
            detail: detail.into(),
            retry_after_ms: 0,
            incarnation: self.config.leadership.incarnation,
        };
        out.push(HubOutput::Send(HubFrame::Goodbye(goodbye.clone())));
        self.leave(Some(goodbye), out);
        out.push(HubOutput::Close);
    }

    fn leave(&mut self, goodbye: Option<Goodbye>, out: &mut Vec<HubOutput>) {
        match (mem::replace(&mut self.link, Link::Down), goodbye) {
            (Link::Up(_), goodbye) => out.push(HubOutput::Event(SessionEvent::Disconnected(goodbye))),
            (Link::AwaitHello | Link::AwaitReady(_), Some(goodbye)) => {
                out.push(HubOutput::Event(SessionEvent::Refused(goodbye)));
            }
            (Link::Down | Link::AwaitHello | Link::AwaitReady(_), _) => {}
        }
    }

    /// Sends commands as far as the window allows.
    fn pump(&mut self, out: &mut Vec<HubOutput>) {
        let Link::Up(up) = &mut self.link else {
            return;
        };
        let commands = &self.commands;
        while let Some(next) = up.outbox.next(|key| commands.get(key).map_or(0, Command::weight)) {
            let frame = match next {
                Next::Complete => HubFrame::CommandsComplete,
                Next::Entry(key) => match commands.get(&key) {
                    Some(command) => HubFrame::Command(key, command.clone()),
                    None => continue,
                },
            };
            out.push(HubOutput::Send(frame));
        }
    }
}

const fn stamp(observation: &Observation) -> (Epoch, u64, u64) {
    (observation.epoch, observation.boot, observation.version)
}

/// Whether the spoke waits for the acknowledgement of this state before it lets go of the entry.
const fn is_settled(state: &CopyState) -> bool {
    match state {
        CopyState::Refused(_) | CopyState::Stopped(_) | CopyState::Vanished => true,
        CopyState::Live(CopyStatus { terminal, .. }) => terminal.is_some(),
        CopyState::Accepted | CopyState::Stopping(_) => false,
    }
}
