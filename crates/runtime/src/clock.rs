//! The only place that reads the clocks.

use fairlead_model::{Millis, Now};
use nix::time::{ClockId, clock_gettime};

/// The clock for deadlines: on Linux it goes on while the machine is suspended, so that a hub that slept through
/// its lease knows it when it wakes.
#[cfg(target_os = "linux")]
const STEADY: ClockId = ClockId::CLOCK_BOOTTIME;
#[cfg(not(target_os = "linux"))]
const STEADY: ClockId = ClockId::CLOCK_MONOTONIC;

/// Reads both clocks.
pub fn now() -> Now {
    Now { wall: read(ClockId::CLOCK_REALTIME), mono: read(STEADY) }
}

/// Measures how long something takes, finer than the clocks: for measurements, never for decisions.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(std::time::Instant);

impl Stopwatch {
    /// Begins now.
    pub fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// How long it has been running.
    pub fn elapsed(self) -> std::time::Duration {
        self.0.elapsed()
    }
}

/// A clock that cannot be read gives zero; the kernel guarantees both of those asked for.
fn read(clock: ClockId) -> Millis {
    clock_gettime(clock).map_or(Millis(0), |time| {
        Millis(time.tv_sec().saturating_mul(1000).saturating_add(time.tv_nsec() / 1_000_000))
    })
}

/// An RFC 3339 timestamp with microseconds, as Kubernetes' `MicroTime` wants it.
pub fn micro_time(at: Millis) -> String {
    jiff::Timestamp::from_millisecond(at.0)
        .map_or_else(|_out_of_range| String::new(), |time| format!("{time:.6}"))
}

/// Reads an RFC 3339 timestamp.
pub fn parse_time(text: &str) -> Option<Millis> {
    text.parse::<jiff::Timestamp>().ok().map(|time| Millis(time.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_written_with_six_digits_and_read_back() {
        assert_eq!(micro_time(Millis(1_700_000_000_123)), "2023-11-14T22:13:20.123000Z");
        assert_eq!(micro_time(Millis(0)), "1970-01-01T00:00:00.000000Z");
        assert_eq!(parse_time("2023-11-14T22:13:20.123000Z"), Some(Millis(1_700_000_000_123)));
        assert_eq!(parse_time("2023-11-14T22:13:20Z"), Some(Millis(1_700_000_000_000)));
        assert_eq!(parse_time("yesterday"), None);
    }

    #[test]
    fn the_steady_clock_does_not_go_back() {
        let (first, second) = (now(), now());
        assert!(second.mono >= first.mono);
        assert!(first.wall > Millis(1_600_000_000_000));
    }
}
