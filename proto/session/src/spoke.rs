//! The spoke's end.

use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;

use fairlead_model::{Claim, Epoch, Floor, Leadership, Millis, Nonce, Now, PlacementId, Reason};

use crate::keyed::{Buckets, KeyedMap};
use crate::message::{
    BucketHashes, Command, Goodbye, Hello, HubFrame, Observation, PROTOCOL, Report, SpokeFrame, Versions,
    Welcome,
};
use crate::outbox::{Changes, DEFAULT_WINDOW, Next, Outbox};
use crate::{HANDSHAKE_MS, MISSED_HEARTBEATS, speaks};

/// What the spoke's end needs to know.
#[derive(Clone, Debug)]
pub struct SpokeConfig {
    /// The floor as it is stored.
    pub floor: Floor,
    /// Counts the agent's starts.
    pub boot: u64,
    /// Versions of the spoke.
    pub versions: Versions,
    /// UID of its kube-system namespace.
    pub cluster_uid: Arc<str>,
    /// How many observations may be under way.
    pub window: usize,
}

impl SpokeConfig {
    /// The defaults for an agent with this floor and boot count.
    pub fn new(floor: Floor, boot: u64) -> Self {
        Self { floor, boot, versions: Versions::default(), cluster_uid: "".into(), window: DEFAULT_WINDOW }
    }
}

/// What happens to the spoke's end.
#[derive(Clone, Debug)]
pub enum SpokeInput {
    /// The hub has been reached.
    Connected,
    /// A frame from the present connection.
    Frame(HubFrame),
    /// The present connection has ended.
    Disconnected,
    /// The spoke has this of a placement.
    Observe(PlacementId, Observation),
    /// It has nothing of a placement any more.
    Forget(PlacementId),
    /// Its capacity; replaces earlier reports.
    Report(Report),
    /// This floor is durable. A floor that could not be stored is answered with `Disconnected`, after closing
    /// the connection.
    FloorStored(Floor),
    /// The deadline has come.
    Tick,
}

/// What the spoke's end asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpokeOutput {
    /// Send this on the present connection.
    Send(SpokeFrame),
    /// Make this floor durable, then say [`SpokeInput::FloorStored`].
    StoreFloor(Floor),
    /// A session is up under this leader: orders that follow are in force.
    Established(Leadership),
    /// This is in force now: new, changed, or confirmed by a new session. Idempotent by placement and epoch.
    Command(PlacementId, Command),
    /// The hub wants nothing of this placement any more. Never an order to delete a copy.
    Withdrawn(PlacementId),
    /// The session has ended: Prepare and Start that were received must not be acted on until they are handed
    /// over again.
    Void,
    /// The newest observation of a placement is durable on the hub.
    Acknowledged {
        /// Whose observation.
        placement: PlacementId,
        /// Its epoch.
        epoch: Epoch,
        /// The boot in which it was observed.
        boot: u64,
        /// Version within the boot.
        version: u64,
    },
    /// Close the present connection, after what was to be sent before, for this reason. The machine has already
    /// let go of it.
    Close(Goodbye),
}

/// The spoke's end of the protocol.
#[derive(Debug)]
pub struct SpokeSession {
    config: SpokeConfig,
    /// The highest leadership that may be durable: what was asked to be stored counts at once.
    asked: Floor,
    observations: KeyedMap<Observation>,
    commands: KeyedMap<Command>,
    report: Option<Report>,
    link: Link,
}

#[derive(Debug)]
enum Link {
    Down,
    AwaitWelcome(Box<Opening>),
    AwaitFloor(Box<Joining>),
    Up(Box<Up>),
}

/// Between `Hello` and `Welcome`.
#[derive(Debug)]
struct Opening {
    deadline: Millis,
    observations: BucketHashes,
    commands: BucketHashes,
    changes: Changes,
}

/// Between `Welcome` and the durable floor.
#[derive(Debug)]
struct Joining {
    leadership: Leadership,
    heartbeat_ms: u32,
    stale_observations: Buckets,
    stale_commands: Buckets,
    changes: Changes,
}

#[derive(Debug)]
struct Up {
    outbox: Outbox,
    /// Commands whose bucket differs and which have not come again.
    unconfirmed: BTreeSet<PlacementId>,
    interval_ms: u32,
    next_beat: Millis,
    sent: u64,
    answered: u64,
}

