//! The records of all runs, with the ways to find them.

use std::collections::{BTreeMap, BTreeSet};

use fairlead_engine::Fact;
use fairlead_model::{ObjectKey, PlacementId, RunId, Uid};

use super::Brain;
use super::run::Run;
use super::wakes::Wake;

/// Runs by id, Workload, placement and name.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    all: BTreeMap<RunId, Run>,
    by_key: BTreeMap<ObjectKey, BTreeSet<RunId>>,
    pub(crate) by_workload: BTreeMap<Uid, RunId>,
    pub(crate) by_placement: BTreeMap<PlacementId, RunId>,
    /// Runs by their LocalQueue.
    pub(crate) by_queue: BTreeMap<ObjectKey, BTreeSet<RunId>>,
}

impl Runs {
    pub(crate) fn get(&self, id: &RunId) -> Option<&Run> {
        self.all.get(id)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &RunId> {
        self.all.keys()
    }

    /// Makes a record where there is none.
    pub(crate) fn ensure(&mut self, id: &RunId, key: &ObjectKey) {
        if !self.all.contains_key(id) {
            self.all.insert(id.clone(), Run::new(id.clone(), key.clone()));
            self.by_key.entry(key.clone()).or_default().insert(id.clone());
        }
    }

    /// Other runs whose copies bear the same name.
    pub(crate) fn namesakes(&self, run: &Run) -> Vec<RunId> {
        let same = self.by_key.get(&run.key).into_iter().flatten();
        same.filter(|id| **id != run.id).cloned().collect()
    }
}

impl Brain {
    /// Lends out one record. While it is out, the map does not have it.
    pub(crate) fn with_run<R>(
        &mut self,
        id: &RunId,
        work: impl FnOnce(&mut Self, &mut Run) -> R,
    ) -> Option<R> {
        let mut run = self.runs.all.remove(id)?;
        let result = work(self, &mut run);
        self.runs.all.insert(id.clone(), run);
        Some(result)
    }

    /// Drops the record of a run that is over.
    pub(crate) fn forget_run(&mut self, id: &RunId) {
        let Some(mut run) = self.runs.all.remove(id) else {
            return;
        };
        let wake = Wake::Run(id.clone());
        self.wakes.reset(&wake, run.wake.take(), None);
        if let Some(same) = self.runs.by_key.get_mut(&run.key) {
            same.remove(id);
            if same.is_empty() {
                self.runs.by_key.remove(&run.key);
            }
        }
        for excluded in &run.excluded {
            if let Some(spoke) = self.spokes.get_mut(&excluded.spoke) {
                spoke.shunned_by.remove(id);
            }
        }
        self.retally(&mut run, None);
        if let Some(base) = &run.base {
            self.runs.by_workload.remove(&base.uid);
            self.absorb(Fact::WorkloadGone(base.uid.clone()));
        }
        self.touch_namesakes(&run);
    }

    /// Looks again at runs that wait for this one's name.
    pub(crate) fn touch_namesakes(&mut self, run: &Run) {
        self.dirty.extend(self.runs.namesakes(run));
    }
}
