//! The one task that owns the brain.

use std::sync::Arc;
use std::time::Duration;

use fairlead_model::{Millis, Now};
use fairlead_runtime::clock;
use fairlead_runtime::health::Readiness;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::crash::Crashes;
use super::inbox::Inbox;
use super::lanes::Lanes;
use super::questions::Questions;
use super::ring::Records;
use super::watches::readiness_name;
use crate::brain::{Brain, Effect, Input};
use crate::measure::Measures;
use crate::ports::{Spokes, Store};

/// What the pump drives: the brain, or a stand-in in tests.
pub trait Core: Send + 'static {
    /// Takes one input and says what follows.
    fn step(&mut self, input: Input, now: Now) -> Vec<Effect>;

    /// When, on the steady clock, it wants an [`Input::Tick`] at the latest.
    fn next_wake(&self) -> Option<Millis>;
}

impl Core for Brain {
    fn step(&mut self, input: Input, now: Now) -> Vec<Effect> {
        Self::step(self, input, now)
    }

    fn next_wake(&self) -> Option<Millis> {
        Self::next_wake(self)
    }
}

/// Why the pump stopped.
#[derive(Debug, thiserror::Error)]
pub enum PumpError {
    /// The brain found something that it must not go on from.
    #[error("{0}")]
    Fatal(String),
    /// Nobody can bring any input.
    #[error("every source of input is gone")]
    Deserted,
}

/// Drives a [`Core`]: inputs in, its turn when they are drained, effects out.
#[derive(Debug)]
pub struct Pump<C, S, G> {
    core: C,
    inbox: Inbox,
    lanes: Lanes<S>,
    spokes: Arc<G>,
    readiness: Readiness,
    crashes: Crashes,
    questions: Questions<C>,
    measures: Option<Arc<dyn Measures>>,
    records: Option<Records>,
}

impl<C: Core, S: Store, G: Spokes> Pump<C, S, G> {
    /// A pump. `sender` is the inbox's other end, for the outcomes of writes.
    pub fn new(
        core: C,
        inbox: (mpsc::Sender<Input>, Inbox),
        store: Arc<S>,
        spokes: Arc<G>,
        readiness: Readiness,
    ) -> Self {
        let (sender, inbox) = inbox;
        let (questions, measures, records) = (Questions::nobodys(), None, None);
        let (lanes, crashes) = (Lanes::new(store, sender), Crashes::new());
        Self { core, inbox, lanes, spokes, readiness, crashes, questions, measures, records }
    }

    /// Answers these questions between turns.
    #[must_use]
    pub fn answering(mut self, questions: Questions<C>) -> Self {
        self.questions = questions;
        self
    }

    /// Tells `measures` what happens.
    #[must_use]
    pub fn measured_by(mut self, measures: Arc<dyn Measures>) -> Self {
        self.measures = Some(measures);
        self
    }

    /// Writes records of decisions there.
    #[must_use]
    pub fn recording(self, records: Option<Records>) -> Self {
        Self { records, ..self }
    }

    /// Runs until cancelled or until the brain gives up; then waits for the writes that are under way.
    pub async fn run(mut self, cancel: CancellationToken) -> Result<(), PumpError> {
        let end = loop {
            let wake = self.core.next_wake();
            let end = tokio::select! {
                biased;
                () = cancel.cancelled() => break Ok(()),
                question = self.questions.next() => {
                    question(&self.core);
                    Ok(())
                }
                batch = self.inbox.take() => self.absorb(batch),
                () = until(wake) => self.input(Input::Tick).and_then(|()| self.input(Input::Turn)),
            };
            if end.is_err() {
                break end;
            }
        };
        info!("the brain has stopped; waiting for writes under way");
        let Self { lanes, inbox, .. } = self;
        // Nobody reads outcomes any more, so nobody may wait for room for them.
        drop(inbox);
        lanes.close().await;
        end
    }

    fn absorb(&mut self, batch: Vec<Input>) -> Result<(), PumpError> {
        if batch.is_empty() {
            return Err(PumpError::Deserted);
        }
        for input in batch {
            self.input(input)?;
        }
        self.input(Input::Turn)
    }

    fn input(&mut self, input: Input) -> Result<(), PumpError> {
        if let Input::Synced(kind) = &input {
            self.readiness.meet(&readiness_name(*kind));
        }
        self.crashes.before(&input);
        let watch = clock::Stopwatch::start();
        let effects = self.core.step(input, clock::now());
        let took = watch.elapsed();
        for effect in effects {
            self.crashes.effect(&effect);
            match effect {
                Effect::Store(request) => self.lanes.start(request),
                Effect::Command { spoke, placement, command } => {
                    self.spokes.command(&spoke, placement, command);
                }
                Effect::Withdraw { spoke, placement } => self.spokes.withdraw(&spoke, placement),
                Effect::Acknowledge { spoke, ack } => self.spokes.acknowledge(&spoke, ack),
                Effect::Measure(happened) => {
                    if let Some(measures) = &self.measures {
                        measures.record(&happened, took);
                    }
                }
                Effect::Record { begins, bytes } => {
                    if let Some(records) = &mut self.records {
                        records.write(begins, bytes);
                    }
                }
                Effect::Warn(what) => warn!("{what}"),
                Effect::Fatal(why) => return Err(PumpError::Fatal(why)),
            }
        }
        Ok(())
    }
}

/// Waits until the steady clock shows `wake`; for ever without one.
async fn until(wake: Option<Millis>) {
    match wake {
        Some(wake) => {
            let left = u64::try_from(wake.since(clock::now().mono)).unwrap_or(0);
            tokio::time::sleep(Duration::from_millis(left)).await;
        }
        None => std::future::pending().await,
    }
}
