//! Counting how often a call has come.

use std::collections::{HashMap, VecDeque};

/// Calls remembered. A retry comes within seconds, so this is far more than enough.
const REMEMBERED: usize = 65_536;

/// Attempts per call id, of the most recent calls.
#[derive(Default)]
pub(super) struct Calls {
    attempts: HashMap<String, u32>,
    order: VecDeque<String>,
}

impl Calls {
    /// Counts one more arrival of `call` and tells its number, from 1.
    pub(super) fn arrive(&mut self, call: &str) -> u32 {
        if let Some(attempts) = self.attempts.get_mut(call) {
            *attempts += 1;
            return *attempts;
        }
        if self.order.len() >= REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.attempts.remove(&oldest);
        }
        self.order.push_back(call.to_owned());
        self.attempts.insert(call.to_owned(), 1);
        1
    }
}

#[cfg(test)]
mod tests {
    use super::{Calls, REMEMBERED};

    #[test]
    fn arrivals_are_counted_and_old_calls_forgotten() {
        let mut calls = Calls::default();
        assert_eq!((calls.arrive("a"), calls.arrive("a")), (1, 2));
        for other in 0..REMEMBERED {
            calls.arrive(&other.to_string());
        }
        assert_eq!(calls.arrive("a"), 1);
        assert_eq!(calls.attempts.len(), REMEMBERED);
        assert_eq!(calls.order.len(), REMEMBERED);
    }
}
