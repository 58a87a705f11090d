//! Follows the recorded decisions of a scenario.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_fit::topology::{Assignment, FlavorSpec, Held, Options, Request, Slice, Topologies, WhatIf};
use fairlead_model::{NodeConstraints, ObjectKey, Resources};
use serde_json::Value;

use crate::reader;

/// What was compared.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) placements: usize,
    pub(crate) differences: Vec<String>,
}

/// A pod set that holds room: flavor, where, requests of one pod.
type Holding = (Arc<str>, Assignment, Resources);

#[derive(Default)]
struct State {
    topologies: Topologies,
    levels: BTreeMap<Arc<str>, Vec<Arc<str>>>,
    flavors: BTreeMap<Arc<str>, Value>,
    queues: BTreeMap<Arc<str>, Value>,
    local_queues: BTreeMap<Arc<str>, Value>,
    workloads: BTreeMap<Arc<str>, Value>,
    holdings: BTreeMap<Arc<str>, Vec<Holding>>,
}

pub(crate) fn scenario(scenario: &Value, tally: &mut Tally) {
    let mut state = State::default();
    for object in reader::list(&scenario["objects"]) {
        state.apply(object);
    }
    for step in reader::list(&scenario["steps"]) {
        for action in reader::list(&step["do"]) {
            state.act(action);
        }
        for evicted in reader::list(&step["evictedByActions"]) {
            state.release(&evicted["workload"]);
        }
        for cycle in reader::list(&step["expect"]) {
            state.topologies.settle();
            state.cycle(cycle, &scenario["name"], tally);
            for evicted in reader::list(&cycle["evicted"]) {
                state.release(&evicted["workload"]);
            }
        }
    }
}

fn key(metadata: &Value) -> Arc<str> {
    let part = |name: &str| metadata[name].as_str().unwrap_or_default();
    format!("{}/{}", part("namespace"), part("name")).into()
}

fn object_key(key: &str) -> ObjectKey {
    let (namespace, name) = key.split_once('/').expect("namespace/name");
    ObjectKey::new(namespace, name)
}

impl State {
    fn apply(&mut self, object: &Value) {
        let name = reader::text(&object["metadata"]["name"]);
        match object["kind"].as_str().expect("a kind") {
            "Topology" => {
                let levels = reader::list(&object["spec"]["levels"]).iter();
                self.levels.insert(name, levels.map(|level| reader::text(&level["nodeLabel"])).collect());
                self.set_flavors();
            }
            "ResourceFlavor" => {
                self.flavors.insert(name, object.clone());
                self.set_flavors();
            }
            "Node" => {
                self.topologies.set_node(reader::node(object));
            }
            "Pod" => self.apply_pod(object),
            "ClusterQueue" => {
                self.queues.insert(name, object.clone());
            }
            "LocalQueue" => {
                self.local_queues.insert(key(&object["metadata"]), object.clone());
            }
            "Workload" => {
                self.workloads.insert(key(&object["metadata"]), object.clone());
            }
            _ => {}
        }
    }

    fn apply_pod(&mut self, object: &Value) {
        let key = object_key(&key(&object["metadata"]));
        let ended = ["Succeeded", "Failed"].iter().any(|phase| object["status"]["phase"] == *phase);
        match object["spec"]["nodeName"].as_str() {
            Some(node) if !ended => {
                self.topologies.set_pod(key, node.into(), &reader::pod_requests(&object["spec"]));
            }
            _ => {
                self.topologies.remove_pod(&key);
            }
        }
    }

    fn set_flavors(&mut self) {
        for (name, flavor) in &self.flavors {
            let topology = flavor["spec"]["topologyName"].as_str();
            let Some(levels) = topology.and_then(|topology| self.levels.get(topology)) else { continue };
            let spec = FlavorSpec {
                levels: levels.clone(),
                labels: reader::labels(&flavor["spec"]["nodeLabels"]),
                tolerations: reader::tolerations(&flavor["spec"]["tolerations"]),
            };
            self.topologies.set_flavor(Arc::clone(name), spec);
        }
    }

