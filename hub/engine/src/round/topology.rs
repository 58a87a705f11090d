//! The topology step of the single-cluster placer [F-11]: flavors with a topology place their pods on nodes.

use std::sync::Arc;

use fairlead_fit::topology::{Held, Level, Options, Request, WhatIf};
use fairlead_model::Reason;

use super::Round;
use super::assign::{Assigner, Unit};
use super::entry::{Assignment, Attempt, Choice, Mode, Target};
use super::overlay::Overlay;
use crate::fact::{Flavor, PodSet, TopologyLevel, TopologyRequest};
use crate::names::ResIx;
use crate::world::rows::{Group, Row};

/// Pod sets that are placed, by position, each with its flavor and request.
type Requests<'a> = (Vec<usize>, Vec<(&'a str, Request<'a>)>);

impl<'w> Round<'w> {
    /// Whether a flavor's topology and a pod set's request go together [F-3d].
    pub(crate) fn topology_matches(
        &self,
        assigner: &Assigner<'_, '_>,
        (position, pod_set): (usize, &PodSet),
        group: &Group,
        flavor: &Flavor,
    ) -> Result<(), Reason> {
        if assigner.queue.federated {
            // Placement there is decided per cluster, on that cluster's own tree.
            return Ok(());
        }
        let topology = flavor.topology.as_ref().and_then(|name| self.world.topologies.get(name));
        match (&pod_set.topology, topology) {
            (None, None) => Ok(()),
            (None, Some(_)) if assigner.queue.topology_only => Ok(()),
            (Some(_), None) if !self.concerns_pods(assigner, position, group) => Ok(()),
            (None, Some(_)) | (Some(_), None) => Err(Reason::FlavorMismatch),
            (Some(request), Some(topology)) => {
                let mut levels = request.slices.iter().map(|slice| &slice.level).chain(named_level(request));
                let known = levels.all(|level| topology.levels.contains(level));
                if known { Ok(()) } else { Err(Reason::FlavorMismatch) }
            }
        }
    }

    /// Whether a group covers anything that a pod of this pod set requests itself.
    fn concerns_pods(&self, assigner: &Assigner<'_, '_>, position: usize, group: &Group) -> bool {
        let names = &self.world.names.resources;
        let effective = assigner.row.gang.requests.get(position).map(|pod| &pod.effective);
        let mut requested = effective.into_iter().flat_map(fairlead_model::Resources::iter);
        requested.any(|(name, _)| names.find(name).is_some_and(|ix| group.resources.contains(&ix)))
    }

    /// Notes which flavor's topology each pod set of a unit is placed in.
    pub(crate) fn note_topology_flavors(
        &self,
        assigner: &Assigner<'_, '_>,
        unit: &Unit,
        done: &[(ResIx, Choice)],
        assignment: &mut Assignment,
    ) {
        if assigner.queue.federated {
            return;
        }
        let names = &self.world.names.flavors;
        let placed = |flavor: u32| {
            self.world.flavors.get(names.text(flavor)).is_some_and(|flavor| flavor.topology.is_some())
        };
        let shared = done.iter().map(|(_, choice)| choice.flavor).find(|flavor| placed(*flavor));
        for position in &unit.pod_sets {
            let Some(pod_set) = assignment.pod_sets.get_mut(*position) else { continue };
            let own = pod_set.flavors.iter().map(|(_, choice)| choice.flavor).find(|flavor| placed(*flavor));
            pod_set.placed_in = own.or(shared);
        }
    }

    /// Judges the placement of an assignment [F-11]: one that fits by quota and not by topology needs preemption; one
    /// that needs preemption must fit an empty topology, or nothing helps.
    pub(crate) fn place_topology(&self, assigner: &Assigner<'_, 'w>, assignment: &mut Assignment) {
        let (positions, requests) = self.requests(assigner.row, assignment);
        if requests.is_empty() {
            return;
        }
        let topologies = &self.world.placing;
        if assignment.mode() == Mode::Fit {
            match topologies.place(&assigner.state.what_if, &requests, Options::default()) {
                Ok(placed) => {
                    let found = positions.iter().zip(&requests).zip(&placed);
                    let found: Vec<_> = found
                        .map(|((position, (flavor, _)), placed)| {
                            (*position, topologies.assignment(flavor, placed))
                        })
                        .collect();
                    for (position, place) in found {
                        set_place(assignment, position, Some(place));
                    }
                }
                Err(misfit) => {
                    let position = positions.get(misfit.pod_set).copied().unwrap_or(0);
                    let why = misfit.why.to_string();
                    lower(assignment, position, Mode::Preempt);
                    self.note_misfit(assigner, assignment, (position, &why));
                }
            }
        }
        if assignment.mode() == Mode::Preempt && assigner.row.fact.rare().unhealthy_nodes.is_empty() {
            self.try_empty(assigner, assignment);
        }
    }

