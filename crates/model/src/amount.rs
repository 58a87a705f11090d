//! Quantities of a resource, in its smallest unit, that saturate instead of overflowing.

use std::fmt;

/// An amount of one resource in its smallest unit (CPU in millicores, everything else in units), or no limit.
///
/// Arithmetic saturates at the ends of `i64`, as Kueue's own amounts do, so hostile quantities cannot wrap.
/// `Unlimited` is larger than every finite amount and absorbs addition and subtraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Amount {
    /// A finite amount; may be negative (over-use after a quota was lowered).
    Finite(i64),
    /// No limit.
    Unlimited,
}

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self::Finite(0);

    /// Sum, saturating; unlimited when either side is.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Finite(a), Self::Finite(b)) => Self::Finite(a.saturating_add(b)),
            _ => Self::Unlimited,
        }
    }

    /// Difference, saturating. Subtracting an unlimited amount from a finite one gives the lowest amount.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Finite(a), Self::Finite(b)) => Self::Finite(a.saturating_sub(b)),
            (Self::Unlimited, _) => Self::Unlimited,
            (Self::Finite(_), Self::Unlimited) => Self::Finite(i64::MIN),
        }
    }

    /// The finite value, with no limit read as the largest one.
    pub const fn saturated(self) -> i64 {
        match self {
            Self::Finite(value) => value,
            Self::Unlimited => i64::MAX,
        }
    }
}

impl Default for Amount {
    fn default() -> Self {
        Self::ZERO
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finite(value) => write!(f, "{value}"),
            Self::Unlimited => f.write_str("unlimited"),
        }
    }
}
