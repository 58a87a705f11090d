//! Whether a pod may run on a node of a class.

use std::sync::Arc;

use fairlead_model::{
    Labels, NodeClass, NodeConstraints, NodeTerm, Resources, Taint, TaintEffect, Toleration,
};

/// One pod, with what its flavor adds.
#[derive(Clone, Copy, Debug)]
pub struct Pod<'a> {
    /// What it requests, `pods: 1` included.
    pub requests: &'a Resources,
    /// What it demands of nodes.
    pub nodes: &'a NodeConstraints,
    /// Node labels of its flavor, which it gets as a node selector.
    pub labels: &'a Labels,
    /// Tolerations of its flavor, which it gets too.
    pub tolerations: &'a [Toleration],
}

/// The first taint that keeps a pod with these tolerations away. `PreferNoSchedule` keeps nobody away.
pub fn tolerated<'t>(
    taints: &'t [Taint],
    pod: &[Toleration],
    flavor: &[Toleration],
) -> Result<(), &'t Taint> {
    let stands = |taint: &&Taint| {
        taint.effect != TaintEffect::PreferNoSchedule
            && !pod.iter().chain(flavor).any(|toleration| toleration.tolerates(taint))
    };
    taints.iter().find(stands).map_or(Ok(()), Err)
}

/// Whether a term of a required node affinity holds. A term without any condition holds nowhere, as in Kubernetes.
fn term_holds(term: &NodeTerm, labels: &Labels, name: Option<&Arc<str>>) -> bool {
    let empty = term.expressions.is_empty() && term.fields.is_empty();
    let fields: Labels = name.map(|name| ("metadata.name".into(), Arc::clone(name))).into_iter().collect();
    !empty
        && term.expressions.iter().all(|requirement| requirement.matches(labels))
        && term.fields.iter().all(|requirement| requirement.matches(&fields))
}

/// Whether nodes with these labels, or the node of this name, meet a pod's node selector and required affinity.
pub fn meets(nodes: &NodeConstraints, labels: &Labels, name: Option<&Arc<str>>) -> bool {
    let selected = nodes.selector.iter().all(|(key, value)| labels.get(key) == Some(value));
    let terms = nodes.affinity.as_deref();
    selected && terms.is_none_or(|terms| terms.iter().any(|term| term_holds(term, labels, name)))
}

impl Pod<'_> {
    /// Whether it may run on nodes of this class, however much is free there.
    pub fn allows(&self, class: &NodeClass) -> bool {
        let labelled = self.labels.iter().all(|(key, value)| class.labels.get(key) == Some(value));
        labelled
            && meets(self.nodes, &class.labels, None)
            && tolerated(&class.taints, &self.nodes.tolerations, self.tolerations).is_ok()
    }
}