    fn act(&mut self, action: &Value) {
        let (verb, what) = action.as_object().and_then(|action| action.iter().next()).expect("an action");
        match (verb.as_str(), what["kind"].as_str()) {
            ("create" | "update", _) => self.apply(what),
            ("delete", Some("Node")) => {
                self.topologies.remove_node(what["name"].as_str().expect("a name"));
            }
            ("delete", Some("Pod")) => {
                self.topologies.remove_pod(&object_key(what["name"].as_str().expect("a name")));
            }
            ("delete" | "finish" | "release", None) => self.release(what),
            _ => {}
        }
    }

    fn release(&mut self, workload: &Value) {
        let held = self.holdings.remove(workload.as_str().expect("a workload"));
        for (flavor, assignment, per_pod) in held.into_iter().flatten() {
            self.topologies.release(&flavor, &assignment, &per_pod);
        }
    }

    /// Everybody is judged against the state at the start of the cycle, and again if that no longer fits.
    fn cycle(&mut self, cycle: &Value, scenario: &Value, tally: &mut Tally) {
        let admitted: Vec<Admitted> =
            reader::list(&cycle["admitted"]).iter().filter_map(|entry| self.admitted(entry)).collect();
        let nothing = WhatIf::new();
        let first: Vec<Found> =
            admitted.iter().map(|entry| entry.place(&self.topologies, &nothing)).collect();
        for (entry, found) in admitted.iter().zip(first) {
            let reserved = self.reserved_before(cycle, entry);
            let found = found.and_then(|found| {
                let held = entry.held(&found);
                let fits = reserved.fits(&self.topologies, &held);
                if fits { Ok(found) } else { entry.place(&self.topologies, &reserved) }
            });
            tally.placements += entry.pod_sets.len();
            let expected: Vec<&Assignment> = entry.pod_sets.iter().map(|pod_set| &pod_set.expected).collect();
            if !found.as_ref().is_ok_and(|found| found.iter().eq(expected.iter().copied())) {
                tally
                    .differences
                    .push(format!("{scenario} {}: expected {expected:?}, found {found:?}", entry.workload));
            }
            for pod_set in &entry.pod_sets {
                self.topologies.hold(&pod_set.flavor, &pod_set.expected, &pod_set.per_pod);
                let holding =
                    (Arc::clone(&pod_set.flavor), pod_set.expected.clone(), pod_set.per_pod.clone());
                self.holdings.entry(Arc::clone(&entry.workload)).or_default().push(holding);
            }
        }
    }

    /// What entries without victims, handled earlier in the same tree, reserve: their placement on empty topologies
    /// [S-4.5]. A queue that can always reclaim reserves nothing.
    fn reserved_before(&self, cycle: &Value, entry: &Admitted) -> WhatIf {
        let mut reserved = WhatIf::new();
        let orders = cycle["order"].as_object().into_iter().flatten();
        for (_, order) in orders {
            let order: Vec<Arc<str>> = reader::list(order).iter().map(reader::text).collect();
            let Some(position) = order.iter().position(|workload| *workload == entry.workload) else {
                continue;
            };
            let blocked = order.iter().take(position);
            for workload in blocked.filter(|name| cycle["heads"][name.as_ref()] == "PreemptionNoCandidates") {
                if let Some(blocked) = self.blocked(workload) {
                    let options = Options { empty: true, ..Options::default() };
                    let found = blocked.find(&self.topologies, &WhatIf::new(), options).unwrap_or_default();
                    blocked.held(&found).iter().for_each(|held| reserved.take(&self.topologies, *held));
                }
            }
        }
        reserved
    }

