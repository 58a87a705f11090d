//! The spokes as the brain reaches them: one task each.

mod connection;
mod task;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use fairlead_controller::brain::Input;
use fairlead_controller::ports::{Acknowledgement, Spokes};
use fairlead_model::{PlacementId, SpokeId};
use fairlead_runtime::TaskError;
use fairlead_session::{Command, HubConfig, HubSession};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub(crate) use connection::Arrival;
use task::{Message, SpokeTask};

/// All spokes that the brain has spoken of or that have connected.
///
/// A spoke's task lives as long as the process: what the brain wants of a spoke is kept while that is away.
#[derive(Debug)]
pub struct SpokeTable {
    config: HubConfig,
    inbox: mpsc::Sender<Input>,
    mailboxes: Mutex<BTreeMap<SpokeId, mpsc::UnboundedSender<Message>>>,
    births: mpsc::UnboundedSender<SpokeTask>,
}

/// Runs the tasks of a [`SpokeTable`].
#[derive(Debug)]
pub struct Tender {
    births: mpsc::UnboundedReceiver<SpokeTask>,
}

impl SpokeTable {
    /// A table whose spokes speak as `config` says and whose news goes to `inbox`; and what runs their tasks.
    pub fn new(config: HubConfig, inbox: mpsc::Sender<Input>) -> (Arc<Self>, Tender) {
        let (births, born) = mpsc::unbounded_channel();
        (Arc::new(Self { config, inbox, mailboxes: Mutex::default(), births }), Tender { births: born })
    }

    /// Closes the connection of a spoke that no longer exists.
    pub fn cut(&self, spoke: &SpokeId) {
        self.post(spoke, Message::Cut);
    }

    /// Hands over a connection whose hello has arrived. It replaces the one that the spoke had.
    pub(crate) fn arrive(&self, spoke: &SpokeId, arrival: Arrival) {
        self.post(spoke, Message::Arrive(Box::new(arrival)));
    }

    /// Posts a message; the mailbox is unbounded because the brain must not wait, and bounded in effect because
    /// it holds no more than the brain knows placements, and is emptied at once.
    fn post(&self, spoke: &SpokeId, message: Message) {
        let mut mailboxes = self.mailboxes.lock().unwrap_or_else(PoisonError::into_inner);
        let mailbox = mailboxes.entry(spoke.clone()).or_insert_with(|| self.bear(spoke));
        if mailbox.send(message).is_err() {
            tracing::debug!(%spoke, "the gateway is stopping; a message is left to the next leader");
        }
    }

    fn bear(&self, spoke: &SpokeId) -> mpsc::UnboundedSender<Message> {
        let (mailbox, messages) = mpsc::unbounded_channel();
        let session = HubSession::new(self.config.clone());
        let task = SpokeTask::new(spoke.clone(), session, messages, self.inbox.clone());
        if self.births.send(task).is_err() {
            tracing::debug!(%spoke, "the gateway is stopping; no task for a new spoke");
        }
        mailbox
    }
}

impl Spokes for SpokeTable {
    fn command(&self, spoke: &SpokeId, placement: PlacementId, command: Command) {
        self.post(spoke, Message::Command(placement, command));
    }

    fn withdraw(&self, spoke: &SpokeId, placement: PlacementId) {
        self.post(spoke, Message::Withdraw(placement));
    }

    fn acknowledge(&self, spoke: &SpokeId, ack: Acknowledgement) {
        self.post(spoke, Message::Acknowledge(ack));
    }
}

impl Tender {
    /// Runs every spoke's task until cancelled. A task that panics ends the process: its session would be lost.
    pub async fn run(mut self, cancel: CancellationToken) -> Result<(), TaskError> {
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                () = cancel.cancelled() => break,
                Some(task) = self.births.recv() => {
                    tasks.spawn(task.run(cancel.clone()));
                }
                Some(ended) = tasks.join_next() => ended?,
            }
        }
        while let Some(ended) = tasks.join_next().await {
            ended?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
