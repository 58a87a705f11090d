//! Questions to the brain: asked from other tasks, answered between its turns.

use std::fmt;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

/// How many questions may wait; more have to wait for that.
const WAITING: usize = 64;

type Question<C> = Box<dyn FnOnce(&C) + Send>;

/// The core's end.
pub struct Questions<C> {
    receiver: Option<mpsc::Receiver<Question<C>>>,
}

/// Asks the core.
pub struct Asker<C> {
    sender: Arc<mpsc::Sender<Question<C>>>,
}

/// The core does not run any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the hub is stopping")]
pub struct Stopping;

/// Both ends.
pub fn questions<C>() -> (Asker<C>, Questions<C>) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (Asker { sender: Arc::new(sender) }, Questions { receiver: Some(receiver) })
}

impl<C: 'static> Asker<C> {
    /// Asks, and waits for the answer. The question must be quick: nothing is decided meanwhile.
    pub async fn ask<A: Send + 'static>(
        &self,
        question: impl FnOnce(&C) -> A + Send + 'static,
    ) -> Result<A, Stopping> {
        let (answer, answered) = oneshot::channel();
        let boxed: Question<C> = Box::new(move |core| {
            // Whoever asked may have gone away.
            drop(answer.send(question(core)));
        });
        self.sender.send(boxed).await.map_err(|_closed| Stopping)?;
        answered.await.map_err(|_dropped| Stopping)
    }
}

impl<C> Questions<C> {
    /// Nobody asks.
    pub(super) const fn nobodys() -> Self {
        Self { receiver: None }
    }

    /// Waits for the next one; for ever when nobody can ask. May be dropped while it waits: nothing is lost then.
    pub(super) async fn next(&mut self) -> Question<C> {
        if let Some(receiver) = &mut self.receiver
            && let Some(question) = receiver.recv().await
        {
            return question;
        }
        self.receiver = None;
        std::future::pending().await
    }
}

impl<C> Clone for Asker<C> {
    fn clone(&self) -> Self {
        Self { sender: Arc::clone(&self.sender) }
    }
}

impl<C> fmt::Debug for Asker<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asker")
    }
}

impl<C> fmt::Debug for Questions<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Questions")
    }
}
