//! Whether a candidate may take a lease: a pure function of what it has seen.

use fairlead_model::Millis;

/// A lease as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Who holds it; absent when it was released.
    pub holder: Option<String>,
    /// How long it is held without renewal, in milliseconds, as its holder wrote it.
    pub duration_ms: i64,
    /// `metadata.resourceVersion`.
    pub version: u64,
    /// How often it changed hands.
    pub transitions: i64,
}

/// A record and the reading of the steady clock at which it was first seen in this version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The record.
    pub record: Record,
    /// Since when it has been unchanged, as far as this process saw.
    pub since: Millis,
}

/// What to do about the lease now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Take it.
    Acquire {
        /// It was held, and lapsed.
        taken_over: bool,
    },
    /// It is ours: renew it.
    Renew,
    /// Someone else holds it: look again later.
    Yield,
}

/// Decides for the process `me`. `seen` is absent when there is no lease.
pub fn decide(seen: Option<&Seen>, me: &str, mono: Millis) -> Decision {
    let Some(seen) = seen else {
        return Decision::Acquire { taken_over: false };
    };
    match seen.record.holder.as_deref() {
        None | Some("") => Decision::Acquire { taken_over: false },
        Some(holder) if holder == me => Decision::Renew,
        Some(_) if mono.since(seen.since) >= seen.record.duration_ms.max(0) => {
            Decision::Acquire { taken_over: true }
        }
        Some(_) => Decision::Yield,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(holder: &str, since: i64) -> Seen {
        let record = Record {
            holder: (!holder.is_empty()).then(|| holder.to_owned()),
            duration_ms: 10_000,
            version: 7,
            transitions: 1,
        };
        Seen { record, since: Millis(since) }
    }

    #[test]
    fn a_free_lease_is_taken_at_once() {
        assert_eq!(decide(None, "me", Millis(0)), Decision::Acquire { taken_over: false });
        assert_eq!(decide(Some(&seen("", 0)), "me", Millis(0)), Decision::Acquire { taken_over: false });
    }

    #[test]
    fn a_held_lease_is_taken_only_after_its_whole_duration_was_watched() {
        let other = seen("other", 5_000);
        assert_eq!(decide(Some(&other), "me", Millis(5_000)), Decision::Yield);
        assert_eq!(decide(Some(&other), "me", Millis(14_999)), Decision::Yield);
        assert_eq!(decide(Some(&other), "me", Millis(15_000)), Decision::Acquire { taken_over: true });
    }

    #[test]
    fn our_own_lease_is_renewed_however_old() {
        assert_eq!(decide(Some(&seen("me", 0)), "me", Millis(99_000)), Decision::Renew);
    }
}
