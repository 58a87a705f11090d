//! Weighted shares in the statuses of ClusterQueues and Cohorts, where fair sharing is on.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_api::kueue::{CohortStatus, FairSharingStatus};
use fairlead_model::{Millis, ObjectKey};

use super::PAUSE_MS;
use crate::brain::Brain;
use crate::ports::{Kind, Object};

/// The shares as of the last look.
#[derive(Debug, Default)]
pub(super) struct Shares {
    known: BTreeMap<(Kind, Arc<str>), i64>,
    looked: Option<Millis>,
    /// Something was decided or learnt since.
    pub(super) stale: bool,
}

impl Brain {
    /// The engine has decided, so shares may have changed.
    pub(crate) const fn shares_changed(&mut self) {
        self.sums.shares.stale = true;
    }

    /// Computes the shares anew, at most once a second, and touches the statuses that show another.
    pub(super) fn refresh_shares(&mut self) {
        if self.config.policy.fair_sharing.is_none() || !self.sums.shares.stale {
            return;
        }
        let now = self.now.mono;
        let due = self.sums.shares.looked.map(|looked| looked.plus(PAUSE_MS));
        if let Some(due) = due.filter(|due| *due > now) {
            // Any wake brings a turn; this one is about no Cohort in particular.
            return self.look_again(Kind::Cohort, &ObjectKey::new("", ""), Some(due));
        }
        let _settled = self.world.snapshot();
        let shares = self.world.weighted_shares();
        let kind = |cohort: bool| if cohort { Kind::Cohort } else { Kind::ClusterQueue };
        // Nobody's share is larger than that of a weight of zero.
        let known: BTreeMap<_, _> = shares
            .into_iter()
            .map(|(cohort, name, share)| ((kind(cohort), name), share.unwrap_or(i64::MAX)))
            .collect();
        let old = std::mem::replace(&mut self.sums.shares.known, known);
        (self.sums.shares.looked, self.sums.shares.stale) = (Some(now), false);
        let changed = self.sums.shares.known.iter().filter(|(key, share)| old.get(*key) != Some(*share));
        let changed: Vec<_> = changed.map(|((kind, name), _)| (*kind, Arc::clone(name))).collect();
        for (kind, name) in changed {
            self.sums.touch(kind, ObjectKey::new("", name));
        }
    }

    pub(super) fn share_of(&self, kind: Kind, name: &Arc<str>) -> Option<FairSharingStatus> {
        self.config.policy.fair_sharing.as_ref()?;
        let share = self.sums.shares.known.get(&(kind, Arc::clone(name))).copied().unwrap_or(0);
        Some(FairSharingStatus { weighted_share: share })
    }

    pub(super) fn cohort_status(&self, object: &Object, status: &mut CohortStatus) {
        status.fair_sharing = self.share_of(Kind::Cohort, &object.key.name);
        self.set_active(&mut status.conditions, object, &self.cohort_active(object));
    }
}
