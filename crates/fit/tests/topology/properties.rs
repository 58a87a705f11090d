//! Random worlds that change while pod sets come, go and are tried: every answer equals that of the obvious reference,
//! and the invariants hold.

use fairlead_fit::topology::{Held, WhatIf};
use fairlead_model::ObjectKey;
use proptest::prelude::*;

use crate::naive::Want;
use crate::world::{Resident, World, amounts};

/// One thing that happens.
#[derive(Clone, Debug)]
enum Event {
    /// A workload asks; if it can be placed it stays.
    Ask(Want),
    /// The same with balanced placement.
    Balanced(Want),
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
        4 => want().prop_map(Event::Balanced),
        2 => want().prop_map(Event::AskEmpty),
        4 => (0_usize..8, want()).prop_map(|(ix, want)| Event::AskWithout(ix, want)),
        2 => (0_usize..8).prop_map(Event::Leave),
        1 => (0_usize..12).prop_map(Event::Flip),
        1 => (0_usize..12, 0_i64..9).prop_map(|(ix, cpu)| Event::Resize(ix, cpu)),
        1 => (0_usize..12, 0_i64..3).prop_map(|(ix, cpu)| Event::Pod(ix, cpu)),
    ]
}

impl World {
    fn event(&mut self, event: Event) {
        match event {
            Event::Ask(want) => {
                if let Some(placed) = self.ask(&want, &WhatIf::new(), &self.free(None, false), false) {
                    self.admit(placed);
                }
            }
            Event::Balanced(want) => {
                if let Some(placed) = self.ask_balanced(&want, &self.free(None, false)) {
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
