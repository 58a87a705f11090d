//! Names turned into dense ordinals, so that the inside of the engine compares and indexes numbers. Ordinals depend
//! on the order of facts; no decision may.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Ordinal of a resource name.
pub(crate) type ResIx = u32;
/// Ordinal of a flavor name.
pub(crate) type FlavorIx = u32;
/// Ordinal of a (flavor, resource) pair.
pub(crate) type FrIx = u32;
/// Ordinal of a ClusterQueue.
pub(crate) type CqIx = u32;
/// Ordinal of a workload row.
pub(crate) type RowIx = u32;

/// An ordinal as an index.
pub(crate) const fn at(ix: u32) -> usize {
    // Every target of this project has at least 32-bit addresses.
    #[expect(clippy::as_conversions, reason = "u32 to usize widens on every supported target")]
    {
        ix as usize
    }
}

/// The ordinal of the next entry of a list; lists here never reach 2^32 entries.
pub(crate) fn next(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// Names and their ordinals.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    list: Vec<Arc<str>>,
    index: BTreeMap<Arc<str>, u32>,
}

impl Names {
    /// The ordinal of a name, new if need be.
    pub(crate) fn intern(&mut self, name: &Arc<str>) -> u32 {
        if let Some(ix) = self.index.get(name) {
            return *ix;
        }
        let ix = next(self.list.len());
        self.list.push(Arc::clone(name));
        self.index.insert(Arc::clone(name), ix);
        ix
    }

    /// All names in the order of their ordinals.
    pub(crate) fn all(&self) -> &[Arc<str>] {
        &self.list
    }

    /// The ordinal of a name, if it has one.
    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        self.index.get(name).copied()
    }

    /// The name of an ordinal; empty for one that was never given.
    pub(crate) fn name(&self, ix: u32) -> Arc<str> {
        self.list.get(at(ix)).map_or_else(|| Arc::from(""), Arc::clone)
    }

    /// The name of an ordinal as text.
    pub(crate) fn text(&self, ix: u32) -> &str {
        self.list.get(at(ix)).map_or("", |name| &**name)
    }
}

/// All names of a world.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interned {
    pub(crate) resources: Names,
    pub(crate) flavors: Names,
    frs: Vec<(FlavorIx, ResIx)>,
    fr_index: BTreeMap<(FlavorIx, ResIx), FrIx>,
}

impl Interned {
    /// The ordinal of a (flavor, resource) pair, new if need be.
    pub(crate) fn fr(&mut self, flavor: FlavorIx, resource: ResIx) -> FrIx {
        let frs = &mut self.frs;
        *self.fr_index.entry((flavor, resource)).or_insert_with(|| {
            frs.push((flavor, resource));
            next(frs.len().saturating_sub(1))
        })
    }

    /// The ordinal of a (flavor, resource) pair, if it has one.
    pub(crate) fn find_fr(&self, flavor: FlavorIx, resource: ResIx) -> Option<FrIx> {
        self.fr_index.get(&(flavor, resource)).copied()
    }

    /// How many (flavor, resource) pairs have an ordinal.
    pub(crate) const fn fr_count(&self) -> usize {
        self.frs.len()
    }

    /// All pairs in the order of their ordinals.
    pub(crate) fn pairs(&self) -> &[(FlavorIx, ResIx)] {
        &self.frs
    }

    /// The pair of an ordinal.
    pub(crate) fn pair(&self, fr: FrIx) -> (FlavorIx, ResIx) {
        self.frs.get(at(fr)).copied().unwrap_or_default()
    }
}