impl SpokeSession {
    /// An end without connection and with empty maps.
    pub fn new(config: SpokeConfig) -> Self {
        Self {
            asked: config.floor.clone(),
            config,
            observations: KeyedMap::new(),
            commands: KeyedMap::new(),
            report: None,
            link: Link::Down,
        }
    }

    /// The floor as far as it is durable.
    pub const fn floor(&self) -> &Floor {
        &self.config.floor
    }

    /// The commands that are remembered, by placement. In force only between `Established` and `Void`.
    pub fn commands(&self) -> impl Iterator<Item = (&PlacementId, &Command)> {
        self.commands.iter()
    }

    /// The spoke's inventory, by placement.
    pub fn observations(&self) -> impl Iterator<Item = (&PlacementId, &Observation)> {
        self.observations.iter()
    }

    /// When to send [`SpokeInput::Tick`], on the monotonic clock.
    pub fn next_deadline(&self) -> Option<Millis> {
        match &self.link {
            // The wait for the floor is the agent's; the hub ends it by its own patience.
            Link::Down | Link::AwaitFloor(_) => None,
            Link::AwaitWelcome(opening) => Some(opening.deadline),
            Link::Up(up) => Some(up.next_beat),
        }
    }

    /// Takes in one event and says what to do about it, in order.
    pub fn handle(&mut self, input: SpokeInput, now: Now) -> Vec<SpokeOutput> {
        let mut out = Vec::new();
        match input {
            SpokeInput::Connected => self.connected(now, &mut out),
            SpokeInput::Disconnected => self.leave(&mut out),
            SpokeInput::Frame(frame) => self.frame(frame, now, &mut out),
            SpokeInput::Observe(placement, observation) => self.observe(&placement, observation),
            SpokeInput::Forget(placement) => self.forget(&placement, &mut out),
            SpokeInput::Report(report) => {
                if matches!(self.link, Link::Up(_)) {
                    out.push(SpokeOutput::Send(SpokeFrame::Report(report.clone())));
                }
                self.report = Some(report);
            }
            SpokeInput::FloorStored(floor) => self.floor_stored(floor, now, &mut out),
            SpokeInput::Tick => self.tick(now, &mut out),
        }
        self.pump(&mut out);
        out
    }

    fn connected(&mut self, now: Now, out: &mut Vec<SpokeOutput>) {
        self.leave(out);
        let (observations, commands) = (self.observations.hashes(), self.commands.hashes());
        out.push(SpokeOutput::Send(SpokeFrame::Hello(Hello {
            protocol: PROTOCOL,
            floor: self.config.floor.clone(),
            boot: self.config.boot,
            versions: self.config.versions.clone(),
            cluster_uid: Arc::clone(&self.config.cluster_uid),
            clock: now.wall,
            observations: observations.clone(),
            commands: commands.clone(),
        })));
        let deadline = now.mono.plus(HANDSHAKE_MS);
        let changes = Changes::default();
        self.link = Link::AwaitWelcome(Box::new(Opening { deadline, observations, commands, changes }));
    }

    fn observe(&mut self, placement: &PlacementId, observation: Observation) {
        if !self.observations.insert(placement, observation) {
            return;
        }
        match &mut self.link {
            Link::Down => {}
            Link::AwaitWelcome(opening) => opening.changes.set(placement),
            Link::AwaitFloor(joining) => joining.changes.set(placement),
            Link::Up(up) => up.outbox.changed(placement),
        }
    }

    fn forget(&mut self, placement: &PlacementId, out: &mut Vec<SpokeOutput>) {
        if !self.observations.remove(placement) {
            return;
        }
        match &mut self.link {
            Link::Down => {}
            Link::AwaitWelcome(opening) => opening.changes.gone(placement),
            Link::AwaitFloor(joining) => joining.changes.gone(placement),
            Link::Up(up) => {
                up.outbox.removed(placement);
                out.push(SpokeOutput::Send(SpokeFrame::Forget(placement.clone())));
            }
        }
    }

