//! The one clock: `CLOCK_MONOTONIC` in nanoseconds, the same in every process of a host.

use rustix::time::{ClockId, clock_gettime};

/// An instant of `CLOCK_MONOTONIC`, in nanoseconds. Comparable between processes of one host
/// until it reboots; never across hosts.
pub type Nanos = u64;

/// Now, on the monotonic clock.
#[must_use]
pub fn now() -> Nanos {
    read(ClockId::Monotonic)
}

/// Wall-clock nanoseconds since the Unix epoch. For labels only, never for a duration.
#[must_use]
pub fn wall() -> u64 {
    read(ClockId::Realtime)
}

/// CPU time of the calling thread so far, nanoseconds.
#[must_use]
pub fn thread_cpu() -> Nanos {
    read(ClockId::ThreadCPUTime)
}

fn read(id: ClockId) -> u64 {
    let time = clock_gettime(id);
    // Both fields are non-negative on these clocks.
    (time.tv_sec.unsigned_abs())
        .saturating_mul(1_000_000_000)
        .saturating_add(time.tv_nsec.unsigned_abs())
}

/// A paired reading of the wall and the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pairing {
    /// Wall minus monotonic, nanoseconds.
    pub offset: i64,
    /// Half the width of the bracket that the reading was taken in: how far `offset` can be off.
    pub error: u64,
}

/// Brackets a wall reading between two monotonic ones, several times, and keeps the tightest.
#[must_use]
pub fn pair() -> Pairing {
    let once = || {
        let before = now();
        let middle = wall();
        let after = now();
        let mono = before + (after - before) / 2;
        Pairing {
            offset: middle.cast_signed() - mono.cast_signed(),
            error: (after - before).div_ceil(2),
        }
    };
    let mut best = once();
    for _ in 0..4 {
        let next = once();
        if next.error < best.error {
            best = next;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monotonic_never_runs_back_and_pairs_tightly() {
        let a = now();
        let b = now();
        assert!(b >= a);
        let pairing = pair();
        let again = pair();
        // Two pairings a moment apart agree within what they claim and a slewed clock's drift.
        let apart = pairing.offset.abs_diff(again.offset);
        assert!(apart <= pairing.error + again.error + 100_000, "{apart}");
    }
}
