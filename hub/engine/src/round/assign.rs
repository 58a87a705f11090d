//! Chooses flavors for a workload [F-2]…[F-8].

use std::sync::Arc;

use fairlead_model::{Reason, Shortfall};

use super::cluster::ClusterScan;
use super::entry::{Assignment, Attempt, Choice, Grade, Means, Mode, PodSetChoice};
use super::grade::{self, Search};
use super::overlay::Overlay;
use super::{Round, flavor};
use crate::memory::Scan;
use crate::names::{CqIx, FlavorIx, FrIx, ResIx, next};
use crate::quota::{NodeIx, Tree};
use crate::world::rows::{Group, Queue, Row};

/// Chooses flavors for one workload in one state.
#[derive(Debug)]
pub(crate) struct Assigner<'r, 'w> {
    pub(crate) round: &'r Round<'w>,
    pub(crate) state: &'r Overlay<'w>,
    pub(crate) row: &'w Row,
    pub(crate) queue_ix: CqIx,
    pub(crate) queue: &'w Queue,
    pub(crate) tree_ix: u32,
    pub(crate) tree: &'w Tree,
    pub(crate) node: NodeIx,
    /// Where earlier scans stopped; none starts from the first flavor.
    pub(crate) scan: Option<&'r Scan>,
    /// During recomputation within a round: only the flavors that were nominated before.
    pub(crate) nominated: Option<&'r Assignment>,
}

/// Pod sets that are assigned together, with what they request together, in the order of resource names.
#[derive(Debug, Default)]
pub(crate) struct Unit {
    pub(crate) pod_sets: Vec<usize>,
    pub(crate) requests: Vec<(ResIx, i64)>,
}

/// A flavor that was found for a group of resources.
struct Found {
    choices: Vec<(ResIx, Choice)>,
    grade: Grade,
    /// Clusters that remain if this flavor is taken.
    clusters: Option<Vec<bool>>,
    flavor: FlavorIx,
}

