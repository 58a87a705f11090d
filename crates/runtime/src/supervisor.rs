//! Tasks that cannot die unseen.

use std::borrow::Cow;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Why a task gave up.
pub type TaskError = Box<dyn std::error::Error + Send + Sync>;

/// How a process ended that did not end by order.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// A task failed.
    #[error("{task}: {error}")]
    Failed {
        /// Its name.
        task: Cow<'static, str>,
        /// Why.
        error: TaskError,
    },
    /// A task panicked.
    #[error("{task} panicked: {panic}")]
    Panicked {
        /// Its name.
        task: Cow<'static, str>,
        /// What it said.
        panic: String,
    },
    /// A task ended before it was told to.
    #[error("{0} ended by itself")]
    Ended(Cow<'static, str>),
    /// Tasks did not end in time after they were told to, or a second signal came.
    #[error("stopped before every task had ended")]
    Aborted,
    /// The process cannot receive signals.
    #[error("cannot listen for signals: {0}")]
    Signals(std::io::Error),
}

/// Waits for SIGTERM or SIGINT: for what a process does before its [`Supervisor`] runs.
pub async fn stop_signal() -> Result<(), Stopped> {
    let mut terminate = signal(SignalKind::terminate()).map_err(Stopped::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Stopped::Signals)?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

type Ending = (Cow<'static, str>, Result<Result<(), TaskError>, tokio::task::JoinError>);

/// Runs the tasks that a process is made of. Every task is required: when one fails, panics or ends by itself,
/// all the others are told to drain, and the process ends with that failure.
///
/// The first SIGTERM or SIGINT drains, the second aborts.
#[derive(Debug, Default)]
pub struct Supervisor {
    tasks: JoinSet<Ending>,
    draining: CancellationToken,
}

impl Supervisor {
    /// Without tasks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancelled when tasks shall finish what they have begun and return.
    pub fn draining(&self) -> CancellationToken {
        self.draining.clone()
    }

    /// Starts a task. It must return `Ok` soon after [`Supervisor::draining`] is cancelled, and not before.
    pub fn spawn<F>(&mut self, name: impl Into<Cow<'static, str>>, future: F)
    where
        F: Future<Output = Result<(), TaskError>> + Send + 'static,
    {
        // Spawned twice so that the name is at hand when the inner task panics.
        let name = name.into();
        self.tasks.spawn(async move { (name, tokio::spawn(future).await) });
    }

    /// Runs until every task has ended. After the order to drain, tasks have `grace` to end.
    pub async fn run(self, grace: Duration) -> Result<(), Stopped> {
        let mut terminate = signal(SignalKind::terminate()).map_err(Stopped::Signals)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(Stopped::Signals)?;
        self.run_until(grace, async move || {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        })
        .await
    }

    /// As [`Supervisor::run`], with the signals given as a function that waits for the next one.
    async fn run_until(mut self, grace: Duration, mut next_signal: impl AsyncFnMut()) -> Result<(), Stopped> {
        let first = tokio::select! {
            () = next_signal() => Ok(()),
            () = self.draining.cancelled() => Ok(()),
            ended = self.tasks.join_next() => ended.map_or(Ok(()), |ended| verdict(ended, false)),
        };
        self.draining.cancel();
        let rest = tokio::select! {
            rest = drain(&mut self.tasks) => rest,
            () = next_signal() => Err(Stopped::Aborted),
            () = tokio::time::sleep(grace) => Err(Stopped::Aborted),
        };
        self.tasks.abort_all();
        first.and(rest)
    }
}

/// Waits for all tasks; the first failure counts.
async fn drain(tasks: &mut JoinSet<Ending>) -> Result<(), Stopped> {
    let mut result = Ok(());
    while let Some(ended) = tasks.join_next().await {
        let verdict = verdict(ended, true);
        result = result.and(verdict);
    }
    result
}

fn verdict(ended: Result<Ending, tokio::task::JoinError>, draining: bool) -> Result<(), Stopped> {
    let Ok((task, ending)) = ended else {
        return Err(Stopped::Aborted);
    };
    match ending {
        Ok(Ok(())) if draining => Ok(()),
        Ok(Ok(())) => Err(Stopped::Ended(task)),
        Ok(Err(error)) => Err(Stopped::Failed { task, error }),
        Err(join) => Err(Stopped::Panicked { task, panic: join.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_mins(1);

    fn obedient(supervisor: &mut Supervisor) {
        let draining = supervisor.draining();
        supervisor.spawn("obedient", async move {
            draining.cancelled().await;
            Ok(())
        });
    }

    async fn never() {
        std::future::pending::<()>().await;
    }

    #[tokio::test]
    async fn a_signal_drains_and_the_process_ends_well() {
        let mut supervisor = Supervisor::new();
        obedient(&mut supervisor);
        let mut signals = 1;
        let end = supervisor
            .run_until(GRACE, async || {
                if signals == 0 {
                    never().await;
                }
                signals -= 1;
            })
            .await;
        assert!(end.is_ok(), "{end:?}");
    }

    #[tokio::test]
    async fn a_failure_a_panic_and_an_early_end_each_stop_all_and_are_named() {
        for (failing, text) in [(0, "failing: no"), (1, "failing panicked"), (2, "failing ended by itself")] {
            let mut supervisor = Supervisor::new();
            obedient(&mut supervisor);
            supervisor.spawn("failing", async move {
                match failing {
                    0 => Err("no".into()),
                    1 => panic!("on purpose"),
                    _ => Ok(()),
                }
            });
            let end = supervisor.run_until(GRACE, async || never().await).await.unwrap_err().to_string();
            assert!(end.starts_with(text), "{end}");
        }
    }

    #[tokio::test]
    async fn a_second_signal_aborts_a_task_that_does_not_end() {
        let mut supervisor = Supervisor::new();
        supervisor.spawn("deaf", async {
            never().await;
            Ok(())
        });
        let end = supervisor.run_until(GRACE, async || {}).await;
        assert!(matches!(end, Err(Stopped::Aborted)), "{end:?}");
    }
}
