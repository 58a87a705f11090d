//! Time and allocations of a piece of work.

use std::alloc::System;
use std::time::{Duration, Instant};

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What one run took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    /// Microseconds.
    pub(crate) micros: f64,
    /// Allocations, those that grew something included.
    pub(crate) allocations: f64,
}

/// Runs `work` once.
pub(crate) fn once<T>(work: impl FnOnce() -> T) -> (Sample, T) {
    let region = Region::new(ALLOCATOR);
    let begun = Instant::now();
    let result = work();
    let took = begun.elapsed();
    let counted = region.change();
    let allocations = as_f64(counted.allocations.saturating_add(counted.reallocations));
    (Sample { micros: micros(took), allocations }, result)
}

/// Bytes that stay allocated when `work` is done.
pub(crate) fn retained<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let region = Region::new(ALLOCATOR);
    let result = work();
    let change = region.change();
    let grown = as_f64(change.bytes_allocated) - as_f64(change.bytes_deallocated);
    (grown, result)
}

/// The middle of several runs, each of a quantity.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The middle of several samples, by each quantity on its own.
pub(crate) fn middle(samples: &[Sample]) -> Sample {
    Sample {
        micros: median(samples.iter().map(|it| it.micros).collect()),
        allocations: median(samples.iter().map(|it| it.allocations).collect()),
    }
}

/// Microseconds of a duration.
pub(crate) fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// A count as a number to divide by.
pub(crate) fn as_f64(count: usize) -> f64 {
    let (high, low) = (count >> 32, count & 0xffff_ffff);
    let part = |half: usize| u32::try_from(half).map_or(f64::NAN, f64::from);
    part(high) * 4_294_967_296.0 + part(low)
}
