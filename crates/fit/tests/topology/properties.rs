//! Random worlds that change while pod sets come, go and are tried: every answer equals that of the obvious reference,
//! and the invariants hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_fit::topology::{Assignment, Held, Level, Options, Request, Slice, Topologies, WhatIf};
use fairlead_model::{NodeConstraints, ObjectKey, Resources};
use proptest::prelude::*;

use crate::lab::{self, LEVELS};
use crate::naive::{Free, Naive, Path, Want};

/// One thing that happens.
#[derive(Clone, Debug)]
enum Event {
    /// A workload asks; if it can be placed it stays.
    Ask(Want),
    /// The same on empty topologies, without staying.
    AskEmpty(Want),
    /// If the n-th workload were gone, could this be placed?
    AskWithout(usize, Want),
    /// The n-th workload leaves.
    Leave(usize),
    /// The n-th node becomes usable or not.
    Flip(usize),
    /// A node gets another size.
    Resize(usize, i64),
    /// A pod that is not placed here is on the n-th node.
    Pod(usize, i64),
}

fn amounts([cpu, gpu, pods]: [i64; 3]) -> Resources {
    [("cpu", cpu), ("gpu", gpu), ("pods", pods)]
        .map(|(name, amount)| (Arc::from(name), amount))
        .into_iter()
        .collect()
}

/// What a pod requests of CPU and GPU, and its place.
fn pod() -> impl Strategy<Value = [i64; 3]> {
    (0_i64..4, 0_i64..2).prop_map(|(cpu, gpu)| [cpu, gpu, 1])
}

