//! Vectors of resources by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A Kubernetes resource name such as `cpu` or `nvidia.com/gpu`.
pub type ResourceName = Arc<str>;

/// Amounts by resource name, each in its smallest unit: CPU in millicores, everything else in units.
///
/// A missing name means zero. Arithmetic saturates.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resources(BTreeMap<ResourceName, i64>);

impl Resources {
    /// No resources.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// The amount of one resource; zero when it is not named.
    pub fn get(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Whether the resource is named, even with zero.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Sets one resource; zero is stored too, because "asks for none" and "does not ask" differ to quota.
    pub fn set(&mut self, name: impl Into<ResourceName>, amount: i64) {
        self.0.insert(name.into(), amount);
    }

    /// Names and amounts in name order.
    pub fn iter(&self) -> impl Iterator<Item = (&ResourceName, i64)> {
        self.0.iter().map(|(name, amount)| (name, *amount))
    }

    /// Whether no resource is named.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds every amount of `other`.
    pub fn add(&mut self, other: &Self) {
        for (name, amount) in other.iter() {
            let entry = self.0.entry(Arc::clone(name)).or_insert(0);
            *entry = entry.saturating_add(amount);
        }
    }

    /// Subtracts every amount of `other`; results may be negative.
    pub fn subtract(&mut self, other: &Self) {
        for (name, amount) in other.iter() {
            let entry = self.0.entry(Arc::clone(name)).or_insert(0);
            *entry = entry.saturating_sub(amount);
        }
    }

    /// Every amount times `count`.
    #[must_use]
    pub fn times(&self, count: i64) -> Self {
        Self(self.0.iter().map(|(name, amount)| (Arc::clone(name), amount.saturating_mul(count))).collect())
    }

    /// How many times `other` fits into this vector; `i64::MAX` when `other` asks for nothing.
    pub fn times_fits(&self, other: &Self) -> i64 {
        other
            .iter()
            .filter(|(_, amount)| *amount > 0)
            .map(|(name, amount)| self.get(name).max(0) / amount)
            .min()
            .unwrap_or(i64::MAX)
    }
}

impl FromIterator<(ResourceName, i64)> for Resources {
    fn from_iter<I: IntoIterator<Item = (ResourceName, i64)>>(items: I) -> Self {
        Self(items.into_iter().collect())
    }
}

impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, amount)) in self.iter().enumerate() {
            if i > 0 {
                f.write_str(" ")?;
            }
            write!(f, "{name}={amount}")?;
        }
        Ok(())
    }
}