    fn tick(&mut self, now: Now, out: &mut Vec<SpokeOutput>) {
        if self.next_deadline().is_none_or(|deadline| now.mono < deadline) {
            return;
        }
        match &mut self.link {
            Link::Down | Link::AwaitFloor(_) => {}
            Link::AwaitWelcome(_) => self.refuse(Reason::NoAnswer, "the hub did not answer the hello", out),
            Link::Up(up) if up.sent.saturating_sub(up.answered) >= u64::from(MISSED_HEARTBEATS) => {
                self.refuse(Reason::NoAnswer, "the hub has not answered three heartbeats", out);
            }
            Link::Up(up) => up.beat(now, out),
        }
    }

    fn frame(&mut self, frame: HubFrame, now: Now, out: &mut Vec<SpokeOutput>) {
        match (&mut self.link, frame) {
            (Link::Down, _) => {}
            (_, HubFrame::Goodbye(goodbye)) => {
                self.leave(out);
                out.push(SpokeOutput::Close(goodbye));
            }
            (Link::AwaitWelcome(_), HubFrame::Welcome(welcome)) => self.welcome(welcome, now, out),
            (Link::Up(up), HubFrame::Command(placement, command)) => {
                up.unconfirmed.remove(&placement);
                let received = SpokeFrame::CommandReceived(placement.clone(), command.revision);
                out.push(SpokeOutput::Send(received));
                self.commands.insert(&placement, command.clone());
                out.push(SpokeOutput::Command(placement, command));
            }
            (Link::Up(up), HubFrame::Withdraw(placement)) => {
                up.unconfirmed.remove(&placement);
                self.withdrawn(placement, out);
            }
            (Link::Up(up), HubFrame::CommandsComplete) => {
                for placement in mem::take(&mut up.unconfirmed) {
                    self.withdrawn(placement, out);
                }
            }
            (Link::Up(up), HubFrame::ObservationReceived(placement, _boot, _version)) => {
                up.outbox.received(&placement);
            }
            (Link::Up(_), HubFrame::Acknowledge(placement, epoch, boot, version)) => {
                self.acknowledged(placement, (epoch, boot, version), out);
            }
            (Link::Up(up), HubFrame::HeartbeatAck(number)) => {
                up.answered = up.answered.max(number.min(up.sent));
            }
            (Link::AwaitWelcome(_) | Link::AwaitFloor(_) | Link::Up(_), other) => {
                self.refuse(Reason::ProtocolViolation, &format!("{} out of turn", other.name()), out);
            }
        }
    }

    fn withdrawn(&mut self, placement: PlacementId, out: &mut Vec<SpokeOutput>) {
        if self.commands.remove(&placement) {
            out.push(SpokeOutput::Withdrawn(placement));
        }
    }

    /// Passes on an acknowledgement of the newest observation; of an older one there is nothing to do.
    fn acknowledged(&self, placement: PlacementId, which: (Epoch, u64, u64), out: &mut Vec<SpokeOutput>) {
        let newest = self.observations.get(&placement).map(|o| (o.epoch, o.boot, o.version));
        if newest == Some(which) {
            let (epoch, boot, version) = which;
            out.push(SpokeOutput::Acknowledged { placement, epoch, boot, version });
        }
    }

    fn welcome(&mut self, welcome: Welcome, now: Now, out: &mut Vec<SpokeOutput>) {
        if !speaks(welcome.protocol, PROTOCOL) {
            let detail = format!("the hub speaks protocol {}, this spoke {PROTOCOL}", welcome.protocol);
            return self.refuse(Reason::UnsupportedProtocol, &detail, out);
        }
        match self.asked.judge(&welcome.leadership) {
            Claim::Stale => self.refuse(Reason::StaleTerm, "this spoke has obeyed a later leader", out),
            Claim::SplitBrain => {
                // An empty nonce is nobody's: from now on neither claimant of this term is obeyed, nor after a
                // restart of the agent.
                self.asked.nonce = Nonce::default();
                out.push(SpokeOutput::StoreFloor(self.asked.clone()));
                self.refuse(Reason::SplitBrain, "two hubs claim one term; neither is obeyed", out);
            }
            Claim::Current if self.asked == self.config.floor => {
                self.join(welcome);
                self.enter(now, out);
            }
            Claim::Current | Claim::Newer => {
                self.asked = Floor::from(&welcome.leadership);
                out.push(SpokeOutput::StoreFloor(self.asked.clone()));
                self.join(welcome);
            }
        }
    }

