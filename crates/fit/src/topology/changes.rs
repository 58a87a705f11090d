//! A bounded log of changed leaves, so that what was counted earlier can catch up instead of counting anew.

/// Changed leaves in the order of the changes. Whoever has seen the first `n` changes asks for the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// Changes that were dropped from the front.
    dropped: u64,
    leaves: Vec<u32>,
    /// How many are kept at most.
    limit: usize,
}

impl Changes {
    /// A log for a tree of this many leaves: when more than that changed, counting anew is cheaper.
    pub(super) fn for_leaves(leaves: usize) -> Self {
        Self { dropped: 0, leaves: Vec::new(), limit: leaves.max(64) }
    }

    /// Notes a change.
    pub(super) fn push(&mut self, leaf: u32) {
        if self.leaves.len() >= self.limit {
            self.dropped = self.seen();
            self.leaves.clear();
        }
        self.leaves.push(leaf);
    }

    /// How many changes there have been.
    pub(super) fn seen(&self) -> u64 {
        self.dropped.saturating_add(u64::try_from(self.leaves.len()).unwrap_or(u64::MAX))
    }

    /// The changes after the first `seen`; none when they are no longer known.
    pub(super) fn since(&self, seen: u64) -> Option<&[u32]> {
        let skip = seen.checked_sub(self.dropped)?;
        self.leaves.get(usize::try_from(skip).ok()?..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_what_followed_or_that_it_forgot() {
        let mut changes = Changes::for_leaves(1);
        changes.push(3);
        let seen = changes.seen();
        changes.push(5);
        assert_eq!(changes.since(seen), Some([5].as_slice()));
        assert_eq!(changes.since(changes.seen()), Some([].as_slice()));
        (0..64).for_each(|leaf| changes.push(leaf));
        assert_eq!(changes.since(seen), None);
        assert_eq!(changes.seen(), 66);
    }
}
