//! Keeps the lease while the process lives, and gives it back last of all.

use fairlead_runtime::TaskError;
use fairlead_runtime::lease::{Claim, Lost};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The lease, kept in the background.
#[derive(Debug)]
pub(crate) struct Keeper {
    stop: CancellationToken,
    keeping: JoinHandle<Claim>,
}

/// Hears when the lease is lost.
#[derive(Debug)]
pub(crate) struct Watchdog(oneshot::Receiver<Lost>);

impl Keeper {
    /// Starts keeping.
    pub(crate) fn start(mut claim: Claim) -> (Self, Watchdog) {
        let (stop, (lost, heard)) = (CancellationToken::new(), oneshot::channel());
        let stopped = stop.clone();
        let keeping = tokio::spawn(async move {
            if let Err(why) = claim.keep(&stopped).await {
                // Nobody listens any more only when the process is stopping anyway.
                lost.send(why).unwrap_or_default();
            }
            claim
        });
        (Self { stop, keeping }, Watchdog(heard))
    }

    /// Stops keeping and gives the lease back. To be called when no effect is under way any more.
    pub(crate) async fn release(self) {
        self.stop.cancel();
        if let Ok(claim) = self.keeping.await {
            claim.release().await;
        }
    }
}

impl Watchdog {
    /// Ends with an error when the lease is lost.
    pub(crate) async fn watch(self, draining: CancellationToken) -> Result<(), TaskError> {
        tokio::select! {
            () = draining.cancelled() => Ok(()),
            lost = self.0 => Err(lost.map_or_else(|_stopped| "the lease is no longer kept".into(), TaskError::from)),
        }
    }
}
