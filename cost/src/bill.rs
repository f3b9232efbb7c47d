//! A month's bill at one rate.

use crate::inputs::{Ends, Inputs, extremes};
use crate::model::{Bill, Configuration, Limit, Line, Range, SECONDS};
use crate::tariff::{Item, Tariff};

/// The bill of `of` at `rate`, calls a second while there is traffic.
pub(crate) fn bill(of: Configuration, given: Inputs<'_>, rate: f64) -> Bill {
    let tariff = Tariff::of(of, given, &Ends::new());
    let (least, most) = extremes(&tariff.inputs, |ends| Tariff::of(of, given, ends).at(rate));
    let low = Tariff::of(of, given, &least);
    let high = Tariff::of(of, given, &most);
    let lines: Vec<Line> = tariff
        .items
        .iter()
        .enumerate()
        .map(|(at, item)| line(item, rate, low.items.get(at), high.items.get(at)))
        .collect();
    let mut gaps = tariff.gaps.clone();
    gaps.extend(given.limit(of).and_then(|limit| limit.beyond(rate)));
    let total = gaps
        .is_empty()
        .then(|| Range::new(tariff.at(rate), low.at(rate), high.at(rate)));
    let traffic = given.traffic;
    let tokens = rate * traffic.duty * SECONDS * (traffic.input_tokens + traffic.output_tokens);
    let simulated = given.capacities.get(&of).is_some_and(|c| c.simulated);
    Bill {
        configuration: of,
        rate,
        lines,
        at_least: tariff.at_least,
        gaps,
        total,
        per_million_tokens: total
            .filter(|_| tokens > 0.0)
            .map(|total| total.times(1e6 / tokens)),
        simulated,
    }
}

/// Inputs are at the same ends as for the total, so that the lines' ends add up to the total's.
fn line(item: &Item, rate: f64, low: Option<&Item>, high: Option<&Item>) -> Line {
    let value = item.cost.at(rate);
    let at = |other: Option<&Item>| other.map_or(value, |item| item.cost.at(rate));
    let (one, other) = (at(low), at(high));
    Line {
        id: item.id,
        amount: Range::new(value, one.min(other), one.max(other)),
        price_ids: item.price_ids.clone(),
        formula: item.formula.clone(),
    }
}

impl Limit {
    /// What a rate above it lacks: it would be throttled, so it has no cost.
    fn beyond(&self, rate: f64) -> Option<String> {
        (rate > self.rate).then(|| {
            format!(
                "above {} calls/s the default model is throttled: {}",
                self.rate, self.why
            )
        })
    }
}

impl Range {
    /// It and its ends, `by` times; `by` is not below 0.
    fn times(self, by: f64) -> Self {
        Self {
            value: self.value * by,
            low: self.low * by,
            high: self.high.map(|high| high * by),
        }
    }
}
