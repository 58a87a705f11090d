//! What waits to be sent, one entry per key, and what is under way.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fairlead_model::PlacementId;

/// How many keys may be under way in one direction, unless configured otherwise.
pub const DEFAULT_WINDOW: usize = 256;

/// How many bytes of entries may be under way in one direction. One entry of any size may always go.
pub const WINDOW_BYTES: usize = 8 << 20;

/// Keys whose newest value is to be sent. The values stay in the map: a key that changes ten times while it
/// waits is sent once.
#[derive(Debug)]
pub(crate) struct Outbox {
    window: usize,
    queue: VecDeque<PlacementId>,
    /// The keys that are really waiting; `queue` may hold removed ones.
    waiting: BTreeSet<PlacementId>,
    /// Changed while under way: to be queued again when the receipt comes.
    dirty: BTreeSet<PlacementId>,
    /// Under way, with their sizes.
    flying: BTreeMap<PlacementId, usize>,
    flying_bytes: usize,
    /// What the peer lacks from the time before this session.
    backlog: BTreeSet<PlacementId>,
    told_complete: bool,
}

/// What to send next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The newest value of this key.
    Entry(PlacementId),
    /// The note that the backlog is through. Comes once.
    Complete,
}

impl Outbox {
    /// An outbox for a session that starts with this backlog.
    pub(crate) fn new(window: usize, backlog: BTreeSet<PlacementId>) -> Self {
        Self {
            window: window.max(1),
            queue: backlog.iter().cloned().collect(),
            waiting: backlog.clone(),
            dirty: BTreeSet::new(),
            flying: BTreeMap::new(),
            flying_bytes: 0,
            backlog,
            told_complete: false,
        }
    }

    /// The value of this key has changed.
    pub(crate) fn changed(&mut self, key: &PlacementId) {
        if self.flying.contains_key(key) {
            self.dirty.insert(key.clone());
        } else if self.waiting.insert(key.clone()) {
            self.queue.push_back(key.clone());
        }
    }

    /// The key is gone from the map; the caller tells the peer at once.
    pub(crate) fn removed(&mut self, key: &PlacementId) {
        self.waiting.remove(key);
        self.dirty.remove(key);
        self.backlog.remove(key);
    }

    /// The peer has read the value of this key.
    pub(crate) fn received(&mut self, key: &PlacementId) {
        let Some(bytes) = self.flying.remove(key) else {
            return;
        };
        self.flying_bytes = self.flying_bytes.saturating_sub(bytes);
        if self.dirty.remove(key) {
            self.changed(key);
        }
    }

    /// What may be sent now; an entry counts as under way from here on.
    pub(crate) fn next(&mut self, size: impl Fn(&PlacementId) -> usize) -> Option<Next> {
        if self.backlog.is_empty() && !self.told_complete {
            self.told_complete = true;
            return Some(Next::Complete);
        }
        while self.flying.len() < self.window {
            let key = self.queue.front()?;
            if !self.waiting.contains(key) {
                self.queue.pop_front();
                continue;
            }
            let bytes = size(key);
            let room = self.flying.is_empty() || self.flying_bytes.saturating_add(bytes) <= WINDOW_BYTES;
            if !room {
                return None;
            }
            let key = self.queue.pop_front()?;
            self.waiting.remove(&key);
            self.backlog.remove(&key);
            self.flying.insert(key.clone(), bytes);
            self.flying_bytes = self.flying_bytes.saturating_add(bytes);
            return Some(Next::Entry(key));
        }
        None
    }
}

/// What changes between the exchange of hashes and the start of the flow.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) set: BTreeSet<PlacementId>,
    pub(crate) gone: BTreeSet<PlacementId>,
}

impl Changes {
    pub(crate) fn set(&mut self, key: &PlacementId) {
        self.gone.remove(key);
        self.set.insert(key.clone());
    }

    pub(crate) fn gone(&mut self, key: &PlacementId) {
        self.set.remove(key);
        self.gone.insert(key.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlead_model::Epoch;

    fn key(i: u64) -> PlacementId {
        PlacementId::of(Epoch::new(1, i))
    }

    fn drain(outbox: &mut Outbox) -> Vec<Next> {
        std::iter::from_fn(|| outbox.next(|_| 10)).collect()
    }

    #[test]
    fn a_key_that_changes_while_it_waits_or_flies_is_sent_once_more() {
        let mut outbox = Outbox::new(8, BTreeSet::new());
        for _ in 0..5 {
            outbox.changed(&key(1));
        }
        assert_eq!(drain(&mut outbox), [Next::Complete, Next::Entry(key(1))]);
        for _ in 0..5 {
            outbox.changed(&key(1));
        }
        assert_eq!(drain(&mut outbox), []);
        outbox.received(&key(1));
        assert_eq!(drain(&mut outbox), [Next::Entry(key(1))]);
        outbox.received(&key(1));
        outbox.received(&key(1));
        assert_eq!(drain(&mut outbox), []);
    }

    #[test]
    fn the_window_limits_keys_under_way() {
        let mut outbox = Outbox::new(2, BTreeSet::new());
        (1..=5).for_each(|i| outbox.changed(&key(i)));
        assert_eq!(drain(&mut outbox), [Next::Complete, Next::Entry(key(1)), Next::Entry(key(2))]);
        outbox.received(&key(9));
        assert_eq!(drain(&mut outbox), []);
        outbox.received(&key(2));
        assert_eq!(drain(&mut outbox), [Next::Entry(key(3))]);
    }

    #[test]
    fn bytes_are_limited_but_one_entry_always_goes() {
        let mut outbox = Outbox::new(8, BTreeSet::new());
        (1..=3).for_each(|i| outbox.changed(&key(i)));
        let huge = |_: &PlacementId| WINDOW_BYTES + 1;
        assert_eq!(outbox.next(huge), Some(Next::Complete));
        assert_eq!(outbox.next(huge), Some(Next::Entry(key(1))));
        assert_eq!(outbox.next(huge), None);
        assert_eq!(outbox.next(|_| 1), None, "the huge one is still under way");
        outbox.received(&key(1));
        assert_eq!(outbox.next(|_| 1), Some(Next::Entry(key(2))));
        assert_eq!(outbox.next(|_| 1), Some(Next::Entry(key(3))));
    }

    #[test]
    fn completion_follows_the_backlog_even_when_it_is_removed() {
        let mut outbox = Outbox::new(1, (1..=3).map(key).collect());
        assert_eq!(drain(&mut outbox), [Next::Entry(key(1))]);
        outbox.changed(&key(7));
        outbox.removed(&key(2));
        outbox.received(&key(1));
        assert_eq!(drain(&mut outbox), [Next::Entry(key(3)), Next::Complete]);
        outbox.received(&key(3));
        assert_eq!(drain(&mut outbox), [Next::Entry(key(7))]);
    }

    #[test]
    fn a_key_that_is_removed_while_it_flies_is_not_sent_again() {
        let mut outbox = Outbox::new(8, BTreeSet::new());
        outbox.changed(&key(1));
        assert_eq!(drain(&mut outbox), [Next::Complete, Next::Entry(key(1))]);
        outbox.changed(&key(1));
        outbox.removed(&key(1));
        outbox.received(&key(1));
        assert_eq!(drain(&mut outbox), []);
    }

    #[test]
    fn removed_and_set_again_is_sent_once() {
        let mut outbox = Outbox::new(8, BTreeSet::new());
        outbox.changed(&key(1));
        outbox.removed(&key(1));
        outbox.changed(&key(1));
        assert_eq!(drain(&mut outbox), [Next::Complete, Next::Entry(key(1))]);
    }
}
