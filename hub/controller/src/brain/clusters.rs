//! Statuses of Clusters: conditions at once, numbers at most every 30 seconds.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_api::Quantity;
use fairlead_api::conditions::{self, ClusterCondition, ClusterReason, Status, Wanted};
use fairlead_api::fairlead::{ClusterStatus, DeviceCount, FlavorCapacity, Presence};
use fairlead_engine::fact;
use fairlead_model::{Labels, Millis, ObjectKey, Resources, Shape};

use super::Brain;
use super::ledger::{Purpose, Readiness};
use super::run::api_time;
use super::spoke::Spoke;
use crate::jobs::json;
use crate::ports::{Kind, Op};

/// Least time between two writes of numbers alone, in milliseconds.
const NUMBERS_MS: i64 = 30_000;
/// Clocks that differ by more than this are said to differ, in milliseconds.
const CLOCK_MS: u64 = 5_000;

impl Brain {
    /// Writes the status of a Cluster if it says something new that is due.
    pub(crate) fn flush_cluster(&mut self, key: &ObjectKey) {
        let found = self.spokes.values().find(|spoke| spoke.cluster.as_ref().is_some_and(|c| c.key == *key));
        let Some(spoke) = found else {
            return;
        };
        let (id, wake) = (spoke.id.clone(), spoke.slot.wake());
        let Some(object) = spoke.cluster.clone() else {
            return;
        };
        let op = match spoke.slot.readiness(self.now.mono) {
            Readiness::Busy => return self.look_again(Kind::Cluster, key, wake),
            Readiness::MustRead => Op::Get,
            Readiness::Free => {
                let generation = json::integer(&object.json, &["metadata", "generation"]);
                let state = |status: &mut ClusterStatus| self.facts_of(spoke, generation, status);
                let due = spoke.numbers_written.map(|at| at.plus(NUMBERS_MS));
                let held_back = due.filter(|due| *due > self.now.mono);
                if held_back.is_some() && Self::change(&object, state).is_none() {
                    return self.look_again(Kind::Cluster, key, held_back);
                }
                // What is due anyway takes the numbers along.
                let patch = Self::change(&object, |status| {
                    state(status);
                    self.numbers_of(spoke, status);
                });
                match patch {
                    Some(patch) => Op::PatchStatus(patch),
                    None => return,
                }
            }
        };
        let wrote = matches!(op, Op::PatchStatus(_));
        let op = self.send(Purpose::Upkeep(Kind::Cluster, key.clone()), Kind::Cluster, key, op);
        let now = self.now.mono;
        let spoke = self.spoke_mut(&id);
        spoke.slot.take(op, object.version);
        if wrote {
            spoke.numbers_written = Some(now);
        }
    }

    /// Conditions, presence, versions, identity: what people and scripts wait for.
    fn facts_of(&self, spoke: &Spoke, generation: Option<i64>, status: &mut ClusterStatus) {
        status.observed_generation = generation;
        let presence = spoke.presence(self.now.mono);
        status.presence = match spoke.beats.presence(self.now.mono) {
            fairlead_placement::Presence::Fresh => Some(Presence::Fresh),
            fairlead_placement::Presence::Suspect => Some(Presence::Suspect),
            fairlead_placement::Presence::Unseen => status.presence,
        };
        if !spoke.versions.fairlead.is_empty() {
            let versions = status.versions.get_or_insert_default();
            versions.agent = spoke.versions.fairlead.to_string();
            versions.kubernetes = spoke.versions.kubernetes.to_string();
            versions.protocol = i32::try_from(fairlead_session::PROTOCOL).ok();
        }
        if let Some(expires) = spoke.certificate_expires {
            let identity = status.identity.get_or_insert_default();
            identity.expires_at = Some(api_time(Millis(expires.saturating_mul(1000))));
        }
        let registered = status.identity.is_some();
        for (kind, (holds, reason, message)) in self.cluster_conditions(spoke, presence, registered) {
            let wanted = Wanted::new(kind, holds, reason, message).at_generation(generation);
            conditions::set_condition(&mut status.conditions, wanted, &api_time(self.now.wall));
        }
    }

