//! A metric with a bounded number of label values, and with values that can be forgotten.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use prometheus::Registry;
use prometheus::core::{Collector, MetricVec, MetricVecBuilder};

/// Most label values of one family. More than that is counted under [`OTHER`]: a scrape stays readable whatever users do.
pub(super) const MOST: usize = 10_000;
/// Stands for every value beyond the bound.
pub(super) const OTHER: &str = "_other";

/// A family of the library's, whatever it counts with.
pub(super) trait Family: Collector + Clone + 'static {
    /// One of its metrics.
    type Metric;

    /// The metric with these label values.
    fn metric(&self, values: &[&str]) -> prometheus::Result<Self::Metric>;

    /// Forgets it.
    fn forget(&self, values: &[&str]);
}

impl<B: MetricVecBuilder + 'static> Family for MetricVec<B>
where
    Self: Collector,
{
    type Metric = B::M;

    fn metric(&self, values: &[&str]) -> prometheus::Result<B::M> {
        self.get_metric_with_label_values(values)
    }

    fn forget(&self, values: &[&str]) {
        // Gone already is as good.
        self.remove_label_values(values).unwrap_or_default();
    }
}

/// One family.
pub(super) struct Bounded<F> {
    family: F,
    seen: Mutex<BTreeSet<Vec<String>>>,
    most: usize,
}

impl<F> fmt::Debug for Bounded<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bounded").field("most", &self.most).finish_non_exhaustive()
    }
}

impl<F: Family> Bounded<F> {
    /// Registers the family.
    pub(super) fn register(registry: &Registry, family: F) -> prometheus::Result<Self> {
        registry.register(Box::new(family.clone()))?;
        Ok(Self { family, seen: Mutex::default(), most: MOST })
    }

    /// The metric with these label values.
    pub(super) fn with(&self, values: &[&str], act: impl FnOnce(F::Metric)) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let owned: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        let other = vec![OTHER; values.len()];
        let values = if seen.contains(&owned) || seen.len() < self.most {
            seen.insert(owned);
            values
        } else {
            other.as_slice()
        };
        // As many values as the family has labels: a test goes through every family.
        if let Ok(metric) = self.family.metric(values) {
            act(metric);
        }
    }

    /// Forgets the metrics whose label values are not wanted any more.
    pub(super) fn retain(&self, wanted: impl Fn(&[String]) -> bool) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.retain(|values| {
            let keep = wanted(values);
            if !keep {
                self.family.forget(&values.iter().map(String::as_str).collect::<Vec<_>>());
            }
            keep
        });
    }
}

#[cfg(test)]
mod tests {
    use prometheus::{IntCounterVec, Opts};

    use super::*;

    fn texts(registry: &Registry) -> Vec<String> {
        let text = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    #[test]
    fn values_beyond_the_bound_are_one_and_forgotten_ones_make_room() {
        let registry = Registry::new();
        let family = IntCounterVec::new(Opts::new("jobs_total", "Jobs."), &["queue"]).unwrap();
        let mut bounded = Bounded::register(&registry, family).unwrap();
        bounded.most = 2;
        for queue in ["a", "b", "c", "d", "a"] {
            bounded.with(&[queue], |counter| counter.inc());
        }
        assert_eq!(
            texts(&registry),
            ["jobs_total{queue=\"_other\"} 2", "jobs_total{queue=\"a\"} 2", "jobs_total{queue=\"b\"} 1"]
        );
        bounded.retain(|values| values == ["b"]);
        bounded.with(&["c"], |counter| counter.inc());
        assert_eq!(
            texts(&registry),
            ["jobs_total{queue=\"_other\"} 2", "jobs_total{queue=\"b\"} 1", "jobs_total{queue=\"c\"} 1"]
        );
    }
}
