//! Where two configurations change places.
//!
//! Between two steps each cost is a straight line and, for an imported model, an exponential beside it: their
//! difference turns at most once. So each stretch between steps, cut at that turn, holds one change at most, and none
//! is missed; at a step the one side is compared with the other.

use std::collections::BTreeMap;

use crate::course::Course;
use crate::inputs::{Ends, Inputs, extremes};
use crate::model::{Configuration, Crossing, NoCrossing, Pair};
use crate::tariff::Tariff;

/// Steps that are looked at, at most: beyond them the search ends.
const STEPS: f64 = 20_000.0;
/// Two monthly bills that differ by less, relative to what they are, are the same.
const SAME: f64 = 1e-12;

/// On which side of 0 a difference is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Below,
    Above,
}

impl Sign {
    /// `None` of 0, and of what is not more than `least` away from it.
    fn of(difference: f64, least: f64) -> Option<Self> {
        match difference.abs() <= least {
            true => None,
            false if difference < 0.0 => Some(Self::Below),
            false => Some(Self::Above),
        }
    }
}

/// A change of sign of the difference of two costs.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Change {
    rate: f64,
    on_step: bool,
    /// From below 0 to above.
    rises: bool,
}

/// Every rate up to `max` at which `a` and `b` change places.
pub(crate) fn pair(a: Configuration, b: Configuration, given: Inputs<'_>, max: f64) -> Pair {
    let of = |ends: &Ends| (Tariff::of(a, given, ends), Tariff::of(b, given, ends));
    let plain = of(&Ends::new());
    let lacking = [(a, &plain.0), (b, &plain.1)];
    if let Some((which, tariff)) = lacking.into_iter().find(|(_, t)| !t.gaps.is_empty()) {
        let missing = NoCrossing::Missing(which, tariff.gaps.clone());
        return empty(a, b, missing);
    }
    if let Some((which, _)) = lacking.into_iter().find(|(_, t)| t.at_least) {
        return empty(a, b, NoCrossing::AtLeast(which));
    }
    let quota = |of| given.limit(of).map_or(f64::INFINITY, |limit| limit.rate);
    let max = max.min(quota(a)).min(quota(b));
    let max = max.min(countable(&plain));
    let (changes, sign) = changes(&plain, max);
    if changes.is_empty() {
        let reason = match sign {
            Some(Sign::Below) => NoCrossing::Cheaper(a, max),
            Some(Sign::Above) => NoCrossing::Cheaper(b, max),
            None => NoCrossing::Same(max),
        };
        return empty(a, b, reason);
    }
    let inputs = plain.0.inputs.union(&plain.1.inputs).cloned().collect();
    // Most crossings of a pair have the same inputs at the same ends.
    let mut known: BTreeMap<Ends, Vec<Change>> = BTreeMap::new();
    let crossings = changes
        .into_iter()
        .map(|change| {
            let (least, most) = extremes(&inputs, |ends| {
                let (a, b) = of(ends);
                a.at(change.rate) - b.at(change.rate)
            });
            for ends in [&least, &most] {
                if !known.contains_key(ends) {
                    known.insert(ends.clone(), at_ends(&of(ends), max));
                }
            }
            let at = |ends| known.get(ends).map_or(&[][..], Vec::as_slice);
            let (low, high) = interval(change, at(&least), at(&most));
            Crossing {
                a,
                b,
                rate: change.rate,
                low,
                high,
                on_step: change.on_step,
                cheaper_above: if change.rises { b } else { a },
            }
        })
        .collect();
    Pair {
        a,
        b,
        crossings,
        no_crossing: None,
    }
}

/// The highest rate up to which the steps of both can be counted.
fn countable((a, b): &(Tariff, Tariff)) -> f64 {
    a.narrowest().min(b.narrowest()) * STEPS
}

/// The changes with inputs at their ends, as far as they can be counted: what lies beyond makes an interval open, never
/// too narrow. One that no number of replicas serves is the dearer one everywhere, and nothing changes.
fn at_ends(both: &(Tariff, Tariff), max: f64) -> Vec<Change> {
    match both.0.unbounded() || both.1.unbounded() {
        true => Vec::new(),
        false => changes(both, max.min(countable(both))).0,
    }
}

fn empty(a: Configuration, b: Configuration, reason: NoCrossing) -> Pair {
    Pair {
        a,
        b,
        crossings: Vec::new(),
        no_crossing: Some(reason),
    }
}

/// Where the change may lie: between the changes of the same direction that the difference has when all inputs make it
/// as small, and when they make it as large, as they can.
fn interval(change: Change, least: &[Change], most: &[Change]) -> (f64, Option<f64>) {
    // A difference that rises is above 0 sooner the larger it is.
    let (early, late) = match change.rises {
        true => (most, least),
        false => (least, most),
    };
    let alike = |other: &&Change| other.rises == change.rises;
    let near = 1e-9 * change.rate;
    let mut below = early.iter().rev().filter(alike);
    let mut above = late.iter().filter(alike);
    let low = below.find(|other| other.rate <= change.rate + near);
    let high = above.find(|other| other.rate >= change.rate - near);
    (
        low.map_or(0.0, |other| other.rate.min(change.rate)),
        high.map(|other| other.rate.max(change.rate)),
    )
}

/// Every change of sign of the difference of two costs on (0, `max`], and its last sign; `None` where it is 0 all over.
fn changes((a, b): &(Tariff, Tariff), max: f64) -> (Vec<Change>, Option<Sign>) {
    let mut cuts = a.steps(max);
    cuts.extend(b.steps(max));
    cuts.extend([0.0, max]);
    cuts.sort_by(f64::total_cmp);
    cuts.dedup_by(|x, y| (*x - *y).abs() <= 1e-9 * x.abs());
    let mut found = Vec::new();
    let mut last = None;
    for stretch in cuts.windows(2) {
        let &[from, to] = stretch else { continue };
        let middle = f64::midpoint(from, to);
        let (one, other) = (a.course(middle), b.course(middle));
        let difference = one - other;
        let scale = SAME * one.at(to).abs().max(other.at(to).abs());
        let begins = Sign::of(difference.at(from), scale);
        let mut add = |rate, on_step, sign: Option<Sign>| {
            let Some(sign) = sign else { return };
            if last.is_some_and(|before| before != sign) {
                let rises = sign == Sign::Above;
                found.push(Change {
                    rate,
                    on_step,
                    rises,
                });
            }
            last = Some(sign);
        };
        add(from, true, begins);
        let turn = difference.turn().filter(|rate| from < *rate && *rate < to);
        let mut left = (from, begins);
        for right in turn.into_iter().chain([to]) {
            let ends = Sign::of(difference.at(right), scale);
            let rate = match left.1 {
                None => left.0,
                Some(_) => root(difference, left.0, right),
            };
            add(rate, false, ends);
            left = (right, ends);
        }
    }
    (found, last)
}

/// Where a difference that only rises, or only falls, between `from` and `to` is 0.
fn root(difference: Course, from: f64, to: f64) -> f64 {
    let (mut low, mut high) = (from, to);
    let rises = difference.at(to) > 0.0;
    // Halving a double's stretch a hundred times leaves nothing between.
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        match (difference.at(middle) > 0.0) == rises {
            true => high = middle,
            false => low = middle,
        }
    }
    f64::midpoint(low, high)
}
