//! When calls are due: offsets from a fixed start, by a seed alone.
//!
//! Offsets are absolute. A call that goes out late does not shift the ones after it, so a slow
//! system meets the load that was planned and not a gentler one (coordinated omission).

use config::scenario::Arrivals;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use rand_distr::Exp1;

/// Offsets of due calls from the start, nanoseconds, never falling. It does not end.
#[derive(Debug, Clone)]
pub struct Offsets {
    /// Mean gap, nanoseconds.
    gap: f64,
    poisson: bool,
    rng: StdRng,
    /// Sum of unit gaps: kept as one float, whose rounding stays far below a nanosecond a call.
    units: f64,
    index: u64,
}

impl Offsets {
    /// Calls due at `rate` a second. Poisson: exponential gaps, the first call after one gap.
    /// Uniform: equal gaps, from half a gap on.
    #[must_use]
    pub fn new(arrivals: Arrivals, rate: f64, seed: u64) -> Self {
        Self {
            gap: 1e9 / rate.max(f64::MIN_POSITIVE),
            poisson: arrivals == Arrivals::Poisson,
            rng: StdRng::seed_from_u64(seed),
            units: 0.0,
            index: 0,
        }
    }
}

impl Iterator for Offsets {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let units = if self.poisson {
            self.units += self.rng.sample::<f64, _>(Exp1);
            self.units
        } else {
            self.index as f64 + 0.5
        };
        self.index += 1;
        // A float beyond u64 saturates: a call due in centuries.
        Some((units * self.gap) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Variance over mean of the counts in windows of one second.
    fn dispersion(arrivals: Arrivals, rate: f64, seconds: usize) -> (f64, f64) {
        let mut counts = vec![0.0_f64; seconds];
        for offset in Offsets::new(arrivals, rate, 7) {
            let second = usize::try_from(offset / 1_000_000_000).unwrap();
            let Some(count) = counts.get_mut(second) else {
                break;
            };
            *count += 1.0;
        }
        let mean = counts.iter().sum::<f64>() / seconds as f64;
        let variance =
            counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / (seconds - 1) as f64;
        (mean, variance / mean)
    }

    #[test]
    fn poisson_counts_scatter_as_poisson_counts_do() {
        let (mean, index) = dispersion(Arrivals::Poisson, 20.0, 4000);
        // Standard errors: mean sqrt(20/4000) = 0.07, index sqrt(2/3999) = 0.022. Five of them.
        assert!((mean - 20.0).abs() < 0.36, "{mean}");
        assert!((index - 1.0).abs() < 0.112, "{index}");
    }

    #[test]
    fn uniform_counts_do_not_scatter() {
        let (mean, index) = dispersion(Arrivals::Uniform, 20.0, 100);
        assert!((mean - 20.0).abs() < 1e-9 && index < 1e-9, "{mean} {index}");
    }

    #[test]
    fn a_seed_is_a_schedule_and_a_rate_only_stretches_it() {
        let take = |rate: f64, seed: u64| -> Vec<u64> {
            Offsets::new(Arrivals::Poisson, rate, seed)
                .take(1000)
                .collect()
        };
        assert_eq!(take(50.0, 1), take(50.0, 1));
        assert_ne!(take(50.0, 1), take(50.0, 2));
        let (slow, fast) = (take(10.0, 3), take(100.0, 3));
        for (slow, fast) in slow.iter().zip(&fast) {
            assert!(slow.abs_diff(fast * 10) <= 10, "{slow} {fast}");
        }
        assert!(slow.is_sorted());
    }
}