    fn try_empty(&self, assigner: &Assigner<'_, 'w>, assignment: &mut Assignment) {
        let (positions, requests) = self.requests(assigner.row, assignment);
        let empty = Options { empty: true, ..Options::default() };
        match self.world.placing.place(&assigner.state.what_if, &requests, empty) {
            // Preemption may have to make room even where quota fits.
            Ok(_) => {
                for position in positions {
                    lower(assignment, position, Mode::Preempt);
                }
            }
            Err(misfit) => {
                let position = positions.get(misfit.pod_set).copied().unwrap_or(0);
                let why = misfit.why.to_string();
                lower(assignment, position, Mode::NoFit);
                self.note_misfit(assigner, assignment, (position, &why));
            }
        }
    }

    fn note_misfit(
        &self,
        assigner: &Assigner<'_, '_>,
        assignment: &mut Assignment,
        (position, why): (usize, &str),
    ) {
        let pod_set = assignment.pod_sets.get(position);
        let flavor = pod_set.and_then(|pod_set| pod_set.placed_in);
        let group = pod_set.and_then(|pod_set| pod_set.flavors.first()).map(|(resource, _)| *resource);
        let group = group.and_then(|resource| assigner.queue.group_of(resource)?.resources.first().copied());
        assignment.attempts.push(Attempt {
            pod_set: position,
            group: group.unwrap_or(0),
            flavor: flavor.map_or_else(|| "".into(), |flavor| self.world.names.flavors.name(flavor)),
            cluster: "".into(),
            reason: Reason::TopologyPlacementFailed,
            shortfall: None,
            detail: why.into(),
        });
    }

    /// The place that an entry that needs preemption holds for the rest of the round [TAS-5]: where it fits once its
    /// victims are gone or, without victims, where it would fit if nothing ran.
    pub(crate) fn place_after(
        &self,
        assigner: &Assigner<'_, 'w>,
        assignment: &mut Assignment,
        targets: &[Target],
    ) {
        let (positions, requests) = self.requests(assigner.row, assignment);
        if requests.is_empty() || assignment.mode() != Mode::Preempt {
            return;
        }
        let mut state = assigner.state.clone();
        for target in targets {
            state.free_place(target.row);
        }
        let options = Options { empty: targets.is_empty(), ..Options::default() };
        let topologies = &self.world.placing;
        let placed = topologies.place(&state.what_if, &requests, options).unwrap_or_default();
        let found: Vec<_> = positions
            .iter()
            .zip(&requests)
            .zip(&placed)
            .map(|((position, (flavor, _)), placed)| (*position, topologies.assignment(flavor, placed)))
            .collect();
        for pod_set in &mut assignment.pod_sets {
            pod_set.topology = None;
        }
        for (position, place) in found {
            set_place(assignment, position, Some(place));
        }
    }

    /// Puts the pods of the workload's failed nodes elsewhere; an error names the pod set for which there is no room.
    pub(crate) fn replace_places(
        &self,
        assigner: &Assigner<'_, 'w>,
        assignment: &mut Assignment,
    ) -> Result<(), (usize, String)> {
        let (positions, requests) = self.requests(assigner.row, assignment);
        let failed = &assigner.row.fact.rare().unhealthy_nodes;
        let mut state = assigner.state.what_if.clone();
        for (position, (flavor, request)) in positions.iter().zip(&requests) {
            let before = assignment.pod_sets.get(*position).and_then(|choice| choice.topology.clone());
            let Some(before) = before else { continue };
            let after = self.world.placing.replace(&state, (flavor, request), (&before, failed));
            let after = after.map_err(|misfit| (*position, misfit.why.to_string()))?;
            state.free(&self.world.placing, Held { flavor, assignment: &before, per_pod: request.requests });
            state.take(&self.world.placing, Held { flavor, assignment: &after, per_pod: request.requests });
            set_place(assignment, *position, Some(after));
        }
        Ok(())
    }

