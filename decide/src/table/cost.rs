//! Bills: by rate, by token, and without traffic.

use cost::{Bill, Configuration, Range};

use super::row;
use crate::key::Key;
use crate::model::{Cell, Figure, Row, Unit};
use crate::number;
use crate::view::View;

pub(super) fn rows(view: &View<'_>) -> Vec<Row> {
    let study = view.given.study;
    let mut rows: Vec<Row> = study
        .rates
        .iter()
        .map(|rate| {
            let metric = view.say(Key::MetricMonth, &[("rate", number::rate(*rate))]);
            row(view, &month_id(*rate), (Key::CategoryCost, metric), |of| {
                bill(view, of, *rate, |bill| bill.total)
            })
        })
        .collect();
    let rate = study.traffic.rate;
    let metric = view.say(Key::MetricPerMillion, &[("rate", number::rate(rate))]);
    rows.push(row(
        view,
        "per-million",
        (Key::CategoryCost, metric),
        |of| bill(view, of, rate, |bill| bill.per_million_tokens),
    ));
    let metric = (Key::CategoryCost, view.get(Key::MetricIdle));
    rows.push(row(view, "idle", metric, |of| {
        if !of.self_built() {
            return Cell::NotApplicable;
        }
        let idle = study.idle.iter().find(|(one, _)| *one == of);
        match idle {
            Some((_, range)) => Cell::Value(figure(view, of, range, false)),
            None => withheld(view, of, study.rates.first().copied().unwrap_or(rate)),
        }
    }));
    rows
}

/// The row of the bills at `rate`.
pub(crate) fn month_id(rate: f64) -> String {
    format!("month-{}", rate.to_string().replace('.', "_"))
}

fn found<'a>(view: &View<'a>, of: Configuration, rate: f64) -> Option<&'a Bill> {
    let mut bills = view.given.study.bills.iter();
    bills.find(|bill| bill.configuration == of && bill.rate.total_cmp(&rate).is_eq())
}

fn bill(view: &View<'_>, of: Configuration, rate: f64, pick: fn(&Bill) -> Option<Range>) -> Cell {
    let bill = found(view, of, rate);
    match bill.and_then(|bill| Some((bill, pick(bill)?))) {
        Some((bill, range)) => Cell::Value(figure(view, of, &range, bill.at_least)),
        None => withheld(view, of, rate),
    }
}

/// What the bill lacks. A capacity that nobody measured is a thing to measure.
fn withheld(view: &View<'_>, of: Configuration, rate: f64) -> Cell {
    if of.self_built() && !view.given.capacities.contains_key(&of) {
        return Cell::NotMeasured {
            command: view.command(7, &[of.id()]),
        };
    }
    let gaps = found(view, of, rate).map(|bill| bill.gaps.join("; "));
    Cell::Withheld {
        why: gaps.unwrap_or_else(|| view.get(Key::NoBill)),
        run: None,
    }
}

fn figure(view: &View<'_>, of: Configuration, range: &Range, at_least: bool) -> Figure {
    let capacity = view.behind(of);
    let label = match capacity {
        None => view.get(Key::ByPrices),
        Some(capacity) if capacity.measured => view.get(Key::ByCapacity),
        Some(_) => view.get(Key::ByExpectation),
    };
    Figure {
        value: range.value,
        unit: Unit::Dollars,
        at_least,
        low: Some(range.low),
        high: range.high,
        samples: None,
        few: false,
        run: capacity.map(|capacity| capacity.run.clone()),
        label,
        simulated: capacity.is_some_and(|capacity| capacity.simulated),
        valid: !at_least && capacity.is_none_or(|capacity| capacity.measured),
    }
}