    fn cluster_conditions(
        &self,
        spoke: &Spoke,
        presence: fact::Presence,
        registered: bool,
    ) -> [(ClusterCondition, (Status, ClusterReason, &'static str)); 7] {
        let fine = ClusterReason::AsExpected;
        let seen = spoke.beats.last().is_some();
        let expired =
            spoke.certificate_expires.is_some_and(|end| end.saturating_mul(1000) <= self.now.wall.0);
        let cordoned = spoke.cluster.as_ref().is_some_and(|c| json::flag(&c.json, &["spec", "cordon"]));
        let never = (Status::False, ClusterReason::NeverJoined, "No spoke has joined under this name");
        let unknown =
            (Status::Unknown, ClusterReason::NotSeenYet, "No session has been up since this hub started");
        let connected = match (spoke.connected, presence) {
            _ if !registered => never,
            _ if !seen => unknown,
            (true, fact::Presence::Suspect) => {
                (Status::False, ClusterReason::HeartbeatMissing, "Heartbeats are missing")
            }
            (true, _) => (Status::True, fine, "The session is up"),
            (false, _) => (Status::False, ClusterReason::Disconnected, "The session has ended"),
        };
        let synced = spoke.clock_offset_ms.unsigned_abs() <= CLOCK_MS;
        let when_seen =
            |holds: bool, good: &'static str, bad: (ClusterReason, &'static str)| match (seen, holds) {
                (false, _) if registered => unknown,
                (false, _) => never,
                (true, true) => (Status::True, fine, good),
                (true, false) => (Status::False, bad.0, bad.1),
            };
        let schedulable = match (cordoned, presence) {
            (true, _) => (Status::False, ClusterReason::Cordoned, "The cluster is cordoned"),
            (false, fact::Presence::Fresh) => (Status::True, fine, "New work may be started there"),
            (false, _) => (connected.0, connected.1, "The cluster cannot be asked now"),
        };
        let ended = (ClusterReason::CertificateExpired, "The certificate has ended");
        let apart = (ClusterReason::ClockOffset, "The spoke's clock differs from the hub's");
        let no_report = (ClusterReason::NoReport, "No capacity was reported yet");
        let joined = if registered { (Status::True, fine, "A spoke has joined") } else { never };
        [
            (ClusterCondition::Registered, joined),
            (ClusterCondition::Connected, connected),
            (ClusterCondition::CredentialsValid, when_seen(!expired, "The certificate is valid", ended)),
            (ClusterCondition::ClockSynced, when_seen(synced, "The clocks agree", apart)),
            (
                ClusterCondition::VersionCompatible,
                when_seen(true, "The versions fit together", (ClusterReason::VersionSkew, "")),
            ),
            (ClusterCondition::Schedulable, schedulable),
            (
                ClusterCondition::CapacityFresh,
                when_seen(spoke.report.is_some(), "The reported capacity is recent", no_report),
            ),
        ]
    }

    /// What changes all the time and is for the eye.
    fn numbers_of(&self, spoke: &Spoke, status: &mut ClusterStatus) {
        if let Some(at) = spoke.last_heartbeat {
            status.last_heartbeat_time = Some(api_time(at));
        }
        if spoke.beats.last().is_some() {
            status.clock_offset_milliseconds = Some(spoke.clock_offset_ms);
        }
        let Some(report) = &spoke.report else {
            return;
        };
        status.nodes = i32::try_from(report.nodes).ok();
        status.devices = Some(DeviceCount { total: gpus(&report.empty), free: gpus(&report.free).max(0) });
        let used = self.catalog.flavors().filter_map(|(name, labels)| {
            let total = matching(&report.empty, &labels);
            let free = matching(&report.free, &labels);
            (!total.is_empty()).then(|| FlavorCapacity {
                name: name.to_string(),
                total: quantities(&sum(&total)),
                free: quantities(&sum(&free)),
                largest_block: quantities(&largest(&free)),
            })
        });
        status.flavors = used.take(64).collect();
    }
}

fn matching<'a>(shapes: &'a [Shape], labels: &Labels) -> Vec<&'a Shape> {
    let fits = |shape: &&Shape| labels.iter().all(|(key, value)| shape.class.labels.get(key) == Some(value));
    shapes.iter().filter(fits).collect()
}

fn sum(shapes: &[&Shape]) -> Resources {
    let mut sum = Resources::new();
    for shape in shapes {
        sum.add(&shape.free.times(shape.count.into()));
    }
    sum
}

fn largest(shapes: &[&Shape]) -> Resources {
    let mut largest = Resources::new();
    for (name, amount) in shapes.iter().flat_map(|shape| shape.free.iter()) {
        if amount > largest.get(name) {
            largest.set(Arc::clone(name), amount);
        }
    }
    largest
}

fn gpus(shapes: &[Shape]) -> i64 {
    let all: Vec<&Shape> = shapes.iter().collect();
    let gpu = |(name, _): &(&fairlead_model::ResourceName, i64)| name.ends_with("/gpu");
    sum(&all).iter().filter(gpu).fold(0, |sum, (_, amount)| sum.saturating_add(amount))
}

fn quantities(resources: &Resources) -> BTreeMap<String, Quantity> {
    resources.iter().map(|(name, amount)| (name.to_string(), Quantity::of(name, amount.max(0)))).collect()
}
