//! What a round remembers for the next, as part of the plan: kept in memory only, never stored.

use fairlead_model::{ResourceName, Uid};

/// Where the scan over flavors goes on [F-8].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Per pod set and charged resource the index of the last flavor that was looked at, or none when the list was
    /// exhausted.
    pub tried: Vec<Vec<(ResourceName, Option<u32>)>>,
    /// The queue's generation when it was made.
    pub generation: u64,
    /// The round counter when it was made.
    pub round: u64,
}

impl Scan {
    /// Whether flavors are left that were not looked at.
    pub fn unfinished(&self) -> bool {
        self.tried.iter().flatten().any(|(_, last)| last.is_some())
    }

    /// The first flavor to look at for a resource of a pod set.
    pub fn start(&self, pod_set: usize, resource: &str) -> u32 {
        let tried = self.tried.get(pod_set).into_iter().flatten().find(|(name, _)| **name == *resource);
        tried.and_then(|(_, last)| *last).map_or(0, |last| last.saturating_add(1))
    }
}

/// What becomes of one head after its round.
#[expect(clippy::struct_excessive_bools, reason = "each is remembered for itself")]
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
    /// Its scan has come to the end of every list: until something changes, going through them again finds nothing new.
    pub swept: bool,
}

/// An eviction, with what it was for: going round in circles is told by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// Who made way.
    pub victim: Uid,
    /// For whom.
    pub preemptor: Uid,
    /// A number that stands for what the preemptor would be charged: the same for the same flavors and amounts.
    pub purpose: u64,
}

/// The memory of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Heads that were not admitted.
    pub requeues: Vec<Requeue>,
    /// Who made way for whom.
    pub ways: Vec<Way>,
}