fn want() -> impl Strategy<Value = Want> {
    let how = (0_usize..3, 0_usize..3, 0_u32..4, 1_u32..4, any::<bool>());
    (pod(), prop::option::weighted(0.3, pod()), how, 1_u32..5, 0_u32..3).prop_map(
        |(pod, leader, (level, down, kind, size, layered), slices, inner)| {
            let unconstrained = kind == 0 && leader.is_none();
            let sliced = kind == 1 || (unconstrained && layered);
            let slice_level = if sliced { (level + down).min(2) } else { 2 };
            let slice_size = if sliced { size } else { 1 };
            // Slices of one pod on the lowest level are no slices.
            let sliced = slice_level < 2 || slice_size > 1;
            let level = match (unconstrained, sliced) {
                (true, true) => 0,
                (true, false) => 2,
                (false, _) => level,
            };
            let two_layers = sliced && layered && slice_level < 2 && inner > 0;
            let slice_size = if two_layers { slice_size * inner } else { slice_size };
            Want {
                pod,
                leader,
                count: slice_size * slices,
                level,
                required: kind % 2 == 1,
                unconstrained,
                slice_level,
                slice_size,
                inner: two_layers.then_some((2, inner)),
            }
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => want().prop_map(Event::Ask),
        2 => want().prop_map(Event::AskEmpty),
        4 => (0_usize..8, want()).prop_map(|(ix, want)| Event::AskWithout(ix, want)),
        2 => (0_usize..8).prop_map(Event::Leave),
        1 => (0_usize..12).prop_map(Event::Flip),
        1 => (0_usize..12, 0_i64..9).prop_map(|(ix, cpu)| Event::Resize(ix, cpu)),
        1 => (0_usize..12, 0_i64..3).prop_map(|(ix, cpu)| Event::Pod(ix, cpu)),
    ]
}

#[derive(Clone, Debug)]
struct NodeState {
    path: Path,
    size: [i64; 3],
    usable: bool,
    pods: Vec<i64>,
}

/// A pod set that stays.
struct Resident {
    assignment: Assignment,
    per_pod: Resources,
    /// By node name.
    uses: BTreeMap<String, [i64; 3]>,
}

struct World {
    topologies: Topologies,
    nodes: Vec<NodeState>,
    /// Each workload's pod sets.
    residents: Vec<Vec<Resident>>,
    by_host: bool,
}

fn per_pod(pod: [i64; 3]) -> Resources {
    amounts([pod[0], pod[1], 0])
}

impl World {
    fn new(nodes: Vec<(usize, usize, i64, i64, i64)>, by_host: bool) -> Self {
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
    fn tell(&mut self, ix: usize) {
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
    fn free(&self, without: Option<usize>, empty: bool) -> Free {
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

    /// Asks both, compares, and returns the assignments of workers and leader.
    fn ask(
        &self,
        want: &Want,
        what_if: &WhatIf,
        free: &Free,
        empty: bool,
    ) -> Option<Vec<(Assignment, [i64; 3])>> {
        let levels = self.topologies.levels("tas")?;
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
        let options = Options { empty, ..Options::default() };
        let placed = self.topologies.place(what_if, &requests, options);
        let expected = Naive { free, want, depth: 3 }.place();
        let Some((expected, host)) = expected else {
            assert!(placed.is_err(), "{placed:?} for {want:?}, expected none");
            return None;
        };
        let placed =
            placed.unwrap_or_else(|misfit| panic!("{misfit:?} for {want:?}, expected {expected:?} {host:?}"));
        let found: Vec<Assignment> =
            placed.iter().map(|placed| self.topologies.assignment("tas", placed)).collect();
        let write = |paths: Vec<(&Path, u32)>| {
            paths
                .iter()
                .map(|(path, count)| format!("{}:{count}", self.written(path)))
                .collect::<Vec<_>>()
                .join(" ")
        };
        let mut written = vec![write(expected.iter().map(|(path, count)| (path, *count)).collect())];
        written.extend(host.as_ref().map(|host| write(vec![(host, 1)])));
        assert_eq!(found.iter().map(lab::written).collect::<Vec<_>>(), written, "for {want:?}");
        Self::check(want, &expected, host.as_ref());
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
            assert_eq!(all.collect::<std::collections::BTreeSet<_>>().len(), 1);
        }
        assert!(at(want.slice_level).values().all(|count| count % want.slice_size == 0));
        if let Some((level, size)) = want.inner {
            assert!(at(level).values().all(|count| count % size == 0));
        }
    }

    fn admit(&mut self, placed: Vec<(Assignment, [i64; 3])>) {
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

    fn event(&mut self, event: Event) {
        match event {
            Event::Ask(want) => {
                if let Some(placed) = self.ask(&want, &WhatIf::new(), &self.free(None, false), false) {
                    self.admit(placed);
                }
            }
            Event::AskEmpty(want) => {
                self.ask(&want, &WhatIf::new(), &self.free(None, true), true);
            }
            Event::AskWithout(ix, want) => {
                let mut what_if = WhatIf::new();
                for resident in self.residents.get(ix).into_iter().flatten() {
                    let Resident { assignment, per_pod, .. } = resident;
                    what_if.free(&self.topologies, Held { flavor: "tas", assignment, per_pod });
                }
                self.ask(&want, &what_if, &self.free(Some(ix), false), false);
            }
            Event::Leave(ix) if ix < self.residents.len() => {
                for Resident { assignment, per_pod, .. } in self.residents.remove(ix) {
                    self.topologies.release("tas", &assignment, &per_pod);
                }
            }
            Event::Flip(ix) if ix < self.nodes.len() => {
                self.nodes[ix].usable = !self.nodes[ix].usable;
                self.tell(ix);
            }
            Event::Resize(ix, cpu) if ix < self.nodes.len() => {
                self.nodes[ix].size[0] = cpu;
                self.tell(ix);
            }
            Event::Pod(ix, cpu) if ix < self.nodes.len() => {
                let node = &mut self.nodes[ix];
                let key = ObjectKey::new("kube-system", format!("{ix}-{}", node.pods.len()));
                node.pods.push(cpu);
                self.topologies.set_pod(key, node.path[2].as_str().into(), &amounts([cpu, 0, 0]));
            }
            Event::Leave(_) | Event::Flip(_) | Event::Resize(..) | Event::Pod(..) => {}
        }
        self.topologies.settle();
    }
}

proptest! {
    /// [TAS-1] to [TAS-5]
    #[test]
    fn placements_equal_the_obvious_ones(
        nodes in prop::collection::vec((0_usize..2, 0_usize..2, 0_i64..9, 0_i64..3, 1_i64..7), 1..12),
        events in prop::collection::vec(event(), 1..24),
        by_host in any::<bool>(),
    ) {
        let mut world = World::new(nodes, by_host);
        for event in events {
            world.event(event);
        }
    }

    /// Assumptions that are dropped leave nothing behind, and what was built step by step is what is built at once.
    #[test]
    fn a_history_leaves_only_its_result(
        nodes in prop::collection::vec((0_usize..2, 0_usize..2, 0_i64..9, 0_i64..3, 1_i64..7), 1..12),
        events in prop::collection::vec(event(), 1..16),
    ) {
        let mut world = World::new(nodes.clone(), true);
        for event in events {
            world.event(event);
        }
        let mut anew = World::new(nodes, true);
        for (ix, node) in world.nodes.iter().enumerate() {
            anew.nodes[ix] = node.clone();
            anew.tell(ix);
            for (pod, cpu) in node.pods.iter().enumerate() {
                let key = ObjectKey::new("kube-system", format!("{ix}-{pod}"));
                anew.topologies.set_pod(key, node.path[2].as_str().into(), &amounts([*cpu, 0, 0]));
            }
        }
        for Resident { assignment, per_pod, .. } in world.residents.iter().flatten() {
            anew.topologies.hold("tas", assignment, per_pod);
        }
        anew.topologies.settle();
        let want = Want {
            pod: [1, 0, 1], leader: None, count: 3, level: 1, required: false, unconstrained: false,
            slice_level: 2, slice_size: 1, inner: None,
        };
        let free = anew.free(None, false);
        prop_assert!(free.len() >= world.residents.len().min(1));
        let free = world.free(None, false);
        let old = world.ask(&want, &WhatIf::new(), &free, false);
        let new = anew.ask(&want, &WhatIf::new(), &free, false);
        prop_assert_eq!(old, new);
    }
}
