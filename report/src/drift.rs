//! Whether a figure drifts over a long course of steady load: the Mann–Kendall test for a trend, its variance
//! widened for the likeness of neighbours (Hamed and Rao, J. Hydrology 204, 1998, doi 10.1016/S0022-1694(97)00125-X),
//! and the Theil–Sen slope (Kendall 1975; Sen, JASA 63, 1968). All use ranks and medians only, so that a single
//! bad hour neither makes nor hides a trend.

use crate::model::{Arm, Drift, Reading};
use record::manifest::{Drive, Phase};
use std::cmp::Ordering;

/// Fewer phases than this carry no trend.
const FEWEST: usize = 8;

/// The drifts of one course: `phases` are the arms of its phases, in order.
pub(crate) fn drifts(whole: &Arm, course: &[Phase], phases: &[Arm]) -> Vec<Drift> {
    if !steady(&whole.drive) || course.len() < FEWEST || course.len() != phases.len() {
        return Vec::new();
    }
    let mut begin = 0.0;
    let hours: Vec<f64> = course
        .iter()
        .map(|p| {
            let lasts = p.lasts as f64 / 3.6e12;
            begin += lasts;
            begin - lasts / 2.0
        })
        .collect();
    let of = |figure: &'static str, values: Vec<Option<f64>>| {
        let points: Vec<(f64, f64)> = hours
            .iter()
            .zip(values)
            .filter_map(|(hour, value)| Some((*hour, value?)))
            .collect();
        (points.len() >= FEWEST).then(|| {
            let slope = slope(&points);
            let (s, p) = mann_kendall(&points, slope);
            Drift {
                run: whole.run.clone(),
                chain: whole.chain.clone(),
                simulated: whole.simulated,
                figure,
                phases: points.len(),
                of: course.len(),
                slope_per_hour: slope,
                s,
                p,
            }
        })
    };
    let read = |pick: fn(&Arm) -> &Reading| phases.iter().map(|a| pick(a).value()).collect();
    let failed = |arm: &Arm| {
        let complete: usize = arm
            .strata
            .outcomes
            .iter()
            .filter(|(name, _)| name == "complete")
            .map(|(_, n)| n)
            .sum();
        let due = arm.strata.sent as u64 + arm.strata.unsent?;
        (due > 0).then(|| 1.0 - complete as f64 / due as f64)
    };
    [
        of("TTFT p50", read(|a| &a.ttft.p50)),
        of("TTFT p95", read(|a| &a.ttft.p95)),
        of("E2E p50", read(|a| &a.e2e.p50)),
        of(
            "share of calls not answered in full",
            phases.iter().map(failed).collect(),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Whether a drive is a course of load at one rate.
pub(crate) fn steady(drive: &Drive) -> bool {
    let course = course(drive);
    let first = course.first();
    first.is_some_and(|f| {
        course
            .iter()
            .all(|p| same(p.rate, p.to) && same(p.rate, f.rate))
    })
}

/// The phases of a course.
pub(crate) fn course(drive: &Drive) -> &[Phase] {
    match drive {
        Drive::Profile { phases } => phases,
        _ => &[],
    }
}

fn same(a: f64, b: f64) -> bool {
    (a - b).abs() < f64::EPSILON
}

/// The median of the slopes between all pairs.
fn slope(points: &[(f64, f64)]) -> f64 {
    crate::quantile::plain(&slopes(points), 0.5).unwrap_or(0.0)
}

/// The slopes between all pairs, in rising order.
pub(crate) fn slopes(points: &[(f64, f64)]) -> Vec<f64> {
    let mut slopes: Vec<f64> = pairs(points)
        .map(|((x, y), (u, v))| (v - y) / (u - x))
        .collect();
    crate::quantile::sort(&mut slopes);
    slopes
}

fn pairs(points: &[(f64, f64)]) -> impl Iterator<Item = ((f64, f64), (f64, f64))> + '_ {
    points
        .iter()
        .enumerate()
        .flat_map(|(at, a)| points[at + 1..].iter().map(|b| (*a, *b)))
}

/// Kendall's statistic, and the two-sided probability of as clear a trend where there is none: neighbours about
/// a line of this `slope` may be alike.
fn mann_kendall(points: &[(f64, f64)], slope: f64) -> (i64, f64) {
    let s = kendall(points);
    let variance = variance(points) * widening(points, slope);
    (s, probability(s, variance))
}

/// Kendall's statistic: pairs that rise less pairs that fall.
fn kendall(points: &[(f64, f64)]) -> i64 {
    pairs(points)
        .map(|((_, y), (_, v))| match v.total_cmp(&y) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        })
        .sum()
}

/// Two-sided probability that the statistic, with this variance about 0, is as large as `s`, by the normal
/// approximation.
fn probability(s: i64, variance: f64) -> f64 {
    if variance <= 0.0 {
        return 1.0;
    }
    let z = (s.abs() as f64 - 1.0).max(0.0) / variance.sqrt();
    2.0 * upper_tail(z)
}

