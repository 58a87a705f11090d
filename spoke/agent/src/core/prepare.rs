//! Prepare: everything that can be known before anything is done.

use std::collections::BTreeSet;
use std::sync::Arc;

use fairlead_model::{Now, ObjectKey, PlacementId, Reason};
use fairlead_session::{Intent, Refusal};
use serde_json::Value;

use super::copy::Stamps;
use super::references::{RefKind, References};
use super::room::{Claim, Room};
use super::row::{Attempt, Row};
use super::{Core, Doing, constraints, refusal};
use crate::ports::{Kind, Op, OpId, Outcome, Tenant};

/// How long room is held for a placement that was accepted, in milliseconds.
pub(crate) const HOLD_MS: i64 = 30_000;

/// How long a reference that was found is believed to exist, in milliseconds. A burst of like jobs then costs one
/// look-up; one that is deleted meanwhile is missed as it would be a moment after Prepare.
const FOUND_MS: i64 = 5_000;

/// The most references that are remembered.
const FOUND_MAX: usize = 4096;

/// The one kind that this agent creates.
const JOB: &str = "batch/v1/Job";

/// What a look-up is about.
#[derive(Clone, Debug)]
pub(crate) enum Lookup {
    /// Whether the job's name is free.
    Name,
    /// Whether an object that the job names exists.
    Reference(RefKind, ObjectKey),
}

/// An order that passed every check that needs no look-up.
pub(crate) struct Valid {
    /// As whom.
    pub(crate) tenant: Tenant,
    /// The manifest.
    pub(crate) manifest: Value,
    /// What it refers to.
    pub(crate) references: References,
}

impl Core {
    /// A Prepare is in force.
    pub(super) fn prepare(
        &mut self,
        placement: &PlacementId,
        row: &mut Row,
        (intent, revision): (&Intent, u64),
        now: Now,
    ) {
        match &row.attempt {
            Attempt::Held { until } if *until <= now.mono => row.attempt = Attempt::Lapsed,
            Attempt::Idle if !row.creating() && row.copy.is_none() && self.inventory_ready() => {
                self.claims.remove(placement);
                row.attempt = match self.check(placement, row, intent) {
                    Ok((valid, claim)) => {
                        self.claims.insert(placement.clone(), claim);
                        let pending = self.look_up(placement, row, &valid, now);
                        if pending.is_empty() {
                            Attempt::Held { until: now.mono.plus(HOLD_MS) }
                        } else {
                            Attempt::Checking { revision, pending }
                        }
                    }
                    Err(refusal) => Attempt::Refused { revision, refusal },
                };
            }
            Attempt::Idle
            | Attempt::Checking { .. }
            | Attempt::Held { .. }
            | Attempt::Lapsed
            | Attempt::Creating
            | Attempt::Settling { .. }
            | Attempt::Refused { .. } => {}
        }
    }

    fn check(&self, placement: &PlacementId, row: &Row, intent: &Intent) -> Result<(Valid, Claim), Refusal> {
        if row.epoch.term < self.floor.term {
            let detail = format!("epoch {} is of a term before {}", row.epoch, self.floor.term.0);
            return Err(refusal(Reason::StaleEpoch, detail));
        }
        let valid = self.validate(placement, row, intent)?;
        let claim = claim_of(intent, &valid.manifest);
        let mut room = Room::new(super::capacity::shapes(self.capacity.free()));
        for (holder, held) in &self.claims {
            let job = self.rows.get(holder).and_then(|row| row.copy.as_ref()).map(|copy| &copy.uid);
            room.reserve(held, job.and_then(|job| self.capacity.bound(job)));
        }
        room.admit(&claim, &super::capacity::shapes(self.capacity.empty()))?;
        Ok((valid, claim))
    }

    /// The checks that Prepare and Start share. They need no look-up.
    pub(super) fn validate(
        &self,
        placement: &PlacementId,
        row: &Row,
        intent: &Intent,
    ) -> Result<Valid, Refusal> {
        self.unopposed(placement, row)?;
        if *intent.kind != *JOB {
            return Err(refusal(
                Reason::ForbiddenByPolicy,
                format!("this agent runs {JOB}, not {}", intent.kind),
            ));
        }
        let manifest: Value = serde_json::from_slice(&intent.manifest)
            .map_err(|error| refusal(Reason::InvalidJob, format!("the manifest is not JSON: {error}")))?;
        let references = References::of_job(&manifest)?;
        let tenant = self.policy.allow(intent, &references)?;
        if !self.namespaces.contains(&intent.namespace) {
            let detail = format!("namespace {} does not exist here or is being deleted", intent.namespace);
            return Err(refusal(Reason::NamespaceNotFound, detail));
        }
        Ok(Valid { tenant, manifest, references })
    }

