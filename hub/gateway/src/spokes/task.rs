//! The task of one spoke: it owns the session, whatever connections come and go.

use std::time::Duration;

use fairlead_controller::brain::Input;
use fairlead_controller::ports::{Acknowledgement, SpokeEvent};
use fairlead_model::{Millis, PlacementId, SpokeId};
use fairlead_runtime::clock;
use fairlead_session::{Command, Goodbye, HubInput, HubOutput, HubSession, SessionEvent, SpokeFrame};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::connection::{Arrival, Connection, Turn};

/// What a spoke's task is told.
#[derive(Debug)]
pub(super) enum Message {
    /// The brain wants this of a placement.
    Command(PlacementId, Command),
    /// The brain wants nothing of it any more.
    Withdraw(PlacementId),
    /// An observation is durable.
    Acknowledge(Acknowledgement),
    /// A connection has arrived.
    Arrive(Box<Arrival>),
    /// The spoke no longer exists.
    Cut,
}

/// Holds one spoke's session.
#[derive(Debug)]
pub(super) struct SpokeTask {
    spoke: SpokeId,
    session: HubSession,
    messages: mpsc::UnboundedReceiver<Message>,
    inbox: mpsc::Sender<Input>,
    connection: Option<Connection>,
}

impl SpokeTask {
    pub(super) const fn new(
        spoke: SpokeId,
        session: HubSession,
        messages: mpsc::UnboundedReceiver<Message>,
        inbox: mpsc::Sender<Input>,
    ) -> Self {
        Self { spoke, session, messages, inbox, connection: None }
    }

    /// Runs until cancelled, or until nobody can send messages.
    pub(super) async fn run(mut self, cancel: CancellationToken) {
        loop {
            let deadline = self.session.next_deadline();
            tokio::select! {
                () = cancel.cancelled() => break,
                message = self.messages.recv() => match message {
                    Some(message) => self.message(message).await,
                    None => break,
                },
                turn = turn(self.connection.as_mut()) => self.turn(turn).await,
                () = until(deadline) => self.feed(HubInput::Tick).await,
            }
        }
        if let Some(connection) = self.connection.take() {
            connection.close();
        }
    }

    async fn message(&mut self, message: Message) {
        match message {
            Message::Command(placement, command) => self.feed(HubInput::Command(placement, command)).await,
            Message::Withdraw(placement) => self.feed(HubInput::Withdraw(placement)).await,
            Message::Acknowledge(Acknowledgement { placement, epoch, boot, version }) => {
                self.feed(HubInput::Acknowledge { placement, epoch, boot, version }).await;
            }
            Message::Arrive(arrival) => self.arrive(*arrival).await,
            Message::Cut => {
                if let Some(connection) = self.connection.take() {
                    connection.cut();
                    self.feed(HubInput::Disconnected).await;
                }
            }
        }
    }

    /// Make before break: the old connection goes only now that the new one has said hello.
    async fn arrive(&mut self, arrival: Arrival) {
        let old = self.connection.take();
        self.feed(HubInput::Connected).await;
        if let Some(old) = old {
            info!(spoke = %self.spoke, "a new connection replaces the old one");
            old.close();
        }
        self.connection = Some(Connection::new(arrival.io, arrival.certificate_expires));
        self.feed(HubInput::Frame(arrival.first)).await;
    }

    async fn turn(&mut self, turn: Turn) {
        match turn {
            Turn::Frame(frame) => {
                self.crash_points(&frame);
                self.feed(HubInput::Frame(*frame)).await;
            }
            Turn::Sent => {}
            Turn::Ended => {
                self.connection = None;
                self.feed(HubInput::Disconnected).await;
            }
        }
    }

    async fn feed(&mut self, input: HubInput) {
        for output in self.session.handle(input, clock::now()) {
            match output {
                HubOutput::Send(frame) => {
                    if let Some(connection) = &mut self.connection {
                        connection.send(frame);
                    }
                }
                HubOutput::Event(event) => self.tell(event).await,
                HubOutput::Close => {
                    if let Some(connection) = self.connection.take() {
                        connection.close();
                    }
                }
            }
        }
    }

