//! A world that changes: the topologies under test beside a plain account of what is where.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairlead_fit::topology::{Assignment, Level, Misfit, Options, Request, Slice, Topologies, WhatIf};
use fairlead_model::{NodeConstraints, Resources};

use crate::lab::{self, LEVELS};
use crate::naive::{Free, Naive, Path, Want};

/// Assignments of a workload's pod sets, each with what one pod takes.
pub(crate) type Placements = Vec<(Assignment, [i64; 3])>;

pub(crate) fn amounts([cpu, gpu, pods]: [i64; 3]) -> Resources {
    [("cpu", cpu), ("gpu", gpu), ("pods", pods)]
        .map(|(name, amount)| (Arc::from(name), amount))
        .into_iter()
        .collect()
}

#[derive(Clone, Debug)]
pub(crate) struct NodeState {
    pub(crate) path: Path,
    pub(crate) size: [i64; 3],
    pub(crate) usable: bool,
    pub(crate) pods: Vec<i64>,
}

/// A pod set that stays.
pub(crate) struct Resident {
    pub(crate) assignment: Assignment,
    pub(crate) per_pod: Resources,
    /// By node name.
    pub(crate) uses: BTreeMap<String, [i64; 3]>,
}

pub(crate) struct World {
    pub(crate) topologies: Topologies,
    pub(crate) nodes: Vec<NodeState>,
    /// Each workload's pod sets.
    pub(crate) residents: Vec<Vec<Resident>>,
    pub(crate) by_host: bool,
}

fn per_pod(pod: [i64; 3]) -> Resources {
    amounts([pod[0], pod[1], 0])
}

impl World {
    pub(crate) fn new(nodes: Vec<(usize, usize, i64, i64, i64)>, by_host: bool) -> Self {
        let state = |(ix, (block, rack, cpu, gpu, pods)): (usize, (usize, usize, i64, i64, i64))| NodeState {
            path: vec![format!("b{block}"), format!("r{rack}"), format!("n{ix}")],
            size: [cpu, gpu, pods],
            usable: true,
            pods: Vec::new(),
        };
        let mut topologies = Topologies::new();
        // Where leaves are not nodes a third label takes the place of the hostname.
        let levels = if by_host { LEVELS } else { ["block", "rack", "slot"] };
        topologies.set_flavor("tas".into(), lab::spec(&levels));
        let mut world = Self {
            topologies,
            nodes: nodes.into_iter().enumerate().map(state).collect(),
            residents: Vec::new(),
            by_host,
        };
        (0..world.nodes.len()).for_each(|ix| world.tell(ix));
        world.topologies.settle();
        world
    }

    /// Tells the topologies how a node is.
    pub(crate) fn tell(&mut self, ix: usize) {
        let node = &self.nodes[ix];
        let mut told = lab::node(&node.path.join("/"), "");
        told.allocatable = amounts(node.size);
        told.usable = node.usable;
        // Two nodes share a slot, so that leaves add up.
        told.labels.insert("slot".into(), format!("s{}", ix / 2 % 2).into());
        self.topologies.set_node(told);
    }

    fn leaf(&self, node: &NodeState, ix: usize) -> Path {
        let mut path = node.path.clone();
        if !self.by_host {
            path[2] = format!("s{}", ix / 2 % 2);
        }
        path
    }

    /// What is free, counted from nothing; without the n-th workload, or without all.
    pub(crate) fn free(&self, without: Option<usize>, empty: bool) -> Free {
        let mut free = Free::new();
        for (ix, node) in self.nodes.iter().enumerate() {
            let cells = free.entry(self.leaf(node, ix)).or_insert([0; 3]);
            if !node.usable {
                continue;
            }
            let other: i64 = node.pods.iter().sum();
            let many = i64::try_from(node.pods.len()).unwrap();
            for (cell, amount) in
                cells.iter_mut().zip([node.size[0] - other, node.size[1], node.size[2] - many])
            {
                *cell += amount;
            }
        }
        let staying = self.residents.iter().enumerate().filter(|(ix, _)| !empty && Some(*ix) != without);
        for (leaf, uses) in staying.flat_map(|(_, workload)| workload).flat_map(|resident| &resident.uses) {
            let found = free.iter_mut().find(|(path, _)| self.written(path) == *leaf);
            if let Some((_, cells)) = found {
                cells.iter_mut().zip(uses).for_each(|(cell, used)| *cell -= used);
            }
        }
        free
    }

    /// How an assignment names a leaf.
    fn written(&self, path: &Path) -> String {
        if self.by_host { path[2].clone() } else { path.join("/") }
    }

