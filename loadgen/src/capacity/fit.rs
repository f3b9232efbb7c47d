//! From what was attained at each rate to the rate at which the objective just holds: a monotone fit of each part's
//! share over the rates, read off where it falls below what is wanted.

use super::run::{Run, STRETCHES, Share, sum};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use record::manifest::Fit;

/// Resamples of an interval.
const ROUNDS: usize = 1_000;

/// The rate at which each of `wanted`, in the order of the runs' parts, just holds, with its 95 % interval: the
/// stretches of each run are resampled whole. `None` of no runs.
///
/// Where the objective does not hold at the lowest rate that was tried, the rate is 0: it is not known where between
/// the two it held last. Where it holds at the highest, the rate is the highest.
pub(crate) fn fit(runs: &[Run], wanted: &[f64], seed: u64) -> Option<Fit> {
    let whole = |run: &Run| (run.rate, run.whole());
    let rate = held_up_to(&runs.iter().map(whole).collect::<Vec<_>>(), wanted)?;
    let mut random = StdRng::seed_from_u64(seed);
    let mut found: Vec<f64> = (0..ROUNDS)
        .filter_map(|_| {
            let drawn = runs.iter().map(|run| {
                let picks: [usize; STRETCHES] =
                    std::array::from_fn(|_| random.random_range(0..STRETCHES));
                (run.rate, sum(picks.iter().map(|at| &run.stretches[*at])))
            });
            held_up_to(&drawn.collect::<Vec<_>>(), wanted)
        })
        .collect();
    found.sort_unstable_by(f64::total_cmp);
    let at = |q: f64| found.get((q * (found.len() - 1) as f64).round() as usize);
    Some(Fit {
        rate,
        low: *at(0.025)?,
        high: *at(0.975)?,
    })
}

/// The lowest of the rates up to which each part holds.
fn held_up_to(runs: &[(f64, Vec<Share>)], wanted: &[f64]) -> Option<f64> {
    let parts = wanted.iter().enumerate().map(|(part, wanted)| {
        let shares = runs.iter().map(|(rate, shares)| (*rate, shares[part]));
        crossing(&monotone(shares.collect()), *wanted)
    });
    parts
        .collect::<Option<Vec<f64>>>()?
        .into_iter()
        .min_by(f64::total_cmp)
}

/// The shares that never rise with the rate and lie nearest to those seen, weighted by their calls (pool adjacent
/// violators: [Barlow et al. 1972](https://en.wikipedia.org/wiki/Isotonic_regression)). A run without calls says nothing.
fn monotone(mut seen: Vec<(f64, Share)>) -> Vec<(f64, f64)> {
    seen.retain(|(_, share)| share.of > 0);
    seen.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Rates that share one level, and what they came to together.
    let mut pools: Vec<(Vec<f64>, Share)> = Vec::new();
    for (rate, share) in seen {
        let mut pool = (vec![rate], share);
        while let Some((_, before)) = pools.last() {
            // Two runs at one rate have one level.
            let one_rate = pools.last().and_then(|(rates, _)| rates.last()) == pool.0.first();
            if !one_rate && before.value() >= pool.1.value() {
                break;
            }
            let Some((mut rates, before)) = pools.pop() else {
                break;
            };
            rates.append(&mut pool.0);
            pool = (rates, before.and(pool.1));
        }
        pools.push(pool);
    }
    pools
        .into_iter()
        .flat_map(|(rates, share)| {
            let level = share.value().unwrap_or(0.0);
            rates.into_iter().map(move |rate| (rate, level))
        })
        .collect()
}

