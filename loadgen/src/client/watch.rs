//! What ends a wait: the answer, a deadline, or the end of the cell.

use super::link::Link;
use record::clock::{Nanos, now};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use tokio::time::{Instant, Sleep, sleep};

/// Cuts every call of a cell that is still in flight.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cut {
    done: Arc<AtomicBool>,
    bell: Arc<Notify>,
}

impl Cut {
    /// Cuts now, and whatever would begin later.
    pub(crate) fn now(&self) {
        self.done.store(true, Ordering::Release);
        self.bell.notify_waiters();
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// Waits for `future`, for at most `limit` and not beyond the end of the cell.
    pub(crate) async fn bound<F: Future>(
        &self,
        limit: Duration,
        future: F,
    ) -> Result<F::Output, Broken> {
        Watch::new(self, limit).wait(None, future).await
    }
}

/// Why a wait ended without its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// A deadline passed; which.
    TimedOut(&'static str),
    /// The cell ended.
    CutOff,
}

/// The deadlines of one call. One timer serves them all: it is set again only when it fires early.
pub(super) struct Watch {
    timer: Pin<Box<Sleep>>,
    cut: Cut,
    bell: Pin<Box<OwnedNotified>>,
    total: Nanos,
    phase: (Nanos, &'static str),
}

fn nanos(length: Duration) -> Nanos {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

fn from_now(deadline: Nanos) -> Instant {
    Instant::now() + Duration::from_nanos(deadline.saturating_sub(now()))
}

impl Watch {
    /// A watch whose total runs from now.
    pub(super) fn new(cut: &Cut, total: Duration) -> Self {
        let mut bell = Box::pin(cut.bell.clone().notified_owned());
        bell.as_mut().enable();
        let total = now().saturating_add(nanos(total));
        Self {
            timer: Box::pin(sleep(Duration::from_nanos(total.saturating_sub(now())))),
            cut: cut.clone(),
            bell,
            total,
            phase: (total, TOTAL),
        }
    }

    /// The wait that begins now may last `length`.
    pub(super) fn phase(&mut self, length: Duration, name: &'static str) {
        self.phase = (now().saturating_add(nanos(length)), name);
        let next = from_now(self.phase.0.min(self.total));
        if next < self.timer.deadline() {
            self.timer.as_mut().reset(next);
        }
    }

    /// Something came at `at`: the same wait begins anew. Costs nothing; the timer fires early.
    pub(super) fn renew(&mut self, at: Nanos, length: Duration) {
        self.phase.0 = at.saturating_add(nanos(length));
    }

    /// Waits for `future`, driving `link` meanwhile.
    pub(super) async fn wait<F: Future>(
        &mut self,
        link: Option<&mut Link>,
        future: F,
    ) -> Result<F::Output, Broken> {
        let mut future = std::pin::pin!(future);
        let mut link = link;
        std::future::poll_fn(|cx| {
            if let Some(link) = link.as_deref_mut() {
                link.drive(cx);
            }
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready(Ok(output));
            }
            if self.cut.is_done() || self.bell.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Err(Broken::CutOff));
            }
            while self.timer.as_mut().poll(cx).is_ready() {
                if let Some(broken) = self.passed() {
                    return Poll::Ready(Err(broken));
                }
                let next = from_now(self.phase.0.min(self.total));
                self.timer.as_mut().reset(next);
            }
            Poll::Pending
        })
        .await
    }

    fn passed(&self) -> Option<Broken> {
        let at = now();
        if at >= self.total {
            Some(Broken::TimedOut(TOTAL))
        } else {
            (at >= self.phase.0).then_some(Broken::TimedOut(self.phase.1))
        }
    }
}

/// Names of the waits, as faults state them.
pub(super) const CONNECT: &str = "no connection within `timeouts.connect`";
pub(super) const FIRST_BYTE: &str = "no answer within `timeouts.first_byte`";
pub(super) const SILENCE: &str = "silent for longer than `timeouts.silence`";
pub(crate) const TOTAL: &str = "not over within `timeouts.total`";
