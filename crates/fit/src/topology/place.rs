//! Places the pod sets of a workload [TAS-2], [TAS-3], [TAS-4].

use std::borrow::Cow;
use std::collections::BTreeMap;

use fairlead_model::ResourceName;

use super::balanced;
use super::choose::{Need, Profile, Short, choose};
use super::counter::{Barred, Class, bars};
use super::descend::{Share, descend};
use super::field::Topologies;
use super::request::{Ask, Misfit, Options, Request, Why};
use super::tree::ordinal;
use super::view::View;
use super::what_if::WhatIf;

/// Where the pods of a pod set go, in ordinals of one flavor's tree. It is good until the topologies change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    /// Leaves in order, and pods on each.
    pub(super) leaves: Vec<(u32, u32)>,
}

impl Placed {
    /// How many pods it places.
    pub fn pods(&self) -> u32 {
        self.leaves.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// How many domains it uses.
    pub fn domains(&self) -> usize {
        self.leaves.len()
    }
}

/// How many nodes (domains, where leaves are not nodes) take no pod of a kind, by cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exclusions {
    /// All there are.
    pub total: u32,
    /// Not ready or cordoned.
    pub unusable: u32,
    /// By a taint.
    pub taints: u32,
    /// By the node selector.
    pub selector: u32,
    /// By the required affinity.
    pub affinity: u32,
    /// By the first resource, in name order, of which too little is free.
    pub resources: Vec<(ResourceName, u32)>,
}

/// Positions of pod sets that are placed as one.
#[derive(Debug)]
struct Group {
    workers: usize,
    leader: Option<usize>,
}

