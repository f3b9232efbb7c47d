//! The one clock of every stamp, and an alarm that wakes on it.

use rustix::time::{ClockId, clock_gettime};

mod alarm;

pub(crate) use alarm::Alarm;

/// Nanoseconds of `CLOCK_MONOTONIC`. Every process of one host reads the same clock, so the truth of a
/// stand-in compares directly with the stamps of a tap.
pub fn now() -> u64 {
    let at = clock_gettime(ClockId::Monotonic);
    at.tv_sec.cast_unsigned() * 1_000_000_000 + at.tv_nsec.cast_unsigned()
}

/// Nanoseconds of CPU that the calling thread has used.
pub(crate) fn thread_cpu() -> u64 {
    let at = clock_gettime(ClockId::ThreadCPUTime);
    at.tv_sec.cast_unsigned() * 1_000_000_000 + at.tv_nsec.cast_unsigned()
}

/// Seconds since 1970 for `created` fields. A label, never part of a duration.
pub(crate) fn unix_seconds() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
