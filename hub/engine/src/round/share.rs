//! Dominant resource shares [P-5] as exact ratios, and LocalQueue use [P-9].

use std::cmp::Ordering;

use super::double::Double;
use crate::names::at;
use crate::policy::ShareRule;
use crate::quota::plane::Plane;
use crate::quota::{Col, NodeIx, Tree};

/// One billion: the denominator of weights.
const BILLION: u128 = 1_000_000_000;

/// Decayed use of a LocalQueue, weighted; larger is later in line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Use(pub(crate) i128);

/// A node's share: how much of what could be lent to it, in its most borrowed resource, it borrows, by its weight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    /// Borrowed amount of the dominant resource.
    borrowed: u128,
    /// What could be lent of it; at least one.
    lendable: u128,
    /// In billionths.
    weight: u128,
    /// It borrows something, though perhaps nothing that could be lent.
    pub(crate) borrows: bool,
}

impl Share {
    /// The share of a node; zero for a root.
    pub(crate) fn of(tree: &Tree, plane: Plane<'_>, node: NodeIx) -> Self {
        let nothing = Self { borrowed: 0, lendable: 1, weight: BILLION, borrows: false };
        let (Some(parent), Some(at_node)) = (tree.parent(node), tree.node(node)) else { return nothing };
        let mut share = Self { weight: u128::try_from(at_node.weight.0).unwrap_or(0), ..nothing };
        let (row, limits) = (plane.row(node), tree.limits(node));
        let value = |row: &[i64], col: Col| i128::from(row.get(at(col)).copied().unwrap_or(0));
        for (cols, lendable) in tree.lendable(parent) {
            let over = |col: &Col| value(row, *col).saturating_sub(value(limits, *col)).max(0).unsigned_abs();
            let borrowed = cols.iter().map(over).fold(0, u128::saturating_add);
            share.borrows |= borrowed > 0;
            let is_higher = borrowed.saturating_mul(share.lendable) > share.borrowed.saturating_mul(lendable);
            if lendable > 0 && is_higher {
                (share.borrowed, share.lendable) = (borrowed, lendable);
            }
        }
        share
    }

    /// Weight zero while it borrows: last in every comparison.
    pub(crate) const fn is_infinite(&self) -> bool {
        self.weight == 0 && self.borrowed > 0
    }

    /// Compares by a rule.
    pub(crate) fn compare(&self, other: &Self, rule: ShareRule) -> Ordering {
        match rule {
            ShareRule::Exact => self.cmp(other),
            ShareRule::Float if self.is_infinite() || other.is_infinite() => self.cmp(other),
            ShareRule::Float => self.double().cmp(&other.double()),
        }
    }

    /// The share as Kueue computes it: `(borrowed × 1000 / lendable) / weight` in 64-bit floats.
    fn double(&self) -> Double {
        let ratio = Double::ratio(self.borrowed, 1, 0).times(1000).over(Double::ratio(self.lendable, 1, 0));
        ratio.over(Double::ratio(self.weight, BILLION, 0))
    }

    /// Compares exactly, by cross-multiplication.
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.is_infinite(), other.is_infinite()) {
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (true, true) => {
                by_product([self.borrowed, other.lendable, 1], [other.borrowed, self.lendable, 1])
            }
            (false, false) if self.borrowed == 0 || other.borrowed == 0 => {
                self.borrowed.min(1).cmp(&other.borrowed.min(1))
            }
            (false, false) => by_product(
                [self.borrowed, other.lendable, other.weight],
                [other.borrowed, self.lendable, self.weight],
            ),
        }
    }

    /// The share in thousandths, rounded up, as it is published; none for infinite.
    pub(crate) fn published(&self) -> Option<i64> {
        if self.is_infinite() {
            return None;
        }
        if self.borrowed == 0 {
            return Some(0);
        }
        let above = self.borrowed.checked_mul(1000).and_then(|above| above.checked_mul(BILLION));
        let below = self.lendable.checked_mul(self.weight);
        let share = above.zip(below).map(|(above, below)| above.div_ceil(below.max(1)));
        Some(share.and_then(|share| i64::try_from(share).ok()).unwrap_or(i64::MAX))
    }
}

