//! A request to end a run early, from any thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Asks a run to end: calls in flight are cut and recorded as such, what was measured is kept.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    asked: Arc<AtomicBool>,
}

impl Stop {
    /// Asks for the end. The run notices within 50 ms.
    pub fn request(&self) {
        self.asked.store(true, Ordering::Release);
    }

    /// Whether the end was asked for.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }
}
