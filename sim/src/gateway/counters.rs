//! What a gateway claims about itself, and whom it refuses.

use std::fmt::Write;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters since the start.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) requests: AtomicU64,
    pub(super) cache_hits: AtomicU64,
    pub(super) semantic_hits: AtomicU64,
    pub(super) semantic_misses: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) retries: AtomicU64,
    pub(super) upstream_failures: AtomicU64,
    overhead: Mutex<(u64, u64)>,
}

impl Counters {
    /// Adds a claimed overhead in nanoseconds.
    pub(super) fn add_overhead(&self, nanoseconds: u64) {
        let mut overhead = self.overhead.lock().unwrap_or_else(PoisonError::into_inner);
        overhead.0 += nanoseconds;
        overhead.1 += 1;
    }

    /// The counters in Prometheus' text format.
    pub(super) fn render(&self) -> String {
        let mut text = String::new();
        let counters = [
            ("requests", &self.requests, "Requests received."),
            (
                "cache_hits",
                &self.cache_hits,
                "Requests answered from the cache.",
            ),
            (
                "semantic_hits",
                &self.semantic_hits,
                "Requests answered from the semantic cache.",
            ),
            (
                "semantic_misses",
                &self.semantic_misses,
                "Requests that the semantic cache had no answer for.",
            ),
            (
                "refused",
                &self.refused,
                "Requests refused without asking the upstream.",
            ),
            ("retries", &self.retries, "Second attempts."),
            (
                "upstream_failures",
                &self.upstream_failures,
                "Exchanges that the upstream broke.",
            ),
        ];
        for (name, counter, help) in counters {
            let value = counter.load(Ordering::Relaxed);
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "# HELP sim_gateway_{name}_total {help}\n# TYPE sim_gateway_{name}_total counter\n\
                 sim_gateway_{name}_total {value}\n"
            );
        }
        let (sum, count) = *self.overhead.lock().unwrap_or_else(PoisonError::into_inner);
        let seconds = sum as f64 / 1e9;
        let _ = write!(
            text,
            "# HELP sim_gateway_overhead_seconds Overhead as the gateway claims it: request read to \
             upstream request written.\n# TYPE sim_gateway_overhead_seconds summary\n\
             sim_gateway_overhead_seconds_sum {seconds}\nsim_gateway_overhead_seconds_count {count}\n"
        );
        text
    }
}

/// Decides which requests are refused.
#[derive(Default)]
pub(super) struct Refusal {
    seen: AtomicU64,
    window: Mutex<(u64, u64)>,
}

impl Refusal {
    /// Whether the request that came at `at` ns is refused: each `every`-th, and those beyond `rate` in one
    /// second of the clock. 0 switches either off.
    pub(super) fn refuses(&self, at: u64, every: u64, rate: u64) -> bool {
        let number = self.seen.fetch_add(1, Ordering::Relaxed) + 1;
        if every > 0 && number.is_multiple_of(every) {
            return true;
        }
        if rate == 0 {
            return false;
        }
        let second = at / 1_000_000_000;
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        if window.0 != second {
            *window = (second, 0);
        }
        window.1 += 1;
        window.1 > rate
    }
}

#[cfg(test)]
mod tests {
    use super::{Counters, Refusal};

    #[test]
    fn each_nth_and_those_above_the_rate_are_refused() {
        let refusal = Refusal::default();
        let refused: Vec<bool> = (0..6).map(|_| refusal.refuses(0, 3, 0)).collect();
        assert_eq!(refused, [false, false, true, false, false, true]);
        let refusal = Refusal::default();
        let count = |at| (0..5).filter(|_| refusal.refuses(at, 0, 2)).count();
        assert_eq!((count(10), count(1_500_000_000)), (3, 3));
    }

    #[test]
    fn overheads_add_up() {
        let counters = Counters::default();
        counters.add_overhead(500_000_000);
        counters.add_overhead(250_000_000);
        let text = counters.render();
        assert!(text.contains("sim_gateway_overhead_seconds_sum 0.75\n"));
        assert!(text.contains("sim_gateway_overhead_seconds_count 2\n"));
    }
}
