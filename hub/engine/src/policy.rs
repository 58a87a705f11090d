//! What the operator of the hub has set, as values. There is no global lookup: these are part of the input.

use std::sync::Arc;

use fairlead_model::ResourceName;

/// What happens to the input of a transformation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransformationStrategy {
    /// It stays beside the outputs.
    Retain,
    /// The outputs stand for it.
    Replace,
}

/// A number with a fixed denominator of one billion, so that factors such as `0.5` need no floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Factor(pub i128);

/// Turns one requested resource into others before quota is counted [F-1].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transformation {
    /// The resource that is looked for.
    pub input: ResourceName,
    /// What happens to it.
    pub strategy: TransformationStrategy,
    /// The pod's own amount of this resource multiplies the outputs.
    pub multiply_by: Option<ResourceName>,
    /// Each output and its factor; may be negative.
    pub outputs: Vec<(ResourceName, Factor)>,
}

/// How a pod's requests become charged amounts [F-1].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestRules {
    /// Resources whose names start so are not counted.
    pub exclude_prefixes: Vec<Arc<str>>,
    /// Transformations, in order.
    pub transformations: Vec<Transformation>,
    /// A resource without quota is ignored instead of being a misfit (`quotaCheckStrategy: IgnoreUndeclared`).
    pub ignore_undeclared: bool,
}

/// Admission fair sharing: the LocalQueues of a ClusterQueue take turns by decayed use [P-9].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmissionFairSharing {
    /// After this time use counts half, in milliseconds; zero forgets at once.
    pub half_life_ms: i64,
    /// How often use is sampled, in milliseconds.
    pub sampling_ms: i64,
    /// Weight per resource in billionths; a missing one counts one.
    pub resource_weights: Vec<(ResourceName, i64)>,
}

/// What shapes the state that a [`World`](crate::World) keeps; fixed for its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How requests are computed.
    pub requests: RequestRules,
    /// Admission fair sharing, where it is on.
    pub admission_fair_sharing: Option<AdmissionFairSharing>,
    /// Whether a queue admits nothing while pods of a workload that holds its quota are not ready [W-1]. Kueue blocks
    /// all queues.
    pub block_admission: bool,
    /// Whether quota that a workload of a stopped LocalQueue gives back wakes those that wait for it. Kueue loses this
    /// wake-up, because its manager does not know stopped LocalQueues; here it is on unless Kueue is to be followed to
    /// the letter.
    pub wake_on_drain: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            requests: RequestRules::default(),
            admission_fair_sharing: None,
            block_admission: false,
            wake_on_drain: true,
        }
    }
}

/// The rules by which fair sharing finds victims [P-6], in the order they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FairStrategy {
    /// The preemptor's new share must not exceed the victim's share after its loss.
    LessThanOrEqualToFinalShare,
    /// The preemptor's new share must be below the victim's share before its loss.
    LessThanInitialShare,
}

/// How dominant shares compare [P-5].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShareRule {
    /// As exact ratios: equal is equal.
    #[default]
    Exact,
    /// As the 64-bit floats that Kueue computes, whose last bit may tell equal ratios apart.
    Float,
}

/// What a decision depends on beside the facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Fair sharing with these strategies; none means classical order and preemption.
    pub fair_sharing: Option<Vec<FairStrategy>>,
    /// How shares compare.
    pub shares: ShareRule,
    /// Whether a workload whose failed nodes cannot be replaced now is evicted [TAS-7]; else it is tried again.
    pub fail_fast: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self { fair_sharing: None, shares: ShareRule::default(), fail_fast: true }
    }
}

/// What one call of [`decide`](crate::decide) may spend. Counted, not timed, so that a decision does not depend on
/// the machine; heads that were not reached stay first in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Rounds.
    pub rounds: u32,
    /// Heads over all rounds.
    pub heads: u32,
    /// What-ifs (fits that are tried with victims gone) over all rounds. A head that was begun is finished: its search
    /// may take more than was left.
    pub what_ifs: u32,
}

impl Default for Budget {
    /// One round without further bounds.
    fn default() -> Self {
        Self { rounds: 1, heads: u32::MAX, what_ifs: u32::MAX }
    }
}
