//! Why a workload waits or where it went, as data.

use std::sync::Arc;

use crate::{Reason, ResourceName};

/// How many candidates a verdict keeps: the best ones.
pub const MAX_CANDIDATES: usize = 8;

/// What was missing: measured, in the resource's smallest unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortfall {
    /// Which resource.
    pub resource: ResourceName,
    /// What the workload asks for.
    pub requested: i64,
    /// What was there for it.
    pub available: i64,
}

impl Shortfall {
    /// How much is missing; never negative.
    pub fn missing(&self) -> i64 {
        self.requested.saturating_sub(self.available).max(0)
    }
}

/// One place that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The cluster's name; empty when the flavor failed before any cluster was looked at.
    pub cluster: Arc<str>,
    /// The flavor; empty when the pod sets use several.
    pub flavor: Arc<str>,
    /// The first rule that failed, or [`Reason::Fits`].
    pub reason: Reason,
    /// What was measured, where the rule measures something.
    pub shortfall: Option<Shortfall>,
    /// What a spoke said when it refused, or other detail; may be empty.
    pub detail: Arc<str>,
}

/// The explanation of one decision: one value behind conditions, events, the CLI, metrics and replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The token that names the decision.
    pub reason: Reason,
    /// The chosen cluster's name, when there is one.
    pub cluster: Option<Arc<str>>,
    /// One sentence for people, built from the parts below.
    pub message: Arc<str>,
    /// The best candidates, best first, at most [`MAX_CANDIDATES`].
    pub candidates: Vec<Candidate>,
}