impl<'w> Assigner<'_, 'w> {
    /// Assigns flavors for the given pod counts; none stands for all pods that are needed.
    pub(crate) fn assign(&self, counts: Option<&[u32]>) -> Assignment {
        let mut assignment = Assignment::default();
        for (position, pod_set) in self.row.gang.pod_sets.iter().enumerate() {
            let needed = self.row.needed(pod_set);
            let count = counts.and_then(|counts| counts.get(position).copied());
            let count = count.map_or(needed, |count| count.min(needed));
            let requests = self.pod_set_requests(position, count);
            assignment.pod_sets.push(PodSetChoice { count, requests, ..PodSetChoice::default() });
        }
        let counts = || assignment.pod_sets.iter().map(|pod_set| pod_set.count).collect();
        let mut clusters = ClusterScan::new(self, counts);
        for unit in self.units(&assignment) {
            if !self.assign_unit(&unit, &mut assignment, clusters.as_mut()) {
                return assignment;
            }
        }
        if let Some(clusters) = clusters
            && assignment.mode() == Mode::Fit
        {
            assignment.spoke = clusters.choose(self, &mut assignment);
        }
        self.round.place_topology(self, &mut assignment);
        assignment
    }

    /// Total charged requests of one pod set in name order, `pods` included where the queue covers it [F-1].
    fn pod_set_requests(&self, position: usize, count: u32) -> Vec<(ResIx, i64)> {
        let names = &self.round.world.names.resources;
        let charged = self.row.gang.charged.get(position).map_or(&[][..], |charged| &**charged);
        let mut requests = Vec::with_capacity(charged.len().saturating_add(1));
        requests.extend(charged.iter().map(|(ix, amount)| (*ix, amount.saturating_mul(i64::from(count)))));
        let Some(pods) = names.find("pods").filter(|pods| self.queue.group_of(*pods).is_some()) else {
            return requests;
        };
        if let Some((_, amount)) = requests.iter_mut().find(|(ix, _)| *ix == pods) {
            *amount = i64::from(count);
        } else {
            let place = requests.partition_point(|(ix, _)| names.text(*ix) < "pods");
            requests.insert(place, (pods, i64::from(count)));
        }
        requests
    }

    /// Pod sets of one topology group form a unit, every other pod set one of its own.
    fn units(&self, assignment: &Assignment) -> Vec<Unit> {
        let names = &self.round.world.names.resources;
        let mut units: Vec<(Option<&Arc<str>>, Unit)> = Vec::new();
        for (position, pod_set) in self.row.gang.pod_sets.iter().enumerate() {
            let group = pod_set.topology.as_ref().and_then(|topology| topology.group.as_ref());
            let known = units.iter().position(|(name, _)| group.is_some() && *name == group);
            let ix = known.unwrap_or_else(|| {
                units.push((group, Unit::default()));
                units.len().saturating_sub(1)
            });
            let Some((_, unit)) = units.get_mut(ix) else { continue };
            unit.pod_sets.push(position);
            let requests = assignment.pod_sets.get(position).map(|choice| &choice.requests);
            for (resource, amount) in requests.into_iter().flatten() {
                if let Some((_, sum)) = unit.requests.iter_mut().find(|(ix, _)| ix == resource) {
                    *sum = sum.saturating_add(*amount);
                    continue;
                }
                let name = names.text(*resource);
                let place = unit.requests.partition_point(|(ix, _)| names.text(*ix) < name);
                unit.requests.insert(place, (*resource, *amount));
            }
        }
        units.into_iter().map(|(_, unit)| unit).collect()
    }

    /// Finds flavors for all resources of a unit; false when one of them has none.
    fn assign_unit(
        &self,
        unit: &Unit,
        assignment: &mut Assignment,
        mut clusters: Option<&mut ClusterScan<'w>>,
    ) -> bool {
        let mut done: Vec<(ResIx, Choice)> = Vec::new();
        let mut all_fit = true;
        let names = &self.round.world.names.resources;
        for (resource, amount) in &unit.requests {
            if done.iter().any(|(assigned, _)| assigned == resource) {
                continue;
            }
            let Some(group) = self.queue.group_of(*resource) else {
                if *amount == 0 || self.round.world.settings.requests.ignore_undeclared {
                    continue;
                }
                let attempt = Self::attempt(unit, *resource, "", Reason::ResourceNotCovered);
                let shortfall =
                    Some(Shortfall { resource: names.name(*resource), requested: *amount, available: 0 });
                assignment.attempts.push(Attempt { shortfall, ..attempt });
                return fail(unit, assignment);
            };
            let found = self.scan_group(unit, group, assignment, clusters.as_deref());
            let Some(found) = found else { return fail(unit, assignment) };
            if let (Some(clusters), Some(remaining)) = (clusters.as_deref_mut(), found.clusters) {
                clusters.take(unit, found.flavor, remaining);
            }
            all_fit &= found.grade.means == Means::Fit;
            done.extend(found.choices);
        }
        if all_fit {
            // Flavors that are judged to fit as a whole count so for each resource [F-5], even where one that comes
            // from further up the tree outweighs another that would need preemption.
            for (_, choice) in &mut done {
                choice.mode = Mode::Fit;
            }
        }
        self.record(unit, &done, assignment);
        true
    }

    /// Writes what a unit gets into the assignment.
    fn record(&self, unit: &Unit, done: &[(ResIx, Choice)], assignment: &mut Assignment) {
        let names = &self.round.world.names;
        for position in &unit.pod_sets {
            let Some(pod_set) = assignment.pod_sets.get_mut(*position) else { continue };
            for (resource, amount) in &pod_set.requests {
                let Some((_, choice)) = done.iter().find(|(ix, _)| ix == resource) else { continue };
                pod_set.flavors.push((*resource, *choice));
                assignment.borrow = assignment.borrow.max(choice.borrow);
                if let Some(fr) = names.find_fr(choice.flavor, *resource) {
                    let sum = assignment.usage.entry(fr).or_insert(0);
                    *sum = sum.saturating_add(*amount);
                }
            }
        }
        self.round.note_topology_flavors(self, unit, done, assignment);
    }

    pub(crate) fn attempt(unit: &Unit, group: ResIx, flavor: &str, reason: Reason) -> Attempt {
        Attempt {
            pod_set: unit.pod_sets.first().copied().unwrap_or(0),
            group,
            flavor: flavor.into(),
            cluster: "".into(),
            reason,
            shortfall: None,
            detail: "".into(),
        }
    }

    /// The search over the flavors of one group [F-6].
    fn scan_group(
        &self,
        unit: &Unit,
        group: &Group,
        assignment: &mut Assignment,
        clusters: Option<&ClusterScan<'w>>,
    ) -> Option<Found> {
        let search = Search::of(self.queue);
        let first = unit.pod_sets.first().copied().unwrap_or(0);
        let last = next(group.flavors.len()).checked_sub(1)?;
        // A resource that the first pod set of the unit does not request itself starts over.
        let covered = unit.requests.iter().filter(|(resource, _)| group.resources.contains(resource));
        let names = &self.round.world.names.resources;
        let starts = self
            .scan
            .and_then(|scan| covered.map(|(resource, _)| scan.start(first, names.text(*resource))).min());
        let start = starts.unwrap_or(0);
        let mut best: Option<Found> = None;
        let mut looked_at = start;
        for (ix, flavor) in (0_u32..).zip(&group.flavors).skip(usize::try_from(start).unwrap_or(0)) {
            looked_at = ix;
            let Some(found) = self.try_flavor(unit, (group, *flavor), assignment, clusters) else { continue };
            if !search.try_next(found.grade) {
                best = Some(found);
                break;
            }
            let current = best.as_ref().map_or(Grade { means: Means::NoFit, borrow: 0 }, |best| best.grade);
            if search.is_preferred(found.grade, current) {
                best = Some(found);
            }
        }
        let tried = (looked_at != last).then_some(looked_at);
        best.map(|mut found| {
            found.choices.iter_mut().for_each(|(_, choice)| choice.tried = tried);
            found
        })
    }

    /// One flavor for all resources of the group that the unit requests; none when it cannot serve.
    fn try_flavor(
        &self,
        unit: &Unit,
        (group, flavor_ix): (&Group, FlavorIx),
        assignment: &mut Assignment,
        clusters: Option<&ClusterScan<'w>>,
    ) -> Option<Found> {
        let world = self.round.world;
        let name = world.names.flavors.text(flavor_ix);
        let anchor = group.resources.first().copied().unwrap_or(0);
        if let Err(reason) = self.eligible(unit, group, flavor_ix) {
            assignment.attempts.push(Self::attempt(unit, anchor, name, reason));
            return None;
        }
        let mut found = Found {
            choices: Vec::with_capacity(unit.requests.len()),
            grade: Grade { means: Means::Fit, borrow: 0 },
            clusters: None,
            flavor: flavor_ix,
        };
        let search = Search::of(self.queue);
        for (resource, amount) in &unit.requests {
            if !group.resources.contains(resource) {
                continue;
            }
            let fr = world.names.find_fr(flavor_ix, *resource);
            let (grade, missing) = self.fits_quota(fr, *amount, assignment);
            if let Some((reason, available, requested)) = missing {
                let resource = world.names.resources.name(*resource);
                let shortfall = Shortfall { resource, requested, available };
                let attempt = Self::attempt(unit, anchor, name, reason);
                assignment.attempts.push(Attempt { shortfall: Some(shortfall), ..attempt });
            }
            if search.is_preferred(found.grade, grade) {
                found.grade = grade;
            }
            if found.grade.means == Means::NoFit {
                return None;
            }
            let choice =
                Choice { flavor: flavor_ix, mode: grade.means.mode(), borrow: grade.borrow, tried: None };
            found.choices.push((*resource, choice));
        }
        if let Some(clusters) = clusters
            && found.grade.means == Means::Fit
        {
            found.clusters =
                Some(clusters.remaining(self, (unit, anchor, flavor_ix), &mut assignment.attempts)?);
        }
        Some(found)
    }

    /// Whether the flavor may serve every pod set of the unit [F-3].
    fn eligible(&self, unit: &Unit, group: &Group, flavor_ix: FlavorIx) -> Result<(), Reason> {
        let world = self.round.world;
        if self.nominated.is_some_and(|nominated| !was_nominated(nominated, unit, group, flavor_ix)) {
            return Err(Reason::FlavorMismatch);
        }
        let flavor = world.flavors.get(world.names.flavors.text(flavor_ix)).ok_or(Reason::FlavorNotFound)?;
        for position in &unit.pod_sets {
            let Some(pod_set) = self.row.gang.pod_sets.get(*position) else { continue };
            self.round.topology_matches(self, (*position, pod_set), group, flavor)?;
            flavor::admits(flavor, pod_set)?;
        }
        Ok(())
    }

    /// Quota of one flavor-resource [F-4]: the grade and, unless it fits, the reason with what is available of what is
    /// requested.
    fn fits_quota(
        &self,
        fr: Option<FrIx>,
        amount: i64,
        assignment: &Assignment,
    ) -> (Grade, Option<(Reason, i64, i64)>) {
        let nothing = Grade { means: Means::NoFit, borrow: 0 };
        let Some((fr, col)) = fr.and_then(|fr| Some((fr, self.tree.column(fr)?))) else {
            return (nothing, Some((Reason::ExceedsMaxQuota, 0, amount)));
        };
        let assumed = assignment.usage.get(&fr).copied().unwrap_or(0);
        let value = assumed.saturating_add(amount);
        grade::quota(self, (fr, col), value)
    }
}

/// Marks a unit as without flavors.
fn fail(unit: &Unit, assignment: &mut Assignment) -> bool {
    unit.pod_sets.iter().for_each(|position| assignment.fail(*position));
    false
}

/// Whether a flavor was nominated for a unit's resources in this group.
fn was_nominated(nominated: &Assignment, unit: &Unit, group: &Group, flavor: FlavorIx) -> bool {
    let pod_sets = unit.pod_sets.iter().filter_map(|position| nominated.pod_sets.get(*position));
    let mut choices = pod_sets.flat_map(|pod_set| &pod_set.flavors);
    choices.any(|(resource, choice)| group.resources.contains(resource) && choice.flavor == flavor)
}
