//! Whether pods find room here, beside what has been promised and is not bound yet.

use fairlead_fit::{Pod, Room as Fit};
use fairlead_model::{Labels, NodeConstraints, PodDemand, Reason, Resources, Shape};
use fairlead_session::Refusal;

use super::capacity::PODS;
use super::refusal;

/// The copy already carries its flavor's labels and tolerations; nothing is added to what the pods demand.
static NO_LABELS: Labels = Labels::new();

/// What a placement needs that may not be bound yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claim {
    /// The pods.
    pub(crate) demand: Vec<PodDemand>,
    /// What they demand of their nodes.
    pub(crate) constraints: NodeConstraints,
}

impl Claim {
    fn pod<'a>(&'a self, requests: &'a Resources) -> Pod<'a> {
        Pod { requests, nodes: &self.constraints, labels: &NO_LABELS, tolerations: &[] }
    }

    /// The part of it that is not bound yet.
    fn rest(&self, bound: Option<&Resources>) -> Vec<PodDemand> {
        let mut bound = bound.map_or(0, |bound| bound.get(PODS).max(0));
        let mut rest = Vec::with_capacity(self.demand.len());
        for demand in &self.demand {
            let taken = u32::try_from(bound).unwrap_or(u32::MAX).min(demand.count);
            bound = bound.saturating_sub(i64::from(taken));
            let count = demand.count.saturating_sub(taken);
            if count > 0 {
                rest.push(PodDemand { requests: demand.requests.clone(), count });
            }
        }
        rest
    }
}

/// Free capacity less what has been promised.
#[derive(Debug)]
pub(crate) struct Room {
    free: Vec<Shape>,
}

impl Room {
    /// The room that is free now.
    pub(crate) const fn new(free: Vec<Shape>) -> Self {
        Self { free }
    }

    /// Takes away what a claim has not bound yet. Which nodes its pods will get is the scheduler's choice; this
    /// takes the tightest that fit, and what fits nowhere takes nothing.
    pub(crate) fn reserve(&mut self, claim: &Claim, bound: Option<&Resources>) {
        for demand in claim.rest(bound) {
            let requests = with_pod(&demand.requests);
            fairlead_fit::place(&mut self.free, &claim.pod(&requests), demand.count);
        }
    }

    /// Whether the claim fits into what is left; `empty` (the same nodes, empty) tells "not now" from "never".
    pub(crate) fn admit(&self, claim: &Claim, empty: &[Shape]) -> Result<(), Refusal> {
        let requests: Vec<Resources> = claim.demand.iter().map(|demand| with_pod(&demand.requests)).collect();
        let pods: Vec<(Pod<'_>, u32)> = requests
            .iter()
            .zip(&claim.demand)
            .map(|(requests, demand)| (claim.pod(requests), demand.count))
            .collect();
        if fairlead_fit::room(&self.free, &pods) == Fit::Fits {
            return Ok(());
        }
        for ((pod, count), demand) in pods.iter().zip(&claim.demand) {
            if *count > 0 && fairlead_fit::capacity(empty, pod) == 0 {
                let detail = format!("no node, even when empty, takes a pod of {}", demand.requests);
                return Err(refusal(Reason::NoSingleNodeFits, detail));
            }
        }
        let asked = claim.demand.iter().map(|demand| format!("{} of {}", demand.count, demand.requests));
        let asked: Vec<String> = asked.collect();
        let detail = format!("pods asked for: {}; too little is free now", asked.join(", "));
        Err(refusal(Reason::NoRoom, detail))
    }
}

/// The requests with the pod itself, which takes a place on its node.
fn with_pod(requests: &Resources) -> Resources {
    let mut requests = requests.clone();
    requests.set(PODS, 1);
    requests
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fairlead_model::{NodeClass, Taint, TaintEffect, Toleration};

    use super::*;

    fn cpu(milli: i64) -> Resources {
        [(Arc::from("cpu"), milli)].into_iter().collect()
    }

    fn nodes(milli: i64, count: u32, class: &NodeClass) -> Vec<Shape> {
        let mut free = cpu(milli);
        free.set(PODS, 10);
        vec![Shape { class: Arc::new(class.clone()), free, count }]
    }

    fn claim(milli: i64, count: u32) -> Claim {
        Claim {
            demand: vec![PodDemand { requests: cpu(milli), count }],
            constraints: NodeConstraints::default(),
        }
    }

    fn admit(free: &[Shape], claim: &Claim) -> Option<Reason> {
        Room::new(free.to_vec()).admit(claim, free).err().map(|refusal| refusal.reason)
    }

    #[test]
    fn whole_pods_count_not_the_sum() {
        let free = nodes(3000, 2, &NodeClass::default());
        assert_eq!(admit(&free, &claim(2000, 2)), None);
        assert_eq!(admit(&free, &claim(2000, 3)), Some(Reason::NoRoom));
        assert_eq!(admit(&free, &claim(1000, 6)), None);
        assert_eq!(admit(&free, &claim(1000, 7)), Some(Reason::NoRoom));
        assert_eq!(admit(&free, &claim(3001, 1)), Some(Reason::NoSingleNodeFits));
        assert_eq!(admit(&free, &claim(0, 21)), Some(Reason::NoRoom));
        assert_eq!(admit(&free, &claim(0, 20)), None);
        assert_eq!(admit(&[], &claim(0, 0)), None);
    }

    #[test]
    fn a_full_cluster_is_not_now_rather_than_never() {
        let empty = nodes(3000, 2, &NodeClass::default());
        let refused = Room::new(nodes(0, 2, &NodeClass::default())).admit(&claim(1000, 1), &empty);
        assert_eq!(refused.err().map(|refusal| refusal.reason), Some(Reason::NoRoom));
    }

    #[test]
    fn what_is_promised_and_not_bound_is_taken() {
        let free = nodes(3000, 2, &NodeClass::default());
        let left = |bound: Option<&Resources>| {
            let mut room = Room::new(free.clone());
            room.reserve(&claim(1000, 3), bound);
            room.admit(&claim(1000, 4), &free).err().map(|refusal| refusal.reason)
        };
        assert_eq!(left(None), Some(Reason::NoRoom));
        let bound: Resources = [(Arc::from(PODS), 2)].into_iter().collect();
        assert_eq!(left(Some(&bound)), None);
    }

    #[test]
    fn taints_and_selectors_decide_which_nodes_count() {
        let taint = Taint { key: "gpu".into(), value: "".into(), effect: TaintEffect::NoSchedule };
        let class = NodeClass { labels: [("zone".into(), "a".into())].into(), taints: vec![taint] };
        let free = nodes(3000, 1, &class);
        let mut claim = claim(1000, 1);
        assert_eq!(admit(&free, &claim), Some(Reason::NoSingleNodeFits));
        let tolerated = Toleration { key: "gpu".into(), exists: true, value: "".into(), effect: None };
        claim.constraints.tolerations.push(tolerated);
        assert_eq!(admit(&free, &claim), None);
        claim.constraints.selector.insert("zone".into(), "b".into());
        assert_eq!(admit(&free, &claim), Some(Reason::NoSingleNodeFits));
    }
}