    /// No copy of the run, and none of the name, is in the way.
    fn unopposed(&self, placement: &PlacementId, row: &Row) -> Result<(), Refusal> {
        let others = |placements: Option<&BTreeSet<PlacementId>>| {
            let ids = placements.into_iter().flatten().filter(|other| *other != placement);
            ids.filter_map(|other| Some((other.clone(), self.rows.get(other)?))).collect::<Vec<_>>()
        };
        for (other, rival) in others(self.by_run.get(&row.run)) {
            let stopped = rival.copy.as_ref().is_none_or(|copy| copy.gone && self.proven(copy));
            if stopped && !rival.creating() {
                continue;
            }
            if row.epoch < rival.epoch {
                let detail = format!("{other} of the same run has the later epoch {}", rival.epoch);
                return Err(refusal(Reason::StaleEpoch, detail));
            }
            return Err(refusal(Reason::Busy, format!("{other} of the same run has not stopped yet")));
        }
        for (other, rival) in others(self.by_key.get(&row.key)) {
            if rival.exists() || rival.creating() {
                let detail = format!("Job {} still belongs to {other}", row.key);
                return Err(refusal(Reason::Busy, detail));
            }
        }
        Ok(())
    }

    /// Asks for everything that only the API server knows, all at once. A name that no watch shows as taken is not
    /// asked for: should it be taken all the same, the create finds that out.
    fn look_up(&mut self, placement: &PlacementId, row: &Row, valid: &Valid, now: Now) -> BTreeSet<OpId> {
        let tenant = || Some(valid.tenant.clone());
        let mut pending = BTreeSet::new();
        if self.foreign.contains_key(&row.key) {
            let name = (Kind::Job, row.key.clone(), Op::GetMetadata, tenant());
            pending.insert(self.operate(placement, Doing::Lookup(Lookup::Name), name));
        }
        for reference in valid.references.iter().filter(|reference| !reference.optional) {
            let kind = reference.kind.kind();
            let key = ObjectKey::new(Arc::clone(&row.key.namespace), reference.name);
            if self.found.get(&(kind, key.clone())).is_some_and(|until| *until > now.mono) {
                continue;
            }
            let lookup = Doing::Lookup(Lookup::Reference(reference.kind, key.clone()));
            pending.insert(self.operate(placement, lookup, (kind, key, Op::GetMetadata, tenant())));
        }
        pending
    }

    /// A look-up has come back. The first refusal decides; acceptance needs all of them.
    pub(super) fn looked_up(
        &mut self,
        placement: &PlacementId,
        id: OpId,
        lookup: &Lookup,
        (outcome, now): (&Outcome, Now),
    ) {
        let judged = judge(placement, lookup, outcome);
        if let (Lookup::Reference(kind, key), Outcome::Done(_)) = (lookup, outcome) {
            if self.found.len() >= FOUND_MAX {
                self.found.clear();
            }
            self.found.insert((kind.kind(), key.clone()), now.mono.plus(FOUND_MS));
        }
        let Some(row) = self.rows.get_mut(placement) else { return };
        let Attempt::Checking { revision, pending } = &mut row.attempt else { return };
        let revision = *revision;
        if !pending.remove(&id) {
            return;
        }
        match judged {
            Err(refusal) => row.attempt = Attempt::Refused { revision, refusal },
            Ok(()) if pending.is_empty() => {
                row.attempt = Attempt::Held { until: now.mono.plus(HOLD_MS) };
            }
            Ok(()) => {}
        }
    }
}

/// What a job asks for: as the hub computed it, or from the manifest where it did not.
pub(super) fn claim_of(intent: &Intent, manifest: &Value) -> Claim {
    let spec = manifest.pointer("/spec/template/spec").unwrap_or(&Value::Null);
    let demand = if intent.demand.is_empty() { constraints::demand(manifest) } else { intent.demand.clone() };
    Claim { demand, constraints: constraints::read(spec) }
}

/// What the answer to a look-up means.
fn judge(placement: &PlacementId, lookup: &Lookup, outcome: &Outcome) -> Result<(), Refusal> {
    match (lookup, outcome) {
        (Lookup::Name, Outcome::NotFound) | (Lookup::Reference(..), Outcome::Done(_)) => Ok(()),
        (Lookup::Name, Outcome::Done(job)) => match taken_by(&job.json) {
            Some(owner) if owner == *placement => Ok(()),
            owner => Err(occupied(&job.key, owner.as_ref())),
        },
        (Lookup::Reference(kind, key), Outcome::NotFound) => Err(refusal(
            Reason::MissingReference,
            format!("{} {} does not exist in namespace {}", kind.name(), key.name, key.namespace),
        )),
        (_, Outcome::Refused(message)) => Err(refusal(Reason::ForbiddenByPolicy, message.as_str())),
        (_, Outcome::Unknown(_) | Outcome::Conflict | Outcome::AlreadyExists) => {
            let why = if let Outcome::Unknown(why) = outcome { why } else { "an unexpected answer" };
            Err(refusal(Reason::SpokeRefused, format!("the API server could not be asked: {why}")))
        }
    }
}

/// The placement that a Job belongs to, if it is one of ours.
pub(super) fn taken_by(job: &Value) -> Option<PlacementId> {
    Stamps::read(job).map(|stamps| stamps.placement)
}

/// Why a name cannot be had.
pub(super) fn occupied(key: &ObjectKey, owner: Option<&PlacementId>) -> Refusal {
    match owner {
        Some(owner) => refusal(Reason::Busy, format!("Job {key} still belongs to {owner}")),
        None => refusal(Reason::NameTaken, format!("Job {key} exists and is not ours; it is left alone")),
    }
}
