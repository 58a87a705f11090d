//! Selecting by label: the selectors of Kubernetes objects and the node conditions of pods, as plain values.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{Taint, TaintEffect};

/// Labels by key.
pub type Labels = BTreeMap<Arc<str>, Arc<str>>;

/// How a requirement compares a label's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    /// The label exists and its value is one of the given ones.
    In,
    /// The label is missing, or its value is none of the given ones.
    NotIn,
    /// The label exists.
    Exists,
    /// The label is missing.
    DoesNotExist,
    /// The label's value is an integer greater than the single given one.
    Gt,
    /// The label's value is an integer less than the single given one.
    Lt,
}

/// One condition on one label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    /// The label's key.
    pub key: Arc<str>,
    /// The comparison.
    pub operator: Operator,
    /// What it is compared with; empty for `Exists` and `DoesNotExist`.
    pub values: Vec<Arc<str>>,
}

impl Requirement {
    /// Whether these labels meet the condition.
    pub fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        let one_of = |value: &Arc<str>| self.values.contains(value);
        match self.operator {
            Operator::In => value.is_some_and(one_of),
            Operator::NotIn => !value.is_some_and(one_of),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::Gt => self.compare(value).is_some_and(std::cmp::Ordering::is_gt),
            Operator::Lt => self.compare(value).is_some_and(std::cmp::Ordering::is_lt),
        }
    }

    /// The label's value against the single given one, both as integers.
    fn compare(&self, value: Option<&Arc<str>>) -> Option<std::cmp::Ordering> {
        let [bound] = self.values.as_slice() else {
            return None;
        };
        let value = value?.parse::<i64>().ok()?;
        Some(value.cmp(&bound.parse::<i64>().ok()?))
    }
}

/// A `metav1.LabelSelector`: everything must match; an empty selector matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelSelector {
    /// `matchLabels` and `matchExpressions` as one list of conditions.
    pub requirements: Vec<Requirement>,
}

impl LabelSelector {
    /// Whether these labels meet every condition.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(labels))
    }
}

/// A pod's or flavor's toleration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Toleration {
    /// The taint's key; empty with `exists` tolerates every key.
    pub key: Arc<str>,
    /// True for operator `Exists`, false for `Equal`.
    pub exists: bool,
    /// The taint's value, for `Equal`.
    pub value: Arc<str>,
    /// The effect, or every effect.
    pub effect: Option<TaintEffect>,
}

impl Toleration {
    /// Whether it tolerates this taint.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        let effect = self.effect.is_none_or(|effect| effect == taint.effect);
        let key = self.key.is_empty() || self.key == taint.key;
        let value = self.exists || (!self.key.is_empty() && self.value == taint.value);
        effect && key && value
    }
}

/// One term of a required node affinity: its conditions are all required. Terms are alternatives.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeTerm {
    /// `matchExpressions`.
    pub expressions: Vec<Requirement>,
    /// `matchFields` on `metadata.name`.
    pub fields: Vec<Requirement>,
}

/// What a pod demands of the node it runs on.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeConstraints {
    /// `spec.nodeSelector`.
    pub selector: Labels,
    /// The terms of the required node affinity, of which one must hold; none means no affinity.
    pub affinity: Option<Vec<NodeTerm>>,
    /// `spec.tolerations`.
    pub tolerations: Vec<Toleration>,
}

impl NodeConstraints {
    /// Any node without taints will do.
    pub const ANY: Self = Self { selector: Labels::new(), affinity: None, tolerations: Vec::new() };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requirement(operator: Operator, values: &[&str]) -> Requirement {
        let values = values.iter().map(|value| Arc::from(*value)).collect();
        Requirement { key: "k".into(), operator, values }
    }

    #[test]
    fn requirements_compare_as_kubernetes_does() {
        let with = |value: &str| Labels::from([("k".into(), value.into())]);
        let none = Labels::new();
        assert!(requirement(Operator::In, &["a", "b"]).matches(&with("a")));
        assert!(!requirement(Operator::In, &["a"]).matches(&none));
        assert!(requirement(Operator::NotIn, &["a"]).matches(&none));
        assert!(!requirement(Operator::NotIn, &["a"]).matches(&with("a")));
        assert!(requirement(Operator::Exists, &[]).matches(&with("")));
        assert!(requirement(Operator::DoesNotExist, &[]).matches(&none));
        assert!(requirement(Operator::Gt, &["3"]).matches(&with("4")));
        assert!(!requirement(Operator::Gt, &["4"]).matches(&with("4")));
        assert!(!requirement(Operator::Lt, &["x"]).matches(&with("4")));
    }

    #[test]
    fn tolerations_match_key_value_and_effect() {
        let taint = Taint { key: "gpu".into(), value: "h100".into(), effect: TaintEffect::NoSchedule };
        let toleration = |key: &str, exists, value: &str, effect| Toleration {
            key: key.into(),
            exists,
            value: value.into(),
            effect,
        };
        assert!(toleration("", true, "", None).tolerates(&taint));
        assert!(toleration("gpu", true, "", Some(TaintEffect::NoSchedule)).tolerates(&taint));
        assert!(toleration("gpu", false, "h100", None).tolerates(&taint));
        assert!(!toleration("gpu", false, "a100", None).tolerates(&taint));
        assert!(!toleration("gpu", true, "", Some(TaintEffect::NoExecute)).tolerates(&taint));
        assert!(!toleration("cpu", true, "", None).tolerates(&taint));
    }
}
