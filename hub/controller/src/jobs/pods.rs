//! Pods that are told their place in a topology [TAS-6]: what the hub reads of one, and the patch that lets it go.

use std::sync::Arc;

use fairlead_api::labels;
use fairlead_engine::fact::{TopologyAssignment, TopologyPod};
use serde_json::{Map, Value, json};

use super::json;

/// A pod of a Job whose places are assigned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedPod {
    /// UID of its Job.
    pub job: Arc<str>,
    /// It waits at our gate.
    pub gated: bool,
    /// Its index within the Job, if it has one.
    pub index: Option<u32>,
    /// The node it is bound to.
    pub node: Option<Arc<str>>,
    /// It has ended: its room is free again.
    pub ended: bool,
    /// It has been asked to go.
    pub deleting: bool,
    /// Its node selector.
    pub selector: Map<String, Value>,
    /// The gates that are not ours.
    pub gates: Vec<Value>,
}

impl PlacedPod {
    /// Reads a pod; none when no assignment accounts for it.
    pub fn of(pod: &Value) -> Option<Self> {
        let label = |key: &str| json::text(pod, &["metadata", "labels", key]);
        let job = label(labels::CONTROLLER_UID)?;
        label(labels::TOPOLOGY_AWARE)?;
        let gates = json::list(pod, &["spec", "schedulingGates"]);
        let ours = |gate: &Value| json::text(gate, &["name"]) == Some(labels::TOPOLOGY_GATE);
        let phase = json::text(pod, &["status", "phase"]);
        Some(Self {
            job: job.into(),
            gated: gates.iter().any(ours),
            index: label(labels::JOB_COMPLETION_INDEX).and_then(|index| index.parse().ok()),
            node: json::text(pod, &["spec", "nodeName"]).filter(|node| !node.is_empty()).map(Arc::from),
            ended: matches!(phase, Some("Succeeded" | "Failed")),
            deleting: json::at(pod, &["metadata", "deletionTimestamp"]).is_some(),
            selector: json::into_object(json::at(pod, &["spec", "nodeSelector"]).cloned()),
            gates: gates.iter().filter(|gate| !ours(gate)).cloned().collect(),
        })
    }

    /// The pod as the assignment sees it.
    pub fn in_topology(&self, assignment: &TopologyAssignment) -> TopologyPod {
        let stands = |(values, _): &(Vec<Arc<str>>, u32)| {
            let mut pairs = assignment.levels.iter().zip(values);
            pairs.all(|(level, value)| self.selector.get(&**level).and_then(Value::as_str) == Some(value))
        };
        let domain = if self.gated { None } else { assignment.domains.iter().position(stands) };
        TopologyPod { rank: self.index, domain }
    }

    /// The change of its `spec` that sends it to this domain and takes our gate off.
    pub fn release(&self, assignment: &TopologyAssignment, domain: usize) -> Option<Value> {
        let (values, _) = assignment.domains.get(domain)?;
        let pairs = assignment.levels.iter().zip(values);
        let selector: Map<String, Value> =
            pairs.map(|(level, value)| (level.to_string(), Value::from(&**value))).collect();
        Some(json!({"nodeSelector": selector, "schedulingGates": self.gates}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(gate: &str, selector: &Value) -> Value {
        json!({
            "metadata": {"labels": {
                "batch.kubernetes.io/controller-uid": "u", "batch.kubernetes.io/job-completion-index": "3",
                "kueue.x-k8s.io/tas": "true"}},
            "spec": {"nodeSelector": selector, "schedulingGates": [{"name": gate}, {"name": "other"}]},
        })
    }

    fn assignment() -> TopologyAssignment {
        TopologyAssignment {
            levels: vec!["block".into(), "rack".into()],
            domains: vec![(vec!["b1".into(), "r1".into()], 2), (vec!["b1".into(), "r2".into()], 2)],
        }
    }

    #[test]
    fn tas6_a_gated_pod_is_sent_to_its_domain_and_keeps_what_is_not_ours() {
        let mut pod = pod("kueue.x-k8s.io/topology", &json!({"disk": "ssd"}));
        let read = PlacedPod::of(&pod).unwrap();
        assert!(read.gated);
        assert_eq!(read.in_topology(&assignment()), TopologyPod { rank: Some(3), domain: None });
        let patch = read.release(&assignment(), 1).unwrap();
        json::apply_merge_patch(&mut pod, &json!({"spec": patch}));
        let selector = json!({"disk": "ssd", "block": "b1", "rack": "r2"});
        assert_eq!(pod["spec"], json!({"nodeSelector": selector, "schedulingGates": [{"name": "other"}]}));
        let read = PlacedPod::of(&pod).unwrap();
        assert_eq!(read.in_topology(&assignment()).domain, Some(1), "it is known where it stands");
    }

    #[test]
    fn tas6_pods_without_the_mark_are_none_of_ours() {
        let mut pod = pod("kueue.x-k8s.io/topology", &Value::Null);
        pod["metadata"]["labels"]["kueue.x-k8s.io/tas"] = Value::Null;
        assert_eq!(PlacedPod::of(&pod), None);
    }
}
