//! What many workloads have in common, kept once: thousands of jobs come from a few manifests, so their pod sets are
//! equal, and so is what they are charged.

use std::collections::BTreeSet;
use std::sync::Arc;

/// Values by content, each kept as long as somebody uses it.
#[derive(Clone, Debug)]
pub(crate) struct Shared<T: Ord> {
    values: BTreeSet<Arc<T>>,
    /// How many were in use when the unused ones were last dropped.
    in_use: usize,
}

impl<T: Ord> Default for Shared<T> {
    fn default() -> Self {
        Self { values: BTreeSet::new(), in_use: 0 }
    }
}

impl<T: Ord> Shared<T> {
    /// The one value that is equal to this.
    pub(crate) fn share(&mut self, value: T) -> Arc<T> {
        if let Some(known) = self.values.get(&value) {
            return Arc::clone(known);
        }
        self.sweep();
        let value = Arc::new(value);
        self.values.insert(Arc::clone(&value));
        value
    }

    /// Drops what nobody uses any more, once there may be much of it.
    fn sweep(&mut self) {
        if self.values.len() > self.in_use.saturating_mul(2).saturating_add(64) {
            self.values.retain(|value| Arc::strong_count(value) > 1);
            self.in_use = self.values.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_kept_once_and_unused_ones_go() {
        let mut shared = Shared::default();
        let kept = shared.share(7);
        assert!(Arc::ptr_eq(&kept, &shared.share(7)));
        for value in 100..1000 {
            drop(shared.share(value));
        }
        assert!(shared.values.len() < 100, "{} are kept", shared.values.len());
        assert!(Arc::ptr_eq(&kept, &shared.share(7)));
    }
}