    fn join(&mut self, welcome: Welcome) {
        let Link::AwaitWelcome(opening) = mem::replace(&mut self.link, Link::Down) else {
            return;
        };
        self.link = Link::AwaitFloor(Box::new(Joining {
            stale_observations: Buckets::differing(&opening.observations, &welcome.observations),
            stale_commands: Buckets::differing(&opening.commands, &welcome.commands),
            changes: opening.changes,
            leadership: welcome.leadership,
            heartbeat_ms: welcome.heartbeat_ms,
        }));
    }

    fn floor_stored(&mut self, floor: Floor, now: Now, out: &mut Vec<SpokeOutput>) {
        self.config.floor = floor;
        let wanted = match &self.link {
            Link::AwaitFloor(joining) => Floor::from(&joining.leadership),
            Link::Down | Link::AwaitWelcome(_) | Link::Up(_) => return,
        };
        if wanted == self.config.floor {
            self.enter(now, out);
        }
    }

    /// The floor is durable: from here on the hub's orders count.
    fn enter(&mut self, now: Now, out: &mut Vec<SpokeOutput>) {
        let Link::AwaitFloor(joining) = mem::replace(&mut self.link, Link::Down) else {
            return;
        };
        let Joining { leadership, heartbeat_ms, stale_observations, stale_commands, mut changes } = *joining;
        out.push(SpokeOutput::Send(SpokeFrame::Ready));
        out.push(SpokeOutput::Established(leadership));
        out.extend(changes.gone.into_iter().map(|gone| SpokeOutput::Send(SpokeFrame::Forget(gone))));
        changes.set.extend(self.observations.keys_in(stale_observations).cloned());
        for (placement, command) in self.commands.iter().filter(|(key, _)| !stale_commands.contains(key)) {
            out.push(SpokeOutput::Command(placement.clone(), command.clone()));
        }
        let mut up = Up {
            outbox: Outbox::new(self.config.window, changes.set),
            unconfirmed: self.commands.keys_in(stale_commands).cloned().collect(),
            interval_ms: heartbeat_ms.max(1),
            next_beat: now.mono,
            sent: 0,
            answered: 0,
        };
        up.beat(now, out);
        self.link = Link::Up(Box::new(up));
        out.extend(self.report.clone().map(|report| SpokeOutput::Send(SpokeFrame::Report(report))));
    }

    fn refuse(&mut self, reason: Reason, detail: &str, out: &mut Vec<SpokeOutput>) {
        let goodbye = Goodbye {
            reason,
            detail: detail.into(),
            retry_after_ms: 0,
            incarnation: self.config.floor.incarnation,
        };
        out.push(SpokeOutput::Send(SpokeFrame::Goodbye(goodbye.clone())));
        self.leave(out);
        out.push(SpokeOutput::Close(goodbye));
    }

    fn leave(&mut self, out: &mut Vec<SpokeOutput>) {
        if let Link::Up(_) = mem::replace(&mut self.link, Link::Down) {
            out.push(SpokeOutput::Void);
        }
    }

    /// Sends observations as far as the window allows.
    fn pump(&mut self, out: &mut Vec<SpokeOutput>) {
        let Link::Up(up) = &mut self.link else {
            return;
        };
        let observations = &self.observations;
        while let Some(next) = up.outbox.next(|key| observations.get(key).map_or(0, Observation::weight)) {
            let frame = match next {
                Next::Complete => SpokeFrame::InventoryComplete,
                Next::Entry(key) => match observations.get(&key) {
                    Some(observation) => SpokeFrame::Observe(key, observation.clone()),
                    None => continue,
                },
            };
            out.push(SpokeOutput::Send(frame));
        }
    }
}

impl Up {
    fn beat(&mut self, now: Now, out: &mut Vec<SpokeOutput>) {
        self.sent = self.sent.saturating_add(1);
        self.next_beat = now.mono.plus(i64::from(self.interval_ms));
        out.push(SpokeOutput::Send(SpokeFrame::Heartbeat(self.sent, now.wall)));
    }
}
