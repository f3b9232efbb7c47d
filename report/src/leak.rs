//! Whether a component keeps what it should give back: the slope of its memory and open descriptors over a
//! steady course of load, Theil–Sen with the interval of its ranks (Sen, JASA 63, 1968). Neighbouring
//! values resemble each other, which would make the interval too narrow: the variance of Kendall's statistic
//! is widened by their rank correlation (Hamed and Rao, J. Hydrology 204, 1998).

use crate::build::window;
use crate::drift::{slopes, steady, variance, widening};
use crate::gather::Gathered;
use crate::model::{Arm, Leak, LeakFinding};
use crate::quantile::{plain, sort};
use record::manifest::Cell;
use record::rundir::Second;
use std::collections::BTreeMap;

/// The share of a course at its begin that is left out: pools, caches and heaps fill.
const FILLING: f64 = 0.1;
/// Medians of so many stretches are compared: pairs grow with the square.
const STRETCHES: usize = 96;
/// Fewer than this have no slope.
const FEWEST: usize = 8;
/// A shorter course is not judged, hours: heaps breathe in minutes.
const JUDGED_FROM: f64 = 1.0;
/// Nor one of fewer stretches.
const JUDGED_STRETCHES: usize = 24;

/// Name, unit, and where it stands in a second of the series.
type Figure = (&'static str, &'static str, fn(&Second) -> Option<u64>);

/// The slopes of one arm; none unless it is a course of steady load.
pub(crate) fn leaks(run: &Gathered, cells: &[&Cell], whole: &Arm) -> Vec<Leak> {
    if !steady(&whole.drive) {
        return Vec::new();
    }
    let seconds = longest(run, cells);
    let figures: [Figure; 2] = [
        ("resident memory", "bytes", |s| s.memory),
        ("open descriptors", "", |s| s.descriptors),
    ];
    let of = |(figure, unit, pick): Figure| {
        let begin = seconds.first()?.at;
        let lasts = seconds.last()?.at.saturating_sub(begin);
        let from = begin + (lasts as f64 * FILLING) as u64;
        let points: Vec<(f64, f64)> = seconds
            .iter()
            .filter(|s| s.at >= from)
            .filter_map(|s| Some((s.at.saturating_sub(begin) as f64 / 3.6e12, pick(s)? as f64)))
            .collect();
        let stretches = medians(&points);
        let (slope, interval) = robust(&stretches)?;
        let hours = points.last()?.0 - points.first()?.0;
        Some(Leak {
            run: run.name.clone(),
            chain: whole.chain.clone(),
            simulated: whole.simulated,
            figure,
            unit,
            samples: points.len(),
            stretches: stretches.len(),
            hours,
            level: plain(&sorted(stretches.iter().map(|p| p.1)), 0.5)?,
            slope_per_hour: slope,
            interval,
            finding: judge(hours, stretches.len(), interval),
        })
    };
    figures.into_iter().filter_map(of).collect()
}

/// The seconds of the block that has most of them.
fn longest<'a>(run: &'a Gathered, cells: &[&Cell]) -> Vec<&'a Second> {
    let mut blocks: BTreeMap<u32, Vec<&Second>> = BTreeMap::new();
    for cell in cells {
        let (from, to) = window(cell, None);
        let within = |s: &&Second| s.chain == cell.chain && (from..=to).contains(&s.at);
        let seconds = run.seconds.iter().filter(within);
        blocks.entry(cell.block).or_default().extend(seconds);
    }
    let most = blocks.into_values().max_by_key(Vec::len);
    most.unwrap_or_default()
}

/// Medians of at most [`STRETCHES`] stretches of as many points each.
fn medians(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let each = points.len().div_ceil(STRETCHES).max(1);
    let middle = |values: Vec<f64>| plain(&values, 0.5);
    let of = |stretch: &[(f64, f64)]| {
        let hour = middle(sorted(stretch.iter().map(|p| p.0)))?;
        Some((hour, middle(sorted(stretch.iter().map(|p| p.1)))?))
    };
    points.chunks(each).filter_map(of).collect()
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    sort(&mut values);
    values
}

