//! When the chunks of a stream are due: the wish, not the truth.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, LogNormal};

use super::EngineOptions;

/// A seeded, absolute schedule of one stream. A late chunk does not move the ones after it.
pub(super) struct Script {
    next: f64,
    gap: f64,
    jitter: f64,
    random: StdRng,
}

impl Script {
    /// A schedule that begins when the last byte of the request was read, at `start` ns.
    pub(super) fn new(options: &EngineOptions, seed: u64, start: u64) -> Self {
        // A stream of its own, so that timing options do not change the text.
        let mut random = StdRng::seed_from_u64(seed ^ 0x7465_6d70_6f21);
        let median = options.ttft_us as f64 * 1000.0;
        let spread = LogNormal::new(0.0, options.ttft_sigma)
            .map_or(1.0, |distribution| distribution.sample(&mut random));
        Self {
            next: start as f64 + median * spread,
            gap: options.gap_us as f64 * 1000.0,
            jitter: options.gap_jitter,
            random,
        }
    }

    /// When the next chunk is due, ns.
    pub(super) fn due(&mut self) -> u64 {
        let due = self.next;
        let swing = if self.jitter > 0.0 {
            self.random.random_range(-self.jitter..=self.jitter)
        } else {
            0.0
        };
        self.next += self.gap * (1.0 + swing);
        due as u64
    }
}

#[cfg(test)]
mod tests {
    use super::{EngineOptions, Script};

    fn dues(options: &EngineOptions, seed: u64) -> Vec<u64> {
        let mut script = Script::new(options, seed, 1_000_000);
        (0..200).map(|_| script.due()).collect()
    }

    #[test]
    fn constant_gaps_are_exact_and_seeds_repeat() {
        let constant = EngineOptions {
            ttft_us: 10,
            gap_us: 20,
            ..EngineOptions::default()
        };
        assert_eq!(dues(&constant, 1)[..3], [1_010_000, 1_030_000, 1_050_000]);
        let random = EngineOptions {
            ttft_sigma: 0.5,
            gap_jitter: 0.9,
            ..constant
        };
        assert_eq!(dues(&random, 7), dues(&random, 7));
        assert_ne!(dues(&random, 7), dues(&random, 8));
        assert!(dues(&random, 7).is_sorted());
    }

    #[test]
    fn the_first_token_spreads_around_its_median() {
        let options = EngineOptions {
            ttft_us: 10_000,
            ttft_sigma: 0.5,
            ..EngineOptions::default()
        };
        let below = (0..1000)
            .filter(|seed| dues(&options, *seed)[0] < 11_000_000)
            .count();
        assert!(
            (400..600).contains(&below),
            "{below} of 1000 below the median"
        );
    }
}