    /// Places a pod set, with its leader if it has one.
    fn run(&self, want: &Want, what_if: &WhatIf, options: Options) -> Result<Vec<Assignment>, Misfit> {
        let levels = self.topologies.levels("tas").expect("a topology");
        let (pod, leader) = (per_pod(want.pod), want.leader.map(per_pod));
        let nodes = NodeConstraints::default();
        let key = &levels[want.level];
        let level = match (want.unconstrained, want.required) {
            (true, _) => Level::Unconstrained,
            (false, true) => Level::Required(key),
            (false, false) => Level::Preferred(key),
        };
        let mut slices = Vec::new();
        if want.slice_size > 1 || want.slice_level < 2 {
            slices.push(Slice { level: Arc::clone(&levels[want.slice_level]), size: want.slice_size });
        }
        slices.extend(want.inner.map(|(level, size)| Slice { level: Arc::clone(&levels[level]), size }));
        let group = want.leader.is_some().then_some("g");
        let workers =
            Request { requests: &pod, nodes: &nodes, count: want.count, level, slices: &slices, group };
        let mut requests = vec![("tas", workers)];
        if let Some(leader) = &leader {
            requests.push(("tas", Request { requests: leader, count: 1, slices: &[], ..workers }));
        }
        let placed = self.topologies.place(what_if, &requests, options)?;
        Ok(placed.iter().map(|placed| self.topologies.assignment("tas", placed)).collect())
    }

    /// Asks both, compares, and returns the assignments of workers and leader with what their pods take.
    pub(crate) fn ask(&self, want: &Want, what_if: &WhatIf, free: &Free, empty: bool) -> Option<Placements> {
        let found = self.run(want, what_if, Options { empty, ..Options::default() });
        let expected = Naive { free, want, depth: 3 }.place();
        let Some((expected, host)) = expected else {
            assert!(found.is_err(), "{found:?} for {want:?}, expected none");
            return None;
        };
        let found =
            found.unwrap_or_else(|misfit| panic!("{misfit:?} for {want:?}, expected {expected:?} {host:?}"));
        let write = |paths: Vec<(&Path, u32)>| {
            let domain = |(path, count): &(&Path, u32)| format!("{}:{count}", self.written(path));
            paths.iter().map(domain).collect::<Vec<_>>().join(" ")
        };
        let mut written = vec![write(expected.iter().map(|(path, count)| (path, *count)).collect())];
        written.extend(host.as_ref().map(|host| write(vec![(host, 1)])));
        assert_eq!(found.iter().map(lab::written).collect::<Vec<_>>(), written, "for {want:?}");
        Self::check(want, &expected, host.as_ref());
        Some(found.into_iter().zip([Some(want.pod), want.leader].into_iter().flatten()).collect())
    }

    /// Balanced placement finds something whenever there is anything to find, and it keeps the same invariants.
    pub(crate) fn ask_balanced(&self, want: &Want, free: &Free) -> Option<Placements> {
        let found = self.run(want, &WhatIf::new(), Options { balanced: true, ..Options::default() });
        let expected = Naive { free, want, depth: 3 }.place();
        assert_eq!(found.is_ok(), expected.is_some(), "{found:?} for {want:?}, expected {expected:?}");
        let found = found.ok()?;
        let path = |text: &str| {
            let path = free.keys().find(|path| self.written(path) == text);
            path.cloned().expect("a leaf")
        };
        let paths = |assignment: &Assignment| -> BTreeMap<Path, u32> {
            let domains = assignment.domains.iter();
            domains.map(|(values, count)| (path(&values.join("/")), *count)).collect()
        };
        let leader = found.get(1).and_then(|leader| paths(leader).into_keys().next());
        Self::check(want, &paths(&found[0]), leader.as_ref());
        Some(found.into_iter().zip([Some(want.pod), want.leader].into_iter().flatten()).collect())
    }

    /// All or nothing, in one domain if required, slices whole, the leader with its workers.
    fn check(want: &Want, workers: &BTreeMap<Path, u32>, host: Option<&Path>) {
        assert_eq!(workers.values().sum::<u32>(), want.count);
        assert_eq!(host.is_some(), want.leader.is_some());
        let at = |level: usize| {
            let mut sums: BTreeMap<Path, u32> = BTreeMap::new();
            for (path, count) in workers {
                *sums.entry(path[..=level].to_vec()).or_insert(0) += count;
            }
            sums
        };
        if want.required {
            let all = workers.keys().chain(host).map(|path| &path[..=want.level]);
            assert_eq!(all.collect::<BTreeSet<_>>().len(), 1);
        }
        assert!(at(want.slice_level).values().all(|count| count % want.slice_size == 0));
        if let Some((level, size)) = want.inner {
            assert!(at(level).values().all(|count| count % size == 0));
        }
    }

    pub(crate) fn admit(&mut self, placed: Placements) {
        let mut workload = Vec::new();
        let before = self.free(None, false);
        for (assignment, pod) in placed {
            let per_pod = per_pod(pod);
            self.topologies.hold("tas", &assignment, &per_pod);
            let uses = |(values, count): &(Vec<Arc<str>>, u32)| {
                (values.join("/"), pod.map(|amount| amount * i64::from(*count)))
            };
            let uses = assignment.domains.iter().map(uses).collect();
            workload.push(Resident { assignment, per_pod, uses });
        }
        self.residents.push(workload);
        // Where the workload went, nothing it asks for is over-committed.
        for (path, cells) in self.free(None, false) {
            for (cell, before) in cells.iter().zip(before[&path]) {
                assert!(*cell >= 0 || *cell == before, "{path:?} is over-committed");
            }
        }
    }
}
