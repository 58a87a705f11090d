//! Leadership and promise numbers: what lets a spoke refuse an order that is out of date.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Which life of the hub's store this is. It rises when the store was rolled back (restored from a backup).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u64);

/// A number that grows with every change of hub leadership.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(pub u64);

/// A random text drawn at each acquisition of leadership. Two leaders that claim one term differ in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nonce(pub Arc<str>);

/// When a promise was made: the term of the leader that made it and a count kept in that leader's memory.
///
/// Epochs are globally increasing. A spoke refuses, for one run, an epoch below the one stamped on its copy, and
/// any whose term is below its [`Floor`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch {
    /// Term of the leader that made the promise.
    pub term: Term,
    /// Count within the term, from 1.
    pub seq: u64,
}

impl Epoch {
    /// The epoch with this term and sequence number.
    pub const fn new(term: u64, seq: u64) -> Self {
        Self { term: Term(term), seq }
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.term.0, self.seq)
    }
}

/// The text is not `term.seq` with two unsigned decimal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochParseError;

impl fmt::Display for EpochParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an epoch is written term.seq, with two unsigned decimal numbers")
    }
}

impl std::error::Error for EpochParseError {}

impl FromStr for Epoch {
    type Err = EpochParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (term, seq) = text.split_once('.').ok_or(EpochParseError)?;
        let number = |part: &str| part.parse::<u64>().map_err(|_not_a_number| EpochParseError);
        Ok(Self::new(number(term)?, number(seq)?))
    }
}

/// Who leads: stored on the hub by compare-and-set at each acquisition, before any effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leadership {
    /// Life of the hub's store.
    pub incarnation: Incarnation,
    /// Term of this leader.
    pub term: Term,
    /// What tells two claimants of one term apart.
    pub nonce: Nonce,
}

/// The highest leadership a spoke has obeyed. It is written on the spoke before the first order of a new leader
/// is carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Floor {
    /// Highest incarnation obeyed.
    pub incarnation: Incarnation,
    /// Highest term obeyed within it.
    pub term: Term,
    /// The nonce seen with that term.
    pub nonce: Nonce,
}

/// How a claimed leadership stands against a spoke's floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The leader this spoke already obeys.
    Current,
    /// A newer leader: raise the floor, then obey.
    Newer,
    /// An older leader: refuse.
    Stale,
    /// Another leader with the same term: refuse both and say `SplitBrain`.
    SplitBrain,
}

impl Floor {
    /// Compares a claimed leadership with this floor.
    pub fn judge(&self, claim: &Leadership) -> Claim {
        match (claim.incarnation, claim.term).cmp(&(self.incarnation, self.term)) {
            std::cmp::Ordering::Less => Claim::Stale,
            std::cmp::Ordering::Greater => Claim::Newer,
            std::cmp::Ordering::Equal if claim.nonce == self.nonce => Claim::Current,
            std::cmp::Ordering::Equal => Claim::SplitBrain,
        }
    }
}

impl From<&Leadership> for Floor {
    fn from(leader: &Leadership) -> Self {
        Self { incarnation: leader.incarnation, term: leader.term, nonce: leader.nonce.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_order_by_term_then_seq_and_round_trip() {
        assert!(Epoch::new(1, 9) < Epoch::new(2, 1));
        assert!(Epoch::new(2, 1) < Epoch::new(2, 10));
        assert_eq!("7.12".parse(), Ok(Epoch::new(7, 12)));
        assert_eq!(Epoch::new(7, 12).to_string(), "7.12");
        for bad in ["", "7", "7.", ".1", "7.1.2", "-1.2", "a.b"] {
            assert_eq!(bad.parse::<Epoch>(), Err(EpochParseError), "{bad}");
        }
    }

    #[test]
    fn a_floor_refuses_older_terms_and_second_claimants() {
        let claim = |incarnation, term, nonce: &str| Leadership {
            incarnation: Incarnation(incarnation),
            term: Term(term),
            nonce: Nonce(nonce.into()),
        };
        let floor = Floor::from(&claim(2, 5, "a"));
        assert_eq!(floor.judge(&claim(2, 5, "a")), Claim::Current);
        assert_eq!(floor.judge(&claim(2, 5, "b")), Claim::SplitBrain);
        assert_eq!(floor.judge(&claim(2, 4, "a")), Claim::Stale);
        assert_eq!(floor.judge(&claim(1, 9, "a")), Claim::Stale);
        assert_eq!(floor.judge(&claim(2, 6, "a")), Claim::Newer);
        assert_eq!(floor.judge(&claim(3, 1, "z")), Claim::Newer);
    }
}
