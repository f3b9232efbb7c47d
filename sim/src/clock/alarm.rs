//! Sleeping until an instant of the monotonic clock.
//!
//! tokio's timers round up to the next millisecond and so wake many streams at the same tick, which
//! would make every tap behind a stand-in see bursts that no engine sent. On Linux a timer of the
//! kernel is used instead: it fires within microseconds and its wake-up comes out of the same poll as
//! the sockets. Either way the instant asked for is only a wish: truth is what the stamps say.

#[cfg(not(target_os = "linux"))]
pub(crate) use portable::Alarm;
#[cfg(target_os = "linux")]
pub(crate) use timer::Alarm;

#[cfg(target_os = "linux")]
mod timer {
    use std::io;
    use std::os::fd::OwnedFd;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    use crate::clock::now;

    /// A reusable alarm: one kernel timer.
    pub(crate) struct Alarm {
        timer: AsyncFd<OwnedFd>,
        armed_for: Option<u64>,
    }

    impl Alarm {
        /// Needs a tokio runtime with I/O. Fails when the process is out of descriptors.
        pub(crate) fn new() -> io::Result<Self> {
            let timer = timerfd_create(
                TimerfdClockId::Monotonic,
                TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
            )?;
            #[expect(
                deprecated,
                reason = "its successor is unsafe, which this crate forbids; what it asks for holds: the \
                          descriptor is owned, so it stays open and the same as long as the AsyncFd"
            )]
            let timer = AsyncFd::with_interest(timer, Interest::READABLE)?;
            Ok(Self {
                timer,
                armed_for: None,
            })
        }

        /// Returns at or after `deadline`. May be dropped and asked again: the timer stays armed.
        pub(crate) async fn until(&mut self, deadline: u64) -> io::Result<()> {
            while now() < deadline {
                if self.armed_for != Some(deadline) {
                    self.arm(deadline)?;
                }
                // The expiry itself is not read: arming again resets it, which saves a system call.
                self.timer.readable().await?.clear_ready();
            }
            Ok(())
        }

        fn arm(&mut self, deadline: u64) -> io::Result<()> {
            let value = Timespec {
                tv_sec: (deadline / 1_000_000_000).cast_signed(),
                tv_nsec: (deadline % 1_000_000_000).cast_signed(),
            };
            let spec = Itimerspec {
                it_interval: Timespec {
                    tv_sec: 0,
                    tv_nsec: 0,
                },
                it_value: value,
            };
            timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &spec)?;
            self.armed_for = Some(deadline);
            Ok(())
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use std::io;
    use std::time::Duration;

    use crate::clock::now;

    /// A reusable alarm on tokio's timers, late by up to a millisecond.
    pub(crate) struct Alarm;

    impl Alarm {
        /// Never fails; fallible because the kernel timer of other systems is.
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self)
        }

        /// Returns at or after `deadline`.
        pub(crate) async fn until(&mut self, deadline: u64) -> io::Result<()> {
            while let Some(left) = deadline.checked_sub(now()).filter(|left| *left > 0) {
                tokio::time::sleep(Duration::from_nanos(left)).await;
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Alarm;
    use crate::clock::now;

    #[tokio::test]
    async fn never_wakes_early_and_can_be_dropped_and_reused() {
        let mut alarm = Alarm::new().unwrap();
        let first = now() + 50_000_000;
        let dropped = tokio::time::timeout(Duration::from_millis(2), alarm.until(first)).await;
        assert!(dropped.is_err(), "the alarm rang before its instant");
        let second = now() + 3_000_000;
        alarm.until(second).await.unwrap();
        assert!(now() >= second);
        alarm.until(0).await.unwrap();
    }
}
