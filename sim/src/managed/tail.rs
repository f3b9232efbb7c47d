//! Times to the first token: a log-normal body and a Pareto tail.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, LogNormal};

use super::ManagedOptions;

/// Longest time that is drawn, medians.
const MOST: f64 = 1_000.0;

/// A seeded sequence of factors of the median.
pub(super) struct Tail(StdRng);

impl Tail {
    pub(super) fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed ^ 0x7461_696c))
    }

    /// The next factor.
    pub(super) fn draw(&mut self, options: &ManagedOptions) -> f64 {
        let random = &mut self.0;
        let factor = if random.random::<f64>() < options.tail_share {
            let beyond = 1.0 - random.random::<f64>(); // above 0
            options.tail_from * beyond.powf(-1.0 / options.tail_alpha)
        } else {
            LogNormal::new(0.0, options.ttft_sigma).map_or(1.0, |body| body.sample(random))
        };
        factor.min(MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many that the rarest share below varies by 4 % from seed to seed.
    const DRAWS: usize = 200_000;

    fn drawn(options: &ManagedOptions, seed: u64) -> Vec<f64> {
        let mut tail = Tail::new(seed);
        let mut drawn: Vec<f64> = (0..DRAWS).map(|_| tail.draw(options)).collect();
        drawn.sort_by(f64::total_cmp);
        drawn
    }

    #[test]
    fn the_body_is_log_normal_and_the_tail_pareto() {
        let options = ManagedOptions {
            ttft_sigma: 0.4,
            tail_share: 0.1,
            tail_from: 4.0,
            tail_alpha: 1.5,
            ..ManagedOptions::default()
        };
        let drawn_ = drawn(&options, 3);
        let beyond = |factor: f64| {
            drawn_.iter().filter(|drawn| **drawn > factor).count() as f64 / DRAWS as f64
        };
        // 0.1 × (factor ÷ 4)^-1.5; the body has 0.03 % beyond 4.
        for (factor, expected) in [(4.0, 0.1), (8.0, 0.0354), (16.0, 0.0125), (40.0, 0.003_16)] {
            let share = beyond(factor);
            assert!(
                (share / expected - 1.0).abs() < 0.2,
                "{share} beyond {factor}, not {expected}"
            );
        }
        // 0.9 of the body's half and all of the tail.
        assert!((beyond(1.0) - 0.55).abs() < 0.02, "{}", beyond(1.0));
        assert!(drawn_[DRAWS - 1] <= MOST);
        assert_ne!(drawn_, drawn(&options, 4));
        let thin = ManagedOptions {
            tail_share: 0.0,
            ..options
        };
        assert!(
            drawn(&thin, 3)[DRAWS - 1] < 11.0,
            "without a tail none is that late"
        );
    }
}
