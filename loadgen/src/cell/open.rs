//! Open loop: calls at the instants of a schedule, whatever became of those before.

use super::{Driver, Ran, within};
use crate::LoadError;
use crate::client::Ask;
use crate::pacer;
use crate::prompt::Feed;
use record::clock::{Nanos, now};
use std::sync::atomic::{AtomicBool, Ordering};

/// Between deciding to begin and the first due instant.
pub(crate) const RUN_UP: Nanos = 20_000_000;

impl Driver<'_, '_> {
    /// Calls at absolute instants. What is late is sent late and shown as lag; what is beyond the
    /// bound of calls in flight is not sent, and fails the verdict.
    pub(super) fn open(
        &self,
        offsets: impl Iterator<Item = Nanos>,
        most: u64,
        over: &AtomicBool,
    ) -> Result<Ran, LoadError> {
        let order = self.order;
        let feed = Feed::start(self.recipe(), self.stage.share)?;
        pacer::sharpen_this_thread();
        let start = order.begin.unwrap_or_else(now) + RUN_UP;
        // The measured window opens where the last warm-up call was due, not where the first measured
        // one is: a window that begins with a call by construction holds one call too many.
        let (mut opened, mut last, mut scheduled) = (start, start, 0_u64);
        // Of the whole schedule, whoever sends them.
        let mut measured = 0_u64;
        let mut closes = None;
        for (index, offset) in (0_u64..).zip(offsets) {
            let due = start.saturating_add(offset);
            let warm = within(&order.warmup, index, offset);
            if !warm && !within(&order.length, measured, due - opened) {
                let whole = order
                    .length
                    .duration
                    .map(|d| opened.saturating_add(d.nanos()));
                closes = whole.filter(|end| due >= *end);
                break;
            }
            let own = self.stage.share.has(index);
            let ready = if own { feed.next_blocking() } else { None };
            if own && ready.is_none() {
                break;
            }
            let go_on = || !self.stage.stop.requested() && !over.load(Ordering::Relaxed);
            if ready.is_some() && !pacer::sleep_while(due, go_on) {
                break;
            }
            last = due;
            match warm {
                true => opened = due,
                false => measured += 1,
            }
            let Some(ready) = ready else {
                continue;
            };
            scheduled += u64::from(!warm);
            if self.counts.in_flight.load(Ordering::Acquire) >= most {
                continue;
            }
            self.send(Ask {
                cell: order.id,
                seq: ready.seq,
                task: None,
                warmup: warm,
                intended: due,
                prompt_tokens: ready.tokens,
                body: ready.body,
                collect: order.seat.is_some(),
                opaque: false,
            });
        }
        Ok(Ran {
            scheduled: Some(scheduled),
            ..self.ran(Some(opened), closes.unwrap_or(last))
        })
    }
}
