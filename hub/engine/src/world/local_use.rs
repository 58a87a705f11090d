//! Decayed use of LocalQueues [P-9], in fixed point: what a queue's workloads hold, averaged with a half-life, so that
//! the LocalQueues of a ClusterQueue take turns.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_model::{Millis, ObjectKey, ResourceName, Uid};

use super::World;
use super::rows::{Place, Row};
use crate::names::RowIx;
use crate::plan::Admission;
use crate::policy::AdmissionFairSharing;
use crate::round::share::Use;

/// Bits after the point of a fraction.
const POINT: u32 = 52;
/// Bits after the point while fractions are computed.
const FINE: u32 = 62;
/// Billionths of a base unit (a whole CPU, one of anything else) by resource.
type Amounts = BTreeMap<ResourceName, i128>;

/// What one LocalQueue has used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LocalUse {
    pub(super) consumed: Amounts,
    pub(super) updated: Millis,
    /// Charged at reservation, folded in at admission, by workload.
    pub(super) penalties: BTreeMap<Uid, Amounts>,
}

/// `2^(-time/half_life)` with [`POINT`] bits after the point; zero for a half-life of zero.
fn decay(time_ms: i64, half_life_ms: i64) -> u128 {
    let (Ok(time), Ok(half)) = (u128::try_from(time_ms.max(0)), u128::try_from(half_life_ms)) else {
        return 0;
    };
    if half == 0 {
        return 0;
    }
    let (whole, mut rest) = (time / half, time % half);
    let mut factor: u128 = 1 << (FINE - 1);
    let mut result: u128 = 1 << FINE;
    for _ in 0..FINE {
        // The next factor is 2^(-1/2), 2^(-1/4), …: the root of the one before.
        factor = (factor << FINE).isqrt();
        rest = rest.saturating_mul(2);
        if rest >= half {
            rest = rest.saturating_sub(half);
            result = result.saturating_mul(factor) >> FINE;
        }
    }
    let whole = u32::try_from(whole).unwrap_or(u32::MAX);
    (result >> (FINE - POINT)).checked_shr(whole).unwrap_or(0)
}

/// The part of an amount that a fraction takes, rounded down.
fn part(amount: i128, fraction: u128) -> i128 {
    let fraction = i128::try_from(fraction).unwrap_or(0);
    amount.saturating_mul(fraction) >> POINT
}

fn one() -> u128 {
    1 << POINT
}

/// An amount in billionths of its base unit.
fn billionths(resource: &str, amount: i64) -> i128 {
    i128::from(amount).saturating_mul(if resource == "cpu" { 1_000_000 } else { 1_000_000_000 })
}

fn add(target: &mut Amounts, resource: &ResourceName, amount: i128) {
    let sum = target.entry(Arc::clone(resource)).or_insert(0);
    *sum = sum.saturating_add(amount);
}

impl LocalUse {
    /// Lets time pass: old use fades, present use counts for the time that passed.
    fn update(&mut self, holds: &Amounts, sharing: &AdmissionFairSharing, now: Millis) {
        let kept = decay(now.since(self.updated), sharing.half_life_ms);
        let fresh = one().saturating_sub(kept);
        self.consumed.values_mut().for_each(|amount| *amount = part(*amount, kept));
        for (resource, amount) in holds {
            add(&mut self.consumed, resource, part(*amount, fresh));
        }
        if sharing.half_life_ms == 0 {
            self.consumed.clear();
        }
        self.updated = now;
    }

    /// The weighted sum of everything used, penalties included.
    fn weighted(&self, sharing: &AdmissionFairSharing) -> i128 {
        let weight = |resource: &ResourceName| {
            let stated = sharing.resource_weights.iter().find(|(name, _)| name == resource);
            stated.map_or(1_000_000_000, |(_, weight)| i128::from(*weight))
        };
        let all = self.consumed.iter().chain(self.penalties.values().flatten());
        all.fold(0, |sum, (resource, amount)| {
            sum.saturating_add(amount.saturating_mul(weight(resource)) / 1_000_000_000)
        })
    }
}

impl World {
    /// Samples the use of every LocalQueue whose interval has elapsed [P-9], as of the latest time that is known.
    pub fn sample(&mut self) {
        let Some(sharing) = self.settings.admission_fair_sharing.clone() else { return };
        let keys: Vec<ObjectKey> = self.locals.keys().cloned().collect();
        for key in keys {
            let known = self.local_use.get(&key);
            let due = known.is_none_or(|known| self.now.since(known.updated) >= sharing.sampling_ms);
            if due {
                let holds = self.local_holds(&key);
                let now = self.now;
                let entry = self
                    .local_use
                    .entry(key)
                    .or_insert_with(|| LocalUse { updated: now, ..LocalUse::default() });
                entry.update(&holds, &sharing, now);
            }
        }
    }