/// The slope and its 95 % interval; `None` of too few points.
fn robust(points: &[(f64, f64)]) -> Option<(f64, (f64, f64))> {
    if points.len() < FEWEST {
        return None;
    }
    let all = slopes(points);
    let slope = plain(&all, 0.5)?;
    let spread = 1.96 * (variance(points) * widening(points, slope)).sqrt();
    let count = all.len() as f64;
    let at = |rank: f64| {
        let rank = rank.clamp(1.0, count) as usize;
        all.get(rank - 1).copied()
    };
    let low = at(((count - spread) / 2.0).floor())?;
    let high = at(((count + spread) / 2.0).ceil() + 1.0)?;
    Some((slope, (low, high)))
}

fn judge(hours: f64, stretches: usize, (low, high): (f64, f64)) -> LeakFinding {
    if hours < JUDGED_FROM || stretches < JUDGED_STRETCHES {
        LeakFinding::TooShort
    } else if low > 0.0 {
        LeakFinding::Grows
    } else if high < 0.0 {
        LeakFinding::Shrinks
    } else {
        LeakFinding::NoneShown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise that is neither random nor ordered: −6 to 6.
    fn noise(n: usize) -> f64 {
        f64::from(u32::try_from(n * 7919 % 13).unwrap()) - 6.0
    }

    fn course(hours: usize, value: impl Fn(usize) -> f64) -> Vec<(f64, f64)> {
        let seconds = 0..hours * 3600;
        seconds.map(|s| (s as f64 / 3600.0, value(s))).collect()
    }

    #[test]
    fn a_leak_under_noise_is_found_with_its_size() {
        let points = medians(&course(3, |s| 500.0 + s as f64 / 600.0 + noise(s)));
        assert!(points.len() <= STRETCHES && points.len() > 90);
        let (slope, (low, high)) = robust(&points).unwrap();
        assert!((slope - 6.0).abs() < 0.3, "{slope}");
        assert!(low > 5.0 && high < 7.0 && low <= slope && slope <= high);
        assert_eq!(judge(3.0, points.len(), (low, high)), LeakFinding::Grows);
    }

    #[test]
    fn a_level_course_shows_none_and_its_interval_holds_0() {
        let points = medians(&course(3, |s| 500.0 + noise(s) * 3.0));
        let (_, (low, high)) = robust(&points).unwrap();
        assert!(low <= 0.0 && high >= 0.0, "{low} {high}");
        assert_eq!(
            judge(3.0, points.len(), (low, high)),
            LeakFinding::NoneShown
        );
    }

    #[test]
    fn a_heap_that_breathes_widens_its_interval() {
        // A level that stays for ten minutes: the stretches within are alike.
        let points = medians(&course(4, |s| 500.0 + noise(s / 600) * 10.0));
        let (slope, (low, high)) = robust(&points).unwrap();
        assert!(widening(&points, slope) > 1.5);
        assert!(low <= 0.0 && high >= 0.0, "{low} {high}");
    }

    #[test]
    fn a_constant_does_not_grow_and_a_short_course_is_not_judged() {
        let points = medians(&course(2, |_| 12.0));
        let (slope, interval) = robust(&points).unwrap();
        assert_eq!((slope, interval), (0.0, (0.0, 0.0)));
        assert_eq!(judge(2.0, 96, interval), LeakFinding::NoneShown);
        assert_eq!(judge(0.5, 96, (1.0, 2.0)), LeakFinding::TooShort);
        assert_eq!(judge(9.0, 9, (1.0, 2.0)), LeakFinding::TooShort);
        assert_eq!(robust(&[(0.0, 1.0); 7]), None);
    }
}