/// The variance of Kendall's statistic where there is no trend, with ties.
pub(crate) fn variance(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let mut values: Vec<f64> = points.iter().map(|(_, y)| *y).collect();
    crate::quantile::sort(&mut values);
    let ties: f64 = values
        .chunk_by(|a, b| same(*a, *b))
        .map(|tied| {
            let t = tied.len() as f64;
            t * (t - 1.0) * (2.0 * t + 5.0)
        })
        .sum();
    (n * (n - 1.0) * (2.0 * n + 5.0) - ties) / 18.0
}

/// By how much the likeness of neighbours about a line of this `slope` widens the variance of Kendall's
/// statistic (Hamed and Rao 1998, by the ranks' correlations that are significant); never below 1. Of fewer
/// than a dozen points hardly any correlation is: they count as independent.
pub(crate) fn widening(points: &[(f64, f64)], slope: f64) -> f64 {
    let rest: Vec<f64> = points.iter().map(|(x, y)| y - slope * x).collect();
    let ranks = ranks(&rest);
    let n = rest.len() as f64;
    let power: f64 = ranks.iter().map(|r| r * r).sum();
    if power <= 0.0 {
        return 1.0;
    }
    let mut sum = 0.0;
    for lag in 1..rest.len().saturating_sub(2) {
        let shared: f64 = ranks.iter().zip(&ranks[lag..]).map(|(a, b)| a * b).sum();
        let correlation = shared / power;
        // What chance alone makes is left out.
        if correlation.abs() > 1.96 / n.sqrt() {
            let left = n - lag as f64;
            sum += left * (left - 1.0) * (left - 2.0) * correlation;
        }
    }
    (1.0 + 2.0 * sum / (n * (n - 1.0) * (n - 2.0))).max(1.0)
}

/// The ranks of `values` about their mean; tied ones share theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for tied in order.chunk_by(|a, b| same(values[*a], values[*b])) {
        let last = first + tied.len() - 1;
        for at in tied {
            ranks[*at] = (first + last) as f64 / 2.0 - (values.len() - 1) as f64 / 2.0;
        }
        first = last + 1;
    }
    ranks
}

/// P(Z > z) of the standard normal for z ≥ 0 (Abramowitz and Stegun 26.2.17, error below 7.5e-8).
fn upper_tail(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let poly = t
        * (0.319_381_530
            + t * (-0.356_563_782
                + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    density * poly
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p_of(points: &[(f64, f64)]) -> f64 {
        mann_kendall(points, slope(points)).1
    }

    #[test]
    fn the_direction_is_that_of_the_pairs_and_not_of_a_slope_that_ties_flatten() {
        // Mostly ties: the median of the slopes is 0, and yet the late ones are larger.
        let points: Vec<(f64, f64)> = (0..24)
            .map(|n| (f64::from(n), f64::from(u8::from(n >= 19))))
            .collect();
        assert_eq!((slope(&points), kendall(&points)), (0.0, 19 * 5));
        let falling: Vec<(f64, f64)> = points.iter().map(|(x, y)| (*x, -y)).collect();
        assert_eq!(kendall(&falling), -19 * 5);
    }

    #[test]
    fn phases_that_are_like_their_neighbours_count_for_less() {
        // A level that wanders slowly: up, down and up again over the whole course.
        let points: Vec<(f64, f64)> = (0..48_u32)
            .map(|n| {
                let x = f64::from(n);
                (x, (x / 9.0).sin() * 10.0 + x * 0.3)
            })
            .collect();
        let independent = probability(kendall(&points), variance(&points));
        assert!(independent < 0.01, "{independent}");
        assert!(widening(&points, slope(&points)) > 2.0);
        assert!(p_of(&points) > 0.05, "{}", p_of(&points));
    }

    #[test]
    fn ties_share_their_rank() {
        assert_eq!(ranks(&[7.0, 1.0, 7.0, 9.0]), [0.0, -1.5, 0.0, 1.5]);
        assert_eq!(widening(&[(0.0, 1.0); 9], 0.0), 1.0);
    }

    #[test]
    fn a_trend_is_found_under_noise_and_none_where_there_is_none() {
        let noise = |n: usize| f64::from(u32::try_from(n * 7919 % 13).unwrap()) - 6.0;
        let rising: Vec<(f64, f64)> = (0..24)
            .map(|n| (n as f64, 100.0 + 2.0 * n as f64 + noise(n)))
            .collect();
        let level: Vec<(f64, f64)> = (0..24).map(|n| (n as f64, 100.0 + noise(n))).collect();
        assert!(p_of(&rising) < 0.001, "{}", p_of(&rising));
        assert!((slope(&rising) - 2.0).abs() < 0.4, "{}", slope(&rising));
        assert!(p_of(&level) > 0.2, "{}", p_of(&level));
        let constant = vec![(0.0, 1.0), (1.0, 1.0), (2.0, 1.0)];
        assert!((p_of(&constant) - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn one_bad_hour_makes_no_trend() {
        let mut points: Vec<(f64, f64)> = (0..24_u32)
            .map(|n| (f64::from(n), 100.0 + f64::from(n % 3)))
            .collect();
        points[20].1 = 100_000.0;
        assert!(p_of(&points) > 0.05);
        assert!(slope(&points).abs() < 0.2);
    }

    #[test]
    fn the_tail_of_the_normal_is_what_tables_say() {
        assert!((upper_tail(1.96) - 0.025).abs() < 1e-4);
        assert!((upper_tail(0.0) - 0.5).abs() < 1e-6);
    }
}