/// Compares the products of three numbers each.
fn by_product(a: [u128; 3], b: [u128; 3]) -> Ordering {
    let small = |[x, y, z]: [u128; 3]| x.checked_mul(y)?.checked_mul(z);
    match (small(a), small(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => product(a).cmp(&product(b)),
    }
}

/// The product of three numbers as limbs, the most significant first, so that it cannot overflow and compares as a
/// number.
fn product(factors: [u128; 3]) -> [u64; 6] {
    let mut limbs: [u64; 6] = [0, 0, 0, 0, 0, 1];
    for factor in factors {
        limbs = times(limbs, factor);
    }
    limbs
}

/// Limbs times a factor; what does not fit into 384 bits cannot occur with three factors of 128.
fn times(limbs: [u64; 6], factor: u128) -> [u64; 6] {
    let low = u64::try_from(factor & u128::from(u64::MAX)).unwrap_or(u64::MAX);
    let high = u64::try_from(factor >> 64).unwrap_or(u64::MAX);
    let by_low = times_limb(limbs, low);
    let by_high = times_limb(limbs, high);
    let mut sum = [0_u64; 6];
    let mut carry = false;
    for position in (0..6_usize).rev() {
        // The high half counts one limb further up.
        let shifted = by_high.get(position.saturating_add(1)).copied().unwrap_or(0);
        let own = by_low.get(position).copied().unwrap_or(0);
        let (first, over) = own.overflowing_add(shifted);
        let (total, again) = first.overflowing_add(u64::from(carry));
        carry = over || again;
        if let Some(limb) = sum.get_mut(position) {
            *limb = total;
        }
    }
    sum
}

fn times_limb(limbs: [u64; 6], factor: u64) -> [u64; 6] {
    let mut result = [0_u64; 6];
    let mut carry: u128 = 0;
    for (limb, place) in limbs.iter().rev().zip(result.iter_mut().rev()) {
        let wide = u128::from(*limb).saturating_mul(u128::from(factor)).saturating_add(carry);
        *place = u64::try_from(wide & u128::from(u64::MAX)).unwrap_or(u64::MAX);
        carry = wide >> 64;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(borrowed: u128, lendable: u128, weight: u128) -> Share {
        Share { borrowed, lendable, weight, borrows: borrowed > 0 }
    }

    #[test]
    fn p5_shares_compare_exactly_at_any_size() {
        let third = share(1, 3, BILLION);
        assert_eq!(third.cmp(&share(1_000_000_007, 3_000_000_021, BILLION)), Ordering::Equal);
        let huge = u128::from(u64::MAX) * 256;
        assert_eq!(share(huge, huge - 1, 1).cmp(&share(huge - 1, huge, 1)), Ordering::Greater);
        assert_eq!(share(huge, 1, u128::from(u64::MAX)).cmp(&share(1, huge, 1)), Ordering::Greater);
        assert_eq!(share(1, 2, 2 * BILLION).cmp(&share(1, 4, BILLION)), Ordering::Equal);
    }

    #[test]
    fn p5_weight_zero_is_last_and_compares_by_ratio() {
        assert_eq!(share(1, 100, 0).cmp(&share(99, 1, 1)), Ordering::Greater);
        assert_eq!(share(1, 100, 0).cmp(&share(2, 100, 0)), Ordering::Less);
        assert_eq!(share(0, 1, 0).cmp(&share(0, 1, BILLION)), Ordering::Equal);
        assert_eq!(share(1, 100, 0).published(), None);
        assert_eq!(share(1, 3, BILLION).published(), Some(334));
    }
}