impl Topologies {
    /// Places all pod sets of a workload, each given with its flavor, each on top of those before it; all or nothing.
    pub fn place(
        &self,
        what_if: &WhatIf,
        requests: &[(&str, Request<'_>)],
        options: Options,
    ) -> Result<Vec<Placed>, Misfit> {
        let nothing = WhatIf::default();
        let mut assumed = Cow::Borrowed(if options.empty { &nothing } else { what_if });
        let mut placed = vec![Placed::default(); requests.len()];
        let groups = groups(requests)?;
        let last = groups.len().saturating_sub(1);
        for (ix, group) in groups.iter().enumerate() {
            let Some((flavor, workers)) = requests.get(group.workers) else { continue };
            let leader = group.leader.and_then(|leader| Some(&requests.get(leader)?.1));
            let misfit = |why| Misfit { pod_set: group.workers, why };
            let both = self.place_group(&assumed, flavor, (workers, leader), options).map_err(misfit)?;
            let members = [(Some(group.workers), both.0), (group.leader, both.1)];
            for (position, leaves) in members {
                let Some(position) = position else { continue };
                if ix < last
                    && let Some((_, request)) = requests.get(position)
                {
                    assumed.to_mut().take_placed(self, flavor, (&leaves, request.requests));
                }
                if let Some(entry) = placed.get_mut(position) {
                    *entry = leaves;
                }
            }
        }
        Ok(placed)
    }

    /// Places one pod set, or workers with their leader: first the workers, then the leader.
    fn place_group(
        &self,
        assumed: &WhatIf,
        flavor: &str,
        (workers, leader): (&Request<'_>, Option<&Request<'_>>),
        options: Options,
    ) -> Result<(Placed, Placed), Why> {
        let tree = self.tree(flavor).ok_or(Why::NoTopology)?;
        let ask = workers.resolve(&tree.spec.levels)?;
        if workers.count == 0 {
            return Ok((Placed::default(), Placed::default()));
        }
        let class = class(&ask, workers, leader, options.empty);
        let mut cache = tree.cache.borrow_mut();
        let counts = cache.counts(tree, &class).ok_or(Why::NoTopology)?;
        let view = View::new(tree, counts, assumed.rows(flavor));
        let shares = search(&view, &ask, leader.is_some(), options)?;
        Ok(split(shares))
    }

    /// Why nodes of a flavor take no pod of this kind, under assumptions. It looks at every node.
    pub fn exclusions(
        &self,
        what_if: &WhatIf,
        (flavor, request): (&str, &Request<'_>),
        options: Options,
    ) -> Exclusions {
        let mut all = Exclusions::default();
        let Some(tree) = self.tree(flavor) else { return all };
        let Ok(ask) = request.resolve(&tree.spec.levels) else { return all };
        let class = class(&ask, request, None, options.empty);
        let rows = if options.empty { None } else { what_if.rows(flavor) };
        let needs = super::field::with_pod(request.requests);
        let mut lacking = BTreeMap::new();
        for leaf in 0..ordinal(tree.leaves.len()) {
            all.total = all.total.saturating_add(1);
            let counter = match bars(tree, leaf, &class).worker {
                Barred::Gone => &mut all.unusable,
                Barred::Taint => &mut all.taints,
                Barred::Selector => &mut all.selector,
                Barred::Affinity => &mut all.affinity,
                Barred::No => {
                    let extra = rows.and_then(|rows| rows.get(&leaf)).map(Vec::as_slice);
                    let free = tree.free(leaf, options.empty, extra);
                    let lacks = |name: &str, amount| tree.column(name).map_or(0, &free) < amount;
                    let Some((name, _)) = needs.iter().find(|(name, amount)| lacks(name, *amount)) else {
                        continue;
                    };
                    lacking.entry(ResourceName::clone(name)).or_insert(0_u32)
                }
            };
            *counter = counter.saturating_add(1);
        }
        all.resources = lacking.into_iter().collect();
        all
    }
}

/// Pod sets of one group and flavor together, in the order of their first members. Pod sets without pods go alone.
fn groups(requests: &[(&str, Request<'_>)]) -> Result<Vec<Group>, Misfit> {
    let mut groups: Vec<Group> = Vec::new();
    for (position, (flavor, request)) in requests.iter().enumerate() {
        let same = |group: &&mut Group| {
            let other = requests.get(group.workers);
            request.group.is_some()
                && other.is_some_and(|(of, other)| {
                    of == flavor && other.group == request.group && other.count > 0
                })
        };
        let found = if request.count > 0 { groups.iter_mut().find(same) } else { None };
        let Some(group) = found else {
            groups.push(Group { workers: position, leader: None });
            continue;
        };
        let workers = requests.get(group.workers).map_or(0, |(_, workers)| workers.count);
        if group.leader.is_some() || workers.min(request.count) != 1 {
            return Err(Misfit { pod_set: position, why: Why::BadGroup });
        }
        if request.count > workers {
            group.leader = Some(std::mem::replace(&mut group.workers, position));
        } else {
            group.leader = Some(position);
        }
    }
    Ok(groups)
}

/// What the counts of a request depend on.
pub(super) fn class<'a>(
    ask: &'a Ask,
    workers: &Request<'a>,
    leader: Option<&Request<'a>>,
    empty: bool,
) -> Class<'a> {
    Class {
        empty,
        slice_level: ask.cut.level,
        slice_size: ask.cut.size,
        inner: &ask.cut.inner,
        requests: workers.requests,
        nodes: workers.nodes,
        leader: leader.map(|leader| (leader.requests, leader.nodes)),
    }
}

/// Finds leaves for what is asked.
pub(super) fn search(view: &View<'_>, ask: &Ask, leader: bool, options: Options) -> Result<Vec<Share>, Why> {
    let need = Need { units: ask.slices, leader };
    let preferred = !ask.required && !ask.unconstrained;
    if options.balanced
        && preferred
        && let Some(shares) = balanced::place(view, ask, need)
    {
        return Ok(shares);
    }
    let profile =
        if ask.unconstrained && options.mixed_profile { Profile::LeastFree } else { Profile::BestFit };
    let why = |short: Short| Why::Short {
        level: view.tree.spec.levels.get(short.level).cloned().unwrap_or_default(),
        fits: short.fits,
        wanted: ask.slices,
        size: ask.cut.size,
    };
    let chosen = choose(view, ask, need, profile).map_err(why)?;
    let shares = descend(view, ask, need, (&chosen, profile));
    shares.ok_or_else(|| why(Short { level: chosen.level, fits: 0 }))
}

/// Leaves of the workers and of the leader, each in order.
pub(super) fn split(mut shares: Vec<Share>) -> (Placed, Placed) {
    shares.sort_unstable_by_key(|share| share.ix);
    let leader = shares.iter().filter(|share| share.leader).map(|share| (share.ix, 1)).collect();
    let workers = shares.iter().filter(|share| share.pods > 0).map(|share| (share.ix, share.pods)).collect();
    (Placed { leaves: workers }, Placed { leaves: leader })
}
