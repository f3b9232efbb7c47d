//! Recording an exchange however it ends.

use super::{ExchangeTruth, Log};

/// The truth of an exchange in progress. Dropping it records it: an exchange whose task is ended
/// half-way leaves what was known, with the outcome `stopped`.
pub(crate) struct Recorder {
    /// The truth so far.
    pub(crate) truth: ExchangeTruth,
    log: Log,
}

impl Recorder {
    /// Begins an exchange.
    pub(crate) fn new(log: &Log, truth: ExchangeTruth) -> Self {
        Self {
            truth,
            log: log.clone(),
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.log.record(std::mem::take(&mut self.truth));
    }
}
