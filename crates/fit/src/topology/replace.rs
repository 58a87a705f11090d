//! Finds room for the pods of a failed node [TAS-7].

use std::collections::BTreeMap;
use std::sync::Arc;

use super::assignment::Assignment;
use super::counts::Counts;
use super::field::Topologies;
use super::place::{class, search, split};
use super::request::{Level, Misfit, Options, Request, Why, position};
use super::tree::Tree;
use super::view::View;
use super::what_if::WhatIf;

/// A domain: its level and ordinal.
type At = (usize, u32);

impl Topologies {
    /// The assignment of a pod set with the pods of failed nodes put elsewhere: into the slice that broke, else into the
    /// domain that is required, else anywhere. `request` is that of the whole pod set. Other pods stay where they are,
    /// and none is preempted.
    pub fn replace(
        &self,
        what_if: &WhatIf,
        (flavor, request): (&str, &Request<'_>),
        (assignment, failed): (&Assignment, &[Arc<str>]),
    ) -> Result<Assignment, Misfit> {
        let misfit = |why| Misfit { pod_set: 0, why };
        let tree = self.tree(flavor).ok_or_else(|| misfit(Why::NoTopology))?;
        mend(tree, what_if.rows(flavor), request, (assignment, failed)).map_err(misfit)
    }
}

fn mend(
    tree: &Tree,
    rows: Option<&super::view::Rows>,
    request: &Request<'_>,
    (assignment, failed): (&Assignment, &[Arc<str>]),
) -> Result<Assignment, Why> {
    let has_failed = |values: &[Arc<str>]| values.last().is_some_and(|host| failed.contains(host));
    let (lost, kept): (Vec<_>, Vec<_>) =
        assignment.domains.iter().partition(|(values, _)| has_failed(values));
    let mut merged: BTreeMap<u32, u32> = BTreeMap::new();
    for (values, count) in kept {
        let leaf = tree.leaf(values).filter(|leaf| tree.is_usable(*leaf));
        let leaf = leaf.ok_or_else(|| Why::Stale(values.first().cloned().unwrap_or_default()))?;
        merged.insert(leaf, *count);
    }
    let missing = lost.iter().fold(0_u32, |sum, (_, count)| sum.saturating_add(*count));
    let confined = confinement(tree, request, &merged, missing)?;
    let mut part = Request { count: missing, group: None, ..*request };
    let outer = request.slices.first().map_or(1, |slice| slice.size);
    let whole = request.slices.iter().rposition(|slice| missing.is_multiple_of(slice.size));
    if confined.is_some() && !missing.is_multiple_of(outer) {
        // A broken slice is mended with the largest parts that the missing pods still are made of.
        part.slices = whole.and_then(|ix| request.slices.get(ix..=ix)).unwrap_or_default();
    }
    let ask = part.resolve(&tree.spec.levels)?;
    let class = class(&ask, &part, None, false);
    let open = |leaf: u32| {
        let inside = confined.is_none_or(|(level, ix)| tree.ancestor(leaf, level) == ix);
        inside && !has_failed(&tree.name(leaf))
    };
    let counts = Counts::new(tree, &class, open);
    let view = View::new(tree, &counts, rows);
    let shares = search(&view, &ask, false, Options::default())?;
    for (leaf, count) in split(shares).0.leaves {
        let sum = merged.entry(leaf).or_insert(0);
        *sum = sum.saturating_add(count);
    }
    let leaves: Vec<(u32, u32)> = merged.into_iter().collect();
    Ok(tree.assignment(&leaves))
}

/// The domain that the missing pods must go to, if any.
fn confinement(
    tree: &Tree,
    request: &Request<'_>,
    kept: &BTreeMap<u32, u32>,
    missing: u32,
) -> Result<Option<At>, Why> {
    let Some((first, _)) = kept.first_key_value() else { return Ok(None) };
    let outer = request.slices.first().map_or(1, |slice| slice.size);
    if !missing.is_multiple_of(outer) {
        let broken = request.slices.iter().rfind(|slice| !missing.is_multiple_of(slice.size));
        let Some(broken) = broken else { return Ok(None) };
        let level = position(&tree.spec.levels, &broken.level)?;
        let mut pods: BTreeMap<u32, u32> = BTreeMap::new();
        for (leaf, count) in kept {
            let sum = pods.entry(tree.ancestor(*leaf, level)).or_insert(0);
            *sum = sum.saturating_add(*count);
        }
        let completes = |(_, pods): &(&u32, &u32)| pods.saturating_add(missing).is_multiple_of(broken.size);
        return Ok(pods.iter().find(completes).map(|(ix, _)| (level, *ix)));
    }
    let Level::Required(key) = request.level else { return Ok(None) };
    let level = position(&tree.spec.levels, key)?;
    Ok(Some((level, tree.ancestor(*first, level))))
}