    /// Tells the brain, waiting where its inbox is full: then the spoke waits, too.
    async fn tell(&self, event: SessionEvent) {
        self.log(&event);
        let Some(event) = self.translate(event) else { return };
        if self.inbox.send(Input::Spoke(self.spoke.clone(), event)).await.is_err() {
            warn!(spoke = %self.spoke, "the brain has stopped");
        }
    }

    fn log(&self, event: &SessionEvent) {
        match event {
            SessionEvent::Connected { protocol, versions, boot, clock_offset_ms, .. } => {
                let agent = &*versions.fairlead;
                info!(spoke = %self.spoke, protocol, boot, clock_offset_ms, agent, "connected");
            }
            SessionEvent::Disconnected(goodbye) => self.log_end("disconnected", goodbye.as_ref()),
            SessionEvent::Refused(goodbye) => self.log_end("no session came about", Some(goodbye)),
            SessionEvent::Observed(..)
            | SessionEvent::Forgotten(_)
            | SessionEvent::InventoryComplete
            | SessionEvent::Report(_)
            | SessionEvent::Heartbeat(_) => {}
        }
    }

    fn log_end(&self, what: &'static str, goodbye: Option<&Goodbye>) {
        let reason = goodbye.map(|goodbye| goodbye.reason.token());
        let detail = goodbye.map(|goodbye| &*goodbye.detail);
        warn!(spoke = %self.spoke, reason, detail, "{what}");
    }

    fn translate(&self, event: SessionEvent) -> Option<SpokeEvent> {
        match event {
            SessionEvent::Connected { versions, clock_offset_ms, .. } => {
                let certificate_expires =
                    self.connection.as_ref().map_or(0, |connection| connection.certificate_expires);
                Some(SpokeEvent::Connected { versions, clock_offset_ms, certificate_expires })
            }
            SessionEvent::Observed(placement, seen) => Some(SpokeEvent::Observed(placement, seen)),
            SessionEvent::Forgotten(placement) => Some(SpokeEvent::Forgotten(placement)),
            SessionEvent::InventoryComplete => Some(SpokeEvent::InventoryComplete),
            SessionEvent::Report(report) => Some(SpokeEvent::Report(report)),
            SessionEvent::Heartbeat(_) => Some(SpokeEvent::Heartbeat),
            SessionEvent::Disconnected(_) => Some(SpokeEvent::Disconnected),
            SessionEvent::Refused(_) => None,
        }
    }

    /// The spoke has received a command: only now has a Prepare or Start certainly been sent.
    #[cfg(feature = "crash-points")]
    fn crash_points(&self, frame: &SpokeFrame) {
        use fairlead_runtime::{CrashPoint, crash_point};
        use fairlead_session::Desired;

        let SpokeFrame::CommandReceived(placement, revision) = frame else { return };
        let command =
            self.session.commands().find(|(key, command)| *key == placement && command.revision == *revision);
        match command.map(|(_, command)| &command.desired) {
            Some(Desired::Prepare(_)) => crash_point(CrashPoint::HubAfterPrepare),
            Some(Desired::Start(_)) => crash_point(CrashPoint::HubAfterStart),
            Some(Desired::Keep | Desired::Stop(_)) | None => {}
        }
    }

    #[cfg(not(feature = "crash-points"))]
    #[expect(clippy::unused_self, reason = "the same shape as with crash points")]
    const fn crash_points(&self, _frame: &SpokeFrame) {}
}

async fn turn(connection: Option<&mut Connection>) -> Turn {
    match connection {
        Some(connection) => connection.turn().await,
        None => std::future::pending().await,
    }
}

async fn until(deadline: Option<Millis>) {
    match deadline {
        Some(deadline) => {
            let left = u64::try_from(deadline.since(clock::now().mono)).unwrap_or(0);
            tokio::time::sleep(Duration::from_millis(left)).await;
        }
        None => std::future::pending().await,
    }
}
