//! Whether a flavor may serve a pod set at all [F-3].

use fairlead_fit::tolerated;
use fairlead_model::{Labels, NodeConstraints, NodeTerm, Reason};

use crate::fact::{Flavor, PodSet};

/// Whether a pod set may use a flavor, by taints and labels; topology is judged elsewhere.
///
/// Only label keys that the flavor itself has are compared: what else a pod demands of nodes is for the scheduler that
/// places it. An alternative of the required affinity that names none of them says nothing about the flavor. Kueue takes
/// the whole affinity as met then; here the alternatives that do say something decide (quirk 5).
pub(crate) fn admits(flavor: &Flavor, pod_set: &PodSet) -> Result<(), Reason> {
    let nodes = &pod_set.template.nodes;
    tolerated(&flavor.taints, &nodes.tolerations, &flavor.tolerations)
        .map_err(|_taint| Reason::UntoleratedTaint)?;
    if matches_labels(nodes, &flavor.node_labels) { Ok(()) } else { Err(Reason::FlavorMismatch) }
}

fn matches_labels(nodes: &NodeConstraints, labels: &Labels) -> bool {
    let mut selector = nodes.selector.iter().filter(|(key, _)| labels.contains_key(*key));
    let selected = selector.all(|(key, value)| labels.get(key) == Some(value));
    let terms = nodes.affinity.as_deref().unwrap_or_default();
    let mut telling = terms.iter().filter_map(|term| term_matches(term, labels)).peekable();
    selected && (telling.peek().is_none() || telling.any(|matches| matches))
}

/// Whether the conditions of a term on the flavor's own keys hold; none when it has none.
fn term_matches(term: &NodeTerm, labels: &Labels) -> Option<bool> {
    let mut known =
        term.expressions.iter().filter(|condition| labels.contains_key(&condition.key)).peekable();
    known.peek()?;
    Some(known.all(|condition| condition.matches(labels)))
}
