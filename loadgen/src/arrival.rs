//! When calls are due: offsets from a fixed start, by a seed alone.
//!
//! Offsets are absolute. A call that goes out late does not shift the ones after it, so a slow
//! system meets the load that was planned and not a gentler one (coordinated omission).

use config::scenario::{Arrivals, ProfilePhase};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use rand_distr::{Exp1, Gamma};

/// A stretch of a course: a rate that stays or rises or falls evenly.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    /// Seconds.
    lasts: f64,
    from: f64,
    to: f64,
}

impl Stretch {
    /// Calls due in all of it, in the mean.
    fn calls(&self) -> f64 {
        self.lasts * (self.from + self.to) / 2.0
    }

    /// Seconds into it at which `calls` have become due in the mean: the inverse of
    /// from·t + (to − from)·t²/2·lasts.
    fn at(&self, calls: f64) -> f64 {
        let bend = (self.to - self.from) / self.lasts;
        // The form of the root that loses no digits where the rate hardly changes.
        let root = (self.from * self.from + 2.0 * bend * calls).max(0.0).sqrt();
        2.0 * calls / (self.from + root)
    }
}

#[derive(Debug, Clone)]
enum Gaps {
    Poisson,
    Uniform,
    Gamma(Gamma<f64>),
}

/// Offsets of due calls from the start, nanoseconds, never falling. At a rate it does not end; a
/// course of load ends with its last phase.
#[derive(Debug, Clone)]
pub struct Offsets {
    course: Vec<Stretch>,
    gaps: Gaps,
    rng: StdRng,
    /// Sum of unit gaps: kept as one float, whose rounding stays far below a nanosecond a call.
    units: f64,
    index: u64,
    /// The stretch that the last call fell into, with the calls and seconds before it.
    at: (usize, f64, f64),
}

impl Offsets {
    /// Calls due at `rate` a second, for ever. Poisson and gamma: the first call after one gap.
    /// Uniform: equal gaps, from half a gap on.
    #[must_use]
    pub fn new(arrivals: Arrivals, rate: f64, seed: u64) -> Self {
        let rate = rate.max(f64::MIN_POSITIVE);
        let stretch = Stretch {
            lasts: f64::INFINITY,
            from: rate,
            to: rate,
        };
        Self::over(vec![stretch], arrivals, seed)
    }

    /// Calls due along `phases`. The unit process is stretched by the inverse of the mean number of
    /// calls so far, which for Poisson gaps gives exactly the Poisson process of the changing rate
    /// (time rescaling: Brown et al., Neural Computation 14, 2002).
    #[must_use]
    pub fn along(phases: &[ProfilePhase], arrivals: Arrivals, seed: u64) -> Self {
        let course = phases.iter().map(|phase| Stretch {
            lasts: phase.duration.nanos() as f64 / 1e9,
            from: phase.rate,
            to: phase.to.unwrap_or(phase.rate),
        });
        Self::over(course.collect(), arrivals, seed)
    }

    fn over(course: Vec<Stretch>, arrivals: Arrivals, seed: u64) -> Self {
        let gaps = match arrivals {
            Arrivals::Poisson => Gaps::Poisson,
            Arrivals::Uniform => Gaps::Uniform,
            // Mean 1. The bounds of the configuration keep both parameters positive and finite.
            Arrivals::Gamma { cv } => {
                Gamma::new(1.0 / (cv * cv), cv * cv).map_or(Gaps::Poisson, Gaps::Gamma)
            }
        };
        Self {
            course,
            gaps,
            rng: StdRng::seed_from_u64(seed),
            units: 0.0,
            index: 0,
            at: (0, 0.0, 0.0),
        }
    }
}

impl Iterator for Offsets {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let units = match &self.gaps {
            Gaps::Uniform => self.index as f64 + 0.5,
            Gaps::Poisson => self.units + self.rng.sample::<f64, _>(Exp1),
            Gaps::Gamma(gamma) => self.units + self.rng.sample(gamma),
        };
        self.units = units;
        self.index += 1;
        loop {
            let (number, calls, seconds) = self.at;
            let stretch = self.course.get(number)?;
            if units - calls <= stretch.calls() {
                // A float beyond u64 saturates: a call due in centuries.
                return Some(((seconds + stretch.at(units - calls)) * 1e9) as u64);
            }
            self.at = (number + 1, calls + stretch.calls(), seconds + stretch.lasts);
        }
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

    fn phase(rate: f64, to: Option<f64>, seconds: u64) -> ProfilePhase {
        ProfilePhase {
            name: "p".to_owned(),
            rate,
            to,
            duration: config::Period::secs(seconds),
        }
    }

    #[test]
    fn gamma_gaps_have_the_variation_that_was_asked_for() {
        for cv in [0.3, 1.0, 3.0] {
            let offsets: Vec<u64> = Offsets::new(Arrivals::Gamma { cv }, 100.0, 5)
                .take(40_000)
                .collect();
            let gaps: Vec<f64> = offsets
                .windows(2)
                .map(|w| (w[1] - w[0]) as f64 / 1e7)
                .collect();
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
            assert!((mean - 1.0).abs() < 0.06 * cv.max(1.0), "{cv}: {mean}");
            assert!(
                (variance.sqrt() / mean / cv - 1.0).abs() < 0.08,
                "{cv}: {variance}"
            );
        }
    }

    #[test]
    fn a_course_has_its_rates_and_its_end() {
        let phases = [
            phase(10.0, None, 60),
            phase(10.0, Some(100.0), 60),
            phase(100.0, None, 60),
        ];
        let even: Vec<u64> = Offsets::along(&phases, Arrivals::Uniform, 1).collect();
        assert_eq!(even.len(), 600 + 3_300 + 6_000);
        assert!(even.is_sorted() && *even.last().unwrap() < 180_000_000_000);
        let count = |from: u64, to: u64| {
            even.iter()
                .filter(|o| (from..to).contains(&(**o / 1_000_000_000)))
                .count()
        };
        assert_eq!((count(0, 60), count(120, 180)), (600, 6_000));
        // In the middle of the ramp the rate is 55: ten seconds around it hold 550 calls.
        assert!(count(85, 95).abs_diff(550) <= 1, "{}", count(85, 95));
        let poisson = Offsets::along(&phases, Arrivals::Poisson, 1).count() as f64;
        assert!(
            (poisson - 9_900.0).abs() < 5.0 * 9_900.0_f64.sqrt(),
            "{poisson}"
        );
    }

    #[test]
    fn a_slow_rate_waits_and_does_not_drift() {
        // 0.1 calls a second over ten days: the mean of the gaps is ten seconds.
        let last = Offsets::new(Arrivals::Poisson, 0.1, 9).nth(86_399).unwrap() as f64 / 1e9;
        assert!((last / 86_400.0 - 10.0).abs() < 0.2, "{last}");
    }

    #[test]
    fn one_call_in_ten_seconds_is_due_every_ten_seconds() {
        // A day of it, without waiting for it: dates are absolute, whatever happened to the calls before.
        let day = Offsets::new(Arrivals::Uniform, 0.1, 1).take(8_640);
        for (n, due) in (0_u64..).zip(day) {
            assert!(
                due.abs_diff((n * 10 + 5) * 1_000_000_000) < 100,
                "{n}: {due}"
            );
        }
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