    /// A workload that reserves while it is blocked, in the topology of its queue.
    fn blocked(&self, workload: &Arc<str>) -> Option<Admitted> {
        let spec = &self.workloads.get(workload)?["spec"];
        let (namespace, _) = workload.split_once('/')?;
        let local: Arc<str> = format!("{namespace}/{}", spec["queueName"].as_str()?).into();
        let queue =
            self.queues.get(&reader::text(&self.local_queues.get(&local)?["spec"]["clusterQueue"]))?;
        if queue["spec"]["preemption"]["reclaimWithinCohort"] == "Any" {
            return None;
        }
        let groups = reader::list(&queue["spec"]["resourceGroups"]).iter();
        let mut flavors =
            groups.flat_map(|group| reader::list(&group["flavors"])).map(|flavor| &flavor["name"]);
        let flavor =
            flavors.find(|flavor| self.topologies.levels(flavor.as_str().unwrap_or_default()).is_some())?;
        let pod_sets = reader::list(&spec["podSets"]).iter();
        let pod_set = |spec| PodSet::of(spec, reader::text(flavor), &spec["count"], Assignment::default());
        Some(Admitted { workload: Arc::clone(workload), pod_sets: pod_sets.filter_map(pod_set).collect() })
    }

    /// Pod sets of an admitted workload that were placed in a topology.
    fn admitted(&self, entry: &Value) -> Option<Admitted> {
        let workload = reader::text(&entry["workload"]);
        let specs = &self.workloads.get(&workload)?["spec"]["podSets"];
        let pod_set = |given: &Value| {
            given["topologyAssignment"].as_object()?;
            let spec = reader::list(specs).iter().find(|spec| spec["name"] == given["name"])?;
            let flavors = given["flavors"].as_object()?.values().map(reader::text);
            let flavor = flavors.into_iter().find(|flavor| self.topologies.levels(flavor).is_some())?;
            PodSet::of(spec, flavor, &given["count"], reader::assignment(&given["topologyAssignment"]))
        };
        let pod_sets: Vec<PodSet> = reader::list(&entry["podSets"]).iter().filter_map(pod_set).collect();
        (!pod_sets.is_empty()).then_some(Admitted { workload, pod_sets })
    }
}

struct PodSet {
    flavor: Arc<str>,
    per_pod: Resources,
    nodes: NodeConstraints,
    count: u32,
    topology: Value,
    slices: Vec<Slice>,
    expected: Assignment,
}

struct Admitted {
    workload: Arc<str>,
    pod_sets: Vec<PodSet>,
}

type Found = Result<Vec<Assignment>, String>;

impl Admitted {
    fn place(&self, topologies: &Topologies, assumed: &WhatIf) -> Found {
        self.find(topologies, assumed, Options::default())
    }

    fn find(&self, topologies: &Topologies, assumed: &WhatIf, options: Options) -> Found {
        let requests: Vec<(&str, Request<'_>)> = self.pod_sets.iter().map(PodSet::request).collect();
        let placed = topologies.place(assumed, &requests, options);
        let placed = placed.map_err(|misfit| format!("{}: {}", misfit.pod_set, misfit.why))?;
        let name = |(pod_set, placed): (&PodSet, _)| topologies.assignment(&pod_set.flavor, placed);
        Ok(self.pod_sets.iter().zip(&placed).map(name).collect())
    }

    fn held<'a>(&'a self, assignments: &'a [Assignment]) -> Vec<Held<'a>> {
        let held = |(pod_set, assignment): (&'a PodSet, &'a Assignment)| Held {
            flavor: &pod_set.flavor,
            assignment,
            per_pod: &pod_set.per_pod,
        };
        self.pod_sets.iter().zip(assignments).map(held).collect()
    }
}

impl PodSet {
    fn of(spec: &Value, flavor: Arc<str>, count: &Value, expected: Assignment) -> Option<Self> {
        Some(Self {
            flavor,
            per_pod: reader::pod_requests(&spec["template"]["spec"]),
            nodes: reader::constraints(&spec["template"]["spec"]),
            count: u32::try_from(count.as_u64()?).ok()?,
            topology: spec["topologyRequest"].clone(),
            slices: reader::slices(&spec["topologyRequest"]),
            expected,
        })
    }

    fn request(&self) -> (&str, Request<'_>) {
        let request = Request {
            requests: &self.per_pod,
            nodes: &self.nodes,
            count: self.count,
            level: reader::level(&self.topology),
            slices: &self.slices,
            group: self.topology["podSetGroupName"].as_str(),
        };
        (&self.flavor, request)
    }
}
