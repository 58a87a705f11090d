//! Numbers of 53 significant bits, rounded to nearest, ties to even, from integers alone: what a 64-bit float would
//! hold. Kueue compares shares as such; this follows it to the last bit where that is asked for.

/// A positive number `mantissa × 2^exponent` whose mantissa has exactly 53 bits, or zero. Fields are in the order in
/// which numbers compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Double {
    exponent: i32,
    mantissa: u64,
}

/// Significant bits.
const BITS: u32 = 53;

impl Double {
    /// Zero compares below everything.
    pub(crate) const ZERO: Self = Self { exponent: i32::MIN, mantissa: 0 };

    /// `numerator / denominator × 2^exponent`, rounded; zero stays zero, and so does a division by zero.
    pub(crate) fn ratio(numerator: u128, denominator: u128, exponent: i32) -> Self {
        if numerator == 0 || denominator == 0 {
            return Self::ZERO;
        }
        // Scaled so that the quotient has at least two bits more than are kept.
        let wanted = BITS.saturating_add(3).saturating_add(bits(denominator));
        let up = wanted.saturating_sub(bits(numerator));
        let down = bits(numerator).saturating_sub(wanted);
        let (above, below) = (numerator.checked_shl(up).unwrap_or(u128::MAX), denominator << down.min(8));
        let (quotient, rest) = (above / below, above % below);
        let scale = i32::try_from(up).unwrap_or(0).saturating_sub(i32::try_from(down.min(8)).unwrap_or(0));
        Self::rounded(quotient, rest > 0, exponent.saturating_sub(scale))
    }

    /// Cuts a number down to its significant bits; `more` says that something follows below the last one.
    fn rounded(value: u128, more: bool, exponent: i32) -> Self {
        let excess = bits(value).saturating_sub(BITS);
        let kept = value >> excess;
        let cut = value & (1_u128 << excess).saturating_sub(1);
        let half = if excess == 0 { 0 } else { 1_u128 << excess.saturating_sub(1) };
        let up = excess > 0 && (cut > half || (cut == half && (more || kept & 1 == 1)));
        let mut mantissa = kept.saturating_add(u128::from(up));
        let mut exponent = exponent.saturating_add(i32::try_from(excess).unwrap_or(0));
        if bits(mantissa) > BITS {
            mantissa >>= 1;
            exponent = exponent.saturating_add(1);
        }
        let missing = BITS.saturating_sub(bits(mantissa));
        mantissa <<= missing;
        exponent = exponent.saturating_sub(i32::try_from(missing).unwrap_or(0));
        Self { exponent, mantissa: u64::try_from(mantissa).unwrap_or(u64::MAX) }
    }

    /// The quotient, rounded.
    pub(crate) fn over(self, other: Self) -> Self {
        let exponent = self.exponent.saturating_sub(other.exponent);
        Self::ratio(u128::from(self.mantissa), u128::from(other.mantissa), exponent)
    }

    /// The product with a whole number, rounded.
    pub(crate) fn times(self, factor: u64) -> Self {
        Self::ratio(u128::from(self.mantissa).saturating_mul(u128::from(factor)), 1, self.exponent)
    }
}

/// Bits up to the highest that is set.
const fn bits(value: u128) -> u32 {
    u128::BITS.saturating_sub(value.leading_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts of a 64-bit float, read from its bits.
    fn parts(bits: u64) -> (i32, u64) {
        let exponent = i32::try_from((bits >> 52) & 0x7ff).unwrap() - 1075;
        (exponent, (bits & ((1 << 52) - 1)) | (1 << 52))
    }

    #[test]
    fn quotients_round_as_floats_do() {
        // 1/3, 2.1, 13000 × 1000 / 49000 / 1.3 and 5000 × 1000 / 49000 / 0.5 as any language prints their bits.
        let ratio = |a, b| Double::ratio(a, b, 0);
        let share = |borrowed, weight| ratio(borrowed, 1).times(1000).over(ratio(49_000, 1)).over(weight);
        let cases = [
            (ratio(1, 3), 0x3fd5_5555_5555_5555),
            (ratio(21, 10), 0x4000_cccc_cccc_cccd),
            (ratio(1, 1), 0x3ff0_0000_0000_0000),
            (share(13_000, ratio(13, 10)), 0x4069_829c_bc14_e5e0),
            (share(5000, ratio(1, 2)), 0x4069_829c_bc14_e5e1),
        ];
        for (found, expected) in cases {
            assert_eq!((found.exponent, found.mantissa), parts(expected), "{expected:x}");
        }
    }

    #[test]
    fn large_numbers_round_to_even() {
        let exact = (1_u128 << 53) + 1;
        assert_eq!(Double::ratio(exact, 1, 0), Double::ratio(1 << 53, 1, 0));
        assert_eq!(Double::ratio(exact + 2, 1, 0), Double::ratio((1 << 53) + 4, 1, 0));
        assert!(Double::ratio(u128::MAX, 3, 0) > Double::ratio(u128::MAX, 5, 0));
        assert!(Double::ZERO < Double::ratio(1, u128::from(u64::MAX), 0));
    }
}
