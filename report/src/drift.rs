//! Whether a figure drifts over a long course of steady load: the Mann–Kendall test for a trend, and
//! the Theil–Sen slope (Kendall 1975; Sen, JASA 63, 1968). Both use ranks and medians only, so that a
//! single bad hour neither makes nor hides a trend.

use crate::model::{Arm, Drift, Reading};
use record::manifest::{Drive, Phase};

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
        (points.len() >= FEWEST).then(|| Drift {
            run: whole.run.clone(),
            chain: whole.chain.clone(),
            figure,
            phases: points.len(),
            slope_per_hour: slope(&points),
            p: mann_kendall(&points),
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
        (arm.strata.sent > 0).then(|| 1.0 - complete as f64 / arm.strata.sent as f64)
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

/// Two-sided probability of as clear a trend where there is none, by the normal approximation with
/// ties.
fn mann_kendall(points: &[(f64, f64)]) -> f64 {
    let s: f64 = pairs(points)
        .map(|((_, y), (_, v))| match v.total_cmp(&y) {
            std::cmp::Ordering::Less => -1.0,
            std::cmp::Ordering::Equal => 0.0,
            std::cmp::Ordering::Greater => 1.0,
        })
        .sum();
    let variance = variance(points);
    if variance <= 0.0 {
        return 1.0;
    }
    let z = (s.abs() - 1.0).max(0.0) / variance.sqrt();
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

    #[test]
    fn a_trend_is_found_under_noise_and_none_where_there_is_none() {
        let noise = |n: usize| f64::from(u32::try_from(n * 7919 % 13).unwrap()) - 6.0;
        let rising: Vec<(f64, f64)> = (0..24)
            .map(|n| (n as f64, 100.0 + 2.0 * n as f64 + noise(n)))
            .collect();
        let level: Vec<(f64, f64)> = (0..24).map(|n| (n as f64, 100.0 + noise(n))).collect();
        assert!(mann_kendall(&rising) < 0.001, "{}", mann_kendall(&rising));
        assert!((slope(&rising) - 2.0).abs() < 0.4, "{}", slope(&rising));
        assert!(mann_kendall(&level) > 0.2, "{}", mann_kendall(&level));
        let constant = vec![(0.0, 1.0), (1.0, 1.0), (2.0, 1.0)];
        assert!((mann_kendall(&constant) - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn one_bad_hour_makes_no_trend() {
        let mut points: Vec<(f64, f64)> = (0..24_u32)
            .map(|n| (f64::from(n), 100.0 + f64::from(n % 3)))
            .collect();
        points[20].1 = 100_000.0;
        assert!(mann_kendall(&points) > 0.05);
        assert!(slope(&points).abs() < 0.2);
    }

    #[test]
    fn the_tail_of_the_normal_is_what_tables_say() {
        assert!((upper_tail(1.96) - 0.025).abs() < 1e-4);
        assert!((upper_tail(0.0) - 0.5).abs() < 1e-6);
    }
}
