//! The only source of randomness.

use std::fmt::Write as _;

/// The operating system gave no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the operating system gave no random bytes: {0}")]
pub struct NoEntropy(getrandom::Error);

/// `N` random bytes, fit for keys and tokens.
pub fn bytes<const N: usize>() -> Result<[u8; N], NoEntropy> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(NoEntropy)?;
    Ok(bytes)
}

/// A random text of 32 hexadecimal digits: nonces and identities of processes.
pub fn token() -> Result<String, NoEntropy> {
    Ok(bytes::<16>()?.iter().fold(String::with_capacity(32), |mut text, byte| {
        // Writing to a String cannot fail.
        write!(text, "{byte:02x}").unwrap_or_default();
        text
    }))
}

/// A random number below `bound`, for jitter. Zero when `bound` is zero or there is no randomness: jitter is then
/// lost, and nothing else.
pub fn below(bound: u64) -> u64 {
    let number = bytes::<8>().map_or(0, u64::from_le_bytes);
    number.checked_rem(bound).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_numbers_stay_below_their_bound() {
        let (a, b) = (token().unwrap(), token().unwrap());
        assert_eq!(a.len(), 32);
        assert_ne!(a, b);
        assert!((0..100).all(|_| below(7) < 7));
        assert_eq!(below(0), 0);
    }
}
