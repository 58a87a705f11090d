//! Named points at which a process can be told to die, for the tests of what a crash leaves behind.
//!
//! Armed by the environment variable `FAIRLEAD_CRASH_POINT=name` or `name:n` (the n-th time, from 1). The process
//! then sends SIGKILL to itself: no destructor, no flush, as if the machine had gone. Without the feature
//! `crash-points` [`crash_point`] is empty and costs nothing.

/// The registry of crash points. A test checks that each of them is used by a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CrashPoint {
    /// The hub has sent a Prepare.
    HubAfterPrepare,
    /// The hub has received an acceptance and not acted on it.
    HubAfterAcceptance,
    /// The hub's admission write has succeeded; Start is not sent.
    HubAfterCommit,
    /// The hub has sent a Start.
    HubAfterStart,
    /// The hub has stored a result; it is not acknowledged.
    HubAfterResult,
    /// The agent has accepted a Prepare.
    SpokeAfterAccepting,
    /// The agent is about to create the copy.
    SpokeBeforeCreate,
    /// The agent has created the copy and told nobody.
    SpokeAfterCreate,
    /// The agent has observed a result and not sent it.
    SpokeAfterResult,
}

impl CrashPoint {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::HubAfterPrepare,
        Self::HubAfterAcceptance,
        Self::HubAfterCommit,
        Self::HubAfterStart,
        Self::HubAfterResult,
        Self::SpokeAfterAccepting,
        Self::SpokeBeforeCreate,
        Self::SpokeAfterCreate,
        Self::SpokeAfterResult,
    ];

    /// The name as `FAIRLEAD_CRASH_POINT` takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HubAfterPrepare => "hub.after-prepare",
            Self::HubAfterAcceptance => "hub.after-acceptance",
            Self::HubAfterCommit => "hub.after-commit",
            Self::HubAfterStart => "hub.after-start",
            Self::HubAfterResult => "hub.after-result",
            Self::SpokeAfterAccepting => "spoke.after-accepting",
            Self::SpokeBeforeCreate => "spoke.before-create",
            Self::SpokeAfterCreate => "spoke.after-create",
            Self::SpokeAfterResult => "spoke.after-result",
        }
    }
}

/// Dies here if this point is armed and this is the pass it is armed for; otherwise does nothing.
#[cfg(not(feature = "crash-points"))]
#[inline]
pub const fn crash_point(_point: CrashPoint) {}

/// Dies here if this point is armed and this is the pass it is armed for; otherwise does nothing.
#[cfg(feature = "crash-points")]
pub fn crash_point(point: CrashPoint) {
    armed::pass(point);
}

#[cfg(feature = "crash-points")]
mod armed {
    //! The armed point of this process.

    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use nix::sys::signal::{Signal, raise};

    use super::CrashPoint;

    static ARMED: OnceLock<Option<(CrashPoint, u64)>> = OnceLock::new();
    static PASSES: AtomicU64 = AtomicU64::new(0);

    pub(super) fn pass(point: CrashPoint) {
        let armed =
            ARMED.get_or_init(|| std::env::var("FAIRLEAD_CRASH_POINT").ok().and_then(|text| parse(&text)));
        let Some((armed, nth)) = *armed else { return };
        if armed != point || PASSES.fetch_add(1, Ordering::SeqCst).saturating_add(1) != nth {
            return;
        }
        tracing::warn!(point = point.name(), "crash point reached");
        if let Err(why) = raise(Signal::SIGKILL) {
            tracing::error!(%why, "could not kill this process");
        }
    }

    /// Reads `name` or `name:n`. A name that is not in the registry arms nothing, loudly.
    pub(super) fn parse(text: &str) -> Option<(CrashPoint, u64)> {
        let (name, nth) = text.split_once(':').unwrap_or((text, "1"));
        let point = CrashPoint::ALL.into_iter().find(|point| point.name() == name);
        let nth = nth.parse::<u64>().ok().filter(|nth| *nth > 0);
        if point.is_none() || nth.is_none() {
            tracing::error!(text, "FAIRLEAD_CRASH_POINT names no crash point");
        }
        Some((point?, nth?))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_distinct_and_say_whose_they_are() {
        let names: BTreeSet<_> = CrashPoint::ALL.iter().map(|point| point.name()).collect();
        assert_eq!(names.len(), CrashPoint::ALL.len());
        assert!(names.iter().all(|name| name.starts_with("hub.") || name.starts_with("spoke.")));
    }

    #[cfg(feature = "crash-points")]
    #[test]
    fn the_variable_takes_a_name_and_a_count() {
        use super::armed::parse;
        assert_eq!(parse("hub.after-commit"), Some((CrashPoint::HubAfterCommit, 1)));
        assert_eq!(parse("spoke.before-create:3"), Some((CrashPoint::SpokeBeforeCreate, 3)));
        for bad in ["", "hub.after-lunch", "hub.after-commit:0", "hub.after-commit:x"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
