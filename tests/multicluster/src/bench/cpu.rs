//! CPU time of a fleet's processes, less what they draw when idle.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::Result;

use crate::{fleet::Fleet, process::Process};

/// CPU time by kind of process since their start, and when it was read.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    at: Instant,
    used: BTreeMap<String, Duration>,
}

/// CPU-milliseconds by kind of process, over some time.
pub(super) type Draw = BTreeMap<String, f64>;

impl Reading {
    /// Adds up user and system time of every running process: control planes by part, hub, agents.
    pub(super) fn take(fleet: &Fleet) -> Result<Self> {
        let mut used = BTreeMap::new();
        let mut add = |kind: &str, process: &Process| -> Result<()> {
            if process.exited()?.is_none() {
                *used.entry(kind.to_owned()).or_insert(Duration::ZERO) += process.usage()?.cpu;
            }
            Ok(())
        };
        add("etcd", fleet.rig().etcd())?;
        for cluster in fleet.rig().clusters() {
            for (part, process) in cluster.parts() {
                add(part.program(), process)?;
            }
        }
        add("fairlead-hub", fleet.hub())?;
        for spoke in fleet.spokes() {
            add("fairlead-spoke", spoke.agent())?;
        }
        Ok(Self { at: Instant::now(), used })
    }

    /// What was drawn since an earlier reading, and how long that was.
    fn since(&self, earlier: &Self) -> (Draw, Duration) {
        let draw = self.used.iter().map(|(kind, used)| {
            let before = earlier.used.get(kind).copied().unwrap_or_default();
            (kind.clone(), used.saturating_sub(before).as_secs_f64() * 1000.0)
        });
        (draw.collect(), self.at.duration_since(earlier.at))
    }
}

/// What an idle fleet draws a second.
pub(super) struct Idle(Draw);

impl Idle {
    /// Watches an idle fleet for `window`.
    pub(super) async fn measure(fleet: &Fleet, window: Duration) -> Result<Self> {
        let begin = Reading::take(fleet)?;
        tokio::time::sleep(window).await;
        let (draw, time) = Reading::take(fleet)?.since(&begin);
        Ok(Self(draw.into_iter().map(|(kind, used)| (kind, used / time.as_secs_f64())).collect()))
    }

    /// What was drawn between two readings beyond the idle draw over the same time, in CPU-ms by kind of process.
    pub(super) fn beyond(&self, begin: &Reading, end: &Reading) -> Draw {
        let (draw, time) = end.since(begin);
        let idle = |kind: &str| self.0.get(kind).copied().unwrap_or(0.0) * time.as_secs_f64();
        draw.into_iter()
            .map(|(kind, used)| {
                let beyond = (used - idle(&kind)).max(0.0);
                (kind, beyond)
            })
            .collect()
    }
}
