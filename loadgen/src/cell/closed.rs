//! Closed loop: callers that each wait for their answer before they ask again.

use super::{DRAIN, Driver, Order, Ran, begin, end, within};
use crate::LoadError;
use crate::client::Ask;
use crate::prompt::Feed;
use config::scenario::CellLength;
use record::clock::{Nanos, now};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

impl Driver<'_, '_> {
    /// Callers that each wait for their answer before they ask again.
    pub(super) fn closed(&self, concurrency: u32, think: Duration) -> Result<Ran, LoadError> {
        let feed = Feed::start(self.recipe(), self.stage.share)?;
        let pace = Arc::new(Pace::begin(self.order));
        let callers = (0..u64::from(concurrency)).filter(|n| self.stage.share.has(*n));
        for number in callers {
            let lane = self.stage.lanes.of(number);
            let (feed, pace, order) = (feed.clone(), pace.clone(), self.order.clone());
            let (client, counts, cut) =
                (self.client.clone(), self.counts.clone(), self.cut.clone());
            let (reporter, flight) = (
                self.stage.recorder.reporter(),
                self.stage.recorder.flight.clone(),
            );
            counts.in_flight.fetch_add(1, Ordering::AcqRel);
            self.stage.lanes.spawn(lane, async move {
                while !cut.is_done()
                    && let Some(warm) = pace.next()
                    && let Some(ready) = feed.next().await
                {
                    let ask = Ask {
                        cell: order.id,
                        seq: ready.seq,
                        task: None,
                        warmup: warm,
                        intended: now(),
                        prompt_tokens: ready.tokens,
                        body: ready.body,
                        collect: false,
                        session: None,
                    };
                    begin(&counts, &flight, &ask);
                    let told = client.call(lane, ask).await;
                    reporter.told(told);
                    end(&counts, &flight);
                    if !think.is_zero() {
                        tokio::time::sleep(think).await;
                    }
                }
                counts.in_flight.fetch_sub(1, Ordering::AcqRel);
            });
        }
        self.wait_for_workers(&pace);
        let from = self.counts.from.load(Ordering::Acquire);
        Ok(self.ran((from > 0).then_some(from), now()))
    }

    /// Waits until every worker has ended, or the run is to stop.
    fn wait_for_workers(&self, pace: &Pace) {
        while self.counts.in_flight.load(Ordering::Acquire) > 0 {
            if self.stage.stop.requested() {
                self.cut.now();
                return;
            }
            // The last calls of a cell may take as long as a drain.
            if pace.over() && pace.overdue() > DRAIN {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Who decides whether a closed loop goes on: warm-up first, then the cell's own length.
struct Pace {
    warmup: CellLength,
    length: CellLength,
    started: AtomicU64,
    measured: AtomicU64,
    began: Nanos,
    measuring: AtomicU64,
    ended: AtomicU64,
}

impl Pace {
    fn begin(order: &Order) -> Self {
        Self {
            warmup: order.warmup.clone(),
            length: order.length.clone(),
            started: AtomicU64::new(0),
            measured: AtomicU64::new(0),
            began: now(),
            measuring: AtomicU64::new(0),
            ended: AtomicU64::new(0),
        }
    }

    /// May one more call start, and is it warm-up?
    fn next(&self) -> Option<bool> {
        let at = now();
        let index = self.started.fetch_add(1, Ordering::AcqRel);
        if within(&self.warmup, index, at - self.began) {
            return Some(true);
        }
        let _ = self
            .measuring
            .compare_exchange(0, at, Ordering::AcqRel, Ordering::Acquire);
        let since = at.saturating_sub(self.measuring.load(Ordering::Acquire));
        if within(
            &self.length,
            self.measured.fetch_add(1, Ordering::AcqRel),
            since,
        ) {
            return Some(false);
        }
        let _ = self
            .ended
            .compare_exchange(0, at, Ordering::AcqRel, Ordering::Acquire);
        None
    }

    fn over(&self) -> bool {
        self.ended.load(Ordering::Acquire) > 0
    }

    fn overdue(&self) -> Duration {
        Duration::from_nanos(now().saturating_sub(self.ended.load(Ordering::Acquire)))
    }
}
