//! Capacity reports: sent when something changed, but not more often than is useful.

use std::collections::BTreeMap;

use fairlead_model::{Millis, Now};
use fairlead_session::Report;

use super::capacity::shapes;
use super::{Core, Effect};

/// The shortest time between two reports, in milliseconds. A change after a quiet time is reported at once.
const INTERVAL_MS: i64 = 50;

/// For so many placements more, reports are one millisecond further apart: a report names each of them.
const PLACEMENTS_PER_MS: i64 = 8;

/// When reports are due.
#[derive(Debug, Default)]
pub(crate) struct Reporter {
    /// Time of the last report.
    sent: Option<Millis>,
    /// What the capacity said of its changes then.
    seen: u64,
    /// Something besides capacity has changed.
    touched: bool,
    /// Number of the last report.
    version: u64,
    /// When the next one is due.
    due: Option<Millis>,
}

impl Reporter {
    /// Something that reports say has changed.
    pub(crate) const fn changed(&mut self) {
        self.touched = true;
    }

    /// When a report that is waiting is due, on the monotonic clock.
    pub(crate) const fn due(&self) -> Option<Millis> {
        self.due
    }
}

impl Core {
    /// Reports capacity if it has changed and the last report is old enough.
    pub(super) fn report(&mut self, now: Now) {
        let changes = self.capacity.changes();
        if !self.inventory_ready() || !(self.reporter.touched || self.reporter.seen != changes) {
            return;
        }
        let placements = i64::try_from(self.claims.len()).unwrap_or(i64::MAX);
        let interval = INTERVAL_MS.saturating_add(placements / PLACEMENTS_PER_MS);
        if let Some(due) = self.reporter.sent.map(|sent| sent.plus(interval)).filter(|due| *due > now.mono) {
            self.reporter.due = Some(due);
            return;
        }
        let version = self.reporter.version.saturating_add(1);
        self.reporter = Reporter { sent: Some(now.mono), seen: changes, touched: false, version, due: None };
        let report = self.capacity_report(version);
        self.effects.push(Effect::Report(report));
    }

    fn capacity_report(&self, version: u64) -> Report {
        let bound = self.claims.keys().filter_map(|placement| {
            let copy = self.rows.get(placement)?.copy.as_ref()?;
            Some((placement.clone(), self.capacity.bound(&copy.uid)?.clone()))
        });
        Report {
            version,
            free: shapes(self.capacity.free()),
            empty: shapes(self.capacity.empty()),
            bound: bound.collect::<BTreeMap<_, _>>(),
            nodes: self.capacity.usable(),
        }
    }
}