/// Where the line through `levels` falls below `wanted`.
fn crossing(levels: &[(f64, f64)], wanted: f64) -> Option<f64> {
    let highest = levels.last()?.0;
    let Some(below) = levels.iter().position(|(_, level)| *level < wanted) else {
        return Some(highest);
    };
    let (high, missed) = levels[below];
    let Some((low, held)) = below.checked_sub(1).map(|at| levels[at]) else {
        return Some(0.0);
    };
    Some(low + (high - low) * (held - wanted) / (held - missed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn share(met: u64, of: u64) -> Share {
        Share { met, of }
    }

    fn run(rate: f64, met: u64, of: u64) -> Run {
        Run {
            rate,
            due: of * STRETCHES as u64,
            stretches: vec![vec![share(met, of)]; STRETCHES],
        }
    }

    #[test]
    fn shares_that_rise_with_the_rate_are_pooled() {
        let seen = vec![
            (4.0, share(9, 10)),
            (1.0, share(10, 10)),
            (2.0, share(8, 10)),
            (8.0, share(1, 10)),
            (3.0, share(0, 0)),
        ];
        assert_eq!(
            monotone(seen),
            [(1.0, 1.0), (2.0, 0.85), (4.0, 0.85), (8.0, 0.1)]
        );
        let twice = vec![(1.0, share(10, 10)), (1.0, share(6, 10))];
        assert_eq!(monotone(twice), [(1.0, 0.8), (1.0, 0.8)]);
    }

    #[test]
    fn the_rate_lies_where_the_line_falls_below_what_is_wanted() {
        let levels = [(10.0, 1.0), (20.0, 0.96), (24.0, 0.92), (40.0, 0.2)];
        assert!((crossing(&levels, 0.95).unwrap() - 21.0).abs() < 1e-9);
        assert_eq!(crossing(&levels, 0.1), Some(40.0));
        assert_eq!(crossing(&levels, 1.1), Some(0.0));
        assert_eq!(crossing(&[], 0.5), None);
    }

    #[test]
    fn the_part_that_gives_way_first_decides() {
        let two = |rate, first, second| (rate, vec![share(first, 100), share(second, 100)]);
        let runs = [two(10.0, 100, 100), two(20.0, 90, 99), two(30.0, 90, 0)];
        let found = held_up_to(&runs, &[0.95, 0.95]).unwrap();
        assert!((found - 15.0).abs() < 1e-9, "{found}");
    }

    #[test]
    fn stretches_that_are_alike_leave_no_doubt_and_others_do() {
        let alike = [run(10.0, 20, 20), run(20.0, 10, 20)];
        let found = fit(&alike, &[0.95], 1).unwrap();
        assert!((found.rate - 11.0).abs() < 1e-9);
        assert_eq!((found.low, found.high), (found.rate, found.rate));
        let mut unlike = alike.to_vec();
        for (at, stretch) in unlike[1].stretches.iter_mut().enumerate() {
            stretch[0].met = if at % 2 == 0 { 0 } else { 20 };
        }
        let found = fit(&unlike, &[0.95], 1).unwrap();
        assert!((found.rate - 11.0).abs() < 1e-9);
        assert!(
            found.low < found.rate && found.rate < found.high,
            "{found:?}"
        );
        assert_eq!(fit(&[], &[0.95], 1), None);
    }

    proptest! {
        /// Whatever was seen: the fit never rises, keeps the calls that met, and holds within what was seen.
        #[test]
        fn a_fit_never_rises(seen in prop::collection::vec((1_u32..100, 0_u64..50, 1_u64..50), 1..12)) {
            let shares: Vec<(f64, Share)> = seen
                .iter()
                .map(|(rate, met, of)| (f64::from(*rate), share(*met.min(of), *of)))
                .collect();
            let levels = monotone(shares.clone());
            prop_assert!(levels.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 >= w[1].1));
            let mut sorted = shares;
            sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
            let met: f64 = sorted.iter().map(|(_, s)| s.met as f64).sum();
            let fitted: f64 = sorted.iter().zip(&levels).map(|((_, s), (_, level))| s.of as f64 * level).sum();
            prop_assert!((met - fitted).abs() < 1e-6, "{met} {fitted}");
            let at = crossing(&levels, 0.95).unwrap();
            prop_assert!(at <= levels.last().unwrap().0);
        }
    }
}
