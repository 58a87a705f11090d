//! Small clusters in few words.

use std::sync::Arc;

use fairlead_fit::topology::{
    Assignment, FlavorSpec, Held, Level, Misfit, Node, Options, Request, Slice, Topologies, WhatIf,
};
use fairlead_model::{Labels, NodeConstraints, Resources};

pub(crate) const HOST: &str = "kubernetes.io/hostname";
/// What keys of levels are called after their first letter.
pub(crate) const LEVELS: [&str; 3] = ["block", "rack", HOST];

/// `"cpu=4 gpu=1"` as resources.
pub(crate) fn amounts(text: &str) -> Resources {
    let entry = |pair: &str| {
        let (name, amount) = pair.split_once('=').expect("name=amount");
        (name.into(), amount.parse().expect("an amount"))
    };
    text.split_whitespace().map(entry).collect()
}

/// A node at `"b1/r1/n1"`, with these amounts and room for 110 pods.
pub(crate) fn node(path: &str, allocatable: &str) -> Node {
    let parts: Vec<&str> = path.split('/').collect();
    let mut amounts = amounts(allocatable);
    if !amounts.contains("pods") {
        amounts.set("pods", 110);
    }
    let keys = &LEVELS[LEVELS.len() - parts.len()..];
    let labels = keys.iter().zip(&parts).map(|(key, value)| (Arc::from(*key), Arc::from(*value)));
    Node {
        name: parts.last().copied().expect("a name").into(),
        labels: labels.collect(),
        taints: Vec::new(),
        allocatable: amounts,
        usable: true,
    }
}

pub(crate) fn spec(levels: &[&str]) -> FlavorSpec {
    FlavorSpec { levels: levels.iter().map(|level| Arc::from(*level)).collect(), ..FlavorSpec::default() }
}

/// A cluster with one flavor `tas` over these levels.
pub(crate) fn cluster(levels: &[&str], nodes: &[(&str, &str)]) -> Topologies {
    let mut topologies = Topologies::new();
    topologies.set_flavor("tas".into(), spec(levels));
    for (path, allocatable) in nodes {
        topologies.set_node(node(path, allocatable));
    }
    topologies.settle();
    topologies
}

/// A pod set as tests write it.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) requests: Resources,
    pub(crate) nodes: NodeConstraints,
    pub(crate) count: u32,
    /// `"required rack"`, `"preferred block"` or `""`.
    pub(crate) level: &'static str,
    pub(crate) slices: Vec<Slice>,
    pub(crate) group: Option<&'static str>,
}

impl Ask {
    pub(crate) fn request(&self) -> Request<'_> {
        let level = match self.level.split_once(' ') {
            Some(("required", level)) => Level::Required(level),
            Some(("preferred", level)) => Level::Preferred(level),
            _ => Level::Unconstrained,
        };
        Request {
            requests: &self.requests,
            nodes: &self.nodes,
            count: self.count,
            level,
            slices: &self.slices,
            group: self.group,
        }
    }

    pub(crate) fn slices(mut self, slices: &[(&str, u32)]) -> Self {
        self.slices =
            slices.iter().map(|(level, size)| Slice { level: (*level).into(), size: *size }).collect();
        self
    }

    pub(crate) fn grouped(mut self) -> Self {
        self.group = Some("g");
        self
    }

    pub(crate) fn selecting(mut self, key: &str, value: &str) -> Self {
        self.nodes.selector = Labels::from([(key.into(), value.into())]);
        self
    }
}

pub(crate) fn ask(count: u32, requests: &str, level: &'static str) -> Ask {
    Ask {
        requests: amounts(requests),
        nodes: NodeConstraints::default(),
        count,
        level,
        slices: Vec::new(),
        group: None,
    }
}

/// Places pod sets of one workload in flavor `tas`, and writes the result as `"n1:2 n2:1"` per pod set.
pub(crate) fn place(topologies: &Topologies, asks: &[Ask]) -> Result<Vec<String>, Misfit> {
    place_if(topologies, &WhatIf::new(), asks, Options::default())
}

pub(crate) fn place_if(
    topologies: &Topologies,
    what_if: &WhatIf,
    asks: &[Ask],
    options: Options,
) -> Result<Vec<String>, Misfit> {
    let requests: Vec<(&str, Request<'_>)> = asks.iter().map(|ask| ("tas", ask.request())).collect();
    let placed = topologies.place(what_if, &requests, options)?;
    Ok(placed.iter().map(|placed| written(&topologies.assignment("tas", placed))).collect())
}

/// `"n1:2 b1/r2:3"`.
pub(crate) fn written(assignment: &Assignment) -> String {
    let domain = |(values, count): &(Vec<Arc<str>>, u32)| format!("{}:{count}", values.join("/"));
    assignment.domains.iter().map(domain).collect::<Vec<_>>().join(" ")
}

/// An assignment from its written form, over the lowest levels that the values need.
pub(crate) fn assigned(text: &str) -> Assignment {
    let domain = |part: &str| {
        let (values, count) = part.split_once(':').expect("values:count");
        (values.split('/').map(Arc::from).collect::<Vec<Arc<str>>>(), count.parse().expect("a count"))
    };
    let domains: Vec<_> = text.split_whitespace().map(domain).collect();
    let depth = domains.first().map_or(1, |(values, _)| values.len());
    let levels: &[&str] = if depth == 1 { &[HOST] } else { &LEVELS[..depth] };
    Assignment { levels: levels.iter().map(|level| Arc::from(*level)).collect(), domains }
}

/// What a written assignment holds in flavor `tas`.
pub(crate) fn hold(topologies: &mut Topologies, text: &str, per_pod: &str) {
    topologies.hold("tas", &assigned(text), &amounts(per_pod));
}

pub(crate) fn held<'a>(assignment: &'a Assignment, per_pod: &'a Resources) -> Held<'a> {
    Held { flavor: "tas", assignment, per_pod }
}

/// Expected results, as [`place`] writes them.
#[expect(clippy::unnecessary_wraps, reason = "it is compared with a result")]
pub(crate) fn found(texts: &[&str]) -> Result<Vec<String>, Misfit> {
    Ok(texts.iter().map(|text| (*text).to_owned()).collect())
}
