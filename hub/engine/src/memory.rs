//! What a round remembers for the next, as part of the plan: kept in memory only, never stored.

use fairlead_model::Uid;

/// Where the scan over flavors goes on [F-8]: per pod set and resource the index of the last flavor that was looked
/// at, or none when the list was exhausted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Per pod set, per charged resource in name order.
    pub tried: Vec<Vec<Option<u32>>>,
    /// The tree's generation when it was made.
    pub generation: u64,
    /// The round counter when it was made.
    pub round: u64,
}

/// What becomes of one head after its round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requeue {
    /// The workload.
    pub uid: Uid,
    /// True: back into the heap; false: parked until something changes.
    pub immediate: bool,
    /// It waits for its victims, so it stays first in line.
    pub sticky: bool,
    /// Its equivalence class cannot be admitted until something changes.
    pub class_failed: bool,
    /// Where its scan goes on; none forgets.
    pub scan: Option<Scan>,
}

/// The memory of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Heads that were not admitted.
    pub requeues: Vec<Requeue>,
}
