//! What is found out about a head during a round.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairlead_model::{Reason, Shortfall, SpokeId};

use crate::fact::{PreemptionCause, TopologyAssignment};
use crate::names::{CqIx, FlavorIx, FrIx, Interned, ResIx, RowIx};
use crate::quota::NodeIx;
use crate::world::rows::print;

/// How a flavor can serve a request, from worst to best [F-5].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Means {
    /// Not at all.
    NoFit,
    /// By preemption, but there is nobody to preempt.
    NoCandidates,
    /// By preempting in the queue itself.
    Preempt,
    /// By taking back quota from other queues.
    Reclaim,
    /// As it is.
    Fit,
}

/// What has to happen before an entry can start, from worst to best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    /// Nothing helps now.
    NoFit,
    /// Others must go first.
    Preempt,
    /// The victims of another entry must go first.
    Deferred,
    /// Nothing.
    Fit,
}

impl Means {
    /// The mode that it amounts to.
    pub(crate) const fn mode(self) -> Mode {
        match self {
            Self::NoFit => Mode::NoFit,
            Self::NoCandidates | Self::Preempt | Self::Reclaim => Mode::Preempt,
            Self::Fit => Mode::Fit,
        }
    }
}

/// A means and how far up the tree its quota comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grade {
    pub(crate) means: Means,
    pub(crate) borrow: u32,
}

/// The flavor chosen for one resource of one pod set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) flavor: FlavorIx,
    pub(crate) mode: Mode,
    pub(crate) borrow: u32,
    /// Index of the last flavor looked at; none when the list was exhausted [F-8].
    pub(crate) tried: Option<u32>,
}

/// What one pod set gets.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodSetChoice {
    /// Pods it would be admitted with.
    pub(crate) count: u32,
    /// Charged resources in name order, with total amounts.
    pub(crate) requests: Vec<(ResIx, i64)>,
    /// In the same order; resources that need no flavor are left out.
    pub(crate) flavors: Vec<(ResIx, Choice)>,
    /// No flavor was found for some resource.
    pub(crate) failed: bool,
    /// A worse mode than the flavors', from the topology.
    pub(crate) lowered: Option<Mode>,
    /// Where its pods run.
    pub(crate) topology: Option<TopologyAssignment>,
    /// Flavor with the topology it is placed in.
    pub(crate) placed_in: Option<FlavorIx>,
}

impl PodSetChoice {
    /// The mode of its worst resource.
    pub(crate) fn mode(&self) -> Mode {
        if self.failed {
            return Mode::NoFit;
        }
        let flavors = self.flavors.iter().map(|(_, choice)| choice.mode).min().unwrap_or(Mode::Fit);
        self.lowered.map_or(flavors, |lowered| lowered.min(flavors))
    }

    /// Its flavors, each once, in the order of their ordinals.
    pub(crate) fn distinct_flavors(&self) -> Vec<FlavorIx> {
        let distinct: BTreeSet<FlavorIx> = self.flavors.iter().map(|(_, choice)| choice.flavor).collect();
        distinct.into_iter().collect()
    }

    /// The flavor of a resource.
    pub(crate) fn flavor(&self, resource: ResIx) -> Option<Choice> {
        self.flavors.iter().find(|(ix, _)| *ix == resource).map(|(_, choice)| *choice)
    }
}

/// One attempt that did not work, for the verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub(crate) pod_set: usize,
    /// The first resource of the group, to tell alternatives from co-requisites.
    pub(crate) group: ResIx,
    pub(crate) flavor: Arc<str>,
    pub(crate) cluster: Arc<str>,
    pub(crate) reason: Reason,
    pub(crate) shortfall: Option<Shortfall>,
    pub(crate) detail: Arc<str>,
}

/// What a workload could get.
#[derive(Clone, Debug, Default)]
pub(crate) struct Assignment {
    pub(crate) pod_sets: Vec<PodSetChoice>,
    /// Charged amounts by flavor-resource.
    pub(crate) usage: BTreeMap<FrIx, i64>,
    /// Highest borrow level of its resources.
    pub(crate) borrow: u32,
    /// What did not work on the way.
    pub(crate) attempts: Vec<Attempt>,
    /// The chosen spoke.
    pub(crate) spoke: Option<SpokeId>,
    /// Only the victims of others stand in its way.
    pub(crate) deferred: bool,
}

impl Assignment {
    /// A number that stands for what it would be charged: the same for the same names and amounts, whatever order they
    /// became known in.
    pub(crate) fn purpose(&self, names: &Interned) -> u64 {
        let one = |(fr, amount): (&FrIx, &i64)| {
            let (flavor, resource) = names.pair(*fr);
            let text = format!("{}/{}", names.flavors.text(flavor), names.resources.text(resource));
            print(&text, std::iter::once((0, *amount)))
        };
        self.usage.iter().map(one).fold(0, u64::wrapping_add)
    }

    /// Marks a pod set as without flavors.
    pub(crate) fn fail(&mut self, position: usize) {
        if let Some(pod_set) = self.pod_sets.get_mut(position) {
            pod_set.failed = true;
        }
    }

    /// The mode of its worst pod set.
    pub(crate) fn mode(&self) -> Mode {
        let worst = self.pod_sets.iter().map(PodSetChoice::mode).min().unwrap_or(Mode::Fit);
        if self.deferred && worst == Mode::Fit { Mode::Deferred } else { worst }
    }
}

/// A victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) row: RowIx,
    pub(crate) cause: PreemptionCause,
}

/// A head that passed the checks of.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) row: RowIx,
    pub(crate) queue: CqIx,
    pub(crate) tree: u32,
    pub(crate) node: NodeIx,
    pub(crate) assignment: Assignment,
    pub(crate) targets: Vec<Target>,
    /// It already holds quota: only its place is decided.
    pub(crate) second_pass: bool,
}
