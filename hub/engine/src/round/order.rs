//! The order in which the entries of a round are handled [S-2], [S-3].

use std::cmp::Reverse;

use super::Round;
use super::entry::Entry;
use super::overlay::Overlay;
use crate::world::rows::order_time;

impl<'w> Round<'w> {
    /// Entries in the order of handling. Trees do not affect each other; the order between them is that of the keys.
    pub(crate) fn ordered(&self, mut entries: Vec<Entry>, _base: &Overlay<'w>) -> Vec<Entry> {
        entries.sort_by_cached_key(|entry| self.classical_key(entry));
        entries
    }

    /// Second pass, then the lower borrow level, the higher priority, the older, the uid.
    fn classical_key(&self, entry: &Entry) -> impl Ord + use<> {
        let fact = self.world.row(entry.row).map(|row| &row.fact);
        let priority = fact.map_or(0, |fact| fact.priority);
        let time = fact.map(|fact| order_time(fact)).unwrap_or_default();
        let uid = fact.map(|fact| fact.uid.clone());
        (!entry.second_pass, entry.assignment.borrow, Reverse(priority), time, uid)
    }
}