    /// Whether the topology placement of an assignment succeeds in a state.
    pub(crate) fn places(&self, state: &WhatIf, row: &Row, assignment: &Assignment) -> bool {
        let (_, requests) = self.requests(row, assignment);
        requests.is_empty() || self.world.placing.place(state, &requests, Options::default()).is_ok()
    }

    /// Whether an assignment takes places at all.
    pub(crate) fn asks_for_places(assignment: &Assignment) -> bool {
        assignment.pod_sets.iter().any(|choice| choice.placed_in.is_some())
    }

    /// Whether the places that were found for an assignment are still free, all together (a second look at each pod
    /// set alone would over-commit nodes that two of them share).
    pub(crate) fn place_is_free(&self, state: &WhatIf, row: &Row, assignment: &Assignment) -> bool {
        let held = self.held(row, assignment);
        held.is_empty() || state.fits(&self.world.placing, &held)
    }

    /// Takes the places that were found for an assignment.
    pub(crate) fn take_place(&self, state: &mut Overlay<'w>, row: &Row, assignment: &Assignment) {
        for held in self.held(row, assignment) {
            state.what_if.take(&self.world.placing, held);
        }
    }

    fn held<'a>(&'a self, row: &'a Row, assignment: &'a Assignment) -> Vec<Held<'a>> {
        let pods = assignment.pod_sets.iter().zip(&*row.gang.requests);
        let held = pods.filter_map(|(choice, pod)| {
            let flavor = self.world.names.flavors.text(choice.placed_in?);
            Some(Held { flavor, assignment: choice.topology.as_ref()?, per_pod: &pod.effective })
        });
        held.collect()
    }

    /// The placement requests of an assignment.
    fn requests<'a>(&'a self, row: &'a Row, assignment: &Assignment) -> Requests<'a> {
        let (mut positions, mut requests) = (Vec::new(), Vec::new());
        for (position, pod_set) in row.gang.pod_sets.iter().enumerate() {
            let (Some(choice), Some(pod)) =
                (assignment.pod_sets.get(position), row.gang.requests.get(position))
            else {
                continue;
            };
            let Some(flavor) = choice.placed_in else { continue };
            let topology = pod_set.topology.as_ref();
            positions.push(position);
            requests.push((
                self.world.names.flavors.text(flavor),
                Request {
                    requests: &pod.effective,
                    nodes: &pod_set.template.nodes,
                    count: choice.count,
                    level: topology.map_or(Level::Unconstrained, level),
                    slices: topology.map_or(&[], |topology| &topology.slices),
                    group: topology.and_then(|topology| topology.group.as_deref()),
                },
            ));
        }
        (positions, requests)
    }
}

fn named_level(request: &TopologyRequest) -> Option<&Arc<str>> {
    match &request.level {
        TopologyLevel::Required(level) | TopologyLevel::Preferred(level) => Some(level),
        TopologyLevel::Unconstrained | TopologyLevel::SlicesOnly => None,
    }
}

fn level(request: &TopologyRequest) -> Level<'_> {
    match &request.level {
        TopologyLevel::Required(level) => Level::Required(level),
        TopologyLevel::Preferred(level) => Level::Preferred(level),
        TopologyLevel::Unconstrained | TopologyLevel::SlicesOnly => Level::Unconstrained,
    }
}

fn set_place(assignment: &mut Assignment, position: usize, place: Option<crate::fact::TopologyAssignment>) {
    if let Some(pod_set) = assignment.pod_sets.get_mut(position) {
        pod_set.topology = place;
    }
}

/// Lowers the mode of a pod set and of all its flavors.
fn lower(assignment: &mut Assignment, position: usize, mode: Mode) {
    let Some(pod_set) = assignment.pod_sets.get_mut(position) else { return };
    pod_set.lowered = Some(pod_set.lowered.map_or(mode, |lowered| lowered.min(mode)));
    for (_, choice) in &mut pod_set.flavors {
        choice.mode = choice.mode.min(mode);
    }
}