    /// What the admitted workloads of a LocalQueue hold.
    fn local_holds(&self, key: &ObjectKey) -> Amounts {
        let mut holds = Amounts::new();
        for row in self.by_local.get(key).into_iter().flatten().filter_map(|ix| self.row(*ix)) {
            let Some(held) = row.held.as_deref().filter(|held| held.admitted) else { continue };
            for (fr, amount) in &held.charge.usage {
                let resource = self.names.resources.name(self.names.pair(*fr).1);
                add(&mut holds, &resource, billionths(&resource, *amount));
            }
        }
        holds
    }

    /// Charges the entry penalty of an admission; one that is admitted at once is folded in at once.
    pub(super) fn charge_entry(&mut self, ix: RowIx, admission: &Admission) {
        let Some(sharing) = self.settings.admission_fair_sharing.clone() else { return };
        let Some(key) = self.row(ix).map(|row| Arc::clone(&row.fact.local)) else { return };
        let fresh = one().saturating_sub(decay(sharing.sampling_ms, sharing.half_life_ms));
        let mut total = Amounts::new();
        for (resource, amount) in admission.pod_sets.iter().flat_map(|pod_set| pod_set.usage.iter()) {
            add(&mut total, resource, billionths(resource, amount));
        }
        for amount in total.values_mut() {
            *amount = part(*amount, fresh);
        }
        let now = self.now;
        let entry = self
            .local_use
            .entry((*key).clone())
            .or_insert_with(|| LocalUse { updated: now, ..LocalUse::default() });
        entry.penalties.insert(admission.uid.clone(), total);
        if !admission.checks_pending {
            self.fold_entry(&key, &admission.uid);
        }
    }

    /// Folds a workload's penalty into what its LocalQueue has used: it is admitted.
    fn fold_entry(&mut self, key: &ObjectKey, uid: &Uid) {
        let Some(sharing) = self.settings.admission_fair_sharing.clone() else { return };
        let holds = self.local_holds(key);
        let now = self.now;
        let Some(entry) = self.local_use.get_mut(key) else { return };
        let Some(penalty) = entry.penalties.remove(uid) else { return };
        entry.update(&holds, &sharing, now);
        for (resource, amount) in &penalty {
            add(&mut entry.consumed, resource, *amount);
        }
    }

    /// Settles or drops a workload's penalty after its fact has changed.
    pub(super) fn settle_entry(&mut self, ix: RowIx) {
        if self.settings.admission_fair_sharing.is_none() {
            return;
        }
        let Some(row) = self.row(ix) else { return };
        let (key, uid) = (Arc::clone(&row.fact.local), row.fact.uid.clone());
        let admitted = row.held.as_deref().is_some_and(|held| held.admitted);
        if admitted {
            self.fold_entry(&key, &uid);
        } else if !matches!(row.place, Place::Held(_))
            && let Some(entry) = self.local_use.get_mut(&*key)
        {
            entry.penalties.remove(&uid);
        }
    }

    /// A row's LocalQueue use by its weight; nothing where it does not order the queue.
    pub(crate) fn use_of(&self, row: &Row) -> Option<Use> {
        let sharing = self.settings.admission_fair_sharing.as_ref()?;
        let key = &*row.fact.local;
        let weight = self.locals.get(key).map_or(1_000_000_000, |local| i128::from(local.weight.0));
        let used = self.local_use.get(key).map_or(0, |known| known.weighted(sharing));
        Some(Use(if weight <= 0 { i128::MAX } else { used.saturating_mul(1_000_000_000) / weight }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fraction as parts per billion, rounded down.
    fn parts(fraction: u128) -> u128 {
        (fraction * 1_000_000_000) >> POINT
    }

    #[test]
    fn p9_use_halves_with_each_half_life() {
        assert_eq!(decay(0, 1000), one());
        assert_eq!(parts(decay(1000, 1000)), 500_000_000);
        assert_eq!(parts(decay(3000, 1000)), 125_000_000);
        assert_eq!(parts(decay(500, 1000)), 707_106_781);
        assert_eq!(decay(10, 0), 0);
        assert_eq!(decay(i64::MAX, 1), 0);
    }

    #[test]
    fn p9_sampling_averages_what_is_held() {
        let sharing =
            AdmissionFairSharing { half_life_ms: 1000, sampling_ms: 1000, resource_weights: Vec::new() };
        let mut used = LocalUse::default();
        let holds = Amounts::from([(Arc::from("cpu"), 4_000_000_000)]);
        used.update(&holds, &sharing, Millis(1000));
        assert_eq!(used.weighted(&sharing), 2_000_000_000);
        used.update(&Amounts::new(), &sharing, Millis(2000));
        assert_eq!(used.weighted(&sharing), 1_000_000_000);
    }
}
