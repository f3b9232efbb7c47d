//! What the calls of one cell came to, in a size that does not grow with their number. Durations are kept
//! to three digits; the record has them whole.

use hdrhistogram::Histogram;
use record::client::{CallOutcome, ClientCall};
use record::histogram::{add, durations, quantile};

/// What is known of a cell's calls when it ends.
pub(crate) struct Tally {
    /// Calls answered in full, warm-up included.
    pub(crate) answered: u64,
    /// Measured calls.
    pub(crate) measured: u64,
    /// Of these, those answered in full: the durations are of these.
    pub(crate) complete: u64,
    ttft_intended: Histogram<u64>,
    tpot: Histogram<u64>,
    e2e: Histogram<u64>,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            answered: 0,
            measured: 0,
            complete: 0,
            ttft_intended: durations(),
            tpot: durations(),
            e2e: durations(),
        }
    }
}

impl Tally {
    pub(crate) fn take(&mut self, call: &ClientCall) {
        let complete = call.outcome == CallOutcome::Complete;
        self.answered += u64::from(complete);
        if call.warmup {
            return;
        }
        self.measured += 1;
        if !complete {
            return;
        }
        self.complete += 1;
        let values = [
            (&mut self.ttft_intended, call.ttft_intended()),
            (&mut self.tpot, call.tpot().map(|tpot| tpot as u64)),
            (&mut self.e2e, call.e2e()),
        ];
        for (histogram, value) in values {
            value.into_iter().for_each(|value| add(histogram, value));
        }
    }

    /// TTFT from when the calls were due, nanoseconds, where `lost` more calls were slower than all of these;
    /// `None` where the quantile is theirs.
    pub(crate) fn ttft_intended(&self, q: f64, lost: u64) -> Option<u64> {
        quantile(
            &self.ttft_intended,
            among_lost(q, self.ttft_intended.len(), lost)?,
        )
    }

    /// TPOT, likewise.
    pub(crate) fn tpot(&self, q: f64, lost: u64) -> Option<u64> {
        quantile(&self.tpot, among_lost(q, self.tpot.len(), lost)?)
    }

    /// The median E2E of those answered, nanoseconds; `None` of none.
    pub(crate) fn e2e_p50(&self) -> Option<u64> {
        quantile(&self.e2e, 0.5)
    }
}

/// Which quantile of `known` values is quantile `q` of them and of `lost` more, all larger; `None` where it
/// is one of the lost.
pub(crate) fn among_lost(q: f64, known: u64, lost: u64) -> Option<f64> {
    let of_known = q * (known + lost) as f64 / known as f64;
    // Of none known it is no number, and not within either.
    (of_known <= 1.0).then_some(of_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(outcome: CallOutcome, warmup: bool, end: u64) -> ClientCall {
        ClientCall {
            outcome,
            warmup,
            sent: Some(1_000),
            first_text: Some(end / 2),
            end,
            ..ClientCall::unanswered(0, 0, 0, 0)
        }
    }

    #[test]
    fn durations_are_of_what_was_measured_and_answered() {
        let mut tally = Tally::default();
        assert_eq!((tally.e2e_p50(), tally.tpot(0.5, 0)), (None, None));
        tally.take(&call(CallOutcome::Complete, true, 9_000_000));
        tally.take(&call(CallOutcome::TimedOut, false, 90_000_000));
        for end in [2_000_000, 3_000_000, 4_000_000] {
            tally.take(&call(CallOutcome::Complete, false, end));
        }
        assert_eq!((tally.answered, tally.measured, tally.complete), (4, 4, 3));
        let near =
            |found: Option<u64>, wanted: u64| found.unwrap().abs_diff(wanted) <= wanted / 1_000;
        assert!(near(tally.e2e_p50(), 2_999_000));
        assert!(near(tally.ttft_intended(0.95, 0), 2_000_000));
        assert_eq!(tally.tpot(0.5, 0), None);
        // Two more that were not answered: the median of five is the slowest that was.
        assert!(near(tally.ttft_intended(0.5, 2), 2_000_000));
        assert_eq!(tally.ttft_intended(0.95, 2), None);
    }
}
