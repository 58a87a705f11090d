//! Rows by ordinal, in blocks: a table grows without moving what it has.

use super::rows::Row;
use crate::names::{RowIx, at, next};

/// Rows a block.
const BLOCK: usize = 256;

/// The rows of all workloads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    blocks: Vec<Vec<Option<Row>>>,
    vacant: Vec<RowIx>,
}

impl Table {
    /// A row.
    pub(crate) fn get(&self, ix: RowIx) -> Option<&Row> {
        self.blocks.get(at(ix) / BLOCK)?.get(at(ix) % BLOCK)?.as_ref()
    }

    /// A row to be changed.
    pub(super) fn get_mut(&mut self, ix: RowIx) -> Option<&mut Row> {
        self.slot(ix)?.as_mut()
    }

    fn slot(&mut self, ix: RowIx) -> Option<&mut Option<Row>> {
        self.blocks.get_mut(at(ix) / BLOCK)?.get_mut(at(ix) % BLOCK)
    }

    /// Adds a row where one is vacant, else at the end.
    pub(super) fn insert(&mut self, row: Row) -> RowIx {
        if let Some(ix) = self.vacant.pop() {
            if let Some(slot) = self.slot(ix) {
                *slot = Some(row);
            }
            return ix;
        }
        if self.blocks.last().is_none_or(|last| last.len() == BLOCK) {
            self.blocks.push(Vec::with_capacity(BLOCK));
        }
        let full = self.blocks.len().saturating_sub(1).saturating_mul(BLOCK);
        let last = self.blocks.last_mut().map_or(0, |last| {
            last.push(Some(row));
            last.len().saturating_sub(1)
        });
        next(full.saturating_add(last))
    }

    /// Takes a row out.
    pub(super) fn remove(&mut self, ix: RowIx) -> Option<Row> {
        let row = self.slot(ix)?.take()?;
        self.vacant.push(ix);
        Some(row)
    }

    /// All rows in the order of their ordinals.
    pub(super) fn iter(&self) -> impl Iterator<Item = (RowIx, &Row)> {
        let slots = self.blocks.iter().flatten();
        (0..).zip(slots).filter_map(|(ix, slot)| Some((ix, slot.as_ref()?)))
    }
}
