//! When to try again. Pure: time and randomness are arguments.

use std::time::Duration;

/// For so long a lost hub is tried at most [`EAGER_CAP`] apart.
const EAGER: Duration = Duration::from_mins(1);
const EAGER_CAP: Duration = Duration::from_secs(1);
/// The first delays are shorter, since most breaks are.
const FIRST_CAP: Duration = Duration::from_millis(100);
/// However long the hub is away, it is tried at least this often.
const LAST_CAP: Duration = Duration::from_secs(30);

/// How long to wait from the start of one attempt to the start of the next.
///
/// Full jitter: anything from nothing to a cap, so that a thousand spokes that lost one hub do not come back in
/// step. The cap doubles from 100 ms to 1 s with each attempt, stays there for the first minute, and then grows
/// with a quarter of the time that has passed since, up to 30 s. `failing_for` is the time since the link was
/// lost, `attempt` counts the failures since then, `random` is uniform over all values.
pub fn delay(failing_for: Duration, attempt: u32, random: u64) -> Duration {
    let cap = if failing_for < EAGER {
        let factor = 1_u32.checked_shl(attempt.min(16)).unwrap_or(u32::MAX);
        FIRST_CAP.saturating_mul(factor).min(EAGER_CAP)
    } else {
        EAGER_CAP.saturating_add(failing_for.saturating_sub(EAGER) / 4).min(LAST_CAP)
    };
    part_of(cap, random)
}

/// How long to wait after the hub has said when to come back: that time, and up to a quarter more.
pub fn after_goodbye(retry_after: Duration, random: u64) -> Duration {
    retry_after.saturating_add(part_of(retry_after / 4, random))
}

/// The part of `whole` that `random` is of its range, to the millisecond.
fn part_of(whole: Duration, random: u64) -> Duration {
    let millis = whole.as_millis().saturating_mul(u128::from(random)) >> 64;
    Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MOST: u64 = u64::MAX;

    #[test]
    fn the_caps_are_as_documented() {
        let secs = Duration::from_secs;
        let near = |a: Duration, b: Duration| a <= b && b <= a + Duration::from_millis(1);
        assert!(near(delay(secs(0), 0, MOST), Duration::from_millis(100)));
        assert!(near(delay(secs(1), 2, MOST), Duration::from_millis(400)));
        assert!(near(delay(secs(3), 9, MOST), secs(1)));
        assert!(near(delay(secs(59), 99, MOST), secs(1)));
        assert!(near(delay(secs(60), 99, MOST), secs(1)));
        assert!(near(delay(secs(100), 99, MOST), secs(11)));
        assert!(near(delay(secs(86_400), 99, MOST), secs(30)));
        assert_eq!(delay(secs(50), 9, 0), Duration::ZERO);
        assert!(near(after_goodbye(secs(8), MOST), secs(10)));
        assert_eq!(after_goodbye(secs(8), 0), secs(8));
    }

    proptest! {
        #[test]
        fn at_most_a_second_apart_in_the_first_minute(ms in 0..60_000_u64, attempt: u32, random: u64) {
            prop_assert!(delay(Duration::from_millis(ms), attempt, random) <= Duration::from_secs(1));
        }

        #[test]
        fn never_more_than_half_a_minute(failing_for: u64, attempt: u32, random: u64) {
            prop_assert!(delay(Duration::from_secs(failing_for), attempt, random) <= Duration::from_secs(30));
        }
    }
}
