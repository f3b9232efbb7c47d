//! Waiting for an absolute instant, precisely, on a thread of its own.
//!
//! The timers of an event loop round to a millisecond and wait behind whatever the loop does. The
//! pacer sleeps in the kernel until the instant itself, with the least slack the kernel allows.

use record::clock::{Nanos, now};
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec};
use std::num::NonZeroU64;

/// A request to stop is noticed after this at the latest.
const SLICE: Nanos = 20_000_000;

/// Makes this thread's sleeps end as close to their instant as the kernel can. Failing to is seen
/// in the schedule lag.
pub(crate) fn sharpen_this_thread() {
    if let Err(error) = rustix::thread::set_current_timer_slack(NonZeroU64::new(1)) {
        tracing::debug!(%error, "the timer slack stays as it is");
    }
}

/// Sleeps until `due` as long as `go_on` holds; false where it does not.
pub(crate) fn sleep_while(due: Nanos, go_on: impl Fn() -> bool) -> bool {
    loop {
        if !go_on() {
            return false;
        }
        let at = now();
        if at >= due {
            return true;
        }
        let next = due.min(at.saturating_add(SLICE));
        let whole = |nanos: Nanos| i64::try_from(nanos).unwrap_or(i64::MAX);
        let wake = Timespec {
            tv_sec: whole(next / 1_000_000_000),
            tv_nsec: whole(next % 1_000_000_000),
        };
        // An interrupted sleep is taken up again by the loop.
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn it_never_wakes_early_and_mostly_within_a_millisecond() {
        sharpen_this_thread();
        let over = AtomicBool::new(false);
        let mut late: Vec<Nanos> = (0..50)
            .map(|_| {
                let due = now() + 2_000_000;
                assert!(sleep_while(due, || !over.load(Ordering::Relaxed)));
                now().checked_sub(due).unwrap()
            })
            .collect();
        late.sort_unstable();
        assert!(late[25] < 1_000_000, "median lateness {} ns", late[25]);
    }

    #[test]
    fn a_stop_ends_a_long_sleep() {
        let over = AtomicBool::new(true);
        assert!(!sleep_while(now() + 3_600_000_000_000, || !over.load(Ordering::Relaxed)));
    }
}
