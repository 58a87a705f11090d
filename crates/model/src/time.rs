//! Time as a number that is always handed in.

/// Milliseconds since the Unix epoch, or of a monotonic clock where the doc says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub i64);

impl Millis {
    /// This time plus `ms` milliseconds, saturating.
    #[must_use]
    pub const fn plus(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this time; negative when `earlier` is later.
    pub const fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// One reading of both clocks: the wall clock for what people and other machines read, the monotonic one for
/// deadlines, which must not jump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds since the Unix epoch.
    pub wall: Millis,
    /// Milliseconds of a clock that never goes back.
    pub mono: Millis,
}
