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
    /// Of these, those answered in full: E2E is of these.
    pub(crate) complete: u64,
    e2e: Histogram<u64>,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            answered: 0,
            measured: 0,
            complete: 0,
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
        if let Some(e2e) = call.e2e() {
            add(&mut self.e2e, e2e);
        }
    }

    /// The median E2E of those answered, nanoseconds; `None` of none.
    pub(crate) fn e2e_p50(&self) -> Option<u64> {
        quantile(&self.e2e, 0.5)
    }
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
        assert_eq!(tally.e2e_p50(), None);
        tally.take(&call(CallOutcome::Complete, true, 9_000_000));
        tally.take(&call(CallOutcome::TimedOut, false, 90_000_000));
        for end in [2_000_000, 3_000_000, 4_000_000] {
            tally.take(&call(CallOutcome::Complete, false, end));
        }
        assert_eq!((tally.answered, tally.measured, tally.complete), (4, 4, 3));
        let near =
            |found: Option<u64>, wanted: u64| found.unwrap().abs_diff(wanted) <= wanted / 1_000;
        assert!(near(tally.e2e_p50(), 2_999_000));
    }
}
