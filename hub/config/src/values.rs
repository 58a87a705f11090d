//! Values that are written as text.

use std::time::Duration;

use fairlead_model::{LabelSelector, Labels, Operator, Requirement};
use serde::{Deserialize, Deserializer, de};

/// A duration as Go writes it: `30m`, `1h5m`, `300ms`, `0s`. May be negative until it is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GoDuration(pub jiff::SignedDuration);

impl GoDuration {
    /// From seconds.
    pub const fn seconds(seconds: i64) -> Self {
        Self(jiff::SignedDuration::from_secs(seconds))
    }

    /// In milliseconds; saturates.
    pub fn millis(self) -> i64 {
        let limit = if self.0.is_negative() { i64::MIN } else { i64::MAX };
        i64::try_from(self.0.as_millis()).unwrap_or(limit)
    }

    /// As an unsigned duration; zero where it is negative.
    pub fn unsigned(self) -> Duration {
        Duration::try_from(self.0).unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let read = text.parse().map(Self);
        read.map_err(|why| {
            de::Error::custom(format!("{text:?} is not a duration such as 30s or 1h30m ({why})"))
        })
    }
}

/// A label selector as Kubernetes writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector(pub LabelSelector);

impl Selector {
    /// Whether a namespace of this name, with no other label than that, is selected.
    pub fn takes_namespace(&self, name: &str) -> bool {
        self.0.matches(&Labels::from([("kubernetes.io/metadata.name".into(), name.into())]))
    }

    /// Every namespace but these.
    pub fn all_namespaces_but(names: &[&str]) -> Self {
        Self(LabelSelector {
            requirements: vec![Requirement {
                key: "kubernetes.io/metadata.name".into(),
                operator: Operator::NotIn,
                values: names.iter().map(|name| (*name).into()).collect(),
            }],
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawSelector {
    #[serde(default)]
    match_labels: std::collections::BTreeMap<String, String>,
    #[serde(default)]
    match_expressions: Vec<RawRequirement>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRequirement {
    key: String,
    operator: RawOperator,
    #[serde(default)]
    values: Vec<String>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
enum RawOperator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl<'de> Deserialize<'de> for Selector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = RawSelector::deserialize(deserializer)?;
        let labels = raw.match_labels.into_iter().map(|(key, value)| Requirement {
            key: key.into(),
            operator: Operator::In,
            values: vec![value.into()],
        });
        let mut requirements: Vec<Requirement> = labels.collect();
        for one in raw.match_expressions {
            let operator = match one.operator {
                RawOperator::In => Operator::In,
                RawOperator::NotIn => Operator::NotIn,
                RawOperator::Exists => Operator::Exists,
                RawOperator::DoesNotExist => Operator::DoesNotExist,
            };
            let lists = matches!(one.operator, RawOperator::In | RawOperator::NotIn);
            if lists == one.values.is_empty() {
                let wanted = if lists { "needs values" } else { "takes no values" };
                return Err(de::Error::custom(format!("the operator of {} {wanted}", one.key)));
            }
            let values = one.values.into_iter().map(Into::into).collect();
            requirements.push(Requirement { key: one.key.into(), operator, values });
        }
        Ok(Self(LabelSelector { requirements }))
    }
}

/// The lowest TLS version that is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum TlsVersion {
    /// TLS 1.2, the default as in Go.
    #[default]
    #[serde(rename = "VersionTLS12")]
    Tls12,
    /// TLS 1.3.
    #[serde(rename = "VersionTLS13")]
    Tls13,
}
