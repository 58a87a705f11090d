//! What it would be like with some workloads gone: rows of usage on top of the state, dropped to forget.

use fairlead_fit::topology;
use fairlead_model::Amount;

use super::{Ask, Round, change};
use crate::names::RowIx;
use crate::quota::plane::{Changes, Draft, Plane};
use crate::round::entry::Target;

/// A what-if of removals.
#[derive(Debug)]
pub(super) struct WhatIf<'r, 'w> {
    pub(super) ask: &'r Ask<'r, 'w>,
    changes: Changes,
    /// Topology domains that would be free; none when no place is asked for.
    room: Option<topology::WhatIf>,
    /// Position of the amount that was missing last; it is looked at first.
    missing: usize,
}

impl<'r, 'w> WhatIf<'r, 'w> {
    pub(super) fn new(ask: &'r Ask<'r, 'w>) -> Self {
        let places = ask.placing.is_some_and(Round::asks_for_places);
        Self { ask, changes: Changes::default(), room: places.then(|| ask.state.what_if.clone()), missing: 0 }
    }

    /// Usage as it would be.
    pub(super) fn plane(&self) -> Plane<'_> {
        self.ask.plane().with(&self.changes)
    }

    /// Takes out what a workload holds.
    pub(super) fn remove(&mut self, row: RowIx) {
        self.change(row, false);
    }

    fn change(&mut self, row: RowIx, add: bool) {
        let (ask, world) = (self.ask, self.ask.world());
        let Some(held) = world.row(row).and_then(|row| row.held.as_deref()) else { return };
        let mut draft = Draft { below: ask.plane(), changes: &mut self.changes };
        change(world, ask.tree, &mut draft, (held, add), |fr| ask.column(fr));
        let Some(room) = &mut self.room else { return };
        for held in world.places_held(row) {
            if add {
                room.take(&world.placing, held);
            } else {
                room.free(&world.placing, held);
            }
        }
    }

    /// Usage as it would be with one more workload gone, in `changes` on top of this.
    pub(super) fn without<'a>(&'a self, row: RowIx, changes: &'a mut Changes) -> Plane<'a> {
        let (ask, below) = (self.ask, self.plane());
        changes.clear();
        if let Some(held) = ask.world().row(row).and_then(|row| row.held.as_deref()) {
            let mut draft = Draft { below, changes };
            change(ask.world(), ask.tree, &mut draft, (held, false), |fr| ask.column(fr));
        }
        below.with(changes)
    }

    /// Charges, or takes back, what the preemptor asks for.
    pub(super) fn charge_preemptor(&mut self, add: bool) {
        let ask = self.ask;
        let mut draft = Draft { below: ask.plane(), changes: &mut self.changes };
        for (col, amount) in &ask.usage {
            if add {
                ask.tree.add_usage(&mut draft, ask.node, *col, *amount);
            } else {
                ask.tree.remove_usage(&mut draft, ask.node, *col, *amount);
            }
        }
    }

    /// Whether the preemptor fits now.
    pub(super) fn fits(&mut self, may_borrow: bool) -> bool {
        let ask = self.ask;
        ask.round.count_what_if();
        let plane = ask.plane().with(&self.changes);
        let is_missing = |(col, amount): &(_, i64)| {
            let borrows = !may_borrow && ask.tree.borrowing_with(plane, ask.node, *col, *amount);
            let available = || ask.tree.available(plane, ask.node, *col).max(Amount::ZERO);
            borrows || Amount::Finite(*amount) > available()
        };
        if ask.usage.get(self.missing).is_some_and(is_missing) {
            return false;
        }
        if let Some(missing) = ask.usage.iter().position(is_missing) {
            self.missing = missing;
            return false;
        }
        match (&self.room, ask.placing) {
            (Some(room), Some(assignment)) => ask.round.places(room, ask.row, assignment),
            _ => true,
        }
    }

    /// Puts victims back, from the second to last to the first, where the preemptor fits all the same [P-4].
    pub(super) fn minimise(&mut self, mut targets: Vec<Target>, may_borrow: bool) -> Vec<Target> {
        let Some(mut ix) = targets.len().checked_sub(1) else { return targets };
        while let Some(previous) = ix.checked_sub(1) {
            ix = previous;
            let Some(target) = targets.get(ix).copied() else { continue };
            self.change(target.row, true);
            if self.fits(may_borrow) {
                targets.swap_remove(ix);
            } else {
                self.change(target.row, false);
            }
        }
        targets
    }
}
