//! The one clock of a run.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds in a millisecond.
pub(crate) const MILLISECOND: u64 = 1_000_000;
/// Nanoseconds in a second.
pub(crate) const SECOND: u64 = 1_000_000_000;

/// CLOCK_MONOTONIC in nanoseconds.
pub(crate) fn now() -> u64 {
    let t = clock_gettime(ClockId::Monotonic);
    // Both parts of the monotonic clock are never negative.
    t.tv_sec.unsigned_abs() * SECOND + t.tv_nsec.unsigned_abs()
}
