//! Presence: what the hub knows of a spoke, derived from its heartbeats.

use fairlead_model::Millis;

/// Whether a spoke is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Presence {
    /// Its session is up and its heartbeats arrive.
    Fresh,
    /// Heartbeats are missing: nothing new is started there, and nothing else follows from it.
    Suspect,
    /// No session has been up since this hub leads.
    Unseen,
}

/// The heartbeats of one spoke, on the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeats {
    last: Option<Millis>,
    grace_ms: i64,
}

impl Heartbeats {
    /// No heartbeat yet. After `grace_ms` without one the spoke is suspect.
    pub const fn new(grace_ms: i64) -> Self {
        Self { last: None, grace_ms }
    }

    /// One arrived, or a session came up.
    pub const fn beat(&mut self, now: Millis) {
        self.last = Some(now);
    }

    /// When the last one arrived.
    pub const fn last(&self) -> Option<Millis> {
        self.last
    }

    /// The presence at this time.
    pub fn presence(&self, now: Millis) -> Presence {
        match self.last {
            None => Presence::Unseen,
            Some(last) if now.since(last) > self.grace_ms => Presence::Suspect,
            Some(_) => Presence::Fresh,
        }
    }

    /// When it becomes suspect if nothing arrives.
    pub fn deadline(&self) -> Option<Millis> {
        self.last.map(|last| last.plus(self.grace_ms.saturating_add(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spoke_is_suspect_only_after_the_whole_grace() {
        let mut beats = Heartbeats::new(30_000);
        assert_eq!(beats.presence(Millis(0)), Presence::Unseen);
        assert_eq!(beats.deadline(), None);
        beats.beat(Millis(1_000));
        assert_eq!(beats.presence(Millis(31_000)), Presence::Fresh);
        let deadline = beats.deadline().unwrap();
        assert_eq!(beats.presence(Millis(deadline.0 - 1)), Presence::Fresh);
        assert_eq!(beats.presence(deadline), Presence::Suspect);
        beats.beat(deadline);
        assert_eq!(beats.presence(deadline), Presence::Fresh);
    }
}
