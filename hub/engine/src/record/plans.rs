//! Policies and budgets as they are recorded, and plans as they are hashed.

use fairlead_model::{Candidate, PodDemand, Shortfall, Verdict};

use super::Fault;
use super::hash::wide;
use super::wire::{Get, Put, Reader, Writer, fields, put_fields, variants};
use crate::fact::PreemptionCause;
use crate::memory::{Memory, Requeue, Scan, Way};
use crate::policy::Factor;
use crate::policy::{
    AdmissionFairSharing, FairStrategy, RequestRules, ShareRule, Transformation, TransformationStrategy,
};
use crate::{Admission, Budget, Displaced, Head, Outcome, Plan, Policy, Preempted, Settings};

/// A number that stands for everything that a plan says, verdicts and memory included; what it cost to find out does
/// not count. It is the same on every machine.
pub fn plan_hash(plan: &Plan) -> u128 {
    let Plan { at, admissions, evictions, displaced, heads, rounds, quiet, spent: _, memory } = plan;
    let mut out = Writer::default();
    at.put(&mut out);
    admissions.put(&mut out);
    evictions.put(&mut out);
    displaced.put(&mut out);
    heads.put(&mut out);
    rounds.put(&mut out);
    quiet.put(&mut out);
    memory.put(&mut out);
    wide(&out.bytes)
}

impl Put for Factor {
    fn put(&self, out: &mut Writer) {
        self.0.put(out);
    }
}

impl Get for Factor {
    fn get(input: &mut Reader<'_>) -> Result<Self, Fault> {
        Ok(Self(Get::get(input)?))
    }
}

fields! {
    Transformation { input, strategy, multiply_by, outputs }
    RequestRules { exclude_prefixes, transformations, ignore_undeclared }
    AdmissionFairSharing { half_life_ms, sampling_ms, resource_weights }
    Settings { requests, admission_fair_sharing, block_admission, wake_on_drain }
    Policy { fair_sharing, shares, fail_fast }
    Budget { rounds, heads, what_ifs }
    Scan { tried, generation, round }
}

variants! {
    TransformationStrategy { 0 = Retain, 1 = Replace }
    FairStrategy { 0 = LessThanOrEqualToFinalShare, 1 = LessThanInitialShare }
    ShareRule { 0 = Exact, 1 = Float }
    PreemptionCause {
        0 = InClusterQueue, 1 = InCohortReclamation, 2 = InCohortFairSharing,
        3 = InCohortReclaimWhileBorrowing,
    }
    Outcome {
        0 = Admitted, 1 = PendingPreemption, 2 = NoFit, 3 = PreemptionNoCandidates, 4 = PreemptionGated,
        5 = Skipped, 6 = NamespaceMismatch, 7 = Rejected, 8 = Outside, 9 = Blocked,
    }
}

put_fields! {
    Shortfall { resource, requested, available }
    Candidate { cluster, flavor, reason, shortfall, detail }
    Verdict { reason, cluster, message, candidates }
    PodDemand { requests, count }
    Admission {
        uid, key, cluster_queue, pod_sets, demand, spoke, checks_pending, round, verdict,
    }
    Preempted { uid, key, cluster_queue, cause, by, by_key, round }
    Displaced { uid, key, cluster_queue, nodes, round }
    Head { uid, key, cluster_queue, root, round, entered, outcome, verdict }
    Requeue { uid, immediate, sticky, class_failed, scan, swept }
    Way { victim, preemptor, purpose }
    Memory { requeues, ways }
}
