//! One timer for all bounds of an exchange, looked at only when it fires.

use record::clock::{self, Nanos};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Sleep;

/// The timer of one exchange.
pub(crate) struct Patience {
    timer: Pin<Box<Sleep>>,
    /// The last byte that came or went.
    pub(crate) last_activity: Nanos,
}

impl Patience {
    /// Fires after `first` at the earliest.
    pub(crate) fn new(first: Duration) -> Self {
        Self {
            timer: Box::pin(tokio::time::sleep(first)),
            last_activity: clock::now(),
        }
    }

    /// Ready once `limit` has passed since `since`.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        (limit, since): (Duration, Nanos),
    ) -> Poll<()> {
        loop {
            if self.timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            let passed = Duration::from_nanos(clock::now().saturating_sub(since));
            if passed >= limit {
                return Poll::Ready(());
            }
            let next = tokio::time::Instant::now() + (limit - passed);
            self.timer.as_mut().reset(next);
        }
    }
}
